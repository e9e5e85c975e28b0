/* Packing and rounding for products over pairs, with AVX-512: 16 lines by 32 steps at a time, turned in registers where
 * source and panel run in different directions. */
#include <immintrin.h>

#include "cpu/exact/pairs/pairs.h"
#include "cpu/exact/product/avx512.h"

#define HS_UNROLL _Pragma("GCC unroll 16")

enum { LINES = 16, PAIRS = HS_PAIRS_STEPS / 2 };

/* How a panel is packed: what all its elements have in common. */
typedef struct form {
    bool half, fp16, swapped;
    hs_pairs_part part;
} form;

/* The least magnitude less one, where a zero becomes the largest number, and the largest magnitude, of 16-bit lanes. */
typedef struct seen {
    __m512i least, largest;
} seen;

HS_INLINE __mmask32 first_of_32(size_t count) { return count < 32 ? (UINT32_C(1) << count) - 1 : UINT32_MAX; }
HS_INLINE __m512 joined(__m256 low, __m256 high) { return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1); }

/* Eight lanes whose bits below the f32 fraction are gathered in its last bit (round to odd), then taken to f32: rounded
 * to fp16 next, they are rounded once. */
HS_INLINE __m256 odd_f32(__m512d x) {
    const __m512i rest = _mm512_set1_epi64((1LL << 29) - 1), bits = _mm512_castpd_si512(x);
    const __m512i sticky = _mm512_add_epi64(_mm512_and_si512(bits, rest), rest);
    /* (bits | sticky) & ~rest */
    return _mm512_cvtpd_ps(_mm512_castsi512_pd(_mm512_ternarylogic_epi64(bits, sticky, rest, 0x54)));
}

/* Q_bf16 of eight lanes by adding and subtracting a power of two (cpu/exact/product/convert.h). */
HS_INLINE __m256 bf16_f32(__m512d x) {
    const __m512i exponent = _mm512_set1_epi64(0x7ff0000000000000);
    __m512d power = _mm512_castsi512_pd(_mm512_and_si512(_mm512_castpd_si512(x), exponent));
    power = _mm512_min_pd(_mm512_max_pd(power, _mm512_set1_pd(0x1p-126)), _mm512_set1_pd(0x1p128));
    const __m512d shift = _mm512_mul_pd(power, _mm512_set1_pd(0x1.8p45));
    const __m512d rounded = _mm512_sub_pd(_mm512_add_pd(x, shift), shift);
    /* A negative value that rounds to zero has lost its sign: rounded | (x & sign). */
    return _mm512_cvtpd_ps(_mm512_castsi512_pd(_mm512_ternarylogic_epi64(
        _mm512_castpd_si512(rounded), _mm512_castpd_si512(x), _mm512_set1_epi64(INT64_MIN), 0xf8)));
}

/* The part of an fp16 number that is packed; infinities and NaNs are whole in the high part. */
HS_INLINE __m512 part_of(hs_pairs_part part, __m512 x) {
    const __m512i upper = _mm512_set1_epi32((int)0xffff0000);
    const __m512 high = _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(x), upper));
    if (part == HS_PAIRS_HIGH)
        return high;
    const __m512 magnitude = _mm512_abs_ps(x);
    const __mmask16 finite = _mm512_cmp_ps_mask(magnitude, _mm512_set1_ps(0x1p17F), _CMP_LT_OQ);
    return _mm512_maskz_sub_ps(finite, x, high);
}

