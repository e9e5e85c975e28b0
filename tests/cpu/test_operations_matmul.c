/* Products in the exact tier: every form, on the edges of tiles, tasks and blocks. */
#include <criterion/criterion.h>

#include "support/parity.h"

typedef struct shape {
    size_t m, n, k, pitch;
} shape;

static void check_forms(hs_parity *parity, const shape *s, hs_parity_depth depth) {
    for (int precision = HSTEP_PRECISION_F64; precision <= HSTEP_PRECISION_BF16; precision++)
        for (int forms = 0; forms < 4; forms++) {
            hs_test_description d = hs_test_describe(HS_OP_MATMUL);
            d.precision = (hstep_precision)precision;
            d.rows = s->m, d.columns = s->n, d.inner = s->k, d.pitch = s->pitch;
            d.a_form = forms & 1 ? HSTEP_TRANSPOSE : HSTEP_NO_TRANSPOSE;
            d.b_form = forms & 2 ? HSTEP_TRANSPOSE : HSTEP_NO_TRANSPOSE;
            hs_parity_check(parity, &d, depth);
        }
}

static void check_all(const shape *shapes, size_t count, hs_parity_depth depth) {
    hs_parity parity;
    hs_parity_open(&parity);
    for (size_t i = 0; i < count; i++)
        check_forms(&parity, &shapes[i], depth);
    cr_assert_gt(parity.raised, 0);
    cr_assert_lt(parity.raised, parity.calls);
    hs_parity_close(&parity);
}

/* All sizes around a tile of 4x8 and of 4x4, none left out. */
Test(matmul, every_small_shape, .timeout = 60) {
    hs_parity parity;
    hs_parity_open(&parity);
    for (size_t m = 0; m <= 5; m++)
        for (size_t n = 0; n <= 9; n += n == 1 ? 2 : 1)
            for (size_t k = 0; k <= 3; k++)
                check_forms(&parity, &(shape){m, n, k, (m + n + k) % 3}, HS_PARITY_BRIEF);
    hs_parity_close(&parity);
}

Test(matmul, tile_edges, .timeout = 60) {
    static const shape shapes[] = {{1, 1, 1, 0}, {4, 8, 64, 0}, {5, 9, 65, 1}, {3, 7, 63, 2}, {8, 16, 17, 5}};
    check_all(shapes, sizeof shapes / sizeof *shapes, HS_PARITY_PLANTED);
}

/* Tasks of 64 x 64 that threads share out. */
Test(matmul, task_edges, .timeout = 60) {
    static const shape shapes[] = {{65, 63, 20, 0}, {64, 129, 9, 3}, {130, 64, 11, 0}, {1, 130, 300, 0}};
    check_all(shapes, sizeof shapes / sizeof *shapes, HS_PARITY_BRIEF);
}

/* Chains that wait in y between blocks of 512 steps, the last block full, short, or of one step. */
Test(matmul, blocks_of_k, .timeout = 60) {
    static const shape shapes[] = {{5, 9, 511, 0}, {5, 9, 512, 1}, {5, 9, 513, 0}, {6, 10, 1024, 2}, {3, 17, 1100, 0}};
    check_all(shapes, sizeof shapes / sizeof *shapes, HS_PARITY_BRIEF);
}

/* Blocks of 1024 rows and 2048 columns, alone and together with blocks of k. */
Test(matmul, blocks_of_rows_and_columns, .timeout = 60) {
    static const shape shapes[] = {{1025, 5, 3, 0}, {3, 2049, 4, 1}, {1026, 1, 514, 0}, {1, 2049, 513, 0}};
    hs_parity parity;
    hs_parity_open(&parity);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        check_forms(&parity, &shapes[i], i < 2 ? HS_PARITY_BRIEF : HS_PARITY_ORDINARY);
    hs_parity_close(&parity);
}

/* An f32 sum that has left the range of a half comes back before the last rounding, in whatever block it happens. */
Test(matmul, sums_beyond_the_half_format_between_blocks, .timeout = 60) {
    hs_parity parity;
    hs_parity_open(&parity);
    hs_test_description d = hs_test_describe(HS_OP_MATMUL);
    d.precision = HSTEP_PRECISION_FP16;
    d.rows = 5, d.columns = 9, d.inner = 1024;
    hs_test_call *call = hs_test_call_create(&d);
    hs_test_call_fill(call, HS_TEST_SMALL, 11);
    for (size_t row = 0; row < d.rows; row++) {
        call->inputs[0].f64[row * d.inner + 100] = 60000.0;
        call->inputs[0].f64[row * d.inner + 900] = -60000.0;
    }
    for (size_t column = 0; column < d.columns; column++)
        call->inputs[1].f64[100 * d.columns + column] = call->inputs[1].f64[900 * d.columns + column] = 50000.0;
    hs_parity_compare(&parity, call, "3e9 comes and goes");
    cr_assert_eq(parity.raised, 0, "no result is infinite");
    hs_test_call_destroy(call);
    hs_parity_close(&parity);
}
