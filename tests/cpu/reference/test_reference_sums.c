/* Sums and scattered rows, whose order the policy fixes: 2^53 + 1 is 2^53, so the order shows. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"
#include "support/calls.h"

static hs_backend *backend;

static void setup(void) { cr_assert_eq(hs_cpu_reference_create(&backend, NULL), HSTEP_OK); }

static void teardown(void) { backend->api->destroy(backend); }

TestSuite(sums, .init = setup, .fini = teardown);

static const double big = 0x1p53;

/* The result of an operation on rows x columns zeros with three elements set; element 0 of its output. */
static double with_three(hs_operation operation, size_t rows, size_t columns, const size_t places[3],
                         const double values[3]) {
    hs_test_description d = hs_test_describe(operation);
    d.rows = rows;
    d.columns = columns;
    hs_test_call *t = hs_test_call_create(&d);
    memset(t->inputs[0].f64, 0, t->inputs[0].elements * sizeof(double));
    for (int i = 0; i < 3; i++)
        t->inputs[0].f64[places[i]] = values[i];
    if (operation == HS_OP_SQUARE_SUM)
        t->inputs[1].f64[0] = 0.5;
    hs_test_result *result = hs_test_call_run_well(t, backend);
    const double y = result->outputs[0][0];
    hs_test_result_destroy(result);
    hs_test_call_destroy(t);
    return y;
}

Test(sums, of_a_row_keep_32_lanes_and_fold_from_the_far_end) {
    const double values[3] = {big, 1.0, -big};
    cr_expect(with_three(HS_OP_SUM, 1, 100, (size_t[]){0, 1, 32}, values) == 1.0, "lanes of 32");
    cr_expect(with_three(HS_OP_SUM, 1, 100, (size_t[]){0, 32, 64}, values) == 0.0, "ascending in a lane");
    cr_expect(with_three(HS_OP_SUM, 1, 100, (size_t[]){0, 8, 16}, values) == 1.0, "16 folds before 8");
    cr_expect(with_three(HS_OP_SUM, 1, 100, (size_t[]){0, 16, 8}, values) == 0.0, "16 folds before 8");
    cr_expect(with_three(HS_OP_SUM, 1, 100, (size_t[]){0, 1, 2}, values) == 1.0, "2 folds before 1");
    cr_expect(with_three(HS_OP_SUM, 1, 100, (size_t[]){0, 2, 1}, values) == 0.0, "2 folds before 1");
}

Test(sums, of_a_tensor_take_rows_of_4096_whatever_its_shape) {
    const double values[3] = {big, 1.0, -big};
    const size_t n = 4096;
    cr_expect(with_three(HS_OP_SUM, 3, 45000, (size_t[]){0, n, 32 * n}, values) == 1.0, "row sums have lanes of 32");
    cr_expect(with_three(HS_OP_SUM, 3, 45000, (size_t[]){0, n, 2 * n}, values) == 1.0, "row sums fold");
    cr_expect(with_three(HS_OP_SUM, 3, 45000, (size_t[]){0, 4095, n}, values) == 0.0, "a row ends at 4096");
    cr_expect(with_three(HS_OP_SUM, 3, 45000, (size_t[]){0, 32 * n, 4064}, values) == 1.0, "and not before");
}

/* The unscale is 1/2. (2^28 / 2)^2 = 2^54 has a step of 4: 1.25^2 vanishes beside it, twice that does not. */
Test(sums, of_squares_are_of_unscaled_values_in_the_order_of_a_tensor) {
    const double values[3] = {0x1p28, 2.5, 2.5};
    cr_expect(with_three(HS_OP_SQUARE_SUM, 1, 100, (size_t[]){0, 1, 33}, values) == 0x1p54 + 4.0, "both in lane 1");
    cr_expect(with_three(HS_OP_SQUARE_SUM, 1, 100, (size_t[]){0, 32, 64}, values) == 0x1p54, "all in lane 0");
    cr_expect(with_three(HS_OP_SQUARE_SUM, 2, 4096, (size_t[]){0, 4096, 4128}, values) == 0x1p54 + 4.0, "row sums");
    const double negative[3] = {-6.0, 2.0, -1.0};
    cr_expect(with_three(HS_OP_SQUARE_SUM, 1, 100, (size_t[]){0, 1, 33}, negative) == 10.25);
}

Test(sums, down_rows_take_blocks_of_64) {
    const double values[3] = {big, 1.0, -big};
    const size_t d = 3;
    cr_expect(with_three(HS_OP_SUM_ROWS, 200, d, (size_t[]){0, 64 * d, 65 * d}, values) == 1.0, "block 1 by itself");
    cr_expect(with_three(HS_OP_SUM_ROWS, 200, d, (size_t[]){0, 63 * d, 64 * d}, values) == 0.0, "63 is in block 0");
    cr_expect(with_three(HS_OP_SUM_ROWS, 200, d, (size_t[]){0, 1 * d, 2 * d}, values) == 0.0, "rows ascend");
    cr_expect(with_three(HS_OP_SUM_ROWS, 200, d, (size_t[]){0, 64 * d, 128 * d}, values) == 0.0, "blocks ascend");
}

