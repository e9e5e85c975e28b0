/* Small things that both kits of AVX2 use. Only files that are compiled for it include this. */
#ifndef HS_CPU_EXACT_AVX2_H
#define HS_CPU_EXACT_AVX2_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "cpu/exact/vectors/vector.h"

/* The first `count` of four lanes. */
HS_INLINE __m256i hs_first_lanes(size_t count) {
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count < 4 ? (int64_t)count : 4), _mm256_setr_epi64x(0, 1, 2, 3));
}

/* Fewer than four elements of 16 bits, the others 0. */
HS_INLINE uint64_t hs_load_few(const uint16_t *x, size_t count) {
    uint32_t two = 0;
    if (count & 2)
        memcpy(&two, x, sizeof two);
    return count & 1 ? two | (uint64_t)x[count & 2] << (count & 2 ? 32 : 0) : two;
}

/* The first `count` of eight elements of 16 bits, the others 0; nothing behind them is touched. */
HS_INLINE __m128i hs_load_some(const uint16_t *x, size_t count) {
    if (count >= 8)
        return _mm_loadu_si128((const __m128i *)(const void *)x);
    if (count < 4)
        return _mm_cvtsi64_si128((int64_t)hs_load_few(x, count));
    const __m128i low = _mm_loadl_epi64((const __m128i *)(const void *)x);
    return _mm_insert_epi64(low, (int64_t)hs_load_few(x + 4, count - 4), 1);
}

/* Stores the first `count` < 8 elements of 16 bits. */
HS_INLINE void hs_store_some(__m128i x, size_t count, uint16_t *y) {
    if (count & 4) {
        _mm_storel_epi64((__m128i *)(void *)y, x);
        x = _mm_srli_si128(x, 8);
        y += 4;
    }
    if (count & 2) {
        const int two = _mm_cvtsi128_si32(x);
        memcpy(y, &two, sizeof two);
        x = _mm_srli_si128(x, 4);
        y += 2;
    }
    if (count & 1)
        *y = (uint16_t)_mm_cvtsi128_si32(x);
}

#endif
