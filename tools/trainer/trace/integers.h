/* Weights and tokens made from integers, by the formula of docs/comparing.md: any program can make the same ones. */
#ifndef HS_TRAINER_INTEGERS_H
#define HS_TRAINER_INTEGERS_H

#include <halfstep/halfstep.h>

/* Writes every parameter. */
hstep_status hs_integers_write_weights(hstep_model *model, hstep_error *error);

/* Fills tokens and targets, [sequences][length] each. */
void hs_integers_fill_tokens(size_t vocabulary, size_t sequences, size_t length, int32_t *tokens, int32_t *targets);

#endif
