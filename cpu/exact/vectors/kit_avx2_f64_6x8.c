/* Products in f64 on AVX2. Multiplication and addition are two roundings, always. */
#include <immintrin.h>

#define HS_REAL double
#define HS_VECTOR __m256d
#define HS_LANES 4
#define HS_ROWS 6
#define HS_ROW_PITCH 8
#define HS_UNROLL_STEPS HS_UNROLL_FOUR
#define HS_HEIGHTS(X) X(1) X(2) X(3) X(4) X(5) X(6)

static inline __m256d hs_v_load(const double *p) { return _mm256_load_pd(p); }
static inline void hs_v_store(double *p, __m256d x) { _mm256_store_pd(p, x); }
static inline __m256d hs_v_splat(const double *p) { return _mm256_broadcast_sd(p); }
static inline __m256d hs_v_zero(void) { return _mm256_setzero_pd(); }
static inline __m256d hs_v_multiply_add(__m256d a, __m256d b, __m256d c) {
    return _mm256_add_pd(c, _mm256_mul_pd(a, b));
}

#include "cpu/exact/vectors/avx2.h"
#include "cpu/exact/vectors/tile.h"

HS_INLINE void transpose(__m256d r[4]) {
    const __m256d t0 = _mm256_unpacklo_pd(r[0], r[1]), t1 = _mm256_unpackhi_pd(r[0], r[1]),
                  t2 = _mm256_unpacklo_pd(r[2], r[3]), t3 = _mm256_unpackhi_pd(r[2], r[3]);
    r[0] = _mm256_permute2f128_pd(t0, t2, 0x20);
    r[1] = _mm256_permute2f128_pd(t1, t3, 0x20);
    r[2] = _mm256_permute2f128_pd(t0, t2, 0x31);
    r[3] = _mm256_permute2f128_pd(t1, t3, 0x31);
}

/* The range of f64 operands is of no use. */
typedef int seen;

HS_INLINE seen seen_nothing(void) { return 0; }

HS_INLINE void widen_range(bool half, const seen *s, hs_range *range) { (void)half, (void)s, (void)range; }

HS_INLINE __m256d operands(hstep_precision h, bool half, const void *x, size_t count, seen *s) {
    (void)h, (void)half, (void)s;
    return count >= 4 ? _mm256_loadu_pd(x) : _mm256_maskload_pd(x, hs_first_lanes(count));
}

/* In the sign bits, which lanes are not finite. */
typedef __m256i flags;

HS_INLINE bool any_nonfinite(flags f) { return _mm256_movemask_pd(_mm256_castsi256_pd(f)) != 0; }

HS_INLINE flags put(hstep_precision h, bool half, __m256d x, size_t count, void *y) {
    (void)h, (void)half;
    if (count >= 4) {
        _mm256_storeu_pd(y, x);
    } else {
        x = _mm256_and_pd(x, _mm256_castsi256_pd(hs_first_lanes(count)));
        double results[4];
        _mm256_storeu_pd(results, x);
        memcpy(y, results, count * sizeof *results);
    }
    const __m256i magnitude = _mm256_and_si256(_mm256_castpd_si256(x), _mm256_set1_epi64x(INT64_MAX));
    return _mm256_add_epi64(magnitude, _mm256_set1_epi64x(0x0010000000000000));
}

#include "cpu/exact/vectors/pack.h"

HS_DEFINE_PARTS(f64, HSTEP_PRECISION_F64)

const hs_kit hs_kit_avx2_f64 = {.depth = 128, HS_PARTS(f64)};
