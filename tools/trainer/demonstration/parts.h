/* The parts of the demonstration record. Each computes its field, puts it into the record and returns an exit status.
 */
#ifndef HS_TRAINER_DEMONSTRATION_PARTS_H
#define HS_TRAINER_DEMONSTRATION_PARTS_H

#include <jansson.h>

#include <halfstep/halfstep.h>

int hs_demonstrate_dtypes(hstep_precision precision, json_t *record);
int hs_demonstrate_representation(json_t *record);
int hs_demonstrate_finite_updates(hstep_precision precision, json_t *record);
int hs_demonstrate_text_reference(hstep_precision precision, json_t *record);
int hs_demonstrate_clipping(json_t *record);
int hs_demonstrate_overflow(json_t *record);

/* Takes the reference to value, where NULL stands for memory that ran out. */
int hs_put_part(json_t *record, const char *name, json_t *value);

/* Appends to a list that is under construction and takes the reference to value. Where memory runs out the list is
   given up and *list becomes NULL, which hs_put_part, json_pack and this function pass on. */
void hs_append(json_t **list, json_t *value);

#endif
