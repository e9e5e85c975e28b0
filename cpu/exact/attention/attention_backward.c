/*
 * Adjoints of attention. One key head of one sequence belongs to one thread, which takes its query heads in ascending
 * order: the adjoints of keys and values are sums over them. Probabilities and the adjoints of scores are kept packed,
 * as the operands that they become, for a single query head at a time.
 */
#include <omp.h>

#include "cpu/exact/attention/head.h"
#include "cpu/exact/kernels.h"
#include "cpu/exact/softmax.h"
#include "cpu/exact/sums.h"
#include "cpu/exact/view.h"

enum { DY, Q, K, V, POSITIONS };
enum { DQ, DK, DV };

typedef struct workspace {
    hs_packed keys, values, key_columns;     /* of a key head: for scores, for their adjoints, for dq */
    hs_packed query_columns, output_columns; /* of a query head: q for dk, dy for dv */
    hs_packed probabilities, adjoints;       /* of a query head, keys as rows: for dv, for dk */
    hs_packed query, output, adjoint;        /* of a panel of queries: q, dy, adjoints of scores */
    hs_cells p, g;           /* of a panel of queries: probabilities, and adjoints of these, then of scores */
    double *p_row, *g_row;   /* of them */
    hs_run *runs;            /* of a panel of keys */
    double *dk_sum, *dv_sum; /* of a key head: sums over its query heads, where the outputs have 16 bits */
} workspace;

static size_t lay_out(const hs_exact_attention *attention, unsigned char *scratch, workspace *w) {
    const hs_kit *kit = attention->kit;
    const size_t keys = attention->keys, queries = attention->queries, width = attention->width;
    unsigned char *end = scratch;
    const hs_side *left = &kit->left, *right = &kit->right;
    w->keys = hs_carve_panels(&end, kit, right, keys, width);
    w->values = hs_carve_panels(&end, kit, right, keys, width);
    w->key_columns = hs_carve_panels(&end, kit, right, width, keys);
    w->query_columns = hs_carve_panels(&end, kit, right, width, queries);
    w->output_columns = hs_carve_panels(&end, kit, right, width, queries);
    w->probabilities = hs_carve_panels(&end, kit, left, keys, queries);
    w->adjoints = hs_carve_panels(&end, kit, left, keys, queries);
    w->query = hs_carve_panels(&end, kit, left, left->width, width);
    w->output = hs_carve_panels(&end, kit, left, left->width, width);
    w->adjoint = hs_carve_panels(&end, kit, left, left->width, keys);
    w->p = hs_carve_rows(&end, attention);
    w->g = hs_carve_rows(&end, attention);
    w->p_row = hs_carve(&end, keys * sizeof *w->p_row);
    w->g_row = hs_carve(&end, keys * sizeof *w->g_row);
    w->runs = hs_carve(&end, queries * sizeof *w->runs);
    const size_t sums = attention->half && attention->group > 1 ? keys * width * sizeof(double) : 0;
    w->dk_sum = hs_carve(&end, sums);
    w->dv_sum = hs_carve(&end, sums);
    return (size_t)(end - scratch);
}

size_t HS_EXACT(attention_backward_scratch)(const hs_call *call, const hs_kernel_run *run) {
    const hs_exact_attention attention = hs_exact_attention_of(call, run, Q);
    unsigned char origin;
    workspace w;
    return run->threads * lay_out(&attention, &origin, &w);
}

/*
 * p: scores to probabilities; g: adjoints of probabilities to adjoints of scores. All but the probabilities, which are
 * finite when the scores are, raise the flag by themselves: a zero probability may hide them from the outputs.
 */
static uint64_t differentiate_row(double scale, size_t count, double *p, double *g) {
    uint64_t seen = 0;
    double sum;
    for (size_t j = 0; j < count; j++) {
        p[j] *= scale;
        seen |= hs_nonfinite(p[j]) | hs_nonfinite(g[j]);
    }
    hs_softmax_row(count, p, p);
    HS_SUM_OVER(sum, count, j, p[j] * g[j]);
    for (size_t j = 0; j < count; j++) {
        g[j] = p[j] * (g[j] - sum) * scale;
        seen |= hs_nonfinite(g[j]);
    }
    return seen;
}

