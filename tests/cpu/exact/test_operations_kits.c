/* The kits by themselves: casts against precision/format, exponents, and why bf16 needs the guard on fused products. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/exact/product/kit.h"
#include "cpu/processor.h"
#include "precision/format.h"
#include "precision/random.h"

enum { DEPTH = 37, MOST_LINES = 32 };

/* Element (line, k) of an operand stands at line * LINE_PITCH + k, or turned. */
enum { LINE_PITCH = DEPTH + 3, STEP_PITCH = MOST_LINES + 5 };

static size_t available_kits(hstep_precision precision, const hs_kit *kits[3]) {
    size_t count = 0;
    kits[count++] = hs_kits_portable[precision];
#ifdef HS_X86_64
    if (hs_detect_avx2() == HSTEP_LEVER_ACTIVE)
        kits[count++] = hs_kits_avx2[precision];
    if (hs_detect_avx512() == HSTEP_LEVER_ACTIVE)
        kits[count++] = hs_kits_avx512[precision];
#endif
    return count;
}

static double represented(hstep_precision precision, double x) {
    if (precision == HSTEP_PRECISION_F64)
        return x;
    const hstep_format format = hs_precision_format(precision);
    return hs_decode(format, hs_encode(format, x));
}

static bool same(double a, double b) { return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b)); }

static double element(const hs_kit *kit, const void *panel, size_t i) {
    return kit->element == sizeof(float) ? (double)((const float *)panel)[i] : ((const double *)panel)[i];
}

/* Values[line * DEPTH + k] packed in both layouts, from f64 and from 16 bits: every cell must be Q_h of its value,
 * other lines zero. */
static void check_panel(hstep_precision precision, const hs_kit *kit, const hs_side *side, const double *values,
                        size_t count) {
    static double along[MOST_LINES * LINE_PITCH], across[DEPTH * STEP_PITCH];
    static uint16_t half_along[MOST_LINES * LINE_PITCH], half_across[DEPTH * STEP_PITCH];
    static _Alignas(64) double panel[MOST_LINES * DEPTH];
    for (size_t line = 0; line < count; line++)
        for (size_t k = 0; k < DEPTH; k++) {
            const double x = along[line * LINE_PITCH + k] = across[k * STEP_PITCH + line] = values[line * DEPTH + k];
            if (precision != HSTEP_PRECISION_F64)
                half_along[line * LINE_PITCH + k] = half_across[k * STEP_PITCH + line] =
                    hs_encode(hs_precision_format(precision), x);
        }
    const hs_lines layouts[] = {{along, LINE_PITCH, 1, false},
                                {across, 1, STEP_PITCH, false},
                                {half_along, LINE_PITCH, 1, true},
                                {half_across, 1, STEP_PITCH, true}};
    int least = 1000, largest = -1000;
    for (size_t i = 0; i < count * DEPTH; i++) {
        const double x = fabs(represented(precision, values[i]));
        const int exponent = !isfinite(x) ? 128 : x < 0x1p-126 ? -127 : ilogb(x);
        if (x == 0.0)
            continue;
        least = exponent < least ? exponent : least;
        largest = exponent > largest ? exponent : largest;
    }
    for (size_t layout = 0; layout < (precision == HSTEP_PRECISION_F64 ? 2 : 4); layout++) {
        hs_range range = hs_no_range;
        memset(panel, 0xff, sizeof panel);
        side->pack(layouts[layout], count, DEPTH, panel, &range);
        for (size_t k = 0; k < DEPTH; k++)
            for (size_t line = 0; line < side->width; line++) {
                const double expected = line < count ? represented(precision, values[line * DEPTH + k]) : 0.0;
                const double got = element(kit, panel, k * side->pitch + line);
                cr_assert(same(got, expected), "layout %zu, line %zu of %zu, step %zu: %a is not %a", layout, line,
                          count, k, got, expected);
            }
        if (precision == HSTEP_PRECISION_BF16 && kit != hs_kits_portable[precision])
            cr_assert(range.least == least && range.largest == largest, "exponents %d to %d, not %d to %d", range.least,
                      range.largest, least, largest);
        else
            cr_assert(range.least == hs_no_range.least && range.largest == hs_no_range.largest);
    }
}

