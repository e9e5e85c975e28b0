/* Products in fp16 and bf16 on AVX2 with FMA and F16C: f32 sums in 12 of the 16 registers. */
#include <immintrin.h>

#define HS_REAL float
#define HS_VECTOR __m256
#define HS_LANES 8
#define HS_ROWS 6
#define HS_ROW_PITCH 8
#define HS_HEIGHTS(X) X(1) X(2) X(3) X(4) X(5) X(6)

static inline __m256 hs_v_load(const float *p) { return _mm256_load_ps(p); }
static inline void hs_v_store(float *p, __m256 x) { _mm256_store_ps(p, x); }
static inline __m256 hs_v_splat(const float *p) { return _mm256_broadcast_ss(p); }
static inline __m256 hs_v_zero(void) { return _mm256_setzero_ps(); }
static inline __m256 hs_v_multiply_add(__m256 a, __m256 b, __m256 c) { return _mm256_add_ps(c, _mm256_mul_ps(a, b)); }
#define HS_V_FUSED(a, b, c) _mm256_fmadd_ps((a), (b), (c))

#include "cpu/exact/product/avx2.h"
#include "cpu/exact/product/tile.h"

/* What bf16 operands have shown so far: the least magnitude bits less one, where a zero becomes the largest number, and
 * the largest magnitude bits. */
typedef struct seen {
    __m256i least, largest;
} seen;

/* Four lanes whose bits below the f32 fraction are gathered in its last bit (round to odd), then taken to f32: exact
 * where f32 is normal, and any other magnitude has the same half as the nearest f32. */
HS_INLINE __m128 odd_f32(__m256d x) {
    const __m256i rest = _mm256_set1_epi64x((1LL << 29) - 1), bits = _mm256_castpd_si256(x);
    const __m256i sticky = _mm256_add_epi64(_mm256_and_si256(bits, rest), rest);
    return _mm256_cvtpd_ps(_mm256_castsi256_pd(_mm256_andnot_si256(rest, _mm256_or_si256(bits, sticky))));
}

/* Q_bf16 of four lanes by adding and subtracting a power of two (convert.h); overflow comes with the step to f32. */
HS_INLINE __m128 bf16_f32(__m256d x) {
    __m256d power = _mm256_and_pd(x, _mm256_castsi256_pd(_mm256_set1_epi64x(0x7ff0000000000000)));
    power = _mm256_min_pd(_mm256_max_pd(power, _mm256_set1_pd(0x1p-126)), _mm256_set1_pd(0x1p128));
    const __m256d shift = _mm256_mul_pd(power, _mm256_set1_pd(0x1.8p45));
    const __m256d rounded = _mm256_sub_pd(_mm256_add_pd(x, shift), shift);
    /* A negative value that rounds to zero has lost its sign. */
    return _mm256_cvtpd_ps(_mm256_or_pd(rounded, _mm256_and_pd(x, _mm256_set1_pd(-0.0))));
}

/* Q_h of eight lanes. */
HS_INLINE __m256 represent(const bool fp16, __m256d x0, __m256d x1, seen *s) {
    if (fp16)
        return _mm256_cvtph_ps(_mm256_cvtps_ph(_mm256_set_m128(odd_f32(x1), odd_f32(x0)), _MM_FROUND_TO_NEAREST_INT));
    const __m256 y = _mm256_set_m128(bf16_f32(x1), bf16_f32(x0));
    const __m256i magnitude = _mm256_and_si256(_mm256_castps_si256(y), _mm256_set1_epi32(0x7fffffff));
    s->least = _mm256_min_epu32(s->least, _mm256_sub_epi32(magnitude, _mm256_set1_epi32(1)));
    s->largest = _mm256_max_epu32(s->largest, magnitude);
    return y;
}

/* The first `count` of eight operands, the others +0. */
HS_INLINE __m256 represent_first(const bool fp16, const double *x, size_t count, seen *s) {
    if (count >= 8)
        return represent(fp16, _mm256_loadu_pd(x), _mm256_loadu_pd(x + 4), s);
    return represent(fp16, _mm256_maskload_pd(x, hs_first_lanes(count)),
                     _mm256_maskload_pd(x + 4, hs_first_lanes(hs_beyond(count, 4))), s);
}

