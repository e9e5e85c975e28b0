/* Products in fp16 and bf16 on AVX2 with FMA and F16C: f32 sums in 12 of the 16 registers. */
#include <immintrin.h>

#define HS_REAL float
#define HS_VECTOR __m256
#define HS_LANES 8
#define HS_ROWS 6
#define HS_ROW_PITCH 8
#define HS_UNROLL_STEPS HS_UNROLL_FOUR
#define HS_HEIGHTS(X) X(1) X(2) X(3) X(4) X(5) X(6)

static inline __m256 hs_v_load(const float *p) { return _mm256_load_ps(p); }
static inline void hs_v_store(float *p, __m256 x) { _mm256_store_ps(p, x); }
static inline __m256 hs_v_splat(const float *p) { return _mm256_broadcast_ss(p); }
static inline __m256 hs_v_zero(void) { return _mm256_setzero_ps(); }
static inline __m256 hs_v_multiply_add(__m256 a, __m256 b, __m256 c) { return _mm256_add_ps(c, _mm256_mul_ps(a, b)); }
#define HS_V_FUSED(a, b, c) _mm256_fmadd_ps((a), (b), (c))

#include "cpu/exact/vectors/avx2.h"
#include "cpu/exact/vectors/tile.h"

#define HS_HALVES

/* What bf16 operands have shown so far, as magnitude bits, from 16 bits or of f32: the least less one, where a zero
 * becomes the largest number, and the largest. */
typedef struct seen {
    __m256i least, largest;
} seen;

HS_INLINE seen seen_nothing(void) { return (seen){_mm256_set1_epi32(-1), _mm256_setzero_si256()}; }

HS_INLINE void see_halves(const hstep_precision h, __m256i bits, seen *s) {
    if (h != HSTEP_PRECISION_BF16)
        return;
    const __m256i magnitude = _mm256_and_si256(bits, _mm256_set1_epi16(0x7fff));
    s->least = _mm256_min_epu16(s->least, _mm256_sub_epi16(magnitude, _mm256_set1_epi16(1)));
    s->largest = _mm256_max_epu16(s->largest, magnitude);
}

HS_INLINE void see(__m256 x, seen *s) {
    const __m256i magnitude = _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(0x7fffffff));
    s->least = _mm256_min_epu32(s->least, _mm256_sub_epi32(magnitude, _mm256_set1_epi32(1)));
    s->largest = _mm256_max_epu32(s->largest, magnitude);
}

static void widen_range(const bool half, const seen *s, hs_range *range) {
    uint32_t lows[8], highs[8], least = UINT32_MAX, largest = 0;
    const __m256i low = _mm256_set1_epi32(0xffff);
    const __m256i lower =
        half ? _mm256_min_epu32(_mm256_and_si256(s->least, low), _mm256_srli_epi32(s->least, 16)) : s->least;
    const __m256i higher =
        half ? _mm256_max_epu32(_mm256_and_si256(s->largest, low), _mm256_srli_epi32(s->largest, 16)) : s->largest;
    memcpy(lows, &lower, sizeof lows);
    memcpy(highs, &higher, sizeof highs);
    for (size_t i = 0; i < 8; i++) {
        least = lows[i] < least ? lows[i] : least;
        largest = highs[i] > largest ? highs[i] : largest;
    }
    hs_widen(range, half ? (least + 1) << 16 : least + 1, half ? largest << 16 : largest);
}

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

/* Eight halves, widened. */
HS_INLINE __m256 value(const hstep_precision h, __m128i bits) {
    if (h == HSTEP_PRECISION_FP16)
        return _mm256_cvtph_ps(bits);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

/* Eight doubles, of which `count` exist and the others are +0, from both halves of a vector. */
HS_INLINE __m256d doubles(const double *x, size_t count) {
    return count >= 4 ? _mm256_loadu_pd(x) : _mm256_maskload_pd(x, hs_first_lanes(count));
}

HS_INLINE __m256 operands(const hstep_precision h, const bool half, const void *x, size_t count, seen *s) {
    if (half) {
        const __m128i bits = count >= 8 ? _mm_loadu_si128(x) : hs_load_some(x, count);
        see_halves(h, _mm256_zextsi128_si256(bits), s);
        return value(h, bits);
    }
    const __m256d low = doubles(x, count), high = doubles((const double *)x + 4, hs_beyond(count, 4));
    if (h == HSTEP_PRECISION_FP16)
        return _mm256_cvtph_ps(
            _mm256_cvtps_ph(_mm256_set_m128(odd_f32(high), odd_f32(low)), _MM_FROUND_TO_NEAREST_INT));
    const __m256 y = _mm256_set_m128(bf16_f32(high), bf16_f32(low));
    see(y, s);
    return y;
}

HS_INLINE __m256 load_pairs(const hstep_precision h, const void *x, size_t count, seen *s) {
    const uint16_t *rest = (const uint16_t *)x + 8;
    const __m256i bits = count >= 16
                             ? _mm256_loadu_si256(x)
                             : _mm256_set_m128i(hs_load_some(rest, hs_beyond(count, 8)), hs_load_some(x, count));
    see_halves(h, bits, s);
    return _mm256_castsi256_ps(bits);
}

HS_INLINE void split(const hstep_precision h, __m256 pairs, __m256 *even, __m256 *odd) {
    const __m256i bits = _mm256_castps_si256(pairs), upper = _mm256_set1_epi32((int)0xffff0000);
    if (h == HSTEP_PRECISION_FP16) {
        /* In each half of a vector the even elements first, then the odd ones; then the halves together. */
        const __m256i order = _mm256_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15, 0, 1, 4, 5, 8, 9,
                                               12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
        const __m256i halves = _mm256_permute4x64_epi64(_mm256_shuffle_epi8(bits, order), 0xd8);
        *even = _mm256_cvtph_ps(_mm256_castsi256_si128(halves));
        *odd = _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1));
    } else {
        *even = _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16));
        *odd = _mm256_castsi256_ps(_mm256_and_si256(bits, upper));
    }
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

