/*
 * Products by vdpbf16ps: the instruction against a scalar emulator of it, and the kernel at the limits within which the
 * instruction computes the policy's chain. Beside these, every test of products runs with the lever (support/parity.c).
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cpu/processor.h"
#include "precision/random.h"
#include "support/emulator.h"
#include "support/parity.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float of_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx512f,avx512bf16"))) static float computed(float sum, const uint16_t a[2],
                                                                    const uint16_t b[2]) {
    const int x = (int)((uint32_t)a[1] << 16 | a[0]), y = (int)((uint32_t)b[1] << 16 | b[0]);
    return _mm512_cvtss_f32(
        _mm512_dpbf16_ps(_mm512_set1_ps(sum), (__m512bh)_mm512_set1_epi32(x), (__m512bh)_mm512_set1_epi32(y)));
}
#else
static float computed(float sum, const uint16_t a[2], const uint16_t b[2]) { return hs_emulate_pair(sum, a, b); }
#endif

/* Any bits, numbers near each other, near the smallest normal, near the largest, or special. */
static uint16_t draw(hs_random *random, int kind) {
    const uint64_t r = hs_random_next(random);
    const uint16_t sign_and_fraction = (uint16_t)(r & 0x807f);
    switch (kind) {
    case 0:
        return (uint16_t)(r & 0xffff);
    case 1:
        return (uint16_t)(sign_and_fraction | ((r >> 20) % 12 + 121) << 7);
    case 2:
        return (uint16_t)(sign_and_fraction | ((r >> 20) % 6 + 61) << 7);
    case 3:
        return (uint16_t)(sign_and_fraction | ((r >> 20) % 4 + 188) << 7);
    default:
        return (uint16_t)((r & 0x8000) | ((r >> 20) % 4 == 0 ? 0x7f80 : (r >> 20) % 4 == 1 ? 0 : r & 0xff));
    }
}

static float draw_sum(hs_random *random, int kind) {
    const uint64_t r = hs_random_next(random);
    const uint32_t sign_and_fraction = (uint32_t)(r & 0x807fffff);
    static const uint32_t exponents[] = {0, 121, 0, 250, 0}, counts[] = {256, 12, 5, 6, 256};
    return of_bits(sign_and_fraction | (exponents[kind] + (uint32_t)(r >> 40) % counts[kind]) << 23);
}

static void check_instruction(float sum, const uint16_t a[2], const uint16_t b[2]) {
    const float expected = hs_emulate_pair(sum, a, b), got = computed(sum, a, b);
    cr_assert(bits_of(expected) == bits_of(got) || (isnan(expected) && isnan(got)),
              "%a, %04x %04x by %04x %04x: %a is not %a", (double)sum, a[0], a[1], b[0], b[1], (double)got,
              (double)expected);
}

Test(pairs, the_instruction_is_what_the_emulator_says, .timeout = 60) {
    if (!hs_has_avx512bf16())
        cr_skip_test("skipped: no AVX512-BF16 here");
    hs_random random = {5};
    for (int i = 0; i < 2000000; i++) {
        const int kind = i % 5;
        const uint16_t a[2] = {draw(&random, kind), draw(&random, kind)},
                       b[2] = {draw(&random, kind), draw(&random, kind)};
        check_instruction(draw_sum(&random, kind), a, b);
    }
    /* Just below the smallest normal: whether that is flushed depends on when it is looked at. */
    static const float least[] = {0x1p-126F, -0x1p-126F, 0x1.000002p-126F, 0x1.fffffep-127F};
    for (size_t i = 0; i < sizeof least / sizeof *least; i++)
        for (uint16_t shift = 0; shift < 60; shift++) {
            const uint16_t a[2] = {0x3f80, (uint16_t)(0x8000 | (68 - shift) << 7)}, b[2] = {0, 0x0080};
            check_instruction(least[i], a, b);
            const uint16_t c[2] = {(uint16_t)((68 - shift) << 7), 0x3f80}, d[2] = {0x0080, 0};
            check_instruction(least[i], c, d);
        }
}

