/* Small things that both kits of AVX-512 use. Only files that are compiled for it include this. */
#ifndef HS_CPU_EXACT_AVX512_H
#define HS_CPU_EXACT_AVX512_H

#include <immintrin.h>
#include <stddef.h>

#define HS_INLINE static inline __attribute__((always_inline))

/* The first `count` of eight lanes. */
HS_INLINE __mmask8 hs_first_lanes(size_t count) { return (__mmask8)(count < 8 ? (1U << count) - 1 : 0xffU); }

/* The first `count` of sixteen lanes. */
HS_INLINE __mmask16 hs_first_sixteen(size_t count) { return (__mmask16)(count < 16 ? (1U << count) - 1 : 0xffffU); }

/* What of `count` is left beyond the first `before`. */
HS_INLINE size_t hs_beyond(size_t count, size_t before) { return count > before ? count - before : 0; }

#endif
