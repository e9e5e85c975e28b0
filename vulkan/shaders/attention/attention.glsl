/*
 * What the shaders of attention share: which keys a query sees, scores, probabilities (policy, sections 2 to 4). Scores
 * are computed anew in every pass, since to keep them would take memory for queries times keys.
 * In the adjoint, where a shader says HS_ADJOINT before it includes this, dy stands before q, k, v and positions.
 */
#include "vulkan/shaders/attention/tiles.glsl"

#ifdef HS_ADJOINT
#define HS_DY HS_IN(0u)
#define HS_Q HS_IN(1u)
#else
#define HS_Q HS_IN(0u)
#endif
#define HS_K (HS_Q + 1u)
#define HS_V (HS_Q + 2u)
#define HS_POSITIONS (HS_Q + 3u)

shared uint hs_reach[HS_SIDE]; /* how many keys each query of the block sees; 0 behind the last */

/* Of one sequence. */
uint hs_queries() {
    return hs_rows(HS_Q) / hs_call.record.sequences;
}

uint hs_keys() {
    return hs_rows(HS_K) / hs_call.record.sequences;
}

/* How many of `count` rows a block that begins with `first` has. */
uint hs_block_rows(uint count, uint first) {
    uint left = count - first;
    return left < HS_SIDE ? left : HS_SIDE;
}

/* A block of queries in q, or in what has its rows, and a block of keys in k or v; the head is one of queries. */
hs_slice hs_query_slice(uint slot, uint sequence, uint head, uint first) {
    return hs_slice(slot, sequence * hs_queries() + first, hs_block_rows(hs_queries(), first),
                    head * hs_call.record.head_width);
}

hs_slice hs_key_slice(uint slot, uint sequence, uint head, uint first) {
    uint key_head = head / (hs_call.record.heads / hs_call.record.kv_heads);
    return hs_slice(slot, sequence * hs_keys() + first, hs_block_rows(hs_keys(), first),
                    key_head * hs_call.record.head_width);
}

/* Sets hs_reach for a block of queries; returns the most that one sees. All have to call it. */
uint hs_find_reach(uint sequence, uint first) {
    uint x = gl_LocalInvocationID.x, most = 0u;
    barrier();
    if (x < HS_SIDE) {
        uint reach = 0u;
        if (first + x < hs_queries()) {
            reach = uint(hs_load_index(HS_POSITIONS, sequence * hs_queries() + first + x)) + 1u;
            reach = reach < hs_keys() ? reach : hs_keys();
        }
        hs_reach[x] = reach;
    }
    barrier();
    for (uint i = 0u; i < HS_SIDE; i++)
        most = hs_reach[i] > most ? hs_reach[i] : most;
    return most;
}

/* 1/sqrt(head width) */
double hs_attention_factor() {
    precise double root = sqrt(double(hs_call.record.head_width));
    precise double factor = 1.0lf / root;
    return factor;
}

double hs_scale_score(double score, double factor) {
    precise double scaled = score * factor;
    return scaled;
}

double hs_exponential(double scaled, double maximum) {
    precise double difference = scaled - maximum;
    return hs_exp(difference);
}

double hs_probability(double exponential, double r) {
    precise double p = exponential * r;
    return p;
}

/* (p*(g - sum(p*g))) * factor */
double hs_score_adjoint(double p, double g, double sum, double factor) {
    precise double adjoint = (p * (g - sum)) * factor;
    return adjoint;
}

/*
 * What the adjoint's first stage leaves in scratch for its second, of a query of a head: m, r = 1/z, sum(p*g).
 */
hs_doubles hs_query_facts(uint sequence, uint head, uint query) {
    uint64_t row = uint64_t(sequence) * uint64_t(hs_call.record.heads) + uint64_t(head);
    return hs_scratch(3UL * (row * uint64_t(hs_queries()) + uint64_t(query)));
}
