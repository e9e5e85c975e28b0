/* Attention: one query head of one sequence at a time per thread, a panel of queries at a time within it. */
#include <omp.h>

#include "cpu/exact/attention/head.h"
#include "cpu/exact/kernels.h"
#include "cpu/exact/softmax.h"
#include "cpu/exact/sums.h"
#include "cpu/exact/view.h"

/* What a thread works with. */
typedef struct workspace {
    hs_packed keys, values; /* for the scores, and for the sum over keys */
    hs_packed query, weights;
    hs_cells scores; /* a panel of queries by all keys, probabilities later */
    double *row;     /* of them */
} workspace;

static size_t lay_out(const hs_exact_attention *attention, unsigned char *scratch, workspace *w) {
    const hs_kit *kit = attention->kit;
    unsigned char *end = scratch;
    w->keys = hs_carve_panels(&end, kit, &kit->right, attention->keys, attention->width);
    w->values = hs_carve_panels(&end, kit, &kit->right, attention->width, attention->keys);
    w->query = hs_carve_panels(&end, kit, &kit->left, kit->left.width, attention->width);
    w->weights = hs_carve_panels(&end, kit, &kit->left, kit->left.width, attention->keys);
    w->scores = hs_carve_rows(&end, attention);
    w->row = hs_carve(&end, attention->keys * sizeof *w->row);
    return (size_t)(end - scratch);
}

size_t HS_EXACT(attention_scratch)(const hs_call *call, const hs_kernel_run *run) {
    const hs_exact_attention attention = hs_exact_attention_of(call, run, 0);
    unsigned char origin;
    workspace w;
    return run->threads * lay_out(&attention, &origin, &w);
}

/* Scores to probabilities. A nonfinite score raises the flag even where its probability is an innocent 0; finite scores
 * give finite probabilities. */
static uint64_t probabilities(double scale, size_t count, double *scores) {
    uint64_t seen = 0;
    for (size_t j = 0; j < count; j++) {
        scores[j] *= scale;
        seen |= hs_nonfinite(scores[j]);
    }
    hs_softmax_row(count, scores, scores);
    return seen;
}

static bool attend(const hs_exact_attention *attention, const hs_positions *positions, hs_lines q, hs_cells y,
                   const workspace *w) {
    const hs_side *left = &attention->kit->left;
    uint64_t scores = 0;
    bool nonfinite = false;
    for (size_t first = 0; first < attention->queries; first += left->width) {
        const size_t rest = attention->queries - first, count = rest < left->width ? rest : left->width;
        const size_t seen = hs_keys_seen(positions, first, count);
        hs_pack_panels(left, hs_lines_from(q, first, 0), count, attention->width, &w->query);
        hs_query_key_products(attention, count, seen, &w->query, &w->keys, w->scores);
        for (size_t r = 0; r < count; r++) {
            const size_t keys = hs_keys_of(positions, first + r);
            double *row = hs_take_row(attention, w->scores, r, keys, w->row);
            scores |= probabilities(attention->scale, keys, row);
            hs_give_row(attention, w->scores, r, keys, row);
        }
        hs_pack_panels(left, hs_along(w->scores), count, seen, &w->weights);
        nonfinite |=
            hs_sum_over_keys(attention, positions, first, count, &w->weights, &w->values, hs_cells_from(y, first, 0));
    }
    return nonfinite || hs_any_nonfinite(scores);
}

static bool attend_head(const hs_call *call, const hs_exact_attention *attention, size_t sequence, size_t head,
                        const workspace *w) {
    const hs_side *right = &attention->kit->right;
    const size_t column = head * attention->width, kv_column = head / attention->group * attention->width;
    const size_t query = sequence * attention->queries, key = sequence * attention->keys;
    const hs_positions positions = hs_positions_of(attention, hs_in_i32(call, 3), sequence);
    const hs_lines k = hs_head_of(&call->inputs[1], key, kv_column), v = hs_head_of(&call->inputs[2], key, kv_column);
    hs_pack_panels(right, k, positions.keys, attention->width, &w->keys);
    hs_pack_panels(right, hs_across(v), attention->width, positions.keys, &w->values);
    return attend(attention, &positions, hs_head_of(&call->inputs[0], query, column),
                  hs_head_into(&call->outputs[0], query, column), w);
}

void HS_EXACT(attention)(const hs_call *call, hs_kernel_run *run) {
    const hs_exact_attention attention = hs_exact_attention_of(call, run, 0);
    const size_t heads = attention.sequences * attention.heads;
    bool nonfinite = false;
#pragma omp parallel num_threads(run->threads) if (heads > 1) reduction(|| : nonfinite)
    {
        workspace w;
        const size_t bytes = lay_out(&attention, run->scratch, &w);
        lay_out(&attention, (unsigned char *)run->scratch + (size_t)omp_get_thread_num() * bytes, &w);
#pragma omp for schedule(dynamic)
        for (size_t i = 0; i < heads; i++)
            nonfinite |= attend_head(call, &attention, i / attention.heads, i % attention.heads, &w);
    }
    run->nonfinite = run->nonfinite || nonfinite;
}