/* Values near the boundaries of a format: one of it or halfway between two, and the f64 on either side. */
static double near_boundary(hs_random *random, hstep_precision precision) {
    const uint64_t bits = hs_random_next(random);
    if (precision == HSTEP_PRECISION_F64 || bits % 16 == 0)
        return bits % 3 == 0 ? (double)NAN : 4.0 * hs_random_uniform(random) - 2.0;
    const hstep_format format = hs_precision_format(precision);
    const uint16_t half = (uint16_t)(hs_random_next(random) & 0x7fff);
    double x = hs_decode(format, half);
    if (isnan(x))
        x = bits % 32 == 1 ? 0.0 : (double)INFINITY;
    else if (bits & 0x100)
        x += (hs_decode(format, (uint16_t)(half + 1)) - x) / 2;
    if (bits & 0x200)
        x = nextafter(x, bits & 0x400 ? 0.0 : INFINITY);
    if (bits & 0x800)
        x = nextafter(x, bits & 0x1000 ? 1.0 : INFINITY);
    return bits & 0x2000 ? -x : x;
}

static void check_packing(hstep_precision precision) {
    static double values[MOST_LINES * DEPTH];
    const hs_kit *kits[3];
    const size_t count = available_kits(precision, kits);
    hs_random random = {11};
    for (size_t round = 0; round < 60; round++) {
        for (size_t i = 0; i < MOST_LINES * DEPTH; i++)
            values[i] = near_boundary(&random, precision);
        for (size_t i = 0; i < count; i++)
            for (size_t lines = 1; lines <= kits[i]->right.width; lines++) {
                check_panel(precision, kits[i], &kits[i]->right, values, lines);
                if (lines <= kits[i]->left.width)
                    check_panel(precision, kits[i], &kits[i]->left, values, lines);
            }
    }
}

Test(kits, pack_f64, .timeout = 60) { check_packing(HSTEP_PRECISION_F64); }
Test(kits, pack_fp16, .timeout = 60) { check_packing(HSTEP_PRECISION_FP16); }
Test(kits, pack_bf16, .timeout = 60) { check_packing(HSTEP_PRECISION_BF16); }

/* Zeros count for no exponent, whatever their sign. */
Test(kits, zeros_have_no_exponent) {
    const hs_kit *kits[3];
    const size_t count = available_kits(HSTEP_PRECISION_BF16, kits);
    double values[DEPTH] = {0};
    for (size_t i = 0; i < count; i++) {
        values[3] = 0.0, values[5] = -0.0;
        check_panel(HSTEP_PRECISION_BF16, kits[i], &kits[i]->right, values, 1);
        values[5] = 0x1p-20;
        check_panel(HSTEP_PRECISION_BF16, kits[i], &kits[i]->left, values, 1);
    }
}

/* One tile of results at a time, every upper half of an f32 with the lower halves that round down, tie and round up. */
static void check_results(hstep_precision precision, const hs_kit *kit) {
    static const uint32_t lower[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff, 0x1000, 0x0fff, 0x1001, 0x3000, 0x6000};
    const hstep_format format = hs_precision_format(precision);
    const size_t rows = kit->left.width, columns = kit->right.width, cells = rows * columns;
    hs_sums sums;
    float *s = (float *)(void *)sums.bytes;
    double y[HS_TILE_BYTES / sizeof(float)];
    uint16_t halves[HS_TILE_BYTES / sizeof(float)];
    uint64_t next = 0;
    while (next < 0x10000 * (sizeof lower / sizeof *lower)) {
        bool nonfinite = false;
        for (size_t i = 0; i < cells; i++, next++) {
            const uint32_t bits = (uint32_t)(next % 0x10000) << 16 | lower[next / 0x10000 % 11];
            memcpy(&s[i], &bits, sizeof bits);
        }
        const bool raised = kit->store(rows, columns, sums.bytes, (hs_cells){y, columns, false});
        cr_assert_eq(kit->store(rows, columns, sums.bytes, (hs_cells){halves, columns, true}), raised);
        for (size_t i = 0; i < cells; i++) {
            const uint16_t half = format == HSTEP_FP16 ? hs_fp16_from_f32(s[i]) : hs_bf16_from_f32(s[i]);
            const double expected = hs_decode(format, half);
            cr_assert(memcmp(&y[i], &expected, sizeof expected) == 0, "%a is %a, not %a", (double)s[i], y[i], expected);
            cr_assert_eq(halves[i], half, "%a is %#x, not %#x", (double)s[i], halves[i], half);
            nonfinite = nonfinite || !isfinite(expected);
        }
        cr_assert_eq(raised, nonfinite);
    }
}

