/* The fixed orders of summation against formulations of their own: lanes gathered one at a time, a recursive fold. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "precision/random.h"
#include "precision/reduce.h"
#include "support/vectors.h"

static double lane(size_t j, size_t count, const double *x) {
    double sum = 0;
    for (size_t i = j; i < count; i += 32)
        sum += x[i];
    return sum;
}

/* The tree that folding by 16, 8, 4, 2, 1 makes: node j of width w is the sum of nodes j and j + w of width 2w. */
static double node(size_t j, size_t width, size_t count, const double *x) {
    if (width == 32)
        return lane(j, count, x);
    return node(j, 2 * width, count, x) + node(j + width, 2 * width, count, x);
}

static double row(size_t count, const double *x) { return node(0, 1, count, x); }

static double tensor(size_t count, const double *x) {
    size_t rows = (count + 4095) / 4096;
    double *sums = malloc((rows + 1) * sizeof *sums);
    cr_assert(sums != NULL);
    for (size_t i = 0; i < rows; i++)
        sums[i] = row(i + 1 < rows ? 4096 : count - i * 4096, x + i * 4096);
    double sum = row(rows, sums);
    free(sums);
    return sum;
}

static double *draw(size_t count) {
    hs_random random = {count};
    double *x = malloc((count + 1) * sizeof *x);
    cr_assert(x != NULL);
    for (size_t i = 0; i < count; i++)
        x[i] = ldexp(2 * hs_random_uniform(&random) - 1, (int)(hs_random_next(&random) % 60));
    return x;
}

Test(reduce, adds_a_row_in_32_lanes) {
    size_t differ = 0;
    for (size_t count = 0; count <= 200; count++) {
        double *x = draw(count), ascending = 0;
        for (size_t i = 0; i < count; i++)
            ascending += x[i];
        cr_assert_eq(hs_test_bits(hs_sum_row(count, x)), hs_test_bits(row(count, x)), "%zu", count);
        differ += ascending != row(count, x);
        free(x);
    }
    cr_assert_gt(differ, 100, "these inputs would not tell one order from another");
}

Test(reduce, adds_a_tensor_in_rows_of_4096) {
    const size_t counts[] = {0, 1, 31, 33, 4095, 4096, 4097, 8192, 12289, 135000, 4096 * 32, 4096 * 70 + 5};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        double *x = draw(counts[i]);
        cr_assert_eq(hs_test_bits(hs_sum_tensor(counts[i], x)), hs_test_bits(tensor(counts[i], x)), "%zu", counts[i]);
        if (counts[i] > 4096)
            cr_assert_neq(hs_sum_tensor(counts[i], x), row(counts[i], x), "%zu tells no tensor from a row", counts[i]);
        free(x);
    }
}

/* 2^53 and ones in chosen places: the values of each fold can be worked out by hand. */
Test(reduce, folds_by_halves) {
    double x[64] = {0};
    /* Lane 0: 2^53 + 1 stays 2^53. Lane 16 holds 2, folded into lane 0 first. */
    x[0] = 0x1p53;
    x[32] = 1;
    x[16] = 2;
    cr_assert_eq(hs_sum_row(64, x), 0x1p53 + 2);
    /* Lanes 8 and 24 meet before lane 0 sees them: 1 + 1 = 2 survives; one after the other both would be lost. */
    double y[32] = {[0] = 0x1p53, [8] = 1, [24] = 1};
    cr_assert_eq(hs_sum_row(32, y), 0x1p53 + 2);
    /* Lanes 1 and 16 do not meet before lane 0: each 1 is lost by itself. */
    double z[32] = {[0] = 0x1p53, [1] = 1, [16] = 1};
    cr_assert_eq(hs_sum_row(32, z), 0x1p53);
}

Test(reduce, starts_at_plus_zero_and_carries_nonfinite_values) {
    const double minus[2] = {-0.0, -0.0}, inf[3] = {1, INFINITY, 2}, nan[2] = {INFINITY, -INFINITY};
    cr_assert_eq(hs_test_bits(hs_sum_row(0, NULL)), 0);
    cr_assert_eq(hs_test_bits(hs_sum_tensor(0, NULL)), 0);
    cr_assert_eq(hs_test_bits(hs_sum_row(2, minus)), 0);
    cr_assert_eq(hs_sum_row(3, inf), INFINITY);
    cr_assert(isnan(hs_sum_tensor(2, nan)));
}
