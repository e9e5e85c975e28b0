/* The adjoint of attention, one query head after another (policy, sections 3 and 4). */
#include "cpu/reference/attention.h"
#include "cpu/reference/reference.h"
#include "precision/reduce.h"

/* Scratch for one query head. Matrices are [queries][keys]; unformed cells are neither written nor read. */
typedef struct workspace {
    double *p;            /* probabilities */
    double *ds;           /* their adjoints, then those of the scores */
    double *terms;        /* [keys] */
    double *column;       /* [queries] */
    double *rows;         /* [queries][width] */
    double *contribution; /* [width] */
} workspace;

size_t hs_reference_attention_backward_scratch(const hs_call *call, const hs_kernel_run *run) {
    (void)run;
    const hs_reference_attention_shape a = hs_reference_attention_open(call, 1);
    return (2 * a.queries * a.keys + a.keys + a.queries + a.queries * a.width + a.width) * sizeof(double);
}

static workspace divide(const hs_reference_attention_shape *a, double *scratch) {
    workspace w;
    w.p = scratch;
    w.ds = w.p + a->queries * a->keys;
    w.terms = w.ds + a->queries * a->keys;
    w.column = w.terms + a->keys;
    w.rows = w.column + a->queries;
    w.contribution = w.rows + a->queries * a->width;
    return w;
}

/* ds = p*(g - sum(p*g)) times 1/sqrt(width), with g = dY Vt, for one query; returns how many keys it sees. */
static size_t scores_adjoint(const hs_reference_attention_shape *a, const hs_call *call, size_t sequence, size_t head,
                             size_t query, const workspace *w, hs_reference_attention_faults *faults) {
    double *p = w->p + query * a->keys, *ds = w->ds + query * a->keys;
    const size_t formed = hs_reference_attention_probabilities(a, sequence, head, query, p, faults);
    const size_t dy_pitch = hs_reference_pitch(&call->inputs[0]);
    const hs_matrix dy = {hs_reference_attention_query(a, hs_in(call, 0), dy_pitch, sequence, head, query), 0, 1};
    const hs_matrix v = {hs_reference_attention_keys(a, a->v, a->v_pitch, sequence, head), 1, a->v_pitch};
    hs_policy_matmul(a->precision, 1, formed, a->width, dy, v, ds, a->keys, NULL);
    hs_reference_attention_inspect(a, sequence, head, query, HS_ATTENTION_PROBABILITIES_ADJOINT, formed, ds, faults);
    for (size_t j = 0; j < formed; j++)
        w->terms[j] = p[j] * ds[j];
    const double sum = hs_sum_row(formed, w->terms);
    for (size_t j = 0; j < formed; j++)
        ds[j] = (p[j] * (ds[j] - sum)) * a->factor;
    hs_reference_attention_inspect(a, sequence, head, query, HS_ATTENTION_SCORES_ADJOINT, formed, ds, faults);
    return formed;
}

/* One row of matrix^T x for one key: a chain over the queries that see it, ascending. x is q or dy of the head. */
static void product_over_queries(const hs_reference_attention_shape *a, size_t sequence, size_t head, size_t key,
                                 const double *matrix, const double *x, size_t pitch, const workspace *w) {
    size_t seen = 0;
    for (size_t query = 0; query < a->queries; query++) {
        if (hs_reference_attention_formed(a, sequence, query) <= key)
            continue;
        const double *row = hs_reference_attention_query(a, x, pitch, sequence, head, query);
        w->column[seen] = matrix[query * a->keys + key];
        for (size_t i = 0; i < a->width; i++)
            w->rows[seen * a->width + i] = row[i];
        seen++;
    }
    hs_policy_matmul(a->precision, 1, a->width, seen, (hs_matrix){w->column, 0, 1}, (hs_matrix){w->rows, a->width, 1},
                     w->contribution, a->width, NULL);
}

/* The first query head of a key head stores its contribution, the others add theirs. */
static void contribute(const hs_reference_attention_shape *a, size_t head, const double *contribution, double *row) {
    for (size_t i = 0; i < a->width; i++)
        row[i] = head % a->group == 0 ? contribution[i] : row[i] + contribution[i];
}

static void backward_head(const hs_reference_attention_shape *a, const hs_call *call, size_t sequence, size_t head,
                          const workspace *w, hs_reference_attention_faults *faults) {
    const size_t dq_pitch = hs_reference_pitch(&call->outputs[0]);
    const hs_matrix k = {hs_reference_attention_keys(a, a->k, a->k_pitch, sequence, head), a->k_pitch, 1};
    for (size_t query = 0; query < a->queries; query++) {
        const size_t formed = scores_adjoint(a, call, sequence, head, query, w, faults);
        double *dq = hs_out(call, 0) + (sequence * a->queries + query) * dq_pitch + head * a->width;
        hs_policy_matmul(a->precision, 1, a->width, formed, (hs_matrix){w->ds + query * a->keys, 0, 1}, k, dq, dq_pitch,
                         NULL);
    }
    const size_t kv_column = head / a->group * a->width;
    for (size_t key = 0; key < a->keys; key++) {
        const size_t row = sequence * a->keys + key;
        product_over_queries(a, sequence, head, key, w->ds, a->q, a->q_pitch, w);
        contribute(a, head, w->contribution, hs_out(call, 1) + row * hs_reference_pitch(&call->outputs[1]) + kv_column);
        product_over_queries(a, sequence, head, key, w->p, hs_in(call, 0), hs_reference_pitch(&call->inputs[0]), w);
        contribute(a, head, w->contribution, hs_out(call, 2) + row * hs_reference_pitch(&call->outputs[2]) + kv_column);
    }
}

void hs_reference_attention_backward(const hs_call *call, hs_kernel_run *run) {
    const hs_reference_attention_shape a = hs_reference_attention_open(call, 1);
    const workspace w = divide(&a, run->scratch);
    hs_reference_attention_faults faults = {0};
    for (size_t sequence = 0; sequence < a.sequences; sequence++)
        for (size_t head = 0; head < a.heads; head++)
            backward_head(&a, call, sequence, head, &w, &faults);
    hs_reference_attention_report(&faults, run);
}