Test(kits, round_results, .timeout = 60) {
    const hs_kit *kits[3];
    for (hstep_precision precision = HSTEP_PRECISION_FP16; precision <= HSTEP_PRECISION_BF16; precision++) {
        const size_t count = available_kits(precision, kits);
        for (size_t i = 0; i < count; i++)
            check_results(precision, kits[i]);
    }
}

/* A single nonfinite sum is seen wherever it stands, and not where the tile is cut off before it. */
static void check_one_nonfinite(const hs_kit *kit, bool half) {
    const size_t rows = kit->left.width, columns = kit->right.width;
    for (size_t place = 0; place < rows * columns; place++) {
        hs_sums sums = {{0}};
        double room[HS_TILE_BYTES / sizeof(float)];
        const hs_cells y = {room, columns, half};
        if (kit->element == sizeof(float))
            ((float *)(void *)sums.bytes)[place] = place % 2 ? NAN : -INFINITY;
        else
            ((double *)(void *)sums.bytes)[place] = place % 2 ? (double)NAN : -(double)INFINITY;
        const size_t row = place / columns, column = place % columns;
        cr_assert(kit->store(row + 1, column + 1, sums.bytes, y));
        cr_assert(row == 0 || !kit->store(row, columns, sums.bytes, y));
        cr_assert(column == 0 || !kit->store(rows, column, sums.bytes, y));
    }
}

Test(kits, see_one_nonfinite_result) {
    const hs_kit *kits[3];
    for (hstep_precision precision = HSTEP_PRECISION_F64; precision <= HSTEP_PRECISION_BF16; precision++) {
        const size_t count = available_kits(precision, kits);
        for (size_t i = 1; i < count; i++) {
            check_one_nonfinite(kits[i], false);
            if (precision != HSTEP_PRECISION_F64)
                check_one_nonfinite(kits[i], true);
        }
    }
}

/* Only the cells of the tile's part are written, in either storage. */
Test(kits, store_nothing_beside_the_results) {
    enum { PITCH = MOST_LINES + 1 };
    const hs_kit *kits[3];
    for (hstep_precision precision = HSTEP_PRECISION_F64; precision <= HSTEP_PRECISION_BF16; precision++) {
        const size_t count = available_kits(precision, kits);
        for (size_t i = 0; i < count; i++)
            for (size_t columns = 1; columns <= kits[i]->right.width; columns++)
                for (int half = 0; half <= (precision != HSTEP_PRECISION_F64); half++) {
                    const hs_sums sums = {{0}};
                    unsigned char room[2 * PITCH * sizeof(double)];
                    const size_t slot = hs_slot(half);
                    memset(room, 0xff, sizeof room);
                    kits[i]->store(2, columns, sums.bytes, (hs_cells){room, PITCH, half});
                    for (size_t byte = 0; byte < sizeof room; byte++) {
                        const size_t cell = byte / slot;
                        const bool inside = cell < 2 * PITCH && cell % PITCH < columns;
                        cr_assert_eq(room[byte], inside ? 0 : 0xff, "%zu columns, byte %zu", columns, byte);
                    }
                }
    }
}

