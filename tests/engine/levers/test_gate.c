/* hstep_gate: products that were computed another way, here in loops of their own, against the policy's bounds. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "precision/random.h"
#include "support/models.h"

enum { M = 8, N = 12, K = 256 };

static hstep_error error;
static double a[M * K], b[K * N], sums[M * N], results[M * N];

static double represent(hstep_precision precision, double x) {
    const hstep_format format = precision == HSTEP_PRECISION_FP16 ? HSTEP_FP16 : HSTEP_BF16;
    return precision == HSTEP_PRECISION_F64 ? x : hstep_decode(format, hstep_encode(format, x));
}

static void fill(void) {
    hs_random random = {.state = 11};
    for (size_t i = 0; i < M * K; i++)
        a[i] = 0.4 * hs_random_uniform(&random) - 0.2;
    for (size_t i = 0; i < K * N; i++)
        b[i] = 0.4 * hs_random_uniform(&random) - 0.2;
}

/* Sums in either order of k, each operand first rounded to multiples of `coarse` of itself; 0: not. */
static void add_up(hstep_precision precision, bool backwards, double coarse) {
    for (size_t i = 0; i < M; i++)
        for (size_t j = 0; j < N; j++) {
            float narrow = 0;
            double wide = 0;
            for (size_t l = 0; l < K; l++) {
                const size_t k = backwards ? K - 1 - l : l;
                double x = represent(precision, a[i * K + k]);
                const double w = represent(precision, b[k * N + j]);
                if (coarse > 0)
                    x -= fmod(x, coarse);
                narrow += (float)x * (float)w;
                wide += x * w;
            }
            sums[i * N + j] = precision == HSTEP_PRECISION_F64 ? wide : (double)narrow;
            results[i * N + j] = represent(precision, sums[i * N + j]);
        }
}

static hstep_gate_case judge(hstep_precision precision, const double *y) {
    hstep_gate_case found;
    memset(&found, 0x5a, sizeof found);
    hs_test_expect_ok(
        hstep_gate(precision, HSTEP_NO_TRANSPOSE, HSTEP_NO_TRANSPOSE, M, N, K, a, b, sums, y, &found, &error), &error);
    cr_assert(found.m == M && found.n == N && found.k == K);
    cr_assert(found.failed_inputs == NULL && found.failed_storage == NULL);
    return found;
}

TestSuite(gate, .init = fill);

Test(gate, the_policys_own_order_has_no_distance) {
    for (hstep_precision precision = HSTEP_PRECISION_F64; precision <= HSTEP_PRECISION_BF16; precision++) {
        add_up(precision, false, 0);
        const hstep_gate_case found = judge(precision, results);
        cr_expect(found.passed && found.max_abs == 0 && found.mean_rel == 0 && found.max_rel == 0);
        cr_expect(found.cells == M * N && found.cells_beyond == 0 && found.cells_wrong == 0);
        cr_expect_eq(found.mean_rel_limit, 0.005);
        double total = 0;
        for (size_t i = 0; i < M * N; i++)
            total += fabs(sums[i]);
        cr_expect_eq(found.max_abs_limit, 0.01 * (total / (M * N)));
    }
}

Test(gate, another_order_is_within) {
    for (hstep_precision precision = HSTEP_PRECISION_F64; precision <= HSTEP_PRECISION_BF16; precision++) {
        add_up(precision, true, 0);
        const hstep_gate_case found = judge(precision, results);
        cr_expect(found.passed && found.max_abs > 0 && found.max_abs < found.max_abs_limit);
        cr_expect(found.cells_beyond == 0 && found.cells_wrong == 0);
    }
}

Test(gate, lost_bits_of_operands_are_not) {
    add_up(HSTEP_PRECISION_FP16, false, 0x1p-9);
    const hstep_gate_case found = judge(HSTEP_PRECISION_FP16, results);
    cr_expect(!found.passed && found.cells_beyond > M * N / 2 && found.cells_wrong == 0);
    cr_expect_gt(found.mean_rel, found.mean_rel_limit);
}

