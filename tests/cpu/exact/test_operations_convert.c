/* The exact tier's branch-free rounding against precision/format, bit for bit. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "cpu/exact/product/convert.h"
#include "precision/format.h"
#include "precision/random.h"

static const hstep_precision halves[] = {HSTEP_PRECISION_FP16, HSTEP_PRECISION_BF16};

static const hs_rounding *rounding_of(hstep_precision precision) {
    return precision == HSTEP_PRECISION_FP16 ? &hs_rounding_fp16 : &hs_rounding_bf16;
}

static uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static bool same(double a, double b) { return bits_of(a) == bits_of(b) || (isnan(a) && isnan(b)); }

static void check_operands(hstep_precision precision, size_t count, const double *x) {
    float y[256];
    cr_assert_leq(count, 256);
    hs_represent(rounding_of(precision), count, x, y);
    for (size_t i = 0; i < count; i++) {
        const hstep_format format = hs_precision_format(precision);
        const double expected = hs_decode(format, hs_encode(format, x[i]));
        cr_assert(same((double)y[i], expected), "%a is %a, not %a", x[i], (double)y[i], expected);
    }
}

static void check_operand_signs(hstep_precision precision, size_t count, const double *x) {
    double negative[256];
    for (size_t i = 0; i < count; i++)
        negative[i] = -x[i];
    check_operands(precision, count, x);
    check_operands(precision, count, negative);
}

/* Every value of the format, the midpoint to the next one, and the f64 values around both. */
Test(convert, operands_at_every_boundary, .timeout = 60) {
    for (size_t p = 0; p < 2; p++) {
        const hstep_format format = hs_precision_format(halves[p]);
        const uint16_t infinity = hs_encode(format, (double)INFINITY);
        for (uint16_t bits = 0; bits < infinity; bits++) {
            const double low = hs_decode(format, bits);
            const double high = bits + 1 < infinity ? hs_decode(format, (uint16_t)(bits + 1))
                                                    : 2.0 * low - hs_decode(format, (uint16_t)(bits - 1));
            const double middle = low + (high - low) / 2;
            const double x[] = {low,    nextafter(low, INFINITY),    nextafter(low, -INFINITY),
                                middle, nextafter(middle, INFINITY), nextafter(middle, -INFINITY)};
            check_operand_signs(halves[p], sizeof x / sizeof *x, x);
        }
    }
}

Test(convert, operands_of_every_exponent, .timeout = 60) {
    hs_random random = {1};
    for (size_t p = 0; p < 2; p++)
        for (uint64_t exponent = 0; exponent < 2048; exponent++) {
            double x[256];
            for (size_t i = 0; i < 256; i++) {
                /* Long runs of zeros and ones come close to ties. */
                uint64_t fraction = hs_random_next(&random) >> 12;
                if (i % 4 == 1)
                    fraction &= ~UINT64_C(0) << (hs_random_next(&random) % 52);
                if (i % 4 == 2)
                    fraction |= ~(~UINT64_C(0) << (hs_random_next(&random) % 52));
                if (i == 3)
                    fraction = 0;
                const uint64_t bits = exponent << 52 | (fraction & ~(~UINT64_C(0) << 52));
                memcpy(&x[i], &bits, sizeof bits);
            }
            check_operand_signs(halves[p], 256, x);
        }
}

static void check_results(hstep_precision precision, size_t count, const float *x) {
    double y[256];
    bool nonfinite = false;
    const bool raised = hs_any_nonfinite(hs_round_results(rounding_of(precision), count, x, y));
    for (size_t i = 0; i < count; i++) {
        const hstep_format format = hs_precision_format(precision);
        const uint16_t half = format == HSTEP_FP16 ? hs_fp16_from_f32(x[i]) : hs_bf16_from_f32(x[i]);
        const double expected = hs_decode(format, half);
        cr_assert_eq(bits_of(y[i]), bits_of(expected), "%a is %a, not %a", (double)x[i], y[i], expected);
        nonfinite = nonfinite || !isfinite(expected);
    }
    cr_assert_eq(raised, nonfinite);
}

/* Every upper half of an f32 with the lower halves that round down, tie, and round up. */
Test(convert, results_at_every_boundary, .timeout = 60) {
    static const uint32_t lower[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff, 0x1000, 0x0fff, 0x1001, 0x3000, 0x6000};
    for (size_t p = 0; p < 2; p++)
        for (uint32_t upper = 0; upper < 0x10000; upper++)
            for (size_t i = 0; i < sizeof lower / sizeof *lower; i++) {
                const uint32_t bits = upper << 16 | lower[i];
                float x;
                memcpy(&x, &bits, sizeof x);
                check_results(halves[p], 1, &x);
            }
}

/* One infinite result among finite ones must not be lost in a vector of them. */
Test(convert, one_nonfinite_result_raises) {
    for (size_t place = 0; place < 37; place++) {
        float x[37];
        for (size_t i = 0; i < 37; i++)
            x[i] = (float)i;
        check_results(HSTEP_PRECISION_FP16, 37, x);
        x[place] = 65520.0F;
        check_results(HSTEP_PRECISION_FP16, 37, x);
        x[place] = NAN;
        check_results(HSTEP_PRECISION_BF16, 37, x);
    }
}
