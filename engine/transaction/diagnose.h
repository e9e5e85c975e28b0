/* Names what overflowed, by running a failed micro-batch again in reference order (policy, section 5). */
#ifndef HS_ENGINE_TRANSACTION_DIAGNOSE_H
#define HS_ENGINE_TRANSACTION_DIAGNOSE_H

#include <halfstep/trainer.h>

#include "engine/model/model.h"

/*
 * `failed` has just run a micro-batch, which its inputs still hold, and flagged a call of `phase`. Fills *overflow from
 * the reference; where the reference stays finite (a gated lever may overflow alone) from the flags themselves.
 */
hstep_status hs_diagnose(hstep_model *model, const hs_plan *failed, hs_phase phase, hstep_overflow *overflow,
                         hstep_error *error);

/* "inf" or "nan" for a nonfinite value. */
const char *hs_nonfinite_kind(double value);

#endif
