/* The judgement of one gated lever. */
#ifndef HS_ENGINE_LEVERS_GATE_GATE_H
#define HS_ENGINE_LEVERS_GATE_GATE_H

#include "engine/levers/levers.h"

/* The inner dimensions of products to come. */
typedef struct hs_depths {
    size_t *k;
    size_t count;
} hs_depths;

/*
 * Judges lever `lever` of a backend at the policy's shapes and at `depths`, up to the first shape that it fails at, and
 * then, if it passed everywhere, times it. The verdict may come with what an earlier process measured: only what is
 * missing is measured then, and *measured tells whether anything was. The lever is left DISABLED. A failure says that
 * the gate could not be held, not how it ended; the verdict is empty then.
 */
hstep_status hs_gate_hold(hs_backend *backend, size_t lever, const hs_lever_facts *facts, const hs_depths *depths,
                          hs_verdict *verdict, bool *measured, hstep_error *error);

/* The worst of all cases, and the speed that the timings give, 0 where there are none. */
void hs_gate_summarise(hs_verdict *verdict);

/* So many timings a lever has, or none. */
enum { HS_GATE_TIMINGS = 6 };

/* engine/levers/gate/timing.c: fills the timings. */
hstep_status hs_gate_time(hs_backend *backend, size_t lever, hstep_precision precision, hs_verdict *verdict,
                          hstep_error *error);

#endif
