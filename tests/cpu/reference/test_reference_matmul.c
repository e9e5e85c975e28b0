/* The product's forms, pitches, roundings and order. The policy's own goldens are tested in tests/precision. */
#include <criterion/criterion.h>
#include <math.h>

#include "cpu/cpu.h"
#include "support/calls.h"

static hs_backend *backend;

static void setup(void) { cr_assert_eq(hs_cpu_reference_create(&backend, NULL), HSTEP_OK); }

static void teardown(void) { backend->api->destroy(backend); }

TestSuite(matmul, .init = setup, .fini = teardown);

static const hstep_precision precisions[] = {HSTEP_PRECISION_F64, HSTEP_PRECISION_FP16, HSTEP_PRECISION_BF16};

/* Powers of two from 1/8 to 8: sums of 6 products are multiples of 1/64 and exact in f32, but not in a half. */
static double exact_cell(const hs_test_call *t, size_t i, size_t j) {
    const hs_test_description *d = &t->description;
    double sum = 0.0;
    for (size_t k = 0; k < d->inner; k++) {
        const double a = t->inputs[0].f64[d->a_form == HSTEP_TRANSPOSE ? k * d->rows + i : i * d->inner + k];
        const double b = t->inputs[1].f64[d->b_form == HSTEP_TRANSPOSE ? j * d->inner + k : k * d->columns + j];
        sum += a * b;
    }
    return sum;
}

/* Rounds to a number of significant bits, ties to even: enough for magnitudes in the normal range. */
static double round_to_bits(double x, int bits) {
    int exponent;
    const double fraction = frexp(x, &exponent);
    return ldexp(rint(ldexp(fraction, bits)), exponent - bits);
}

Test(matmul, every_form_and_pitch) {
    static const int bits[] = {53, 11, 8};
    for (int i = 0; i < 3 * 4 * 2; i++) {
        hs_test_description d = hs_test_describe(HS_OP_MATMUL);
        d.precision = precisions[i % 3];
        d.a_form = (hstep_transpose)(i / 3 % 2);
        d.b_form = (hstep_transpose)(i / 6 % 2);
        d.pitch = i / 12 ? 3 : 0;
        hs_test_call *t = hs_test_call_create(&d);
        hs_test_call_fill(t, HS_TEST_POWERS, (uint64_t)i);
        hs_test_result *result = hs_test_call_run_well(t, backend);
        for (size_t j = 0; j < result->elements[0]; j++) {
            const double exact = exact_cell(t, j / d.columns, j % d.columns);
            cr_expect(result->outputs[0][j] == round_to_bits(exact, bits[i % 3]), "case %d, cell %zu", i, j);
        }
        cr_expect_eq(result->flag, 0);
        hs_test_result_destroy(result);
        hs_test_call_destroy(t);
    }
}

/* One cell, from the values given. */
static double product(hstep_precision precision, size_t k, const double *a, const double *b) {
    hs_test_description d = hs_test_describe(HS_OP_MATMUL);
    d.precision = precision;
    d.rows = d.columns = 1;
    d.inner = k;
    hs_test_call *t = hs_test_call_create(&d);
    for (size_t i = 0; i < k; i++) {
        t->inputs[0].f64[i] = a[i];
        t->inputs[1].f64[i] = b[i];
    }
    hs_test_result *result = hs_test_call_run_well(t, backend);
    const double y = result->outputs[0][0];
    hs_test_result_destroy(result);
    hs_test_call_destroy(t);
    return y;
}

Test(matmul, sums_ascend_in_the_accumulator) {
    const double ones[3] = {1.0, 1.0, 1.0};
    const double in_f64[3] = {0x1p53, 1.0, -0x1p53}, turned_f64[3] = {0x1p53, -0x1p53, 1.0};
    cr_expect(product(HSTEP_PRECISION_F64, 3, in_f64, ones) == 0.0);
    cr_expect(product(HSTEP_PRECISION_F64, 3, turned_f64, ones) == 1.0);
    const double big[3] = {0x1p12, 1.0, -0x1p12}, turned[3] = {0x1p12, -0x1p12, 1.0}, scale[3] = {0x1p12, 1.0, 0x1p12};
    const double scale_turned[3] = {0x1p12, 0x1p12, 1.0};
    for (int i = 1; i < 3; i++) {
        cr_expect(product(precisions[i], 3, big, scale) == 0.0);
        cr_expect(product(precisions[i], 3, turned, scale_turned) == 1.0);
    }
    cr_expect(product(HSTEP_PRECISION_FP16, 0, ones, ones) == 0.0);
}

Test(matmul, operands_and_result_are_rounded) {
    const double one[1] = {1.0}, a[1] = {1.0 + 0x1p-11}, b[2] = {1.0, 1.0}, c[2] = {1.0, 0x1p-11};
    cr_expect(product(HSTEP_PRECISION_F64, 1, a, one) == 1.0 + 0x1p-11);
    cr_expect(product(HSTEP_PRECISION_FP16, 1, a, one) == 1.0);
    cr_expect(product(HSTEP_PRECISION_FP16, 2, b, c) == 1.0);
    const double d[1] = {1.0 + 0x1p-8};
    cr_expect(product(HSTEP_PRECISION_FP16, 1, d, one) == 1.0 + 0x1p-8);
    cr_expect(product(HSTEP_PRECISION_BF16, 1, d, one) == 1.0);
}
