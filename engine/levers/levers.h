/*
 * Which levers a context uses (policy, section 7). A selection says what may be used; a gated lever that may is looked
 * for, judged against the policy's product, timed against the exact kernels, and switched on if it passes and wins. The
 * gate reaches kernels through engine/backend.h alone, so it serves any backend.
 */
#ifndef HS_ENGINE_LEVERS_LEVERS_H
#define HS_ENGINE_LEVERS_LEVERS_H

#include "engine/backend.h"
#include "engine/log.h"

enum { HS_MAX_LEVERS = 16 };

/* The gate's figures, which own their rows. */
typedef struct hs_verdict {
    hstep_lever_gate gate;
    hstep_gate_case *cases;
    hstep_gate_timing *timings;
} hs_verdict;

void hs_verdict_free(hs_verdict *verdict);

/* The levers of a context: the backend's, with figures. */
typedef struct hs_lever_table {
    hstep_lever levers[HS_MAX_LEVERS];
    size_t count;
    hs_verdict verdicts[HS_MAX_LEVERS];                /* alike; without rows where there was no judgement */
    char identities[HS_MAX_LEVERS][HS_LEVER_IDENTITY]; /* of gated levers that were found */
    char *pin;                                         /* the chosen set as text (pin.h); NULL where none was chosen */
} hs_lever_table;

/* What the options of a context say about levers. */
typedef struct hs_lever_request {
    const char *selection; /* selection.h */
    const hstep_product_depth *products;
    size_t product_count;
    bool judge_anew;
    hs_messages log;
} hs_lever_request;

/* Switches the levers of a backend on and off and fills the table. On failure the table is empty. */
hstep_status hs_levers_choose(hs_backend *backend, const hs_lever_request *request, hs_lever_table *table,
                              hstep_error *error);

/* The table of a backend as it stands. */
void hs_levers_copy(const hs_backend *backend, hs_lever_table *table);

void hs_lever_table_free(hs_lever_table *table);

#endif
