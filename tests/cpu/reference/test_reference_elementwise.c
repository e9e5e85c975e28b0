/* Operations without sums, against the formulas of the policy written out once more, in bits. */
#include <criterion/criterion.h>
#include <math.h>

#include "cpu/cpu.h"
#include "precision/arithmetic.h"
#include "support/calls.h"

static hs_backend *backend;

static void setup(void) { cr_assert_eq(hs_cpu_reference_create(&backend, NULL), HSTEP_OK); }

static void teardown(void) { backend->api->destroy(backend); }

TestSuite(elementwise, .init = setup, .fini = teardown);

/* What output `output` must hold in row r, column c. */
typedef double expectation(const hs_test_call *t, size_t output, size_t r, size_t c);

static double in(const hs_test_call *t, unsigned i, size_t r, size_t c) {
    return t->inputs[i].f64[r * t->description.columns + c];
}

static void check(hs_test_description d, hs_test_fill fill, expectation *expect) {
    hs_test_call *t = hs_test_call_create(&d);
    hs_test_call_fill(t, fill, 5);
    hs_test_result *result = hs_test_call_run_well(t, backend);
    bool nonfinite = false;
    for (size_t i = 0; i < result->output_count; i++) {
        const size_t columns = t->outputs[i].view.dims[1];
        for (size_t j = 0; j < result->elements[i]; j++) {
            const double expected = expect(t, i, j / columns, j % columns);
            nonfinite |= !isfinite(expected);
            cr_expect(hs_test_same_value(result->outputs[i][j], expected), "%s, output %zu, element %zu: %a, not %a",
                      hs_operation_name(d.operation), i, j, result->outputs[i][j], expected);
        }
    }
    cr_expect_eq(result->flag, nonfinite ? 1 : 0, "%s: flag", hs_operation_name(d.operation));
    hs_test_result_destroy(result);
    hs_test_call_destroy(t);
}

/* Over fills and, where the operation follows one, pitches. */
static void check_all(hs_operation operation, bool pitched, expectation *expect) {
    for (int fill = HS_TEST_UNIFORM; fill <= HS_TEST_SPECIAL; fill++)
        for (int pitch = 0; pitch <= (pitched ? 3 : 0); pitch += 3) {
            hs_test_description d = hs_test_describe(operation);
            d.rows = 13;
            d.pitch = (size_t)pitch;
            check(d, (hs_test_fill)fill, expect);
        }
}

static double add(const hs_test_call *t, size_t output, size_t r, size_t c) {
    (void)output;
    return in(t, 0, r, c) + in(t, 1, r, c);
}

static double add_bias(const hs_test_call *t, size_t output, size_t r, size_t c) {
    (void)output;
    return in(t, 0, r, c) + t->inputs[1].f64[c];
}

static double multiply(const hs_test_call *t, size_t output, size_t r, size_t c) {
    (void)output;
    return in(t, 0, r, c) * in(t, 1, r, c);
}

static double scale(const hs_test_call *t, size_t output, size_t r, size_t c) {
    (void)output;
    return 0.37 * in(t, 0, r, c);
}

static double fill_with(const hs_test_call *t, size_t output, size_t r, size_t c) {
    (void)output, (void)r, (void)c;
    return t->inputs[0].f64[0];
}

static double transpose(const hs_test_call *t, size_t output, size_t r, size_t c) {
    (void)output;
    return in(t, 0, c, r);
}

static double logarithm(const hs_test_call *t, size_t output, size_t r, size_t c) {
    (void)output;
    return hs_log(in(t, 0, r, c));
}

static double log_backward(const hs_test_call *t, size_t output, size_t r, size_t c) {
    (void)output;
    return in(t, 0, r, c) / in(t, 1, r, c);
}

