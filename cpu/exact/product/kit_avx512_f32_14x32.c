/* Products in fp16 and bf16 on AVX-512: f32 sums in 28 of the 32 registers. */
#include <immintrin.h>

#define HS_REAL float
#define HS_VECTOR __m512
#define HS_LANES 16
#define HS_ROWS 14
#define HS_ROW_PITCH 16
#define HS_HEIGHTS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)

static inline __m512 hs_v_load(const float *p) { return _mm512_load_ps(p); }
static inline void hs_v_store(float *p, __m512 x) { _mm512_store_ps(p, x); }
static inline __m512 hs_v_splat(const float *p) { return _mm512_set1_ps(*p); }
static inline __m512 hs_v_zero(void) { return _mm512_setzero_ps(); }
static inline __m512 hs_v_multiply_add(__m512 a, __m512 b, __m512 c) { return _mm512_add_ps(c, _mm512_mul_ps(a, b)); }
#define HS_V_FUSED(a, b, c) _mm512_fmadd_ps((a), (b), (c))

#include "cpu/exact/product/avx512.h"
#include "cpu/exact/product/tile.h"

/* What bf16 operands have shown so far: the least magnitude bits less one, where a zero becomes the largest number, and
 * the largest magnitude bits. */
typedef struct seen {
    __m512i least, largest;
} seen;

/* Eight lanes whose bits below the f32 fraction are gathered in its last bit (round to odd), then taken to f32: exact
 * where f32 is normal, and any other magnitude has the same half as the nearest f32. */
HS_INLINE __m256 odd_f32(__m512d x) {
    const __m512i rest = _mm512_set1_epi64((1LL << 29) - 1), bits = _mm512_castpd_si512(x);
    const __m512i sticky = _mm512_add_epi64(_mm512_and_si512(bits, rest), rest);
    /* (bits | sticky) & ~rest */
    return _mm512_cvtpd_ps(_mm512_castsi512_pd(_mm512_ternarylogic_epi64(bits, sticky, rest, 0x54)));
}

/* Q_bf16 of eight lanes by adding and subtracting a power of two (convert.h); overflow comes with the step to f32. */
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

HS_INLINE __m512 joined(__m256 low, __m256 high) { return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1); }

/* Sixteen operands; those outside the masks become +0. */
HS_INLINE __m512 represent(const bool fp16, const double *x, __mmask8 low, __mmask8 high, seen *s) {
    const __m512d x0 = _mm512_maskz_loadu_pd(low, x), x1 = _mm512_maskz_loadu_pd(high, x + 8);
    if (fp16)
        return _mm512_cvtph_ps(
            _mm512_cvtps_ph(joined(odd_f32(x0), odd_f32(x1)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    const __m512 y = joined(bf16_f32(x0), bf16_f32(x1));
    const __m512i magnitude = _mm512_and_si512(_mm512_castps_si512(y), _mm512_set1_epi32(0x7fffffff));
    s->least = _mm512_min_epu32(s->least, _mm512_sub_epi32(magnitude, _mm512_set1_epi32(1)));
    s->largest = _mm512_max_epu32(s->largest, magnitude);
    return y;
}

HS_INLINE void transpose(__m512 r[16]) {
    __m512 t[16];
    HS_UNROLL
    for (int i = 0; i < 8; i++) {
        t[2 * i] = _mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]);
    }
    HS_UNROLL
    for (int i = 0; i < 16; i += 4) {
        const __m512d a = _mm512_castps_pd(t[i]), b = _mm512_castps_pd(t[i + 1]), c = _mm512_castps_pd(t[i + 2]),
                      d = _mm512_castps_pd(t[i + 3]);
        r[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c));
        r[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
        r[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, d));
        r[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, d));
    }
    /* Now r[4 q + j] holds columns j, j + 4, j + 8, j + 12 of rows 4 q .. 4 q + 3, a column in each quarter. */
    HS_UNROLL
    for (int j = 0; j < 4; j++) {
        const __m512 even0 = _mm512_shuffle_f32x4(r[j], r[4 + j], 0x88),
                     odd0 = _mm512_shuffle_f32x4(r[j], r[4 + j], 0xdd),
                     even1 = _mm512_shuffle_f32x4(r[8 + j], r[12 + j], 0x88),
                     odd1 = _mm512_shuffle_f32x4(r[8 + j], r[12 + j], 0xdd);
        t[j] = _mm512_shuffle_f32x4(even0, even1, 0x88);
        t[j + 4] = _mm512_shuffle_f32x4(odd0, odd1, 0x88);
        t[j + 8] = _mm512_shuffle_f32x4(even0, even1, 0xdd);
        t[j + 12] = _mm512_shuffle_f32x4(odd0, odd1, 0xdd);
    }
    HS_UNROLL
    for (int i = 0; i < 16; i++)
        r[i] = t[i];
}

/* The source runs along k: blocks of 16 x 16 are turned in registers. */
HS_INLINE void pack_along(const bool fp16, const size_t pitch, hs_lines lines, size_t count, size_t depth, float *panel,
                          seen *widened) {
    seen s = *widened;
    for (size_t k0 = 0; k0 < depth; k0 += 16) {
        const size_t steps = depth - k0 < 16 ? depth - k0 : 16;
        const __mmask8 low = hs_first_lanes(steps), high = hs_first_lanes(hs_beyond(steps, 8));
        __m512 r[16];
        HS_UNROLL
        for (size_t i = 0; i < 16; i++)
            r[i] = i < count ? represent(fp16, lines.data + i * lines.line_stride + k0, low, high, &s)
                             : _mm512_setzero_ps();
        transpose(r);
        HS_UNROLL
        for (size_t k = 0; k < 16; k++)
            if (k < steps)
                _mm512_store_ps(panel + (k0 + k) * pitch, r[k]);
    }
    *widened = s;
}

