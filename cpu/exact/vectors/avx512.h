/* What all kits of AVX-512 have in common. Only files that are compiled for it include this. */
#ifndef HS_CPU_EXACT_AVX512_H
#define HS_CPU_EXACT_AVX512_H

#include <immintrin.h>

#include "cpu/exact/product/kit.h"
#include "cpu/exact/vectors/vector.h"

/* The first `count` of so many lanes. */
HS_INLINE __mmask8 hs_first_of_8(size_t count) { return (__mmask8)(count < 8 ? (1U << count) - 1 : 0xffU); }
HS_INLINE __mmask16 hs_first_of_16(size_t count) { return (__mmask16)(count < 16 ? (1U << count) - 1 : 0xffffU); }
HS_INLINE __mmask32 hs_first_of_32(size_t count) { return count < 32 ? (UINT32_C(1) << count) - 1 : UINT32_MAX; }

/* Eight lanes whose bits below the f32 fraction are gathered in its last bit (round to odd), then taken to f32: exact
 * where f32 is normal, and any other magnitude has the same half as the nearest f32. */
HS_INLINE __m256 hs_odd_f32(__m512d x) {
    const __m512i rest = _mm512_set1_epi64((1LL << 29) - 1), bits = _mm512_castpd_si512(x);
    const __m512i sticky = _mm512_add_epi64(_mm512_and_si512(bits, rest), rest);
    /* (bits | sticky) & ~rest */
    return _mm512_cvtpd_ps(_mm512_castsi512_pd(_mm512_ternarylogic_epi64(bits, sticky, rest, 0x54)));
}

/* Q_bf16 of eight lanes by adding and subtracting a power of two (cpu/exact/product/convert.h); overflow comes with the
 * step to f32. */
HS_INLINE __m256 hs_bf16_f32(__m512d x) {
    const __m512i exponent = _mm512_set1_epi64(0x7ff0000000000000);
    __m512d power = _mm512_castsi512_pd(_mm512_and_si512(_mm512_castpd_si512(x), exponent));
    power = _mm512_min_pd(_mm512_max_pd(power, _mm512_set1_pd(0x1p-126)), _mm512_set1_pd(0x1p128));
    const __m512d shift = _mm512_mul_pd(power, _mm512_set1_pd(0x1.8p45));
    const __m512d rounded = _mm512_sub_pd(_mm512_add_pd(x, shift), shift);
    /* A negative value that rounds to zero has lost its sign: rounded | (x & sign). */
    return _mm512_cvtpd_ps(_mm512_castsi512_pd(_mm512_ternarylogic_epi64(
        _mm512_castpd_si512(rounded), _mm512_castpd_si512(x), _mm512_set1_epi64(INT64_MIN), 0xf8)));
}

HS_INLINE __m512 hs_joined(__m256 low, __m256 high) { return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1); }

/* The first `count` of sixteen, widened. */
HS_INLINE void hs_store_doubles(__m512 x, size_t count, double *y) {
    _mm512_mask_storeu_pd(y, hs_first_of_8(count), _mm512_cvtps_pd(_mm512_castps512_ps256(x)));
    if (count > 8)
        _mm512_mask_storeu_pd(y + 8, hs_first_of_8(count - 8), _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1)));
}

/* Sixteen vectors as rows to sixteen vectors as columns. */
HS_INLINE void hs_transpose(__m512 r[16]) {
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

/* What operands have shown so far, as bits of magnitudes: the least less one, where a zero becomes the largest number,
 * and the largest. */
typedef struct hs_magnitudes {
    __m512i least, largest;
} hs_magnitudes;

HS_INLINE hs_magnitudes hs_no_magnitudes(void) {
    return (hs_magnitudes){_mm512_set1_epi32(-1), _mm512_setzero_si512()};
}

/* Of 16 bits each: bf16 numbers. */
HS_INLINE void hs_see_halves(__m512i bits, hs_magnitudes *s) {
    const __m512i magnitude = _mm512_and_si512(bits, _mm512_set1_epi16(0x7fff));
    s->least = _mm512_min_epu16(s->least, _mm512_sub_epi16(magnitude, _mm512_set1_epi16(1)));
    s->largest = _mm512_max_epu16(s->largest, magnitude);
}

HS_INLINE void hs_widen_by_halves(hs_range *range, const hs_magnitudes *s) {
    const __m512i low = _mm512_set1_epi32(0xffff);
    const uint32_t least =
        _mm512_reduce_min_epu32(_mm512_min_epu32(_mm512_and_si512(s->least, low), _mm512_srli_epi32(s->least, 16)));
    const uint32_t largest =
        _mm512_reduce_max_epu32(_mm512_max_epu32(_mm512_and_si512(s->largest, low), _mm512_srli_epi32(s->largest, 16)));
    hs_widen(range, (least + 1) << 16, largest << 16);
}

#endif
