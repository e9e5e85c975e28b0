/*
 * Statistics of attempts. What products read is measured by calls that a plan of its own has (engine/plan/measure.c);
 * weights, gradients and updates by two programs around the commit.
 */
#ifndef HS_ENGINE_TRANSACTION_TRACE_TRACE_H
#define HS_ENGINE_TRANSACTION_TRACE_TRACE_H

#include <halfstep/trace.h>

#include "engine/model/model.h"

/* A parameter that products of one precision read, or that none reads, which is measured in f64. */
typedef struct hs_traced_weight {
    size_t parameter;
    hstep_precision precision;
} hs_traced_weight;

/* Where the numbers of a row come from. */
typedef struct hs_trace_source {
    bool is_weight;
    size_t place; /* in weights, or in measured */
} hs_trace_source;

/* What is measured, and the rows that are made of it. */
typedef struct hs_trace_rows {
    hs_traced_weight *weights; /* in the order of the parameters, each at least once */
    size_t weight_count;
    hs_measured *measured;
    size_t measured_count;
    hstep_operand_trace *operands;
    hs_trace_source *sources; /* of each operand */
    size_t operand_count;
    hstep_tensor_trace *tensors;
} hs_trace_rows;

/* Numbers that come back at once, by their place in the buffer of results. */
typedef struct hs_trace_layout {
    size_t weight_squares, weights, gradients, end_of_looks; /* before the commit */
    size_t update_squares, updates, end;                     /* after it */
} hs_trace_layout;

typedef struct hs_trace {
    bool made; /* all of the following is there */
    bool on;   /* attempts are traced from now on */
    bool taken, has_gradients, has_updates;
    hs_trace_rows rows;
    hs_findings *sums;       /* by measured */
    hs_buffer *one, *change; /* [1]: 1; room for the largest parameter: what a commit adds to it */
    hs_buffer *results;
    hs_trace_layout layout;
    double *values; /* of the results, on the host */
    hs_program *looks, *commit;
    size_t looks_at_weights; /* calls at the front of `looks`; those at gradients are behind */
} hs_trace;

/* engine/transaction/trace/rows.c */
hstep_status hs_trace_rows_make(const hstep_model *model, hs_trace_rows *rows, hstep_error *error);
void hs_trace_rows_free(hs_trace_rows *rows);

/* engine/transaction/trace/weights.c: buffers and programs. */
enum { HS_TRACE_COMMIT_CALLS = 5 }; /* for each parameter; the second is ADAMW */
hstep_status hs_trace_weights_make(hstep_trainer *trainer, hstep_error *error);

/* Looks at the weights, and at the gradients where they are whole; then, after the commit, at what that changed. */
hstep_status hs_trace_look(hstep_trainer *trainer, bool has_gradients, hstep_error *error);
hstep_status hs_trace_look_at_updates(hstep_trainer *trainer, hstep_error *error);

/* engine/transaction/trace/trace.c */

/* An attempt begins. */
void hs_trace_begin(hstep_trainer *trainer);

/* A plan has finished these passes. */
hstep_status hs_trace_take(hstep_trainer *trainer, hs_plan *plan, bool forward, bool backward, hstep_error *error);

/*
 * The attempt is decided, and found to be right: fills the rows. Whatever cannot be read back after a commit leaves it
 * without statistics, since it can no longer fail.
 */
void hs_trace_end(hstep_trainer *trainer, double unscale, bool committed);

void hs_trace_free(hstep_trainer *trainer);

#endif
