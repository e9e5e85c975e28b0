/* Attention in the exact tier: masks, caches, groups, and what the mask hides. */
#include <criterion/criterion.h>
#include <math.h>

#include "support/parity.h"

static const hs_operation directions[] = {HS_OP_ATTENTION, HS_OP_ATTENTION_BACKWARD};

static hs_test_description describe(hs_operation operation, int precision, size_t queries, size_t keys) {
    hs_test_description d = hs_test_describe(operation);
    d.precision = (hstep_precision)precision;
    d.queries = queries, d.keys = keys;
    return d;
}

/* Operands in 16 bits: all of them, or some, each choice in its turn. */
static unsigned next_compact(hs_operation operation) {
    static const unsigned forward[] = {HS_TEST_INPUT(0), HS_TEST_INPUT(1), HS_TEST_INPUT(2), HS_TEST_OUTPUT(0)};
    static const unsigned backward[] = {HS_TEST_INPUT(0),  HS_TEST_INPUT(1),  HS_TEST_INPUT(2), HS_TEST_INPUT(3),
                                        HS_TEST_OUTPUT(0), HS_TEST_OUTPUT(1), HS_TEST_OUTPUT(2)};
    static unsigned turn = 0;
    const bool is_forward = operation == HS_OP_ATTENTION;
    const unsigned count = is_forward ? 4 : 7, choice = turn++ % 2 == 0 ? (1U << count) - 1 : turn * 37 % (1U << count);
    unsigned chosen = 0;
    for (unsigned i = 0; i < count; i++)
        chosen |= choice >> i & 1 ? (is_forward ? forward : backward)[i] : 0;
    return chosen;
}

/* In f64 slots, and with operands in 16 bits. */
static void check(hs_parity *parity, hs_test_description d, hs_parity_depth depth) {
    hs_parity_check(parity, &d, depth);
    if (d.precision == HSTEP_PRECISION_F64)
        return;
    d.compact = next_compact(d.operation);
    hs_parity_check(parity, &d, depth);
}

/* Every count of queries and keys around a tile: training, a cache that is longer, a cache filled to a point. */
Test(attention, every_small_shape, .timeout = 60) {
    hs_parity parity;
    hs_parity_open(&parity);
    for (int precision = HSTEP_PRECISION_F64; precision <= HSTEP_PRECISION_BF16; precision++)
        for (size_t i = 0; i < 2; i++)
            for (size_t queries = 0; queries <= 9; queries++)
                for (size_t keys = queries; keys <= queries + 9; keys += keys == queries ? 1 : 4) {
                    hs_test_description d = describe(directions[i], precision, queries, keys);
                    d.pitch = (queries + keys) % 3;
                    d.random_positions = keys % 2 == 0;
                    check(&parity, d, HS_PARITY_BRIEF);
                }
    cr_assert_gt(parity.raised, 0);
    cr_assert_lt(parity.raised, parity.calls);
    hs_parity_close(&parity);
}

Test(attention, heads_and_groups, .timeout = 60) {
    static const struct {
        size_t sequences, heads, kv_heads, width;
    } shapes[] = {{1, 1, 1, 1}, {1, 3, 1, 7}, {2, 6, 2, 8}, {3, 4, 4, 9}, {1, 8, 2, 16}, {2, 2, 1, 33}};
    hs_parity parity;
    hs_parity_open(&parity);
    for (int precision = HSTEP_PRECISION_F64; precision <= HSTEP_PRECISION_BF16; precision++)
        for (size_t i = 0; i < 2; i++)
            for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
                hs_test_description d = describe(directions[i], precision, 11, 11);
                d.sequences = shapes[s].sequences, d.heads = shapes[s].heads;
                d.kv_heads = shapes[s].kv_heads, d.head_width = shapes[s].width;
                check(&parity, d, HS_PARITY_PLANTED);
                d.random_positions = true;
                check(&parity, d, HS_PARITY_BRIEF);
            }
    hs_parity_close(&parity);
}

