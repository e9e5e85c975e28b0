/* Small things that both kits of AVX2 use. Only files that are compiled for it include this. */
#ifndef HS_CPU_EXACT_AVX2_H
#define HS_CPU_EXACT_AVX2_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HS_INLINE static inline __attribute__((always_inline))

/* What of `count` is left beyond the first `before`. */
HS_INLINE size_t hs_beyond(size_t count, size_t before) { return count > before ? count - before : 0; }

/* The first `count` of four lanes. */
HS_INLINE __m256i hs_first_lanes(size_t count) {
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count < 4 ? (int64_t)count : 4), _mm256_setr_epi64x(0, 1, 2, 3));
}

#endif
