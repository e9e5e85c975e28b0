/* The judgement of one gated lever. */
#ifndef HS_ENGINE_LEVERS_GATE_H
#define HS_ENGINE_LEVERS_GATE_H

#include "engine/levers/levers.h"

/* The inner dimensions to judge at, ascending, each once. */
typedef struct hs_depths {
    size_t *k;
    size_t count;
} hs_depths;

/*
 * Judges lever `lever` of a backend in its precision at the policy's shapes and at `depths`, and then, if it passed
 * everywhere, times it. The lever is left DISABLED. A failure says that the gate could not be held, not how it ended.
 */
hstep_status hs_gate_hold(hs_backend *backend, size_t lever, hstep_precision precision, const hs_depths *depths,
                          hs_verdict *verdict, hstep_error *error);

/* engine/levers/timing.c: fills timings and speed. */
hstep_status hs_gate_time(hs_backend *backend, size_t lever, hstep_precision precision, hs_verdict *verdict,
                          hstep_error *error);

/* Adds the figures of a case to the worst so far. */
void hs_gate_widen(hstep_gate_case *worst, const hstep_gate_case *one);

#endif