/* Rows longer than 32 lanes, and more queries than a sequence has keys. */
Test(attention, long_sequences, .timeout = 60) {
    static const struct {
        size_t queries, keys;
        bool random;
    } shapes[] = {{64, 64, false}, {65, 65, false}, {1, 100, false}, {3, 77, true}, {70, 33, true}};
    hs_parity parity;
    hs_parity_open(&parity);
    for (int precision = HSTEP_PRECISION_F64; precision <= HSTEP_PRECISION_BF16; precision++)
        for (size_t i = 0; i < 2; i++)
            for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
                hs_test_description d = describe(directions[i], precision, shapes[s].queries, shapes[s].keys);
                d.random_positions = shapes[s].random;
                check(&parity, d, HS_PARITY_BRIEF);
            }
    hs_parity_close(&parity);
}

/* Infinite keys and values that no query sees: no flag, no NaN. */
Test(attention, the_mask_hides_infinities, .timeout = 60) {
    hs_parity parity;
    hs_parity_open(&parity);
    for (int precision = HSTEP_PRECISION_F64; precision <= HSTEP_PRECISION_BF16; precision++)
        for (uint32_t first = 0; first < 2; first++) {
            hs_test_description d = describe(directions[first], precision, 6, 13);
            hs_test_call *call = hs_test_call_create(&d);
            const size_t width = d.kv_heads * d.head_width;
            for (size_t i = 0; i < d.sequences * d.queries; i++)
                call->inputs[first + 3].i32[i] = (int32_t)(i % d.queries);
            for (size_t sequence = 0; sequence < d.sequences; sequence++)
                for (size_t i = d.queries * width; i < d.keys * width; i++) {
                    call->inputs[first + 1].f64[sequence * d.keys * width + i] = i % 2 ? (double)INFINITY : (double)NAN;
                    call->inputs[first + 2].f64[sequence * d.keys * width + i] = -(double)INFINITY;
                }
            hs_parity_compare(&parity, call, "infinities behind the mask");
            hs_test_call_destroy(call);
        }
    cr_assert_eq(parity.raised, 0);
    hs_parity_close(&parity);
}

/* Grouped heads whose contributions are finite in fp16 and whose sum is not: no flag, and an infinity in 16 bits. */
Test(attention, sums_of_groups_may_leave_the_format, .timeout = 60) {
    hs_parity parity;
    hs_parity_open(&parity);
    hs_test_description d = describe(HS_OP_ATTENTION_BACKWARD, HSTEP_PRECISION_FP16, 1, 1);
    d.sequences = 1, d.heads = 4, d.kv_heads = 2, d.head_width = 3;
    d.compact = HS_TEST_OUTPUT(0) | HS_TEST_OUTPUT(1) | HS_TEST_OUTPUT(2);
    hs_test_call *call = hs_test_call_create(&d);
    for (size_t i = 0; i < call->inputs[0].elements; i++)
        call->inputs[0].f64[i] = 40000.0;
    hs_test_result *result = hs_test_call_run_well(call, parity.exact[0][0]);
    cr_assert(isinf(result->outputs[2][0]), "dv is %g, not the sum of two adjoints of 40000", result->outputs[2][0]);
    hs_test_result_destroy(result);
    hs_parity_compare(&parity, call, "sums beyond fp16");
    cr_assert_eq(parity.raised, 0);
    hs_test_call_destroy(call);
    hs_parity_close(&parity);
}

/* A score of -inf has probability 0 and leaves finite outputs: the flag is all that tells. */
static void check_hidden_score(hs_parity *parity, uint32_t first) {
    const hs_test_description d = describe(directions[first], HSTEP_PRECISION_FP16, 5, 5);
    hs_test_call *call = hs_test_call_create(&d);
    const size_t width = d.kv_heads * d.head_width;
    for (size_t i = 0; i < call->inputs[first].elements; i++)
        call->inputs[first].f64[i] = 10000.0;
    for (size_t i = width; i < 2 * width; i++)
        call->inputs[first + 1].f64[i] = -60000.0;
    hs_test_result *result = hs_test_call_run(call, parity->exact[0][0]);
    for (size_t output = 0; output < result->output_count; output++)
        for (size_t i = 0; i < result->elements[output]; i++)
            cr_assert(isfinite(result->outputs[output][i]), "the outputs hide it");
    cr_assert_eq(result->flag, 1);
    hs_test_result_destroy(result);
    hs_parity_compare(parity, call, "scores of -inf");
    hs_test_call_destroy(call);
}

Test(attention, a_hidden_score_raises_the_flag, .timeout = 60) {
    hs_parity parity;
    hs_parity_open(&parity);
    check_hidden_score(&parity, 0);
    check_hidden_score(&parity, 1);
    hs_parity_close(&parity);
}