/* Packs `count` rows of queries, from query `first` on, into panels of keys that run over all queries. */
static void pack_turned(const hs_kit *kit, hs_lines rows, size_t first, size_t count, size_t seen,
                        const hs_packed *packed) {
    const size_t before = first * kit->left.pitch * kit->element;
    for (size_t panel = 0; panel < hs_panels(seen, kit->left.width); panel++) {
        const size_t key = panel * kit->left.width, keys = seen - key < kit->left.width ? seen - key : kit->left.width;
        kit->left.pack(hs_across(hs_lines_from(rows, 0, key)), keys, count,
                       packed->data + panel * packed->bytes + before, &packed->ranges[panel]);
    }
}

static void clear_ranges(const hs_packed *packed, size_t count) {
    for (size_t panel = 0; panel < count; panel++)
        packed->ranges[panel] = hs_no_range;
}

/* One query head: where it stands in the operands. */
typedef struct head {
    hs_lines dy, q;
    hs_cells dq;
} head;

/* A panel of queries: its rows of the probabilities and adjoints, packed, and its dq. */
static bool differentiate_queries(const hs_exact_attention *attention, const hs_positions *positions, const head *h,
                                  size_t first, size_t count, const workspace *w) {
    const hs_kit *kit = attention->kit;
    const size_t seen = hs_keys_seen(positions, first, count);
    uint64_t nonfinite = 0;
    hs_pack_panels(&kit->left, hs_lines_from(h->q, first, 0), count, attention->width, &w->query);
    hs_pack_panels(&kit->left, hs_lines_from(h->dy, first, 0), count, attention->width, &w->output);
    hs_query_key_products(attention, count, seen, &w->query, &w->keys, w->p);
    hs_query_key_products(attention, count, seen, &w->output, &w->values, w->g);
    for (size_t r = 0; r < count; r++) {
        const size_t keys = hs_keys_of(positions, first + r);
        double *p = hs_take_row(attention, w->p, r, keys, w->p_row);
        double *g = hs_take_row(attention, w->g, r, keys, w->g_row);
        nonfinite |= differentiate_row(attention->scale, keys, p, g);
        hs_give_row(attention, w->p, r, keys, p);
        hs_give_row(attention, w->g, r, keys, g);
    }
    pack_turned(kit, hs_along(w->p), first, count, seen, &w->probabilities);
    pack_turned(kit, hs_along(w->g), first, count, seen, &w->adjoints);
    hs_pack_panels(&kit->left, hs_along(w->g), count, seen, &w->adjoint);
    const bool sums = hs_sum_over_keys(attention, positions, first, count, &w->adjoint, &w->key_columns,
                                       hs_cells_from(h->dq, first, 0));
    return sums || hs_any_nonfinite(nonfinite);
}

static bool differentiate_head(const hs_call *call, const hs_exact_attention *attention, const hs_positions *positions,
                               size_t sequence, size_t index, const workspace *w) {
    const hs_kit *kit = attention->kit;
    const size_t row = sequence * attention->queries, column = index * attention->width;
    const head h = {.dy = hs_head_of(&call->inputs[DY], row, column),
                    .q = hs_head_of(&call->inputs[Q], row, column),
                    .dq = hs_head_into(&call->outputs[DQ], row, column)};
    bool nonfinite = false;
    clear_ranges(&w->probabilities, hs_panels(attention->keys, kit->left.width));
    clear_ranges(&w->adjoints, hs_panels(attention->keys, kit->left.width));
    for (size_t first = 0; first < attention->queries; first += kit->left.width) {
        const size_t rest = attention->queries - first, count = rest < kit->left.width ? rest : kit->left.width;
        nonfinite |= differentiate_queries(attention, positions, &h, first, count, w);
    }
    hs_pack_panels(&kit->right, hs_across(h.q), attention->width, attention->queries, &w->query_columns);
    hs_pack_panels(&kit->right, hs_across(h.dy), attention->width, attention->queries, &w->output_columns);
    return nonfinite;
}