/* Sixteen elements from number `at` on as f32 whose lower halves are zero; those outside the masks become +0. */
HS_INLINE __m512 represent(const form f, const unsigned char *data, size_t at, __mmask16 mask) {
    __m256i halves = _mm256_setzero_si256();
    if (f.half)
        halves = _mm256_maskz_loadu_epi16(mask, data + at * sizeof(uint16_t));
    if (f.half && !f.fp16)
        return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
    if (!f.half) {
        const unsigned char *x = data + at * sizeof(double);
        const __m512d x0 = _mm512_maskz_loadu_pd((__mmask8)mask, x),
                      x1 = _mm512_maskz_loadu_pd((__mmask8)(mask >> 8), x + 8 * sizeof(double));
        if (!f.fp16)
            return joined(bf16_f32(x0), bf16_f32(x1));
        halves = _mm512_cvtps_ph(joined(odd_f32(x0), odd_f32(x1)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    }
    return part_of(f.part, _mm512_cvtph_ps(halves));
}

/* The upper halves of 32 f32, side by side in their order, or with each pair swapped. */
HS_INLINE __m512i upper_halves(const bool swapped, __m512 low, __m512 high) {
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i first = _mm512_set1_epi32(swapped ? 0x00010003 : 0x00030001);
    const __m512i index = _mm512_add_epi32(first, _mm512_mullo_epi32(lanes, _mm512_set1_epi32(0x00040004)));
    return _mm512_permutex2var_epi16(_mm512_castps_si512(low), index, _mm512_castps_si512(high));
}

/* The 32 steps of one line. */
HS_INLINE __m512i pairs_of_line(const form f, const unsigned char *data, size_t at, size_t steps) {
    if (f.half && !f.fp16) {
        const __m512i pairs = _mm512_maskz_loadu_epi16(first_of_32(steps), data + at * sizeof(uint16_t));
        return f.swapped ? _mm512_rol_epi32(pairs, 16) : pairs;
    }
    return upper_halves(f.swapped, represent(f, data, at, hs_first_sixteen(steps)),
                        represent(f, data, at + 16, hs_first_sixteen(hs_beyond(steps, 16))));
}

/* Two steps of sixteen lines. */
HS_INLINE __m512i pairs_of_lines(const form f, const unsigned char *data, size_t at, size_t stride, __mmask16 lines,
                                 size_t steps) {
    const __m512i first = _mm512_castps_si512(represent(f, data, at, steps > 0 ? lines : 0)),
                  second = _mm512_castps_si512(represent(f, data, at + stride, steps > 1 ? lines : 0));
    return f.swapped ? _mm512_or_si512(_mm512_srli_epi32(second, 16), first)
                     : _mm512_or_si512(_mm512_srli_epi32(first, 16), second);
}

HS_INLINE void transpose(__m512i r[16]) {
    __m512i t[16];
    HS_UNROLL
    for (int i = 0; i < 8; i++) {
        t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
    }
    HS_UNROLL
    for (int i = 0; i < 16; i += 4) {
        r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    /* Now r[4 q + j] holds columns j, j + 4, j + 8, j + 12 of rows 4 q .. 4 q + 3, a column in each quarter. */
    HS_UNROLL
    for (int j = 0; j < 4; j++) {
        const __m512i even0 = _mm512_shuffle_i32x4(r[j], r[4 + j], 0x88),
                      odd0 = _mm512_shuffle_i32x4(r[j], r[4 + j], 0xdd),
                      even1 = _mm512_shuffle_i32x4(r[8 + j], r[12 + j], 0x88),
                      odd1 = _mm512_shuffle_i32x4(r[8 + j], r[12 + j], 0xdd);
        t[j] = _mm512_shuffle_i32x4(even0, even1, 0x88);
        t[j + 4] = _mm512_shuffle_i32x4(odd0, odd1, 0x88);
        t[j + 8] = _mm512_shuffle_i32x4(even0, even1, 0xdd);
        t[j + 12] = _mm512_shuffle_i32x4(odd0, odd1, 0xdd);
    }
    HS_UNROLL
    for (int i = 0; i < 16; i++)
        r[i] = t[i];
}

HS_INLINE void look_at(__m512i pairs, seen *s) {
    const __m512i magnitude = _mm512_and_si512(pairs, _mm512_set1_epi16(0x7fff));
    s->least = _mm512_min_epu16(s->least, _mm512_sub_epi16(magnitude, _mm512_set1_epi16(1)));
    s->largest = _mm512_max_epu16(s->largest, magnitude);
}

/* Up to 16 lines and 32 steps into rows of 64 bytes, `pitch` elements apart: a row is a line in a left panel, a pair of
 * steps in a right one. `rows` of them are stored. */
HS_INLINE void pack_block(const form f, const bool along, const bool left, hs_lines s, size_t count, size_t steps,
                          size_t rows, uint16_t *out, size_t pitch, seen *widened) {
    __m512i r[16];
    seen local = *widened;
    const __mmask16 lines = hs_first_sixteen(count);
    HS_UNROLL
    for (size_t i = 0; i < 16; i++) {
        if (along)
            r[i] = i < count ? pairs_of_line(f, s.data, i * s.line_stride, steps) : _mm512_setzero_si512();
        else
            r[i] = 2 * i < steps ? pairs_of_lines(f, s.data, 2 * i * s.k_stride, s.k_stride, lines, steps - 2 * i)
                                 : _mm512_setzero_si512();
        if (f.part != HS_PAIRS_LOW)
            look_at(r[i], &local);
    }
    *widened = local;
    if (along != left)
        transpose(r);
    HS_UNROLL
    for (size_t i = 0; i < 16; i++)
        if (i < rows)
            _mm512_store_si512(out + i * pitch, r[i]);
}

/* A plane of a panel of `width` lines; blocks stand `distance` elements apart. */
HS_INLINE void pack_plane(const form f, const bool along, const bool left, hs_lines source, size_t width, size_t count,
                          size_t depth, uint16_t *panel, size_t distance, seen *s) {
    for (size_t k = 0; k < depth; k += HS_PAIRS_STEPS, panel += distance)
        for (size_t line = 0; line < width; line += LINES) {
            const size_t steps = depth - k < HS_PAIRS_STEPS ? depth - k : HS_PAIRS_STEPS;
            const size_t here = hs_beyond(count, line) < LINES ? hs_beyond(count, line) : LINES;
            /* No address is made beyond the operand. */
            const hs_lines part = here > 0 ? hs_lines_from(source, line, k) : source;
            if (left)
                pack_block(f, along, true, part, here, steps, width - line, panel + line * HS_PAIRS_STEPS,
                           HS_PAIRS_STEPS, s);
            else
                pack_block(f, along, false, part, here, steps, PAIRS, panel + 2 * line, 2 * HS_PAIRS_COLUMNS, s);
        }
}

typedef void pack_panel(hs_lines source, size_t width, size_t count, size_t depth, uint16_t *panel, size_t distance,
                        seen *s);

/* Every kind of packing by itself, so that no loop asks which one it is. */
#define HS_DEFINE(name, half, fp16, swapped, part)                                                                     \
    static void name##_along_left(hs_lines source, size_t width, size_t count, size_t depth, uint16_t *panel,          \
                                  size_t distance, seen *s) {                                                          \
        pack_plane((form){half, fp16, swapped, part}, true, true, source, width, count, depth, panel, distance, s);    \
    }                                                                                                                  \
    static void name##_along_right(hs_lines source, size_t width, size_t count, size_t depth, uint16_t *panel,         \
                                   size_t distance, seen *s) {                                                         \
        pack_plane((form){half, fp16, swapped, part}, true, false, source, width, count, depth, panel, distance, s);   \
    }                                                                                                                  \
    static void name##_across_left(hs_lines source, size_t width, size_t count, size_t depth, uint16_t *panel,         \
                                   size_t distance, seen *s) {                                                         \
        pack_plane((form){half, fp16, swapped, part}, false, true, source, width, count, depth, panel, distance, s);   \
    }                                                                                                                  \
    static void name##_across_right(hs_lines source, size_t width, size_t count, size_t depth, uint16_t *panel,        \
                                    size_t distance, seen *s) {                                                        \
        pack_plane((form){half, fp16, swapped, part}, false, false, source, width, count, depth, panel, distance, s);  \
    }