/* One cell that the figures over all cells would not see. */
Test(gate, every_cell_has_a_bound_of_its_own) {
    for (hstep_precision precision = HSTEP_PRECISION_F64; precision <= HSTEP_PRECISION_BF16; precision++) {
        const double step = precision == HSTEP_PRECISION_F64 ? 0x1p-52 : 0x1p-23;
        add_up(precision, false, 0);
        double magnitude = 0;
        for (size_t k = 0; k < K; k++) {
            const double x = represent(precision, a[3 * K + k]), w = represent(precision, b[k * N + 5]);
            magnitude += precision == HSTEP_PRECISION_F64 ? fabs(x * w) : (double)fabsf((float)x * (float)w);
        }
        const double right = sums[3 * N + 5];
        sums[3 * N + 5] = right + 1.01 * K * step * magnitude;
        hstep_gate_case found = judge(precision, NULL);
        cr_expect(!found.passed && found.cells_beyond == 1 && found.cells_wrong == 0);
        cr_expect_lt(found.max_abs, found.max_abs_limit);
        sums[3 * N + 5] = right + 0.99 * K * step * magnitude;
        found = judge(precision, NULL);
        cr_expect(found.passed && found.cells_beyond == 0);
    }
}

Test(gate, results_are_the_sums_rounded_once) {
    add_up(HSTEP_PRECISION_BF16, true, 0);
    results[7] = hstep_decode(HSTEP_BF16, (uint16_t)(hstep_encode(HSTEP_BF16, results[7]) + 1));
    const hstep_gate_case found = judge(HSTEP_PRECISION_BF16, results);
    cr_expect(!found.passed && found.cells_wrong == 1 && found.cells_beyond == 0);
    cr_expect(judge(HSTEP_PRECISION_BF16, NULL).passed);
}

/* The same cells must be nonfinite; the figures over all cells then fail in any case. */
Test(gate, infinities_stand_where_the_policy_has_them) {
    a[2 * K] = INFINITY;
    add_up(HSTEP_PRECISION_FP16, false, 0);
    hstep_gate_case found = judge(HSTEP_PRECISION_FP16, results);
    cr_expect(!found.passed && found.cells == (M - 1) * N && found.cells_beyond == 0 && found.cells_wrong == 0);
    sums[2 * N] = 1;
    sums[0] = NAN;
    found = judge(HSTEP_PRECISION_FP16, NULL);
    cr_expect(!found.passed && found.cells_wrong == 2 && found.cells_beyond == 1);
}

Test(gate, operands_are_read_in_either_form) {
    static double a_turned[M * K], b_turned[K * N];
    hstep_gate_case found;
    add_up(HSTEP_PRECISION_BF16, false, 0);
    for (size_t k = 0; k < K; k++) {
        for (size_t i = 0; i < M; i++)
            a_turned[k * M + i] = a[i * K + k];
        for (size_t j = 0; j < N; j++)
            b_turned[j * K + k] = b[k * N + j];
    }
    for (int form = 0; form < 4; form++) {
        const bool turns_a = form % 2 == 1, turns_b = form / 2 == 1;
        hs_test_expect_ok(hstep_gate(HSTEP_PRECISION_BF16, turns_a ? HSTEP_TRANSPOSE : HSTEP_NO_TRANSPOSE,
                                     turns_b ? HSTEP_TRANSPOSE : HSTEP_NO_TRANSPOSE, M, N, K, turns_a ? a_turned : a,
                                     turns_b ? b_turned : b, sums, results, &found, &error),
                          &error);
        cr_expect(found.passed && found.max_abs == 0, "form %d", form);
    }
}

Test(gate, nothing_and_zeros_fail) {
    hstep_gate_case found;
    const hstep_transpose no = HSTEP_NO_TRANSPOSE;
    hs_test_expect_ok(hstep_gate(HSTEP_PRECISION_BF16, no, no, 0, 3, 4, NULL, b, NULL, NULL, &found, &error), &error);
    cr_expect(!found.passed && found.cells == 0);
    memset(sums, 0, sizeof sums);
    hs_test_expect_ok(hstep_gate(HSTEP_PRECISION_BF16, no, no, M, N, 0, NULL, NULL, sums, sums, &found, &error),
                      &error);
    cr_expect(!found.passed && found.cells_beyond == 0 && found.cells_wrong == 0);
}
