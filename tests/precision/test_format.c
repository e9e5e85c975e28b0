/* Conversion bit by bit, against decoding by ldexp and rounding by exact integer or frexp arithmetic. */
#include <criterion/criterion.h>
#include <fenv.h>
#include <inttypes.h>
#include <math.h>

#include "precision/format.h"
#include "precision/random.h"
#include "support/vectors.h"

typedef struct shape {
    hstep_format format;
    int fraction, bias;
    uint16_t infinity, nan;
} shape;

static const shape shapes[] = {{HSTEP_FP16, 10, 15, 0x7c00, 0x7e00}, {HSTEP_BF16, 7, 127, 0x7f80, 0x7fc0}};

/* The value of a finite half, from the definition of the format. */
static double value_of(const shape *s, unsigned bits) {
    int exponent = (int)((bits & 0x7fff) >> s->fraction);
    double significand = (double)(bits & ((1u << s->fraction) - 1));
    if (exponent > 0)
        significand += ldexp(1, s->fraction);
    double magnitude = ldexp(significand, (exponent > 0 ? exponent : 1) - s->bias - s->fraction);
    return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

/* Rounding by scaling the last kept bit to 1 and rounding to an integer, which is exact: another way altogether. */
static unsigned round_by_scaling(const shape *s, double value) {
    unsigned sign = signbit(value) ? 0x8000 : 0;
    if (value != value)
        return s->nan;
    double magnitude = fabs(value);
    if (magnitude == 0 || isinf(magnitude))
        return sign | (magnitude == 0 ? 0u : s->infinity);
    int exponent;
    frexp(magnitude, &exponent);
    int smallest = 1 - s->bias;
    int step = (exponent - 1 < smallest ? smallest : exponent - 1) - s->fraction;
    /* Below a quarter of the smallest subnormal the scaling itself could round. */
    double kept = exponent < step - 1 ? 0 : nearbyint(ldexp(magnitude, -step));
    double rounded = ldexp(kept, step);
    if (rounded >= ldexp(2, s->bias))
        return sign | s->infinity;
    if (rounded < ldexp(1, smallest))
        return sign | (unsigned)kept;
    frexp(rounded, &exponent);
    double significand = ldexp(rounded, s->fraction - (exponent - 1));
    unsigned field = (unsigned)(exponent - 1 + s->bias) << s->fraction;
    return sign | (field + (unsigned)(significand - ldexp(1, s->fraction)));
}

#define expect_bits(s, value, want)                                                                                    \
    do {                                                                                                               \
        unsigned got_ = hs_encode((s)->format, (value));                                                               \
        if (got_ != (unsigned)(want))                                                                                  \
            cr_assert_fail("%s of %a is 0x%04x, not 0x%04x", (s)->fraction == 10 ? "fp16" : "bf16", (value), got_,     \
                           (unsigned)(want));                                                                          \
    } while (0)

Test(format, decodes_every_half_and_encodes_it_back) {
    for (const shape *s = shapes; s < shapes + 2; s++)
        for (unsigned bits = 0; bits < 0x10000; bits++) {
            double got = hs_decode(s->format, (uint16_t)bits);
            unsigned magnitude = bits & 0x7fff;
            if (magnitude > s->infinity) {
                cr_assert(got != got, "0x%04x", bits);
                expect_bits(s, got, s->nan);
                continue;
            }
            double want = magnitude == s->infinity ? (bits & 0x8000 ? -INFINITY : INFINITY) : value_of(s, bits);
            cr_assert_eq(hs_test_bits(got), hs_test_bits(want), "0x%04x", bits);
            expect_bits(s, got, bits);
            unsigned from_f32 = s->format == HSTEP_FP16 ? hs_fp16_from_f32((float)want) : hs_bf16_from_f32((float)want);
            cr_assert_eq(from_f32, bits);
        }
}

/* The midpoint of each pair of neighbours goes to the even one; the f64 on either side of it goes to its own side. */
Test(format, rounds_every_midpoint_and_its_neighbours) {
    for (const shape *s = shapes; s < shapes + 2; s++)
        for (unsigned low = 0; low < s->infinity; low++) {
            unsigned high = low + 1;
            double above = high == s->infinity ? ldexp(2, s->bias) : value_of(s, high);
            double midpoint = (value_of(s, low) + above) / 2;
            unsigned even = (low & 1) == 0 ? low : high;
            expect_bits(s, midpoint, even);
            expect_bits(s, -midpoint, even | 0x8000);
            expect_bits(s, nextafter(midpoint, 0), low);
            expect_bits(s, -nextafter(midpoint, 0), low | 0x8000);
            expect_bits(s, nextafter(midpoint, INFINITY), high);
            expect_bits(s, -nextafter(midpoint, INFINITY), high | 0x8000);
            /* Within an f32 of the midpoint rounding twice would fall on the wrong side. */
            expect_bits(s, midpoint * (1 + 0x1p-40), high);
            expect_bits(s, midpoint * (1 - 0x1p-40), low);
            unsigned from_f32 =
                s->format == HSTEP_FP16 ? hs_fp16_from_f32((float)midpoint) : hs_bf16_from_f32((float)midpoint);
            /* Half of the smallest bf16 subnormal and every other midpoint is an f32. */
            cr_assert_eq((double)(float)midpoint, midpoint);
            cr_assert_eq(from_f32, even);
        }
}

Test(format, makes_one_quiet_nan) {
    hs_random random = {7};
    for (int i = 0; i < 100000; i++) {
        uint64_t payload = hs_random_next(&random) & UINT64_C(0xfffffffffffff);
        payload = i < 52 ? UINT64_C(1) << i : payload == 0 ? 1 : payload;
        uint64_t sign = (uint64_t)(i & 1) << 63;
        double nan = hs_test_double(sign | UINT64_C(0x7ff0000000000000) | payload);
        expect_bits(&shapes[0], nan, 0x7e00);
        expect_bits(&shapes[1], nan, 0x7fc0);
        cr_assert_eq(hs_fp16_from_f32((float)nan), 0x7e00);
        cr_assert_eq(hs_bf16_from_f32((float)nan), 0x7fc0);
    }
}

Test(format, keeps_the_signs_of_zero_and_overflow) {
    for (const shape *s = shapes; s < shapes + 2; s++) {
        double largest = value_of(s, s->infinity - 1u);
        double limit = (largest + ldexp(2, s->bias)) / 2;
        const double huge[] = {limit, limit * 2, 0x1p128, 0x1.fffffffffffffp1023, INFINITY};
        for (size_t i = 0; i < sizeof huge / sizeof *huge; i++) {
            expect_bits(s, huge[i], s->infinity);
            expect_bits(s, -huge[i], s->infinity | 0x8000);
        }
        const double tiny[] = {0, 0x1p-1074, 0x1p-1022, 0x1p-150, ldexp(1, -s->bias - s->fraction)};
        for (size_t i = 0; i < sizeof tiny / sizeof *tiny; i++) {
            expect_bits(s, tiny[i], 0);
            expect_bits(s, -tiny[i], 0x8000);
        }
        expect_bits(s, nextafter(limit, 0), s->infinity - 1);
    }
}

Test(format, gives_the_worked_values_of_the_policy) {
    const shape *fp16 = &shapes[0], *bf16 = &shapes[1];
    expect_bits(fp16, 0x1p-25, 0);
    cr_assert_eq(hs_decode(HSTEP_BF16, hs_encode(HSTEP_BF16, 0x1p-25)), 0x1p-25);
    cr_assert_eq(hs_decode(HSTEP_FP16, hs_encode(HSTEP_FP16, 0x1p-25 * 128)), 0x1p-18);
    expect_bits(fp16, 1 + 0x1p-11, 0x3c00);
    expect_bits(bf16, 1 + 0x1p-8, 0x3f80);
    double master = 1 - 0.0001;
    cr_assert_eq(master, 0.9999);
    expect_bits(fp16, master, 0x3c00);
    cr_assert_eq(value_of(fp16, 0x7bff), 65504);
}

Test(format, agrees_with_the_golden_roundings) {
    json_t *root = hs_vectors_load("rounding.json");
    json_t *cases = hs_vectors_member(root, "cases");
    cr_assert_gt(json_array_size(cases), 200);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        json_t *item = json_array_get(cases, i);
        double value = hs_test_double(hs_vectors_hex(hs_vectors_member(item, "bits")));
        bool nan = json_is_true(json_object_get(item, "nan"));
        expect_bits(&shapes[0], value, nan ? 0x7e00 : hs_vectors_hex(hs_vectors_member(item, "fp16")));
        expect_bits(&shapes[1], value, nan ? 0x7fc0 : hs_vectors_hex(hs_vectors_member(item, "bf16")));
    }
    json_decref(root);
}

