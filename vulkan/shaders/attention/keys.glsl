/*
 * Second stage of the adjoint: dk and dv for a block of 32 keys. Chains go over the queries that see a key, ascending;
 * what the query heads of a key head contribute is added up in f64, ascending.
 */
#define HS_ADJOINT
#include "vulkan/shaders/attention/attention.glsl"

struct hs_key_block {
    uint sequence, key_head, first;
};

/* Of the 32 queries of a block, those that see a key. */
uint hs_seen_queries(uint key) {
    uint seen = 0u;
    for (uint t = 0u; t < HS_SIDE; t++)
        seen |= hs_reach[t] > key ? 1u << t : 0u;
    return seen;
}

/* Continues the chains of dk and dv with 32 queries of a head. */
void hs_add_queries(hs_key_block block, uint head, uint first_query, uint column, double factor,
                    inout HS_REAL dk[HS_CELLS][2], inout HS_REAL dv[HS_CELLS][2]) {
    hs_slice q = hs_query_slice(HS_Q, block.sequence, head, first_query);
    hs_slice dy = hs_query_slice(HS_DY, block.sequence, head, first_query);
    HS_REAL scores[HS_CELLS], adjoints[HS_CELLS];
    double p[HS_CELLS], ds[HS_CELLS], maximum = 0.0lf, scale = 0.0lf, sum = 0.0lf;
    uint seen[HS_CELLS];
    hs_multiply_rows(hs_key_slice(HS_K, block.sequence, head, block.first), q, scores);
    hs_multiply_rows(hs_key_slice(HS_V, block.sequence, head, block.first), dy, adjoints);
    if (hs_x() < q.count) {
        hs_doubles facts = hs_query_facts(block.sequence, head, first_query + hs_x());
        maximum = facts.at[0];
        scale = facts.at[1];
        sum = facts.at[2];
    }
    for (int i = 0; i < HS_CELLS; i++) {
        seen[i] = hs_seen_queries(block.first + hs_cell(i));
        double scaled = hs_scale_score(hs_from_sum(scores[i]), factor);
        p[i] = hs_probability(hs_exponential(scaled, maximum), scale);
        ds[i] = hs_score_adjoint(p[i], hs_from_sum(adjoints[i]), sum, factor);
    }
    hs_put_tile(p);
    hs_add_products(dy, column, seen, dv);
    hs_put_tile(ds);
    hs_add_products(q, column, seen, dk);
}

/* The first query head of a key head stores what it contributes, the others add theirs. */
void hs_contribute(bool first, HS_REAL sums[HS_CELLS][2], inout double totals[HS_CELLS][2]) {
    for (int i = 0; i < HS_CELLS; i++)
        for (int c = 0; c < 2; c++) {
            double contribution = hs_from_sum(sums[i][c]);
            precise double total = totals[i][c] + contribution;
            totals[i][c] = first ? contribution : total;
        }
}

void hs_store_keys(hs_key_block block, uint slot, uint column, double totals[HS_CELLS][2]) {
    bool wrong = false;
    uint count = hs_block_rows(hs_keys(), block.first), row = block.sequence * hs_keys() + block.first;
    for (int i = 0; i < HS_CELLS; i++)
        for (int c = 0; c < 2; c++) {
            uint at = column + uint(c) * HS_SIDE + hs_x();
            if (hs_cell(i) < count && at < hs_call.record.head_width) {
                wrong = wrong || !hs_is_finite(totals[i][c]);
                hs_write(slot, hs_row(slot, row + hs_cell(i)), block.key_head * hs_call.record.head_width + at,
                         totals[i][c]);
            }
        }
    if (wrong)
        hs_raise();
}

void main() {
    uint blocks = (hs_keys() + HS_SIDE - 1u) / HS_SIDE, key_heads = hs_call.record.kv_heads;
    uint heads = hs_call.record.heads / key_heads, queries = hs_queries();
    hs_key_block block = hs_key_block(hs_group() / blocks / key_heads, hs_group() / blocks % key_heads,
                                      hs_group() % blocks * HS_SIDE);
    if (block.sequence >= hs_call.record.sequences)
        return;
    double factor = hs_attention_factor(), dk_totals[HS_CELLS][2], dv_totals[HS_CELLS][2];
    HS_REAL dk[HS_CELLS][2], dv[HS_CELLS][2];
    for (uint column = 0u; column < hs_call.record.head_width; column += HS_WIDTH) {
        for (uint h = 0u; h < heads; h++) {
            hs_clear(dk);
            hs_clear(dv);
            for (uint first = 0u; first < queries; first += HS_SIDE)
                if (hs_find_reach(block.sequence, first) > block.first)
                    hs_add_queries(block, block.key_head * heads + h, first, column, factor, dk, dv);
            hs_contribute(h == 0u, dk, dk_totals);
            hs_contribute(h == 0u, dv, dv_totals);
        }
        hs_store_keys(block, HS_OUT(1), column, dk_totals);
        hs_store_keys(block, HS_OUT(2), column, dv_totals);
    }
}