/* By whether the source runs along the steps, and whether the panel is a left one. */
#define HS_NAMES(name)                                                                                                 \
    {                                                                                                                  \
        {name##_across_right, name##_across_left}, { name##_along_right, name##_along_left }                           \
    }

HS_DEFINE(wide_bf16, false, false, false, HS_PAIRS_WHOLE)
HS_DEFINE(wide_bf16_swapped, false, false, true, HS_PAIRS_WHOLE)
HS_DEFINE(half_bf16, true, false, false, HS_PAIRS_WHOLE)
HS_DEFINE(half_bf16_swapped, true, false, true, HS_PAIRS_WHOLE)
HS_DEFINE(wide_high, false, true, false, HS_PAIRS_HIGH)
HS_DEFINE(wide_low, false, true, false, HS_PAIRS_LOW)
HS_DEFINE(half_high, true, true, false, HS_PAIRS_HIGH)
HS_DEFINE(half_low, true, true, false, HS_PAIRS_LOW)

/* By whether elements have 16 bits. */
static pack_panel *const pack_whole[2][2][2][2] = {{HS_NAMES(wide_bf16), HS_NAMES(half_bf16)},
                                                   {HS_NAMES(wide_bf16_swapped), HS_NAMES(half_bf16_swapped)}};
static pack_panel *const pack_parts[2][2][2][2] = {{HS_NAMES(wide_high), HS_NAMES(half_high)},
                                                   {HS_NAMES(wide_low), HS_NAMES(half_low)}};

/* The least and largest of 32 unsigned lanes. */
static void widen(hs_range *range, const seen *s) {
    uint16_t least[32], largest[32];
    _mm512_storeu_si512(least, s->least);
    _mm512_storeu_si512(largest, s->largest);
    for (size_t i = 1; i < 32; i++) {
        least[0] = least[i] < least[0] ? least[i] : least[0];
        largest[0] = largest[i] > largest[0] ? largest[i] : largest[0];
    }
    hs_widen(range, (uint32_t)(least[0] + 1) << 16, (uint32_t)largest[0] << 16);
}

void hs_pairs_pack(const hs_pairs_kit *kit, bool left, hs_lines source, size_t count, size_t depth, uint16_t *panel,
                   hs_range *range) {
    const size_t width = left ? kit->rows : HS_PAIRS_COLUMNS, block = width * HS_PAIRS_STEPS;
    const bool along = source.k_stride == 1;
    seen s = {_mm512_set1_epi16(-1), _mm512_setzero_si512()};
    for (size_t plane = 0; plane < kit->planes; plane++) {
        pack_panel *const pack = kit->planes == 1 ? pack_whole[kit->swapped][source.half][along][left]
                                                  : pack_parts[plane][source.half][along][left];
        pack(source, width, count, depth, panel + plane * block, kit->planes * block, &s);
    }
    widen(range, &s);
}

/* Q_h of sixteen sums as the upper halves (bf16) or as f32 numbers (fp16), every NaN the one quiet NaN. */
HS_INLINE __m512 rounded(const bool fp16, __m512 x) {
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    __m512 y;
    if (fp16) {
        y = _mm512_cvtph_ps(_mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    } else {
        const __m512i bits = _mm512_castps_si512(x);
        const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
        const __m512i sum = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
        y = _mm512_castsi512_ps(_mm512_and_si512(sum, _mm512_set1_epi32((int)0xffff0000)));
    }
    return _mm512_mask_mov_ps(y, nan, _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000)));
}