/* The bits of Q_h of eight sums; not of NaNs. */
HS_INLINE __m128i finite_halves(const hstep_precision h, __m256 x) {
    if (h == HSTEP_PRECISION_FP16)
        return _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i sum = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    const __m256i upper = _mm256_srli_epi32(sum, 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(upper), _mm256_extracti128_si256(upper, 1));
}

/* Every NaN the one quiet NaN. */
HS_INLINE __m128i halves(const hstep_precision h, __m256 x) {
    const __m256i wide = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    const __m128i nan = _mm_packs_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));
    return _mm_blendv_epi8(finite_halves(h, x), _mm_set1_epi16(h == HSTEP_PRECISION_FP16 ? 0x7e00 : 0x7fc0), nan);
}

HS_INLINE void put_doubles(__m256 x, size_t count, double *y) {
    const __m256d low = _mm256_cvtps_pd(_mm256_castps256_ps128(x)), high = _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
    if (count >= 8) {
        _mm256_storeu_pd(y, low);
        _mm256_storeu_pd(y + 4, high);
    } else {
        double results[8];
        _mm256_storeu_pd(results, low);
        _mm256_storeu_pd(results + 4, high);
        memcpy(y, results, count * sizeof *y);
    }
}

/* In the sign bits of 16 bits each, which lanes are not finite. */
typedef __m128i flags;

HS_INLINE bool any_nonfinite(flags f) { return (_mm_movemask_epi8(f) & 0xaaaa) != 0; }

HS_INLINE void put_bits(const hstep_precision h, const bool half, __m128i bits, size_t count, void *y) {
    if (!half)
        put_doubles(value(h, bits), count, y);
    else if (count >= 8)
        _mm_storeu_si128(y, bits);
    else
        hs_store_some(bits, count, y);
}

HS_INLINE flags put(const hstep_precision h, const bool half, __m256 x, size_t count, void *y) {
    __m128i bits = halves(h, x);
    put_bits(h, half, bits, count, y);
    if (count < 8)
        bits =
            _mm_and_si128(bits, _mm_cmpgt_epi16(_mm_set1_epi16((short)count), _mm_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7)));
    const __m128i magnitude = _mm_and_si128(bits, _mm_set1_epi16(0x7fff));
    return _mm_add_epi16(magnitude, _mm_set1_epi16(h == HSTEP_PRECISION_FP16 ? 0x0400 : 0x0080));
}

HS_INLINE void put_finite(const hstep_precision h, const bool half, __m256 x, size_t count, void *y) {
    put_bits(h, half, finite_halves(h, x), count, y);
}

HS_INLINE bool any_beyond(const hstep_precision h, size_t rows, const float *sums) {
    __m256i largest = _mm256_setzero_si256();
    for (size_t i = 0; i < 16 * rows; i += 8) {
        const __m256i bits = _mm256_load_si256((const __m256i *)(const void *)(sums + i));
        largest = _mm256_max_epu32(largest, _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff)));
    }
    const __m256i finite = _mm256_set1_epi32((h == HSTEP_PRECISION_FP16 ? HS_FP16_BEYOND : HS_BF16_BEYOND) - 1);
    return _mm256_movemask_epi8(_mm256_cmpgt_epi32(largest, finite)) != 0;
}

#include "cpu/exact/vectors/pack.h"

HS_DEFINE_PARTS(fp16, HSTEP_PRECISION_FP16)
HS_DEFINE_CASTS(fp16, HSTEP_PRECISION_FP16)
HS_DEFINE_PARTS(bf16, HSTEP_PRECISION_BF16)
HS_DEFINE_CASTS(bf16, HSTEP_PRECISION_BF16)

const hs_kit hs_kit_avx2_fp16 = {.depth = 192, HS_PARTS(fp16), HS_CASTS(fp16)};
const hs_kit hs_kit_avx2_bf16 = {.depth = 192, HS_PARTS(bf16), HS_CASTS(bf16)};
