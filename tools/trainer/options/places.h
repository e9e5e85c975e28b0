/* Precision by place: --precision-for 'head=f64,blocks.0.*=fp16'. */
#ifndef HS_TRAINER_PLACES_H
#define HS_TRAINER_PLACES_H

#include "trainer/options/options.h"

/*
 * Makes options->rules and options->in_use of options->precision_for, whose texts are lists of PATTERN=PRECISION, or
 * "none", which takes back what stands before it. Layers and precision must be known. `path` is of the checkpoint that
 * the texts come from; NULL: the command said them. Returns HS_EXIT_DONE or reports.
 */
int hs_places_read(hs_options *options, const char *command, const char *path);

/* A precision that serves everywhere: no rules. */
void hs_places_clear(hs_options *options, hstep_precision precision);

/* Defaults of loss scaling are those of this precision. */
hstep_precision hs_places_scaled(const hs_options *options);

/* "bf16-fp32", or "bf16-fp32, head=f64". */
void hs_places_describe(const hs_options *options, char *text, size_t size);

#endif
