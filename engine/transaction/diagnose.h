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
typedef struct hs_diagnosis {
    size_t call; /* the one that the reference would flag first */
    bool exact;  /* exact kernels found it, because gated ones took part */
} hs_diagnosis;

hs_diagnosis hs_diagnose(hstep_model *model, hs_plan *plan, size_t call, hstep_overflow *overflow);

/* Runs calls of a plan again and waits, with the kernels it was made with or with exact ones. */
hstep_status hs_run_again(hs_plan *plan, bool exact, size_t first, size_t count, uint32_t *flags);

/* "inf" or "nan" for a nonfinite value. */
const char *hs_nonfinite_kind(double value);

#endif