/* Numbers 1.xxxxxxx times 2^low to 2^high, of any sign. */
static void fill_exponents(hs_random *random, hs_test_operand *x, int low, int high) {
    for (size_t i = 0; i < x->elements; i++) {
        const uint64_t r = hs_random_next(random);
        const double value =
            ldexp(1.0 + (double)(r & 0x7f) / 128.0, low + (int)((r >> 20) % (uint64_t)(high - low + 1)));
        x->f64[i] = r & 0x80 ? -value : value;
    }
}

/* Makes sums cancel: the second half of every row of `a` is the first one negated, and `b` repeats itself but for some
 * last bits. */
static void cancel(hs_random *random, hs_test_call *call) {
    const hs_test_description *d = &call->description;
    const size_t half = d->inner / 2;
    double *a = call->inputs[0].f64, *b = call->inputs[1].f64;
    for (size_t k = 0; k < half; k++) {
        for (size_t i = 0; i < d->rows; i++)
            a[i * d->inner + half + k] = -a[i * d->inner + k];
        for (size_t j = 0; j < d->columns; j++)
            b[(half + k) * d->columns + j] = b[k * d->columns + j] * (hs_random_next(random) % 8 == 0 ? 1 + 0x1p-7 : 1);
    }
}

/* On both sides of every limit; where the instruction was used beyond one, bits would differ. */
Test(pairs, the_kernel_keeps_to_the_limits_of_the_instruction, .timeout = 60) {
    static const int ranges[][4] = {{-63, -63, -49, -49}, {-63, -63, -50, -50}, {-60, -60, -60, -60},
                                    {-70, -60, -60, -50}, {-133, -126, 20, 30}, {-126, -126, 14, 14},
                                    {20, 30, -133, -126}, {-127, -127, 40, 41}, {62, 62, 63, 63},
                                    {63, 63, 63, 63},     {63, 63, 64, 64},     {-20, 20, -20, 20}};
    static const size_t depths[] = {2, 7, 64, 400, 801};
    hs_parity parity;
    hs_parity_open(&parity);
    hs_random random = {9};
    hs_test_description d = hs_test_describe(HS_OP_MATMUL);
    d.precision = HSTEP_PRECISION_BF16;
    d.rows = 17;
    d.columns = 35;
    for (size_t depth = 0; depth < sizeof depths / sizeof *depths; depth++)
        for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
            char what[64];
            d.inner = depths[depth];
            hs_test_call *call = hs_test_call_create(&d);
            fill_exponents(&random, &call->inputs[0], ranges[i][0], ranges[i][1]);
            fill_exponents(&random, &call->inputs[1], ranges[i][2], ranges[i][3]);
            snprintf(what, sizeof what, "range %zu, depth %zu", i, d.inner);
            hs_parity_compare(&parity, call, what);
            cancel(&random, call);
            hs_parity_compare(&parity, call, what);
            hs_test_call_destroy(call);
        }
    hs_parity_close(&parity);
}

/* A block of steps that only plain steps can do leaves subnormal sums behind, which the instruction would flush. */
Test(pairs, plain_steps_stay_plain, .timeout = 60) {
    enum { DEPTH = 1200 };
    hs_parity parity;
    hs_parity_open(&parity);
    hs_random random = {10};
    hs_test_description d = hs_test_describe_matmul(HSTEP_PRECISION_BF16, 15, 33, DEPTH);
    hs_test_call *call = hs_test_call_create(&d);
    for (size_t tiny = 0; tiny < DEPTH; tiny += 300) {
        fill_exponents(&random, &call->inputs[0], -50, -50);
        fill_exponents(&random, &call->inputs[1], -40, -40);
        for (size_t i = 0; i < d.rows; i++)
            for (size_t k = 0; k < DEPTH; k++)
                call->inputs[0].f64[i * DEPTH + k] *= k == tiny ? 0x1p-42 : i % 2 == 0 ? 0.0 : 1.0;
        hs_parity_compare(&parity, call, "one tiny step");
    }
    hs_test_call_destroy(call);
    hs_parity_close(&parity);
}
