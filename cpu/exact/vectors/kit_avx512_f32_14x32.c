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

#include "cpu/exact/vectors/avx512.h"
#include "cpu/exact/vectors/tile.h"

#define HS_HALVES

/* From 16 bits, or of f32. */
typedef hs_magnitudes seen;

HS_INLINE seen seen_nothing(void) { return hs_no_magnitudes(); }

HS_INLINE void see_halves(const hstep_precision h, __m512i bits, seen *s) {
    if (h == HSTEP_PRECISION_BF16)
        hs_see_halves(bits, s);
}

HS_INLINE void see(__m512 x, seen *s) {
    const __m512i magnitude = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff));
    s->least = _mm512_min_epu32(s->least, _mm512_sub_epi32(magnitude, _mm512_set1_epi32(1)));
    s->largest = _mm512_max_epu32(s->largest, magnitude);
}

HS_INLINE void widen_range(const bool half, const seen *s, hs_range *range) {
    if (half)
        hs_widen_by_halves(range, s);
    else
        hs_widen(range, _mm512_reduce_min_epu32(s->least) + 1, _mm512_reduce_max_epu32(s->largest));
}

/* Sixteen halves, widened. */
HS_INLINE __m512 value(const hstep_precision h, __m256i bits) {
    if (h == HSTEP_PRECISION_FP16)
        return _mm512_cvtph_ps(bits);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

HS_INLINE __m512 operands(const hstep_precision h, const bool half, const void *x, size_t count, seen *s) {
    if (half) {
        const __m256i bits = _mm256_maskz_loadu_epi16(hs_first_of_16(count), x);
        see_halves(h, _mm512_zextsi256_si512(bits), s);
        return value(h, bits);
    }
    const __m512d low = _mm512_maskz_loadu_pd(hs_first_of_8(count), x),
                  high = _mm512_maskz_loadu_pd(hs_first_of_8(hs_beyond(count, 8)), (const double *)x + 8);
    if (h == HSTEP_PRECISION_FP16)
        return _mm512_cvtph_ps(_mm512_cvtps_ph(hs_joined(hs_odd_f32(low), hs_odd_f32(high)),
                                               _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    const __m512 y = hs_joined(hs_bf16_f32(low), hs_bf16_f32(high));
    see(y, s);
    return y;
}

HS_INLINE __m512 load_pairs(const hstep_precision h, const void *x, size_t count, seen *s) {
    const __m512i bits = _mm512_maskz_loadu_epi16(hs_first_of_32(count), x);
    see_halves(h, bits, s);
    return _mm512_castsi512_ps(bits);
}

/* What number i of the even, then of the odd elements is among all. */
static const uint16_t apart[32] = {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30,
                                   1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31};

HS_INLINE void split(const hstep_precision h, __m512 pairs, __m512 *even, __m512 *odd) {
    const __m512i bits = _mm512_castps_si512(pairs);
    if (h == HSTEP_PRECISION_FP16) {
        const __m512i halves = _mm512_permutexvar_epi16(_mm512_loadu_si512(apart), bits);
        *even = _mm512_cvtph_ps(_mm512_castsi512_si256(halves));
        *odd = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(halves, 1));
    } else {
        *even = _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
        *odd = _mm512_castsi512_ps(_mm512_and_si512(bits, _mm512_set1_epi32((int)0xffff0000)));
    }
}

HS_INLINE void transpose(__m512 r[16]) { hs_transpose(r); }

/* The bits of Q_h of sixteen sums; not of NaNs. */
HS_INLINE __m256i finite_halves(const hstep_precision h, __m512 x) {
    if (h == HSTEP_PRECISION_FP16)
        return _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i sum = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(sum, 16));
}

/* Every NaN the one quiet NaN. */
HS_INLINE __m256i halves(const hstep_precision h, __m512 x) {
    return _mm256_mask_mov_epi16(finite_halves(h, x), _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q),
                                 _mm256_set1_epi16(h == HSTEP_PRECISION_FP16 ? 0x7e00 : 0x7fc0));
}

HS_INLINE void put_doubles(__m512 x, size_t count, double *y) { hs_store_doubles(x, count, y); }

/* Which lanes are not finite. */
typedef __mmask16 flags;

HS_INLINE bool any_nonfinite(flags f) { return f != 0; }

HS_INLINE flags put(const hstep_precision h, const bool half, __m512 x, size_t count, void *y) {
    const __mmask16 exist = hs_first_of_16(count);
    const __m256i bits = halves(h, x);
    if (half)
        _mm256_mask_storeu_epi16(y, exist, bits);
    else
        put_doubles(value(h, bits), count, y);
    return _mm256_mask_cmpge_epu16_mask(exist, _mm256_and_si256(bits, _mm256_set1_epi16(0x7fff)),
                                        _mm256_set1_epi16(h == HSTEP_PRECISION_FP16 ? 0x7c00 : 0x7f80));
}

HS_INLINE void put_finite(const hstep_precision h, const bool half, __m512 x, size_t count, void *y) {
    const __m256i bits = finite_halves(h, x);
    if (half)
        _mm256_mask_storeu_epi16(y, hs_first_of_16(count), bits);
    else
        put_doubles(value(h, bits), count, y);
}

HS_INLINE bool any_beyond(const hstep_precision h, size_t rows, const float *sums) {
    __m512i largest = _mm512_setzero_si512();
    for (size_t i = 0; i < 32 * rows; i += 16)
        largest =
            _mm512_max_epu32(largest, _mm512_and_si512(_mm512_load_si512(sums + i), _mm512_set1_epi32(0x7fffffff)));
    return _mm512_cmpge_epu32_mask(largest,
                                   _mm512_set1_epi32(h == HSTEP_PRECISION_FP16 ? HS_FP16_BEYOND : HS_BF16_BEYOND)) != 0;
}

#include "cpu/exact/vectors/pack.h"

HS_DEFINE_PARTS(fp16, HSTEP_PRECISION_FP16)
HS_DEFINE_CASTS(fp16, HSTEP_PRECISION_FP16)
HS_DEFINE_PARTS(bf16, HSTEP_PRECISION_BF16)
HS_DEFINE_CASTS(bf16, HSTEP_PRECISION_BF16)

const hs_kit hs_kit_avx512_fp16 = {.depth = 384, HS_PARTS(fp16), HS_CASTS(fp16)};
const hs_kit hs_kit_avx512_bf16 = {.depth = 384, HS_PARTS(bf16), HS_CASTS(bf16)};

bool hs_avx512_store_fp16(size_t rows, size_t columns, const void *sums, hs_cells y) {
    return store_fp16(rows, columns, sums, y);
}

bool hs_avx512_store_bf16(size_t rows, size_t columns, const void *sums, hs_cells y) {
    return store_bf16(rows, columns, sums, y);
}
