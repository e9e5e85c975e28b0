/* Names what overflowed, by running a failed micro-batch again up to the call that failed (policy, section 5). */
#ifndef HS_ENGINE_TRANSACTION_DIAGNOSE_H
#define HS_ENGINE_TRANSACTION_DIAGNOSE_H

#include <halfstep/trainer.h>

#include "engine/model/model.h"

/*
 * `plan` has just run a micro-batch, which its inputs still hold, and `call` is the first call that it flagged. Where
 * all levers are exact the reference would flag the same one; where gated ones took part the attempt is run again with
 * exact ones, to find the one that it would flag. What is left is the tensor and the index. They come from the backend
 * where it locates. Elsewhere the calls before are run again, and the call itself once more on
 * the reference if it has parts inside, or here if its outputs tell all. Never fails: a diagnosis that finds no memory
 * still names the operation, and an overflow stays a skip.
 */
void hs_diagnose(hstep_model *model, hs_plan *plan, size_t call, hstep_overflow *overflow);

/* "inf" or "nan" for a nonfinite value. */
const char *hs_nonfinite_kind(double value);

#endif
