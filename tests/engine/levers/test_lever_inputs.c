/* What the gate feeds levers with has the properties that its sets are named after. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "engine/levers/gate/inputs.h"
#include "precision/format.h"

enum { M = 33, N = 20, K = 130 };
static double a[M * K], b[K * N], again[M * K];
static const double format_largest[] = {0x1.fffffffffffffp1023, 65504, 0x1.fep127};
static const double sum_limit[] = {0x1p1023, 0x1p127, 0x1p127};
static const double smallest_normal[] = {0x1p-1022, 0x1p-14, 0x1p-126};

static double largest(const double *x, size_t count) {
    double most = 0;
    for (size_t i = 0; i < count; i++)
        most = fabs(x[i]) > most ? fabs(x[i]) : most;
    return most;
}

static size_t nonfinite(const double *x, size_t count) {
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        found += isfinite(x[i]) ? 0 : 1;
    return found;
}

#define EACH_PRECISION(p) for (hstep_precision p = HSTEP_PRECISION_F64; p <= HSTEP_PRECISION_BF16; p++)

Test(lever_inputs, are_represented_and_the_same_each_time) {
    EACH_PRECISION(p)
    for (int i = 0; i < HS_INPUTS_COUNT; i++) {
        hs_inputs_fill((hs_inputs)i, p, M, N, K, a, b);
        cr_expect_eq(nonfinite(a, M * K) > 0, i == HS_INPUTS_NONFINITE);
        cr_expect_eq(nonfinite(b, K * N) > 0, i == HS_INPUTS_NONFINITE);
        for (size_t j = 0; j < M * K && p != HSTEP_PRECISION_F64; j++) {
            const hstep_format format = hs_precision_format(p);
            cr_assert(isnan(a[j]) || hs_decode(format, hs_encode(format, a[j])) == a[j]);
        }
        memcpy(again, a, sizeof a);
        hs_inputs_fill((hs_inputs)i, p, M, N, K, a, b);
        cr_expect_eq(memcmp(again, a, sizeof a), 0);
    }
}

Test(lever_inputs, uniform_ones_fill_their_range) {
    hs_inputs_fill(HS_INPUTS_UNIFORM, HSTEP_PRECISION_F64, M, N, K, a, b);
    cr_expect_leq(largest(a, M * K), 0.2);
    cr_expect_gt(largest(a, M * K), 0.19);
}

Test(lever_inputs, huge_ones_come_near_the_largest_and_never_overflow_a_sum) {
    EACH_PRECISION(p) {
        hs_inputs_fill(HS_INPUTS_HUGE, p, M, N, K, a, b);
        cr_expect_gt(largest(a, M * K), format_largest[p] / (4 * K));
        cr_expect_lt(K * (largest(a, M * K) / 0x1p10) * largest(b, K * N), sum_limit[p] / 0x1p10);
    }
}

Test(lever_inputs, cancelling_rows_sum_to_zero) {
    EACH_PRECISION(p) {
        hs_inputs_fill(HS_INPUTS_CANCELLING, p, M, N, K, a, b);
        for (size_t row = 0; row < M; row++) {
            double sum = 0, total = 0;
            for (size_t k = 0; k < K; k++) {
                sum += a[row * K + k] * b[k * N + 3];
                total += fabs(a[row * K + k] * b[k * N + 3]);
            }
            cr_expect_eq(fabs(sum) < 1e-14, row % 16 == 0, "row %zu: %g", row, sum);
            cr_expect_gt(total, 0.5);
        }
    }
}

Test(lever_inputs, subnormal_ones_are_subnormal) {
    EACH_PRECISION(p) {
        hs_inputs_fill(HS_INPUTS_SUBNORMAL, p, M, N, K, a, b);
        cr_expect_lt(largest(a, M * K), smallest_normal[p]);
        cr_expect_gt(largest(a, M * K), 0);
        cr_expect_leq(K * (largest(b, K * N) / smallest_normal[p]), sum_limit[p] / smallest_normal[p]);
    }
}

Test(lever_inputs, nonfinite_ones_face_zeros) {
    hs_inputs_fill(HS_INPUTS_NONFINITE, HSTEP_PRECISION_BF16, M, N, K, a, b);
    size_t facing = 0;
    for (size_t k = 0; k < K; k++)
        for (size_t j = 0; j < N; j++)
            for (size_t i = 0; i < M; i++)
                facing += !isfinite(b[k * N + j]) && a[i * K + k] == 0;
    cr_expect_gt(facing, 0);
}