HS_INLINE void transpose(__m256 r[8]) {
    __m256 t[8];
    HS_UNROLL
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    HS_UNROLL
    for (int i = 0; i < 8; i += 4) {
        r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
        r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
        r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
    /* Now r[4 q + j] holds columns j and j + 4 of rows 4 q .. 4 q + 3, a column in each half. */
    HS_UNROLL
    for (int j = 0; j < 4; j++) {
        t[j] = _mm256_permute2f128_ps(r[j], r[4 + j], 0x20);
        t[4 + j] = _mm256_permute2f128_ps(r[j], r[4 + j], 0x31);
    }
    HS_UNROLL
    for (int i = 0; i < 8; i++)
        r[i] = t[i];
}

/* The source runs along k: blocks of 8 x 8 are turned in registers. */
HS_INLINE void pack_along(const bool fp16, const size_t pitch, hs_lines lines, size_t count, size_t depth, float *panel,
                          seen *widened) {
    seen s = *widened;
    for (size_t k0 = 0; k0 < depth; k0 += 8) {
        const size_t steps = depth - k0 < 8 ? depth - k0 : 8;
        __m256 r[8];
        HS_UNROLL
        for (size_t i = 0; i < 8; i++)
            r[i] = i < count ? represent_first(fp16, lines.data + i * lines.line_stride + k0, steps, &s)
                             : _mm256_setzero_ps();
        transpose(r);
        HS_UNROLL
        for (size_t k = 0; k < 8; k++)
            if (k < steps)
                _mm256_store_ps(panel + (k0 + k) * pitch, r[k]);
    }
    *widened = s;
}

/* The source runs across the lines, as a panel does; rows of it may stand far apart, where no prefetcher follows. */
HS_INLINE void pack_across(const bool fp16, const size_t pitch, hs_lines lines, size_t count, size_t depth,
                           float *panel, seen *widened) {
    enum { AHEAD = 8 };
    seen s = *widened;
    for (size_t k = 0; k < depth; k++) {
        const double *source = lines.data + k * lines.k_stride;
        const double *later = k + AHEAD < depth ? source + AHEAD * lines.k_stride : source;
        HS_UNROLL
        for (size_t i = 0; i < pitch; i += 8) {
            _mm_prefetch((const char *)(later + (i < count ? i : 0)), _MM_HINT_T0);
            _mm256_store_ps(panel + k * pitch + i, represent_first(fp16, source + i, hs_beyond(count, i), &s));
        }
    }
    *widened = s;
}

static void widen(hs_range *range, const seen *s) {
    uint32_t lows[8], highs[8], least = UINT32_MAX, largest = 0;
    memcpy(lows, &s->least, sizeof lows);
    memcpy(highs, &s->largest, sizeof highs);
    for (size_t i = 0; i < 8; i++) {
        least = lows[i] < least ? lows[i] : least;
        largest = highs[i] > largest ? highs[i] : largest;
    }
    hs_widen(range, least + 1, largest);
}

HS_INLINE void pack(const bool fp16, const size_t pitch, hs_lines lines, size_t count, size_t depth, float *panel,
                    hs_range *range) {
    seen s = {_mm256_set1_epi32(-1), _mm256_setzero_si256()};
    if (lines.k_stride != 1)
        pack_across(fp16, pitch, lines, count, depth, panel, &s);
    else
        for (size_t first = 0; first < pitch; first += 8) {
            const hs_lines part = {lines.data + first * lines.line_stride, lines.line_stride, 1};
            pack_along(fp16, pitch, part, hs_beyond(count, first), depth, panel + first, &s);
        }
    if (!fp16)
        widen(range, &s);
}

static void pack_left_fp16(hs_lines lines, size_t count, size_t depth, void *panel, hs_range *range) {
    pack(true, 8, lines, count, depth, panel, range);
}

static void pack_right_fp16(hs_lines lines, size_t count, size_t depth, void *panel, hs_range *range) {
    pack(true, 16, lines, count, depth, panel, range);
}

static void pack_left_bf16(hs_lines lines, size_t count, size_t depth, void *panel, hs_range *range) {
    pack(false, 8, lines, count, depth, panel, range);
}

static void pack_right_bf16(hs_lines lines, size_t count, size_t depth, void *panel, hs_range *range) {
    pack(false, 16, lines, count, depth, panel, range);
}

/* Q_h of eight sums, every NaN the one quiet NaN. */
HS_INLINE __m256 rounded(const bool fp16, __m256 x) {
    const __m256 nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
    __m256 y;
    if (fp16) {
        y = _mm256_cvtph_ps(_mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
    } else {
        const __m256i bits = _mm256_castps_si256(x);
        const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
        const __m256i sum = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
        y = _mm256_castsi256_ps(_mm256_and_si256(sum, _mm256_set1_epi32((int)0xffff0000)));
    }
    return _mm256_blendv_ps(y, _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000)), nan);
}

/* Eight results, of which `count` exist. Returns in the sign bits which of them are not finite. */
HS_INLINE __m256i store_eight(const bool fp16, size_t count, const float *sums, double *y) {
    __m256 x = rounded(fp16, _mm256_load_ps(sums));
    const __m256d low = _mm256_cvtps_pd(_mm256_castps256_ps128(x)), high = _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
    if (count >= 8) {
        _mm256_storeu_pd(y, low);
        _mm256_storeu_pd(y + 4, high);
    } else {
        double results[8];
        _mm256_storeu_pd(results, low);
        _mm256_storeu_pd(results + 4, high);
        memcpy(y, results, count * sizeof *y);
        const __m256i exist =
            _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
        x = _mm256_and_ps(x, _mm256_castsi256_ps(exist));
    }
    const __m256i magnitude = _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(0x7fffffff));
    return _mm256_add_epi32(magnitude, _mm256_set1_epi32(0x00800000));
}

HS_INLINE bool store(const bool fp16, size_t rows, size_t columns, const void *sums, double *y, size_t pitch) {
    const float *s = sums;
    __m256i nonfinite = _mm256_setzero_si256();
    for (size_t i = 0; i < rows; i++, s += 16, y += pitch) {
        nonfinite = _mm256_or_si256(nonfinite, store_eight(fp16, columns, s, y));
        if (columns > 8)
            nonfinite = _mm256_or_si256(nonfinite, store_eight(fp16, columns - 8, s + 8, y + 8));
    }
    return _mm256_movemask_ps(_mm256_castsi256_ps(nonfinite)) != 0;
}

static bool store_fp16(size_t rows, size_t columns, const void *sums, double *y, size_t pitch) {
    return store(true, rows, columns, sums, y, pitch);
}

static bool store_bf16(size_t rows, size_t columns, const void *sums, double *y, size_t pitch) {
    return store(false, rows, columns, sums, y, pitch);
}

const hs_kit hs_kit_avx2_fp16 = {sizeof(float), 256,       {6, 8, pack_left_fp16}, {16, 16, pack_right_fp16}, tile,
                                 step,          store_fp16};
const hs_kit hs_kit_avx2_bf16 = {sizeof(float), 256,       {6, 8, pack_left_bf16}, {16, 16, pack_right_bf16}, tile,
                                 step,          store_bf16};
