/* What kits of every vector instruction set are written with. */
#ifndef HS_CPU_EXACT_VECTOR_H
#define HS_CPU_EXACT_VECTOR_H

#include <stddef.h>

#define HS_INLINE static inline __attribute__((always_inline))

#ifdef __clang__
#define HS_UNROLL _Pragma("clang loop unroll(full)")
#define HS_UNROLL_FOUR _Pragma("clang loop unroll_count(4)")
#else
#define HS_UNROLL _Pragma("GCC unroll 16")
#define HS_UNROLL_FOUR _Pragma("GCC unroll 4")
#endif

/* What of `count` is left beyond the first `before`. */
HS_INLINE size_t hs_beyond(size_t count, size_t before) { return count > before ? count - before : 0; }

#endif
