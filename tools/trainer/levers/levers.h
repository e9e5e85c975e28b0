/* `trainer levers`: what became of every faster way to compute on this machine. */
#ifndef HS_TRAINER_LEVERS_H
#define HS_TRAINER_LEVERS_H

#include <stdio.h>

#include <halfstep/context.h>
#include <jansson.h>

/* argv[0] is "levers". Returns the program's exit status. */
int hs_levers(int argc, char **argv);

/* One row for each lever. */
void hs_levers_print_table(FILE *out, const hstep_context *context);

/* The Vulkan devices of this machine, a line for each. */
void hs_levers_print_devices(FILE *out);

/* The same, as an array; empty where there is no Vulkan. */
json_t *hs_levers_devices_json(void);

/* Everything about one lever, or about all of them where `only` is NULL, as one JSON object (docs/levers.md). Returns
 * the program's exit status. */
int hs_levers_print_json(FILE *out, const hstep_context *context, const hstep_lever *only);

/* Every shape that one lever was judged at and timed on. */
void hs_levers_explain(FILE *out, const hstep_lever *lever);

/* Such as "A Bt". */
const char *hs_levers_form(hstep_transpose a_form, hstep_transpose b_form);

#endif
