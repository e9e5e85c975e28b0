/* The counts of MEASURE on numbers around every border of the formats, worked out by hand. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "cpu/cpu.h"
#include "support/calls.h"

static void measure(hstep_precision precision, size_t count, const double *x, double found[HS_MEASURES]) {
    hs_backend *backend = NULL;
    cr_assert_eq(hs_cpu_reference_create(&backend, NULL), HSTEP_OK);
    hs_test_description d = hs_test_describe(HS_OP_MEASURE);
    d.precision = precision;
    d.rows = 1;
    d.columns = count;
    hs_test_call *t = hs_test_call_create(&d);
    memcpy(t->inputs[0].f64, x, count * sizeof *x);
    hs_test_result *result = hs_test_call_run_well(t, backend);
    cr_expect_eq(result->flag, 0, "what is counted is not flagged");
    memcpy(found, result->outputs[0], HS_MEASURES * sizeof *found);
    hs_test_result_destroy(result);
    hs_test_call_destroy(t);
    backend->api->destroy(backend);
}

static void expect(const double found[HS_MEASURES], double largest, double zero, double subnormal, double infinity,
                   double nonfinite) {
    const double right[HS_MEASURES] = {largest, zero, subnormal, infinity, nonfinite};
    for (int i = 0; i < HS_MEASURES; i++)
        cr_expect(found[i] == right[i], "measure %d is %a, not %a", i, found[i], right[i]);
}

/* 0 and 1; a tie at half the smallest subnormal and just above it; the last that is subnormal and the tie that is
   normal; the largest, the last that rounds to it, and the tie that is infinite; what is no number. */
Test(measure, fp16_by_hand) {
    const double x[] = {0.0,
                        -0.0,
                        1.0,
                        0x1p-25,
                        -0x1.8p-26,
                        nextafter(0x1p-25, 1),
                        -0x1p-24,
                        0x1.ff8p-15,
                        0x1p-14,
                        65504.0,
                        nextafter(65520.0, 0),
                        65520.0,
                        -1e300,
                        INFINITY,
                        -INFINITY,
                        NAN,
                        0x1p-1074};
    double found[HS_MEASURES];
    measure(HSTEP_PRECISION_FP16, sizeof x / sizeof *x, x, found);
    expect(found, 1e300, 3, 3, 2, 3);
    /* Halfway between the largest subnormal and the smallest normal number: the tie is normal, what is below is not. */
    const double edge = 0x1p-14 - 0x1p-25, edges[] = {edge, nextafter(edge, 0), -edge};
    measure(HSTEP_PRECISION_FP16, 3, edges, found);
    expect(found, edge, 0, 1, 0, 0);
}

Test(measure, bf16_by_hand) {
    const double edge = 0x1p-126 - 0x1p-134, most = 0x1.fep127 + 0x1p119;
    const double x[] = {0x1p-134, -0x1p-134, nextafter(0x1p-134, 1), edge, nextafter(edge, 0), 0x1p-126,
                        65520.0,  most,      nextafter(most, 0)};
    double found[HS_MEASURES];
    measure(HSTEP_PRECISION_BF16, sizeof x / sizeof *x, x, found);
    expect(found, most, 2, 2, 1, 0);
}

Test(measure, f64_rounds_nothing) {
    const double x[] = {0x1p-1074, 0.0, -0x1.8p1023, INFINITY};
    double found[HS_MEASURES];
    measure(HSTEP_PRECISION_F64, 4, x, found);
    expect(found, 0x1.8p1023, 0, 0, 0, 1);
    measure(HSTEP_PRECISION_F64, 0, x, found);
    expect(found, 0, 0, 0, 0, 0);
}
