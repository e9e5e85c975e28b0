/* What is left once all sides are trained. */
#ifndef HS_TRAINER_VERIFY_CONCLUDE_H
#define HS_TRAINER_VERIFY_CONCLUDE_H

#include "trainer/verify/plan.h"

/* Final figures, verdicts, output, and what is remembered of levers. Returns the program's exit status. */
int hs_verification_conclude(hs_verification *verification);

#endif
