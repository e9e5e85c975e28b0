/* RMSNorm, softmax and cross-entropy: forms in bits, and values in extended precision. */
#include <criterion/criterion.h>
#include <math.h>

#include "cpu/cpu.h"
#include "precision/arithmetic.h"
#include "support/calls.h"

enum { WIDEST = 64 };

static hs_backend *backend;

static void setup(void) { cr_assert_eq(hs_cpu_reference_create(&backend, NULL), HSTEP_OK); }

static void teardown(void) { backend->api->destroy(backend); }

TestSuite(rows, .init = setup, .fini = teardown);

/* The sum of a row as a tree: lane j of `lanes` holds the elements j, j + 32, ...; the halves of the lanes add. */
static double tree(const double *x, size_t count, size_t lane, size_t lanes) {
    if (lanes < 32)
        return tree(x, count, lane, 2 * lanes) + tree(x, count, lane + lanes, 2 * lanes);
    double sum = 0.0;
    for (size_t i = lane; i < count; i += 32)
        sum += x[i];
    return sum;
}

static double row_sum(const double *x, size_t count) { return tree(x, count, 0, 1); }

static const double *row_of(const hs_test_call *t, unsigned i, size_t r) {
    return t->inputs[i].f64 + r * t->description.columns;
}

static void same(double actual, double expected, const char *what, size_t r, size_t c) {
    cr_expect(hs_test_same_value(actual, expected), "%s, row %zu, column %zu: %a, not %a", what, r, c, actual,
              expected);
}

static const size_t widths[] = {1, 7, 32, 33, 64};
static const hs_test_fill fills[] = {HS_TEST_UNIFORM, HS_TEST_SMALL, HS_TEST_WIDE, HS_TEST_HUGE, HS_TEST_SPECIAL};

/* Calls `check` with calls of every width and fill. */
static void check_all(hs_operation operation, size_t pitch,
                      void (*check)(const hs_test_call *t, const hs_test_result *result)) {
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        for (size_t j = 0; j < sizeof fills / sizeof *fills; j++) {
            hs_test_description d = hs_test_describe(operation);
            d.columns = widths[i];
            d.rows = 9;
            d.pitch = pitch;
            hs_test_call *t = hs_test_call_create(&d);
            hs_test_call_fill(t, fills[j], i + 10 * j);
            hs_test_result *result = hs_test_call_run_well(t, backend);
            check(t, result);
            hs_test_result_destroy(result);
            hs_test_call_destroy(t);
        }
}

static double reciprocal_rms(const double *x, size_t d, double epsilon) {
    double squares[WIDEST];
    for (size_t c = 0; c < d; c++)
        squares[c] = x[c] * x[c];
    return 1.0 / sqrt(row_sum(squares, d) / (double)d + epsilon);
}

static void check_rmsnorm(const hs_test_call *t, const hs_test_result *result) {
    const size_t d = t->description.columns;
    for (size_t r = 0; r < t->description.rows; r++)
        for (size_t c = 0; c < d; c++) {
            const double *x = row_of(t, 0, r);
            const double n = x[c] * reciprocal_rms(x, d, 1e-5);
            same(result->outputs[0][r * d + c], n * t->inputs[1].f64[c], "rmsnorm", r, c);
        }
}

static void check_rmsnorm_backward(const hs_test_call *t, const hs_test_result *result) {
    const size_t d = t->description.columns;
    const double *gain = t->inputs[2].f64;
    for (size_t row = 0; row < t->description.rows; row++) {
        const double *dy = row_of(t, 0, row), *x = row_of(t, 1, row);
        const double r = reciprocal_rms(x, d, 1e-5);
        double products[WIDEST];
        for (size_t c = 0; c < d; c++)
            products[c] = (dy[c] * gain[c]) * (x[c] * r);
        const double mean = row_sum(products, d) / (double)d;
        for (size_t c = 0; c < d; c++) {
            const double scaled = (x[c] * r) * mean;
            same(result->outputs[0][row * d + c], r * (dy[c] * gain[c] - scaled), "rmsnorm_backward_input", row, c);
        }
    }
}