/* Exponents are drawn around each format's range, and half of the fractions lie within a few bits of a tie. */
Test(format, agrees_with_rounding_by_scaling) {
    cr_assert_eq(fegetround(), FE_TONEAREST);
    hs_random random = {39};
    for (const shape *s = shapes; s < shapes + 2; s++)
        for (int i = 0; i < 1000000; i++) {
            uint64_t draw = hs_random_next(&random);
            int span = 2 * s->bias + 2 * s->fraction;
            uint64_t exponent = (uint64_t)(1023 - s->bias - 2 * s->fraction + (int)(draw % (unsigned)span));
            uint64_t fraction = hs_random_next(&random) >> 12;
            if (i & 1) {
                uint64_t tie = UINT64_C(1) << (51 - s->fraction + (int)(draw >> 40 & 7));
                fraction = (fraction & ~(2 * tie - 1)) | tie;
                fraction += draw >> 50 & 1;
                fraction -= draw >> 51 & 1;
            }
            double value = hs_test_double((draw & UINT64_C(1) << 63) | exponent << 52 | fraction);
            expect_bits(s, value, round_by_scaling(s, value));
            float single = (float)value;
            unsigned from_f32 = s->format == HSTEP_FP16 ? hs_fp16_from_f32(single) : hs_bf16_from_f32(single);
            if (from_f32 != round_by_scaling(s, (double)single))
                cr_assert_fail("f32 %a gives 0x%04x", (double)single, from_f32);
        }
}

