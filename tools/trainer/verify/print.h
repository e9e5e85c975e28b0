/* The outcome of a verification. */
#ifndef HS_TRAINER_VERIFY_PRINT_H
#define HS_TRAINER_VERIFY_PRINT_H

#include "trainer/verify/plan.h"

/* Why a side failed, or what there is to say of one that passed; `text` may end empty. */
void hs_side_explain(const hs_side *side, double within, char *text, size_t size);

void hs_verification_print(const hs_verification *verification);

/* One JSON object (docs/trainer.md). Returns the program's exit status. */
int hs_verification_print_json(const hs_verification *verification);

#endif