Test(rows, rmsnorm) {
    check_all(HS_OP_RMSNORM, 0, check_rmsnorm);
    check_all(HS_OP_RMSNORM, 3, check_rmsnorm);
    check_all(HS_OP_RMSNORM_BACKWARD_INPUT, 0, check_rmsnorm_backward);
    check_all(HS_OP_RMSNORM_BACKWARD_INPUT, 3, check_rmsnorm_backward);
}

/* Mean square 1 exactly, epsilon 3: r is 1/2, and powers of two leave no residual. */
Test(rows, rmsnorm_of_powers_of_two_is_exact) {
    hs_test_description d = hs_test_describe(HS_OP_RMSNORM);
    d.rows = 1;
    d.columns = 4;
    d.epsilon = 3.0;
    hs_test_call *t = hs_test_call_create(&d);
    const double gain[4] = {1.0, 2.0, -4.0, 0.25}, y[4] = {0.5, -1.0, -2.0, -0.125};
    for (int i = 0; i < 4; i++) {
        t->inputs[0].f64[i] = i % 2 ? -1.0 : 1.0;
        t->inputs[1].f64[i] = gain[i];
    }
    hs_test_result *result = hs_test_call_run_well(t, backend);
    cr_assert_arr_eq(result->outputs[0], y, sizeof y);
    hs_test_result_destroy(result);
    hs_test_call_destroy(t);
}

/* Largest value, exponentials and their sum. */
static double exponentials(const double *x, size_t d, double *e, double *m) {
    *m = -INFINITY;
    for (size_t c = 0; c < d; c++)
        *m = fmax(*m, x[c]);
    for (size_t c = 0; c < d; c++)
        e[c] = hs_exp(x[c] - *m);
    return row_sum(e, d);
}

static void check_softmax(const hs_test_call *t, const hs_test_result *result) {
    const size_t d = t->description.columns;
    for (size_t r = 0; r < t->description.rows; r++) {
        double e[WIDEST], m;
        const double inverse = 1.0 / exponentials(row_of(t, 0, r), d, e, &m);
        for (size_t c = 0; c < d; c++)
            same(result->outputs[0][r * d + c], e[c] * inverse, "softmax", r, c);
    }
}

static void check_softmax_backward(const hs_test_call *t, const hs_test_result *result) {
    const size_t d = t->description.columns;
    for (size_t r = 0; r < t->description.rows; r++) {
        const double *g = row_of(t, 0, r), *p = row_of(t, 1, r);
        double products[WIDEST];
        for (size_t c = 0; c < d; c++)
            products[c] = p[c] * g[c];
        for (size_t c = 0; c < d; c++)
            same(result->outputs[0][r * d + c], p[c] * (g[c] - row_sum(products, d)), "softmax_backward", r, c);
    }
}

static void check_cross_entropy(const hs_test_call *t, const hs_test_result *result) {
    double losses[WIDEST] = {0.0};
    for (size_t r = 0; r < t->description.rows; r++) {
        double e[WIDEST], m;
        const double z = exponentials(row_of(t, 0, r), t->description.columns, e, &m);
        if (t->inputs[1].i32[r] >= 0)
            losses[r] = hs_log(z) - (row_of(t, 0, r)[t->inputs[1].i32[r]] - m);
    }
    same(result->outputs[0][0], row_sum(losses, t->description.rows), "cross_entropy", 0, 0);
}