/* The source runs across the lines, as a panel does; rows of it may stand far apart, where no prefetcher follows. */
HS_INLINE void pack_across(const bool fp16, const size_t pitch, hs_lines lines, size_t count, size_t depth,
                           float *panel, seen *widened) {
    enum { AHEAD = 8 };
    seen s = *widened;
    __mmask8 masks[4];
    for (size_t i = 0; i < 4; i++)
        masks[i] = hs_first_lanes(hs_beyond(count, 8 * i));
    for (size_t k = 0; k < depth; k++) {
        const double *source = lines.data + k * lines.k_stride;
        const double *later = k + AHEAD < depth ? source + AHEAD * lines.k_stride : source;
        HS_UNROLL
        for (size_t i = 0; i < pitch; i += 16) {
            _mm_prefetch((const char *)(later + (i < count ? i : 0)), _MM_HINT_T0);
            _mm_prefetch((const char *)(later + (i + 8 < count ? i + 8 : 0)), _MM_HINT_T0);
            _mm512_store_ps(panel + k * pitch + i, represent(fp16, source + i, masks[i / 8], masks[i / 8 + 1], &s));
        }
    }
    *widened = s;
}

HS_INLINE void pack(const bool fp16, const size_t pitch, hs_lines lines, size_t count, size_t depth, float *panel,
                    hs_range *range) {
    seen s = {_mm512_set1_epi32(-1), _mm512_setzero_si512()};
    if (lines.k_stride != 1)
        pack_across(fp16, pitch, lines, count, depth, panel, &s);
    else
        for (size_t first = 0; first < pitch; first += 16) {
            const hs_lines part = {lines.data + first * lines.line_stride, lines.line_stride, 1};
            pack_along(fp16, pitch, part, hs_beyond(count, first), depth, panel + first, &s);
        }
    if (!fp16)
        hs_widen(range, _mm512_reduce_min_epu32(s.least) + 1, _mm512_reduce_max_epu32(s.largest));
}

static void pack_left_fp16(hs_lines lines, size_t count, size_t depth, void *panel, hs_range *range) {
    pack(true, 16, lines, count, depth, panel, range);
}

static void pack_right_fp16(hs_lines lines, size_t count, size_t depth, void *panel, hs_range *range) {
    pack(true, 32, lines, count, depth, panel, range);
}

static void pack_left_bf16(hs_lines lines, size_t count, size_t depth, void *panel, hs_range *range) {
    pack(false, 16, lines, count, depth, panel, range);
}

static void pack_right_bf16(hs_lines lines, size_t count, size_t depth, void *panel, hs_range *range) {
    pack(false, 32, lines, count, depth, panel, range);
}

/* Q_h of sixteen sums, every NaN the one quiet NaN. */
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

/* Sixteen results, of which `count` exist. Returns which of them are not finite. */
HS_INLINE __mmask16 store_sixteen(const bool fp16, size_t count, const float *sums, double *y) {
    const __m512 x = rounded(fp16, _mm512_load_ps(sums));
    const __m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(x)),
                  high = _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
    __mmask16 exist = 0xffff;
    if (count >= 16) {
        _mm512_storeu_pd(y, low);
        _mm512_storeu_pd(y + 8, high);
    } else {
        exist = (__mmask16)((1U << count) - 1);
        _mm512_mask_storeu_pd(y, (__mmask8)exist, low);
        _mm512_mask_storeu_pd(y + 8, (__mmask8)(exist >> 8), high);
    }
    const __m512i magnitude = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff));
    return _mm512_mask_cmpge_epu32_mask(exist, magnitude, _mm512_set1_epi32(0x7f800000));
}

HS_INLINE bool store(const bool fp16, size_t rows, size_t columns, const void *sums, double *y, size_t pitch) {
    const float *s = sums;
    __mmask16 nonfinite = 0;
    for (size_t i = 0; i < rows; i++, s += 32, y += pitch) {
        nonfinite |= store_sixteen(fp16, columns, s, y);
        if (columns > 16)
            nonfinite |= store_sixteen(fp16, columns - 16, s + 16, y + 16);
    }
    return nonfinite != 0;
}

static bool store_fp16(size_t rows, size_t columns, const void *sums, double *y, size_t pitch) {
    return store(true, rows, columns, sums, y, pitch);
}

static bool store_bf16(size_t rows, size_t columns, const void *sums, double *y, size_t pitch) {
    return store(false, rows, columns, sums, y, pitch);
}

const hs_kit hs_kit_avx512_fp16 = {sizeof(float), 384,       {14, 16, pack_left_fp16}, {32, 32, pack_right_fp16}, tile,
                                   step,          store_fp16};
const hs_kit hs_kit_avx512_bf16 = {sizeof(float), 384,       {14, 16, pack_left_bf16}, {32, 32, pack_right_bf16}, tile,
                                   step,          store_bf16};
