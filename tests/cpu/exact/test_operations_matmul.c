/* Products in the exact tier: every form, on the edges of tiles, tasks and blocks. */
#include <criterion/criterion.h>

#include "support/parity.h"

typedef struct shape {
    size_t m, n, k, pitch;
} shape;

/* Every choice of operands in 16 bits, each in its turn. */
static unsigned next_compact(void) {
    static const unsigned operands[] = {HS_TEST_INPUT(0), HS_TEST_INPUT(1), HS_TEST_OUTPUT(0)};
    static unsigned turn = 0;
    unsigned chosen = 0;
    turn = turn % 7 + 1;
    for (unsigned i = 0; i < 3; i++)
        chosen |= turn >> i & 1 ? operands[i] : 0;
    return chosen;
}

static hs_test_description describe(const shape *s, int precision, int forms) {
    hs_test_description d = hs_test_describe_matmul((hstep_precision)precision, s->m, s->n, s->k);
    d.pitch = s->pitch;
    d.a_form = forms & 1 ? HSTEP_TRANSPOSE : HSTEP_NO_TRANSPOSE;
    d.b_form = forms & 2 ? HSTEP_TRANSPOSE : HSTEP_NO_TRANSPOSE;
    return d;
}

static void check_forms(hs_parity *parity, const shape *s, hs_parity_depth depth) {
    for (int precision = HSTEP_PRECISION_F64; precision <= HSTEP_PRECISION_BF16; precision++)
        for (int forms = 0; forms < 4; forms++) {
            hs_test_description d = describe(s, precision, forms);
            hs_parity_check(parity, &d, depth);
            if (precision == HSTEP_PRECISION_F64)
                continue;
            d.compact = next_compact();
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

/* Tiles of 4, 6 and 14 rows and of 4 to 32 columns; blocks of 4, 8 and 16 steps that are turned in registers. */
Test(matmul, tile_edges, .timeout = 60) {
    static const shape shapes[] = {{1, 1, 1, 0},    {4, 8, 64, 0},   {5, 9, 65, 1},   {3, 7, 63, 2},   {8, 16, 17, 5},
                                   {14, 32, 16, 0}, {13, 31, 15, 1}, {15, 33, 18, 0}, {29, 17, 31, 4}, {12, 48, 33, 0}};
    check_all(shapes, sizeof shapes / sizeof *shapes, HS_PARITY_PLANTED);
}

/* Tasks of 64 columns and parts of rows, that threads share out from 3 * 2^19 multiplications on. */
Test(matmul, task_edges, .timeout = 60) {
    static const shape shapes[] = {{65, 63, 390, 0}, {64, 129, 200, 3}, {530, 64, 48, 0}, {1, 1130, 1400, 0}};
    hs_parity parity;
    hs_parity_open(&parity);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int way = 0; way < 6; way++) {
            hs_test_description d = describe(&shapes[i], way % 3, (way + (int)i) % 4);
            d.compact = way % 3 == HSTEP_PRECISION_F64 ? 0 : next_compact();
            hs_parity_check(&parity, &d, HS_PARITY_BRIEF);
        }
    hs_parity_close(&parity);
}

/* Chains of several blocks, which have 128 to 512 steps at most: full, short, and of few steps. */
Test(matmul, blocks_of_k, .timeout = 60) {
    static const shape shapes[] = {{5, 9, 384, 0}, {5, 9, 385, 1}, {15, 70, 400, 0}, {3, 17, 1153, 2}};
    check_all(shapes, sizeof shapes / sizeof *shapes, HS_PARITY_BRIEF);
}

/* Blocks of about 1120 rows, alone and together with blocks of k. */
Test(matmul, blocks_of_rows, .timeout = 60) {
    static const shape shapes[] = {{1121, 5, 3, 0}, {2260, 3, 4, 1}, {1130, 2, 400, 0}};
    hs_parity parity;
    hs_parity_open(&parity);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        check_forms(&parity, &shapes[i], i < 2 ? HS_PARITY_BRIEF : HS_PARITY_ORDINARY);
    hs_parity_close(&parity);
}

/* Blocks of fewer rows, where chains are so long that packed ones would fill the caches. */
Test(matmul, long_chains, .timeout = 60) {
    hs_parity parity;
    hs_parity_open(&parity);
    for (hstep_precision precision = HSTEP_PRECISION_F64; precision <= HSTEP_PRECISION_FP16; precision++) {
        hs_test_description d = hs_test_describe_matmul(precision, 143, 2, 15100);
        hs_parity_check(&parity, &d, HS_PARITY_ORDINARY);
    }
    hs_test_description d = hs_test_describe_matmul(HSTEP_PRECISION_BF16, 143, 2, 15100);
    d.compact = HS_TEST_INPUT(0) | HS_TEST_INPUT(1);
    hs_parity_check(&parity, &d, HS_PARITY_ORDINARY);
    hs_parity_close(&parity);
}

/* An f32 sum that has left the range of a half comes back before the last rounding, in whatever block it happens. */
Test(matmul, sums_beyond_the_half_format_between_blocks, .timeout = 60) {
    hs_parity parity;
    hs_parity_open(&parity);
    hs_test_description d = hs_test_describe_matmul(HSTEP_PRECISION_FP16, 5, 9, 1024);
    d.compact = HS_TEST_OUTPUT(0);
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

/*
 * Chains of three products in bf16 whose last bit depends on rounding each product before it is added. `first` to
 * `third` are their factors. Every third row and every fifth column holds ordinary numbers, so that panels are mixed.
 */
static void check_chain(hs_parity *parity, const double first[2], const double second[2], const double third[2],
                        const char *what) {
    const double *const products[] = {first, second, third};
    hs_test_description d = hs_test_describe_matmul(HSTEP_PRECISION_BF16, 43, 69, 3);
    d.compact = next_compact();
    hs_test_call *call = hs_test_call_create(&d);
    hs_test_call_fill(call, HS_TEST_SMALL, 3);
    for (size_t k = 0; k < d.inner; k++) {
        for (size_t row = 0; row < d.rows; row++)
            if (row % 3 != 2)
                call->inputs[0].f64[row * d.inner + k] = products[k][0];
        for (size_t column = 0; column < d.columns; column++)
            if (column % 5 != 4)
                call->inputs[1].f64[k * d.columns + column] = products[k][1];
    }
    hs_parity_compare(parity, call, what);
    hs_test_call_destroy(call);
}

/*
 * With u = 2^-149, the last bit of f32: the first two sum to 259 * 2^-134 - u, just below the middle of two bf16
 * numbers. The third is u/2 and rounds to 0; added unrounded it would make the sum even, the very middle, and the
 * result would go up.
 */
Test(matmul, bf16_products_below_the_last_bit_of_f32) {
    hs_parity parity;
    hs_parity_open(&parity);
    check_chain(&parity, (double[]){7 * 0x1p-67, 37 * 0x1p-67}, (double[]){-0x1p-74, 0x1p-75},
                (double[]){0x1p-75, 0x1p-75}, "a product that rounds to zero");
    cr_assert_eq(parity.raised, 0);
    hs_parity_close(&parity);
}

/* The second product overflows, though its sum with the first would not. */
Test(matmul, bf16_products_beyond_f32) {
    hs_parity parity;
    hs_parity_open(&parity);
    check_chain(&parity, (double[]){-0x1.fp64, 0x1p63}, (double[]){0x1.8p64, 0x1.8p63}, (double[]){0.0, 0.0},
                "a product that overflows");
    cr_assert_eq(parity.raised, 1);
    hs_parity_close(&parity);
}
