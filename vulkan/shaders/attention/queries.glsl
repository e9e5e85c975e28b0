/*
 * A block of 32 queries of one head: y of the forward pass, or the adjoint's first stage (HS_ADJOINT), which computes dq
 * and leaves what the second stage needs to know of the queries. The keys are gone through several times:
 * for the largest score, the sum of exponentials, in the adjoint sum(p*g), and the products with v or k, 64 columns of
 * the head at a time.
 */
#include "vulkan/shaders/attention/attention.glsl"

#define HS_MAXIMA 0u
#define HS_SCALES 1u
#define HS_SUMS 2u
#define HS_PRODUCTS 3u /* and further ones */

#ifdef HS_ADJOINT
#define HS_FACTOR_SLOT HS_K
#else
#define HS_FACTOR_SLOT HS_V
#endif

struct hs_query_block {
    uint sequence, head, first;
};

hs_query_block hs_find_block() {
    uint blocks = (hs_queries() + HS_SIDE - 1u) / HS_SIDE, heads = hs_call.record.heads;
    return hs_query_block(hs_group() / blocks / heads, hs_group() / blocks % heads, hs_group() % blocks * HS_SIDE);
}

/* Of the 32 keys from `first` on, those that the query of cell i sees. */
uint hs_seen_keys(int i, uint first) {
    uint reach = hs_reach[hs_cell(i)], count = reach > first ? reach - first : 0u;
    return count < HS_SIDE ? (1u << count) - 1u : 0xffffffffu;
}

/* Of the queries of an invocation's cells. */
struct hs_facts {
    double maxima[HS_CELLS], scales[HS_CELLS], sums[HS_CELLS];
};

/* Whether the invocation has met a part, or an output, that is not finite. */
bool hs_wrong = false;

void hs_judge(double value) {
    hs_wrong = hs_wrong || !hs_is_finite(value);
}

/*
 * What pass `pass` makes of cell i: adds it to the lane, or returns the operand of the product with v or k. Parts are
 * judged in the first pass that has them.
 */
double hs_take_cell(uint pass, int i, double score, double g, double factor, hs_facts facts, inout double lane) {
    double scaled = hs_scale_score(score, factor);
    if (pass == HS_MAXIMA) {
        hs_judge(score);
        lane = scaled > lane ? scaled : lane;
        return 0.0lf;
    }
    double e = hs_exponential(scaled, facts.maxima[i]), p = hs_probability(e, facts.scales[i]);
    precise double term = pass == HS_SCALES ? e : p * g;
    precise double next = lane + term;
    lane = next;
    if (pass == HS_SCALES)
        return 0.0lf;
    hs_judge(p);
#ifdef HS_ADJOINT
    double ds = hs_score_adjoint(p, g, facts.sums[i], factor);
    hs_judge(pass == HS_SUMS ? g : ds);
    return ds;
#else
    return p;
#endif
}

/* Goes through the keys once. */
void hs_go_through_keys(uint pass, hs_query_block block, uint top, double factor, hs_facts facts,
                        inout double lanes[HS_CELLS], inout HS_REAL sums[HS_CELLS][2]) {
    HS_REAL scores[HS_CELLS], adjoints[HS_CELLS];
    double operands[HS_CELLS];
    uint seen[HS_CELLS];
    for (int i = 0; i < HS_CELLS; i++)
        adjoints[i] = HS_REAL(0);
    for (uint first = 0u; first < top; first += HS_SIDE) {
        hs_multiply_rows(hs_query_slice(HS_Q, block.sequence, block.head, block.first),
                         hs_key_slice(HS_K, block.sequence, block.head, first), scores);
#ifdef HS_ADJOINT
        if (pass >= HS_SUMS)
            hs_multiply_rows(hs_query_slice(HS_DY, block.sequence, block.head, block.first),
                             hs_key_slice(HS_V, block.sequence, block.head, first), adjoints);
#endif
        for (int i = 0; i < HS_CELLS; i++) {
            operands[i] = 0.0lf;
            seen[i] = hs_seen_keys(i, first);
            if ((seen[i] >> hs_x() & 1u) != 0u)
                operands[i] = hs_take_cell(pass, i, hs_from_sum(scores[i]), hs_from_sum(adjoints[i]), factor, facts,
                                           lanes[i]);
        }
        if (pass >= HS_PRODUCTS) {
            hs_put_tile(operands);
            hs_add_products(hs_key_slice(HS_FACTOR_SLOT, block.sequence, block.head, first),
                            (pass - HS_PRODUCTS) * HS_WIDTH, seen, sums);
        }
    }
}

/* Keeps what a pass has found out about the queries. */
void hs_keep(uint pass, hs_query_block block, double lanes[HS_CELLS], inout hs_facts facts) {
    for (int i = 0; i < HS_CELLS; i++) {
        precise double r = 1.0lf / lanes[i];
        if (pass == HS_MAXIMA)
            facts.maxima[i] = lanes[i];
        else if (pass == HS_SCALES)
            facts.scales[i] = r;
        else
            facts.sums[i] = lanes[i];
        uint query = block.first + hs_cell(i);
        if (pass == HS_SUMS && hs_x() == 0u && query < hs_queries()) {
            hs_doubles kept = hs_query_facts(block.sequence, block.head, query);
            kept.at[0] = facts.maxima[i];
            kept.at[1] = facts.scales[i];
            kept.at[2] = facts.sums[i];
        }
    }
}

/* Stores columns x and x + 32 from `column` of the head, for the queries of the block. */
void hs_store_block(hs_query_block block, uint column, HS_REAL sums[HS_CELLS][2]) {
    hs_slice rows = hs_query_slice(HS_OUT(0u), block.sequence, block.head, block.first);
    for (int i = 0; i < HS_CELLS; i++)
        for (int c = 0; c < 2; c++) {
            uint at = column + uint(c) * HS_SIDE + hs_x();
            if (hs_cell(i) < rows.count && at < hs_call.record.head_width) {
                double value = hs_from_sum(sums[i][c]);
                hs_judge(value);
                hs_write(HS_OUT(0u), hs_row(HS_OUT(0u), rows.row + hs_cell(i)), rows.column + at, value);
            }
        }
}

void main() {
    hs_query_block block = hs_find_block();
    if (block.sequence >= hs_call.record.sequences)
        return;
    uint top = hs_find_reach(block.sequence, block.first);
    uint passes = HS_PRODUCTS + (hs_call.record.head_width + HS_WIDTH - 1u) / HS_WIDTH;
    double factor = hs_attention_factor(), lanes[HS_CELLS];
    HS_REAL sums[HS_CELLS][2];
    hs_facts facts;
    for (uint pass = HS_MAXIMA; pass < passes; pass++) {
#ifndef HS_ADJOINT
        pass += pass == HS_SUMS ? 1u : 0u;
#endif
        for (int i = 0; i < HS_CELLS; i++)
            lanes[i] = pass == HS_MAXIMA ? packDouble2x32(uvec2(0u, 0xfff00000u)) : 0.0lf;
        hs_clear(sums);
        hs_go_through_keys(pass, block, top, factor, facts, lanes, sums);
        if (pass >= HS_PRODUCTS) {
            hs_store_block(block, (pass - HS_PRODUCTS) * HS_WIDTH, sums);
        } else {
            hs_fold_rows(pass == HS_MAXIMA, lanes);
            hs_keep(pass, block, lanes, facts);
        }
    }
    if (hs_wrong)
        hs_raise();
}