/* The first lanes of x, a number of the format. */
HS_INLINE void store_halves(const bool fp16, __mmask16 exist, __m512 x, uint16_t *y) {
    const __m256i halves = fp16 ? _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
                                : _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_castps_si512(x), 16));
    _mm256_mask_storeu_epi16(y, exist, halves);
}

HS_INLINE void store_doubles(__mmask16 exist, __m512 x, double *y) {
    const __m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(x)),
                  high = _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
    _mm512_mask_storeu_pd(y, (__mmask8)exist, low);
    if (exist >> 8)
        _mm512_mask_storeu_pd(y + 8, (__mmask8)(exist >> 8), high);
}

HS_INLINE bool store(const bool fp16, const bool half, const bool raw, size_t rows, size_t columns, const float *sums,
                     hs_cells y) {
    __mmask16 nonfinite = 0;
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j += 16) {
            const __mmask16 exist = hs_first_sixteen(columns - j);
            const __m512 sum = _mm512_load_ps(sums + i * HS_PAIRS_COLUMNS + j), x = raw ? sum : rounded(fp16, sum);
            const size_t at = i * y.pitch + j;
            if (half)
                store_halves(fp16, exist, x, (uint16_t *)y.data + at);
            else
                store_doubles(exist, x, (double *)y.data + at);
            const __m512i magnitude = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff));
            nonfinite |= _mm512_mask_cmpge_epu32_mask(exist, magnitude, _mm512_set1_epi32(0x7f800000));
        }
    return nonfinite != 0;
}

bool hs_pairs_store(hstep_precision precision, bool raw, size_t rows, size_t columns, const float *sums, hs_cells y) {
    const bool fp16 = precision == HSTEP_PRECISION_FP16;
    if (raw)
        return store(false, false, true, rows, columns, sums, y);
    if (y.half)
        return fp16 ? store(true, true, false, rows, columns, sums, y)
                    : store(false, true, false, rows, columns, sums, y);
    return fp16 ? store(true, false, false, rows, columns, sums, y)
                : store(false, false, false, rows, columns, sums, y);
}
