/* One shape, tried with all inputs, orientations and storages. */
#ifndef HS_ENGINE_LEVERS_GATE_TRIAL_H
#define HS_ENGINE_LEVERS_GATE_TRIAL_H

#include "engine/levers/gate/product.h"

typedef struct hs_shape {
    size_t m, n, k;
    bool dense; /* tried without gaps, all operands of one type */
} hs_shape;

/* Fills HS_FORMS cases with what the active kernels do against the policy's product, up to the first inputs on which
 * they fail. */
hstep_status hs_trial(hs_backend *backend, const hs_lever_facts *facts, const hs_shape *shape, hstep_gate_case *cases,
                      hstep_error *error);

/* Adds the figures of a case to the worst so far. */
void hs_gate_widen(hstep_gate_case *worst, const hstep_gate_case *one);

/* Whether the figures of a case are within all bounds. */
bool hs_gate_within(const hstep_gate_case *one);

#endif
