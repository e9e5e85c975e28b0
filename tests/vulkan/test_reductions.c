/* Sums and rows longer than the shapes of test_operations.c, where more than one part of a sum is added up. */
#include <criterion/criterion.h>

#include "support/device.h"
#include "support/parity.h"

static void check(const hs_test_description *description, hs_parity_depth depth) {
    hs_parity parity;
    hs_parity_open_on(&parity, hs_test_device());
    hs_parity_check(&parity, description, depth);
    hs_parity_close(&parity);
}

static hs_test_description describe(hs_operation operation, size_t rows, size_t columns) {
    hs_test_description d = hs_test_describe(operation);
    d.rows = rows;
    d.columns = columns;
    return d;
}

/* Rows of 4096: one short of one, one, one and a bit, and so many that lanes of the last sum get two. */
Test(reductions, sums_of_tensors_have_rows_of_4096, .timeout = 60) {
    const size_t counts[] = {4095, 4096, 4097, 9000, 33 * 4096 + 5};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        hs_test_description d = describe(HS_OP_SUM, 1, counts[i]);
        check(&d, HS_PARITY_BRIEF);
        d = describe(HS_OP_SQUARE_SUM, counts[i], 1);
        check(&d, HS_PARITY_BRIEF);
    }
}

/* Counts go by the same rows, whatever stands there. */
Test(reductions, numbers_are_counted_in_rows_of_4096, .timeout = 60) {
    const size_t counts[] = {1, 4095, 4097, 300 * 4096 + 5};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (hstep_precision precision = HSTEP_PRECISION_F64; precision <= HSTEP_PRECISION_BF16; precision++) {
            hs_test_description d = describe(HS_OP_MEASURE, counts[i], 1);
            d.precision = precision;
            check(&d, HS_PARITY_BRIEF);
            d.compact = precision == HSTEP_PRECISION_F64 ? 0 : HS_TEST_INPUT(0);
            check(&d, HS_PARITY_BRIEF);
        }
}

/* Blocks of 64 rows: five of them, the last of one row. */
Test(reductions, sums_down_rows_have_blocks_of_64, .timeout = 60) {
    hs_test_description d = describe(HS_OP_SUM_ROWS, 257, 66);
    check(&d, HS_PARITY_FULL);
    d = describe(HS_OP_RMSNORM_BACKWARD_GAIN, 257, 66);
    d.pitch = 3;
    check(&d, HS_PARITY_FULL);
}

/* The losses of more rows than 4096 are summed in parts. */
Test(reductions, losses_are_summed_as_a_tensor, .timeout = 60) {
    const hs_test_description d = describe(HS_OP_CROSS_ENTROPY, 4100, 3);
    check(&d, HS_PARITY_BRIEF);
}

Test(reductions, vocabularies_are_large, .timeout = 60) {
    for (hstep_precision precision = HSTEP_PRECISION_F64; precision <= HSTEP_PRECISION_BF16; precision++) {
        hs_test_description d = describe(HS_OP_CROSS_ENTROPY, 3, 50304);
        d.precision = precision;
        d.compact = precision == HSTEP_PRECISION_F64 ? 0 : HS_TEST_INPUT(0);
        check(&d, HS_PARITY_BRIEF);
    }
}

/* The adjoints of the logits stand where the logits stood. */
Test(reductions, adjoints_of_logits_in_place, .timeout = 60) {
    const size_t vocabularies[] = {1, 33, 50257};
    for (size_t i = 0; i < sizeof vocabularies / sizeof *vocabularies; i++)
        for (hstep_precision precision = HSTEP_PRECISION_F64; precision <= HSTEP_PRECISION_BF16; precision++) {
            hs_test_description d = describe(HS_OP_CROSS_ENTROPY_BACKWARD, 4, vocabularies[i]);
            d.precision = precision;
            d.in_place = true;
            d.compact = precision == HSTEP_PRECISION_F64 ? 0 : HS_TEST_INPUT(1) | HS_TEST_OUTPUT(0);
            check(&d, vocabularies[i] < 100 ? HS_PARITY_PLANTED : HS_PARITY_BRIEF);
        }
}