Test(elementwise, arithmetic) {
    check_all(HS_OP_ADD, true, add);
    check_all(HS_OP_ADD_BIAS, false, add_bias);
    check_all(HS_OP_MULTIPLY, false, multiply);
    check_all(HS_OP_SCALE, false, scale);
    check_all(HS_OP_FILL, false, fill_with);
    check_all(HS_OP_TRANSPOSE, false, transpose);
    check_all(HS_OP_LOG, false, logarithm);
    check_all(HS_OP_LOG_BACKWARD, false, log_backward);
}

Test(elementwise, add_in_place) {
    hs_test_description d = hs_test_describe(HS_OP_ADD);
    d.in_place = true;
    check(d, HS_TEST_UNIFORM, add);
    d.pitch = 4;
    check(d, HS_TEST_WIDE, add);
}

static double s_of(double g) { return 1.0 / (1.0 + hs_exp(-g)); }

static double slope_of(double g) { return s_of(g) * (1.0 + g * (1.0 - s_of(g))); }

static double silu(const hs_test_call *t, size_t output, size_t r, size_t c) {
    (void)output;
    return in(t, 0, r, c) * s_of(in(t, 0, r, c));
}

static double silu_backward(const hs_test_call *t, size_t output, size_t r, size_t c) {
    (void)output;
    return in(t, 0, r, c) * slope_of(in(t, 1, r, c));
}

static double swiglu(const hs_test_call *t, size_t output, size_t r, size_t c) {
    (void)output;
    return (in(t, 0, r, c) * s_of(in(t, 0, r, c))) * in(t, 1, r, c);
}

static double swiglu_backward(const hs_test_call *t, size_t output, size_t r, size_t c) {
    const double dy = in(t, 0, r, c), gate = in(t, 1, r, c), up = in(t, 2, r, c);
    return output == 0 ? (dy * up) * slope_of(gate) : dy * (gate * s_of(gate));
}

Test(elementwise, silu_and_swiglu) {
    check_all(HS_OP_SILU, false, silu);
    check_all(HS_OP_SILU_BACKWARD, false, silu_backward);
    check_all(HS_OP_SWIGLU, true, swiglu);
    check_all(HS_OP_SWIGLU_BACKWARD, true, swiglu_backward);
}

/* The same in extended precision, with the C library's exponential. */
Test(elementwise, silu_is_x_times_the_logistic_function) {
    hs_test_description d = hs_test_describe(HS_OP_SILU);
    hs_test_call *t = hs_test_call_create(&d);
    for (size_t i = 0; i < t->inputs[0].elements; i++)
        t->inputs[0].f64[i] = (double)i * 1.3 - 20.0;
    hs_test_result *result = hs_test_call_run_well(t, backend);
    for (size_t i = 0; i < result->elements[0]; i++) {
        const long double x = t->inputs[0].f64[i], expected = x / (1.0L + expl(-x));
        cr_expect_lt(fabsl(result->outputs[0][i] - expected), 1e-15L * fabsl(expected));
    }
    hs_test_result_destroy(result);
    hs_test_call_destroy(t);
}

/* Pairs are (i, i + half) of each head, tables are read at the row's position. */
static double rotary(const hs_test_call *t, size_t output, size_t r, size_t c) {
    (void)output;
    const hs_test_description *d = &t->description;
    const size_t half = d->head_width / 2, in_head = c % d->head_width, i = in_head % half;
    const double *row = t->inputs[0].f64 + r * d->heads * d->head_width;
    const size_t place = (size_t)t->inputs[1].i32[r] * half + i;
    const double cosine = t->inputs[2].f64[place], sine = t->inputs[3].f64[place];
    const bool back = d->operation == HS_OP_ROTARY_BACKWARD;
    if (in_head < half)
        return back ? row[c] * cosine + row[c + half] * sine : row[c] * cosine - row[c + half] * sine;
    return back ? row[c] * cosine - row[c - half] * sine : row[c] * cosine + row[c - half] * sine;
}

Test(elementwise, rotary_turns_half_split_pairs) {
    check_all(HS_OP_ROTARY, true, rotary);
    check_all(HS_OP_ROTARY_BACKWARD, true, rotary);
}