Test(format, rounds_to_odd) {
    cr_assert_eq(hs_f32_round_to_odd(1), 1.0f);
    cr_assert_eq(hs_f32_round_to_odd(1 + 0x1p-50), 1 + 0x1p-23f);
    cr_assert_eq(hs_f32_round_to_odd(-1 - 0x1p-50), -1 - 0x1p-23f);
    cr_assert_eq(hs_f32_round_to_odd(1 + 0x1p-23 + 0x1p-24), 1 + 0x1p-23f);
    cr_assert_eq(hs_f32_round_to_odd(1 + 0x1p-22 - 0x1p-50), 1 + 0x1p-23f);
    cr_assert_eq(hs_f32_round_to_odd(0x1p1000), 0x1.fffffep127f);
    cr_assert_eq(hs_f32_round_to_odd(-0x1p1000), -0x1.fffffep127f);
    cr_assert_eq(hs_f32_round_to_odd(0x1p-1000), 0x1p-149f);
    cr_assert_eq(hs_f32_round_to_odd(-0x1p-1000), -0x1p-149f);
    cr_assert_eq(hs_f32_round_to_odd(INFINITY), INFINITY);
    cr_assert(signbit(hs_f32_round_to_odd(-0.0)) && isnan(hs_f32_round_to_odd(NAN)));
}