/* With x = 1 everywhere and epsilon 0, n is exactly 1, so dgain is the sum of dy down its rows. */
Test(sums, of_gain_gradients_take_the_same_blocks) {
    for (int i = 0; i < 3; i++) {
        hs_test_description d = hs_test_describe(HS_OP_RMSNORM_BACKWARD_GAIN);
        d.rows = 150;
        d.epsilon = 0.0;
        d.pitch = 2;
        hs_test_call *t = hs_test_call_create(&d);
        memset(t->inputs[0].f64, 0, t->inputs[0].elements * sizeof(double));
        for (size_t j = 0; j < t->inputs[1].elements; j++)
            t->inputs[1].f64[j] = 1.0;
        static const size_t rows[3][3] = {{0, 64, 65}, {0, 63, 64}, {0, 64, 128}};
        static const double expected[3] = {1.0, 0.0, 0.0};
        t->inputs[0].f64[rows[i][0] * d.columns + 2] = big;
        t->inputs[0].f64[rows[i][1] * d.columns + 2] = 1.0;
        t->inputs[0].f64[rows[i][2] * d.columns + 2] = -big;
        hs_test_result *result = hs_test_call_run_well(t, backend);
        for (size_t c = 0; c < d.columns; c++)
            cr_expect(result->outputs[0][c] == (c == 2 ? expected[i] : 0.0), "case %d, column %zu", i, c);
        hs_test_result_destroy(result);
        hs_test_call_destroy(t);
    }
}

Test(sums, gather_copies_rows) {
    hs_test_description d = hs_test_describe(HS_OP_GATHER);
    hs_test_call *t = hs_test_call_create(&d);
    t->inputs[1].i32[0] = 8;
    t->inputs[1].i32[1] = 0;
    t->inputs[1].i32[2] = 8;
    hs_test_result *result = hs_test_call_run_well(t, backend);
    for (size_t r = 0; r < d.rows; r++)
        for (size_t c = 0; c < d.columns; c++)
            cr_expect(result->outputs[0][r * d.columns + c] ==
                      t->inputs[0].f64[(size_t)t->inputs[1].i32[r] * d.columns + c]);
    hs_test_result_destroy(result);
    hs_test_call_destroy(t);
}

/* The rows between stay, be they infinite: no flag speaks of them. */
Test(sums, store_rows_copies_rows_and_keeps_the_others) {
    const hs_test_description d = hs_test_describe(HS_OP_STORE_ROWS);
    hs_test_call *t = hs_test_call_create(&d);
    const int32_t places[5] = {9, 0, 13, 2, 1};
    memcpy(t->inputs[1].i32, places, sizeof places);
    t->outputs[0].f64[3 * d.columns] = INFINITY;
    t->outputs[0].f64[12 * d.columns + 1] = NAN;
    hs_test_result *result = hs_test_call_run_well(t, backend);
    cr_expect_eq(result->flag, 0);
    for (size_t place = 0; place < d.rows + d.table; place++) {
        const double *expected = t->outputs[0].f64 + place * d.columns;
        for (size_t r = 0; r < d.rows; r++)
            expected = (size_t)places[r] == place ? t->inputs[0].f64 + r * d.columns : expected;
        for (size_t c = 0; c < d.columns; c++)
            cr_expect(hs_test_same_value(result->outputs[0][place * d.columns + c], expected[c]), "row %zu", place);
    }
    hs_test_result_destroy(result);
    t->inputs[0].f64[4 * d.columns + 6] = INFINITY;
    result = hs_test_call_run_well(t, backend);
    cr_expect_eq(result->flag, 1);
    cr_expect(result->fault.found && result->fault.index == 1 * d.columns + 6, "the one stored, not the one that lies");
    hs_test_result_destroy(result);
    hs_test_call_destroy(t);
}

/* Three rows into one place: base 2^53, then 1, 1, -2^53 gives 0 one by one, where 1 + 1 first would give 2. */
Test(sums, gather_backward_adds_rows_one_by_one_to_the_base) {
    for (int kind = 0; kind < 3; kind++) {
        hs_test_description d = hs_test_describe(HS_OP_GATHER_BACKWARD);
        d.rows = 4;
        d.without_base = kind == 1;
        d.in_place = kind == 2;
        hs_test_call *t = hs_test_call_create(&d);
        const int32_t indices[4] = {3, 5, 3, 3};
        const double dy[4] = {1.0, 7.0, 1.0, -big};
        for (size_t r = 0; r < 4; r++) {
            t->inputs[1].i32[r] = indices[r];
            for (size_t c = 0; c < d.columns; c++)
                t->inputs[0].f64[r * d.columns + c] = dy[r];
        }
        for (size_t i = 0; i < d.columns && !d.without_base; i++)
            t->inputs[2].f64[3 * d.columns + i] = big;
        hs_test_result *result = hs_test_call_run_well(t, backend);
        for (size_t i = 0; i < result->elements[0]; i++) {
            const size_t row = i / d.columns;
            const double base = d.without_base ? 0.0 : t->inputs[2].f64[i];
            const double expected = row == 3 ? (d.without_base ? 2.0 - big : 0.0) : row == 5 ? base + 7.0 : base;
            cr_expect(result->outputs[0][i] == expected && !(expected == 0.0 && signbit(result->outputs[0][i])),
                      "kind %d, element %zu", kind, i);
        }
        hs_test_result_destroy(result);
        hs_test_call_destroy(t);
    }
}
