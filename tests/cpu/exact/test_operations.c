/* Every operation in the exact tier against the reference, over shapes that sit on the edges of blocks and lanes. */
#include <criterion/criterion.h>

#include "support/parity.h"
#include "support/shapes.h"

static void check_shapes(hs_parity *parity, hs_operation operation) {
    const hstep_precision last = hs_parity_heeds_precision(operation) ? HSTEP_PRECISION_BF16 : HSTEP_PRECISION_F64;
    for (hstep_precision precision = HSTEP_PRECISION_F64; precision <= last; precision++)
        for (size_t i = 0; i < HS_TEST_SHAPES; i++) {
            const hs_test_description d = hs_test_describe_shape(operation, precision, &hs_test_shapes[i]);
            hs_parity_check(parity, &d,
                            d.rows < 10   ? HS_PARITY_PLANTED
                            : d.rows < 64 ? HS_PARITY_FULL
                                          : HS_PARITY_BRIEF);
        }
}

Test(operations, give_the_reference_bits, .timeout = 60) {
    hs_parity parity;
    hs_parity_open(&parity);
    for (int operation = 0; operation < HS_OP_COUNT; operation++) {
        parity.calls = parity.raised = 0;
        check_shapes(&parity, (hs_operation)operation);
        /* Both verdicts must have been seen, or equal flags would mean little. */
        cr_assert_eq(parity.raised > 0, hs_parity_can_flag((hs_operation)operation), "%s",
                     hs_operation_name((hs_operation)operation));
        cr_assert_lt(parity.raised, parity.calls, "%s", hs_operation_name((hs_operation)operation));
    }
    hs_parity_close(&parity);
}

/* Above the sizes from which loops are shared out, in uneven parts. */
Test(operations, share_large_tensors_out, .timeout = 60) {
    static const hs_test_shape large[] = {
        {131, 131, 8, 133, 3, 12, 12, 4, 2, 32, 0},
        {300, 66, 4, 20, 1, 3, 3, 2, 2, 26, 3},
        {5, 4101, 2, 7, 1, 2, 2, 2, 1, 2000, 1},
        {40000, 1, 1, 20011, 2, 2, 2, 1, 1, 2, 0},
    };
    hs_parity parity;
    hs_parity_open(&parity);
    for (int operation = 0; operation < HS_OP_COUNT; operation++)
        for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
            const hs_test_description d =
                hs_test_describe_shape((hs_operation)operation, HSTEP_PRECISION_BF16, &large[i]);
            hs_parity_check(&parity, &d, HS_PARITY_BRIEF);
        }
    hs_parity_close(&parity);
}

/* A tensor sum of more than 32 rows of 4096 folds a second time over its lanes. */
Test(operations, sum_tensors_of_many_rows, .timeout = 60) {
    hs_parity parity;
    hs_parity_open(&parity);
    for (size_t rows = 32; rows <= 35; rows++)
        for (int i = 0; i < 2; i++) {
            hs_test_description d = hs_test_describe(i == 0 ? HS_OP_SUM : HS_OP_SQUARE_SUM);
            d.rows = rows;
            d.columns = 4097;
            hs_parity_check(&parity, &d, HS_PARITY_BRIEF);
        }
    hs_parity_close(&parity);
}

Test(operations, work_in_place, .timeout = 60) {
    hs_parity parity;
    hs_parity_open(&parity);
    for (size_t i = 0; i < HS_TEST_SHAPES; i++) {
        hs_test_description d = hs_test_describe_shape(HS_OP_ADD, HSTEP_PRECISION_F64, &hs_test_shapes[i]);
        d.in_place = true;
        hs_parity_check(&parity, &d, HS_PARITY_PLANTED);
        d.operation = HS_OP_GATHER_BACKWARD;
        hs_parity_check(&parity, &d, HS_PARITY_PLANTED);
        d.in_place = false;
        d.without_base = true;
        hs_parity_check(&parity, &d, HS_PARITY_PLANTED);
    }
    hs_parity_close(&parity);
}

Test(operations, decay_where_asked, .timeout = 60) {
    hs_parity parity;
    hs_parity_open(&parity);
    for (size_t i = 0; i < HS_TEST_SHAPES; i++) {
        hs_test_description d = hs_test_describe_shape(HS_OP_ADAMW, HSTEP_PRECISION_F64, &hs_test_shapes[i]);
        d.decay = true;
        hs_parity_check(&parity, &d, HS_PARITY_PLANTED);
    }
    hs_parity_close(&parity);
}

/* The same row many times: the order of additions is all that decides the last bits. */
Test(operations, scatter_in_ascending_order, .timeout = 60) {
    hs_parity parity;
    hs_parity_open(&parity);
    hs_test_description d = hs_test_describe(HS_OP_GATHER_BACKWARD);
    d.rows = 500;
    d.columns = 40;
    d.table = 2;
    hs_parity_check(&parity, &d, HS_PARITY_FULL);
    hs_parity_close(&parity);
}

Test(operations, leave_ignored_targets_alone, .timeout = 60) {
    hs_parity parity;
    hs_parity_open(&parity);
    for (int i = 0; i < 2; i++) {
        hs_test_description d = hs_test_describe(i == 0 ? HS_OP_CROSS_ENTROPY : HS_OP_CROSS_ENTROPY_BACKWARD);
        d.rows = 70;
        d.columns = 37;
        hs_test_call *call = hs_test_call_create(&d);
        int32_t *targets = call->inputs[i == 0 ? 1 : 2].i32;
        double *logits = call->inputs[i == 0 ? 0 : 1].f64;
        for (size_t row = 0; row < d.rows; row += 3) {
            targets[row] = -1;
            logits[row * d.columns + row % d.columns] = row % 2 == 0 ? 1e308 * 10.0 : -1e308 * 10.0;
        }
        hs_parity_compare(&parity, call, "infinite logits in ignored rows");
        for (size_t row = 0; row < d.rows; row++)
            targets[row] = -1;
        hs_parity_compare(&parity, call, "all rows ignored");
        cr_assert_eq(parity.raised, 0, "an ignored row must raise no flag");
        hs_test_call_destroy(call);
    }
    hs_parity_close(&parity);
}