/* Rows of any length to 16 bits and back. */
Test(kits, cast_rows, .timeout = 60) {
    enum { MOST = 150 };
    const hs_kit *kits[3];
    hs_random random = {5};
    for (hstep_precision precision = HSTEP_PRECISION_FP16; precision <= HSTEP_PRECISION_BF16; precision++) {
        const hstep_format format = hs_precision_format(precision);
        const size_t count = available_kits(precision, kits);
        for (size_t length = 0; length <= MOST; length++)
            for (size_t i = 0; i < count; i++) {
                double x[MOST], back[MOST + 1];
                uint16_t halves[MOST + 1];
                for (size_t j = 0; j < length; j++)
                    x[j] = near_boundary(&random, precision);
                halves[length] = 0x1234, back[length] = 5.0;
                kits[i]->narrow(length, x, halves);
                kits[i]->widen(length, halves, back);
                for (size_t j = 0; j < length; j++) {
                    cr_assert_eq(halves[j], hs_encode(format, x[j]), "%a is %#x", x[j], halves[j]);
                    cr_assert(same(back[j], hs_decode(format, halves[j])));
                }
                cr_assert(halves[length] == 0x1234 && back[length] == 5.0);
            }
    }
}

/* A bf16 number of a given exponent, as an f32. */
static float of_exponent(hs_random *random, int exponent) {
    const uint64_t bits = hs_random_next(random);
    const float x = ldexpf(1.0F + (float)(bits & 0x7f) / 128.0F, exponent);
    return bits & 0x80 ? -x : x;
}

/* Tiles whose fused result is not the plain one, of 300 whose products have exponents from `low` to `high` in sum. */
static size_t fused_differences(const hs_kit *kit, int low, int high) {
    enum { STEPS = 6 };
    static _Alignas(64) float a[STEPS * MOST_LINES], b[STEPS * MOST_LINES];
    hs_random random = {(uint64_t)(low + 1000)};
    size_t differing = 0;
    for (size_t round = 0; round < 300; round++) {
        const int half = low / 2;
        for (size_t i = 0; i < STEPS * MOST_LINES; i++) {
            a[i] = of_exponent(&random, half);
            b[i] = of_exponent(&random, low - half + (int)(hs_random_next(&random) % (uint64_t)(high - low + 1)));
        }
        hs_sums fused, apart;
        const size_t bytes = kit->left.width * kit->right.pitch * kit->element;
        hs_tile(kit, kit->left.width, STEPS, a, b, true, true, fused.bytes);
        hs_tile(kit, kit->left.width, STEPS, a, b, false, true, apart.bytes);
        for (size_t i = 0; i < kit->left.width * kit->right.width; i++) {
            float plain = 0.0F;
            for (size_t k = 0; k < STEPS; k++) {
                const float product =
                    a[k * kit->left.pitch + i / kit->right.width] * b[k * kit->right.pitch + i % kit->right.width];
                plain += product;
            }
            cr_assert(same((double)plain, (double)((float *)(void *)apart.bytes)[i]));
        }
        differing += memcmp(fused.bytes, apart.bytes, bytes) != 0;
    }
    return differing;
}

/* Were the guard left out, results would differ: below its lower limit, and two above its upper one. */
Test(kits, bf16_needs_the_guard, .timeout = 60) {
    const hs_kit *kits[3];
    const size_t count = available_kits(HSTEP_PRECISION_BF16, kits);
    for (size_t i = 1; i < count; i++) {
        cr_assert_eq(fused_differences(kits[i], -135, -120), 0);
        cr_assert_eq(fused_differences(kits[i], -135, -135), 0);
        cr_assert_gt(fused_differences(kits[i], -136, -136), 0);
        cr_assert_gt(fused_differences(kits[i], -140, -130), 0);
        cr_assert_eq(fused_differences(kits[i], 120, 125), 0);
        cr_assert_gt(fused_differences(kits[i], 127, 127), 0);
    }
}

Test(kits, the_guard_stands_where_the_policy_says) {
    for (int a = -127; a <= 128; a++)
        for (int b = -127; b <= 128; b++) {
            const hs_range x = {a, a}, y = {b, b};
            cr_assert_eq(hs_fusible(x, y), a + b >= -135 && a + b <= 125);
            cr_assert_eq(hs_fusible((hs_range){a, 20}, (hs_range){b, 20}), a + b >= -135);
            cr_assert_eq(hs_fusible((hs_range){-20, a}, (hs_range){-20, b}), a + b <= 125);
        }
    cr_assert(hs_fusible(hs_no_range, hs_no_range));
}
