/* Attention over several tiles: blocks of 32 queries and of 32 keys, heads wider than 64, positions in no order. */
#include <criterion/criterion.h>
#include <math.h>

#include "support/device.h"
#include "support/parity.h"

static void check(hs_operation operation, hs_test_description d, hs_parity_depth depth) {
    hs_parity parity;
    hs_parity_open_on(&parity, hs_test_device());
    for (hstep_precision precision = HSTEP_PRECISION_F64; precision <= HSTEP_PRECISION_FP16; precision++) {
        d.operation = operation;
        d.precision = precision;
        hs_parity_check(&parity, &d, depth);
    }
    hs_parity_close(&parity);
}

static hs_test_description describe(size_t queries, size_t keys, size_t heads, size_t kv_heads, size_t width) {
    hs_test_description d = hs_test_describe(HS_OP_ATTENTION);
    d.sequences = 1;
    d.queries = queries;
    d.keys = keys;
    d.heads = heads;
    d.kv_heads = kv_heads;
    d.head_width = width;
    return d;
}

/* Three blocks of each, the last of them one row: what lies beyond the diagonal is skipped by tiles and by cells. */
Test(attention, has_blocks_of_queries_and_keys, .timeout = 240) {
    check(HS_OP_ATTENTION, describe(65, 65, 2, 1, 6), HS_PARITY_BRIEF);
    check(HS_OP_ATTENTION_BACKWARD, describe(65, 65, 2, 1, 6), HS_PARITY_BRIEF);
}

/* Columns beyond 64 of a head are computed in a pass of their own. */
Test(attention, has_wide_heads, .timeout = 240) {
    check(HS_OP_ATTENTION, describe(5, 5, 2, 1, 130), HS_PARITY_BRIEF);
    check(HS_OP_ATTENTION_BACKWARD, describe(5, 5, 2, 1, 130), HS_PARITY_BRIEF);
}

/* Any query may see any number of keys, so blocks end anywhere. */
Test(attention, takes_positions_as_they_come, .timeout = 240) {
    hs_test_description d = describe(40, 70, 3, 1, 4);
    d.random_positions = true;
    check(HS_OP_ATTENTION, d, HS_PARITY_BRIEF);
    check(HS_OP_ATTENTION_BACKWARD, d, HS_PARITY_BRIEF);
}

/* One query at the end of many keys, as decoding has it. */
Test(attention, decodes, .timeout = 240) { check(HS_OP_ATTENTION, describe(1, 100, 4, 2, 8), HS_PARITY_BRIEF); }

/* A value that a query does not see, infinite or not a number, must not reach it, nor its gradients. */
Test(attention, touches_no_cell_that_is_not_formed, .timeout = 240) {
    hs_parity parity;
    hs_parity_open_on(&parity, hs_test_device());
    for (int backward = 0; backward < 2; backward++) {
        hs_test_description d = describe(34, 34, 1, 1, 4);
        d.operation = backward ? HS_OP_ATTENTION_BACKWARD : HS_OP_ATTENTION;
        d.precision = HSTEP_PRECISION_BF16;
        hs_test_call *call = hs_test_call_create(&d);
        for (size_t i = 0; i < 34; i++)
            call->inputs[3 + backward].i32[i] = 32;
        for (size_t i = 33 * 4; i < 34 * 4; i++)
            call->inputs[1 + backward].f64[i] = call->inputs[2 + backward].f64[i] =
                i % 2 ? (double)INFINITY : (double)NAN;
        hs_parity_compare(&parity, call, "an unseen key that is not finite");
        hs_test_call_destroy(call);
    }
    cr_assert_eq(parity.raised, 0);
    hs_parity_close(&parity);
}

/* Operands of 16 bits beside such of f64, each slot by itself. */
Test(attention, mixes_types_of_operands, .timeout = 240) {
    hs_parity parity;
    hs_parity_open_on(&parity, hs_test_device());
    hs_test_description d = describe(9, 9, 2, 1, 6);
    d.precision = HSTEP_PRECISION_FP16;
    d.compact = HS_TEST_INPUT(0) | HS_TEST_INPUT(2);
    hs_parity_check(&parity, &d, HS_PARITY_BRIEF);
    d.compact = HS_TEST_INPUT(1) | HS_TEST_OUTPUT(0);
    hs_parity_check(&parity, &d, HS_PARITY_BRIEF);
    d.operation = HS_OP_ATTENTION_BACKWARD;
    d.compact = HS_TEST_INPUT(0) | HS_TEST_INPUT(2) | HS_TEST_OUTPUT(0) | HS_TEST_OUTPUT(2);
    hs_parity_check(&parity, &d, HS_PARITY_BRIEF);
    d.compact = HS_TEST_INPUT(1) | HS_TEST_INPUT(3) | HS_TEST_OUTPUT(1);
    hs_parity_check(&parity, &d, HS_PARITY_BRIEF);
    hs_parity_close(&parity);
}

/* A score of minus infinity leaves a probability of +0 and no trace in y: the flag alone tells of it. */
Test(attention, raises_the_flag_for_scores, .timeout = 240) {
    hs_parity parity;
    hs_parity_open_on(&parity, hs_test_device());
    hs_test_description d = describe(3, 3, 1, 1, 2);
    d.precision = HSTEP_PRECISION_FP16;
    hs_test_call *call = hs_test_call_create(&d);
    for (size_t i = 0; i < 6; i++) {
        call->inputs[0].f64[i] = 300.0;
        call->inputs[1].f64[i] = i / 2 == 1 ? -300.0 : 0.25;
    }
    hs_test_result *result = hs_test_call_run_well(call, parity.reference);
    for (size_t i = 0; i < result->elements[0]; i++)
        cr_assert(isfinite(result->outputs[0][i]));
    hs_test_result_destroy(result);
    hs_parity_compare(&parity, call, "a score of minus infinity");
    cr_assert_eq(parity.raised, 1);
    hs_test_call_destroy(call);
    hs_parity_close(&parity);
}