/* The adjoints of a key head. */
typedef struct sums {
    hs_cells dk, dv;
} sums;

/* What one query head gives to the adjoints of its keys and values: stored from the first of a group, then added. */
static bool differentiate_keys(const hs_exact_attention *attention, const hs_positions *positions, const sums *s,
                               bool added, const workspace *w) {
    const size_t height = attention->kit->left.width;
    bool nonfinite = false;
    for (size_t panel = 0; panel < hs_panels(attention->keys, height); panel++) {
        const size_t first = panel * height, rest = attention->keys - first, count = rest < height ? rest : height;
        const size_t runs = hs_runs_of(positions, attention->queries, first, count, w->runs);
        nonfinite |= hs_sum_over_queries(attention, w->runs, runs, panel, count, &w->adjoints, &w->query_columns,
                                         hs_cells_from(s->dk, first, 0), added);
        nonfinite |= hs_sum_over_queries(attention, w->runs, runs, panel, count, &w->probabilities, &w->output_columns,
                                         hs_cells_from(s->dv, first, 0), added);
    }
    return nonfinite;
}

/* Sums over several query heads are f64 until the last one is in: results of 16 bits wait in `room`. */
static hs_cells summed_in(const hs_exact_attention *attention, hs_cells results, double *room) {
    return results.half && attention->group > 1 ? (hs_cells){room, attention->width, false} : results;
}

static void round_sums(const hs_exact_attention *attention, hs_cells summed, hs_cells results) {
    for (size_t key = 0; key < attention->keys && summed.data != results.data; key++)
        attention->kit->narrow(attention->width, hs_cells_from(summed, key, 0).data,
                               hs_cells_from(results, key, 0).data);
}

static bool differentiate_group(const hs_call *call, const hs_exact_attention *attention, size_t sequence,
                                size_t kv_head, const workspace *w) {
    const hs_side *right = &attention->kit->right;
    const size_t row = sequence * attention->keys, column = kv_head * attention->width;
    const hs_lines k = hs_head_of(&call->inputs[K], row, column), v = hs_head_of(&call->inputs[V], row, column);
    const hs_cells dk = hs_head_into(&call->outputs[DK], row, column),
                   dv = hs_head_into(&call->outputs[DV], row, column);
    const sums s = {summed_in(attention, dk, w->dk_sum), summed_in(attention, dv, w->dv_sum)};
    const hs_positions positions = hs_positions_of(attention, hs_in_i32(call, POSITIONS), sequence);
    hs_pack_panels(right, k, positions.keys, attention->width, &w->keys);
    hs_pack_panels(right, v, positions.keys, attention->width, &w->values);
    hs_pack_panels(right, hs_across(k), attention->width, positions.keys, &w->key_columns);
    bool nonfinite = false;
    for (size_t i = 0; i < attention->group; i++) {
        nonfinite |= differentiate_head(call, attention, &positions, sequence, kv_head * attention->group + i, w);
        nonfinite |= differentiate_keys(attention, &positions, &s, i > 0, w);
    }
    round_sums(attention, s.dk, dk);
    round_sums(attention, s.dv, dv);
    return nonfinite;
}

void HS_EXACT(attention_backward)(const hs_call *call, hs_kernel_run *run) {
    const hs_exact_attention attention = hs_exact_attention_of(call, run, Q);
    const size_t kv_heads = attention.heads / attention.group, groups = attention.sequences * kv_heads;
    bool nonfinite = false;
#pragma omp parallel num_threads(run->threads) if (groups > 1) reduction(|| : nonfinite)
    {
        workspace w;
        const size_t bytes = lay_out(&attention, run->scratch, &w);
        lay_out(&attention, (unsigned char *)run->scratch + (size_t)omp_get_thread_num() * bytes, &w);
#pragma omp for schedule(dynamic)
        for (size_t i = 0; i < groups; i++)
            nonfinite |= differentiate_group(call, &attention, i / kv_heads, i % kv_heads, &w);
    }
    run->nonfinite = run->nonfinite || nonfinite;
}