static void check_cross_entropy_backward(const hs_test_call *t, const hs_test_result *result) {
    const size_t d = t->description.columns;
    for (size_t r = 0; r < t->description.rows; r++) {
        double e[WIDEST], m;
        const double inverse = 1.0 / exponentials(row_of(t, 1, r), d, e, &m);
        for (size_t c = 0; c < d; c++) {
            const double hit = (int32_t)c == t->inputs[2].i32[r] ? 1.0 : 0.0;
            const double expected = (e[c] * inverse - hit) * t->inputs[0].f64[0];
            same(result->outputs[0][r * d + c], t->inputs[2].i32[r] < 0 ? 0.0 : expected, "cross_entropy_backward", r,
                 c);
        }
    }
}

Test(rows, softmax_and_cross_entropy) {
    check_all(HS_OP_SOFTMAX, 0, check_softmax);
    check_all(HS_OP_SOFTMAX_BACKWARD, 0, check_softmax_backward);
    check_all(HS_OP_CROSS_ENTROPY, 0, check_cross_entropy);
    check_all(HS_OP_CROSS_ENTROPY_BACKWARD, 0, check_cross_entropy_backward);
}

/* Logits around 100: taking the largest off first is exact, taking the target's off log z first would lose bits. */
Test(rows, loss_takes_the_largest_off_first) {
    for (uint64_t seed = 0; seed < 8; seed++) {
        hs_test_description d = hs_test_describe(HS_OP_CROSS_ENTROPY);
        hs_test_call *t = hs_test_call_create(&d);
        hs_test_call_fill(t, HS_TEST_UNIFORM, seed);
        for (size_t i = 0; i < t->inputs[0].elements; i++)
            t->inputs[0].f64[i] += 100.0;
        hs_test_result *result = hs_test_call_run_well(t, backend);
        check_cross_entropy(t, result);
        hs_test_result_destroy(result);
        hs_test_call_destroy(t);
    }
}

static long double naive_loss(const hs_test_call *t) {
    long double loss = 0;
    for (size_t r = 0; r < t->description.rows; r++) {
        long double z = 0;
        for (size_t c = 0; c < t->description.columns; c++)
            z += expl(row_of(t, 0, r)[c]);
        if (t->inputs[1].i32[r] >= 0)
            loss += logl(z) - row_of(t, 0, r)[t->inputs[1].i32[r]];
    }
    return loss;
}

Test(rows, loss_in_extended_precision) {
    hs_test_description d = hs_test_describe(HS_OP_CROSS_ENTROPY);
    d.rows = 33;
    d.columns = 300;
    hs_test_call *t = hs_test_call_create(&d);
    hs_test_call_fill(t, HS_TEST_POWERS, 3);
    t->inputs[1].i32[4] = -1;
    hs_test_result *result = hs_test_call_run_well(t, backend);
    const long double expected = naive_loss(t);
    cr_expect_lt(fabsl(result->outputs[0][0] - expected), 1e-14L * expected);
    hs_test_result_destroy(result);
    hs_test_call_destroy(t);
}

/* Two equal logits: p is exactly 1/2, and the loss of a row log 2; far below the largest a logit counts for nothing. */
Test(rows, equal_logits_share_exactly) {
    hs_test_description d = hs_test_describe(HS_OP_CROSS_ENTROPY_BACKWARD);
    d.rows = 2;
    d.columns = 3;
    hs_test_call *t = hs_test_call_create(&d);
    const double logits[6] = {5.0, 5.0, -800.0, 1e300, 1e300, -1e300};
    const double expected[6] = {-4.0, 4.0, 0.0, 0.0, 0.0, 0.0};
    for (int i = 0; i < 6; i++)
        t->inputs[1].f64[i] = logits[i];
    t->inputs[0].f64[0] = 8.0;
    t->inputs[2].i32[0] = 0;
    t->inputs[2].i32[1] = -1;
    hs_test_result *result = hs_test_call_run_well(t, backend);
    for (int i = 0; i < 6; i++)
        cr_expect(result->outputs[0][i] == expected[i] && !(i > 1 && signbit(result->outputs[0][i])), "element %d", i);
    cr_expect_eq(result->flag, 0);
    hs_test_result_destroy(result);
    hs_test_call_destroy(t);
}
