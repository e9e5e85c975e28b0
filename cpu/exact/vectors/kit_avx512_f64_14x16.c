/* Products in f64 on AVX-512. Multiplication and addition are two roundings, always. */
#include <immintrin.h>

#define HS_REAL double
#define HS_VECTOR __m512d
#define HS_LANES 8
#define HS_ROWS 14
#define HS_ROW_PITCH 16
#define HS_HEIGHTS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)

static inline __m512d hs_v_load(const double *p) { return _mm512_load_pd(p); }
static inline void hs_v_store(double *p, __m512d x) { _mm512_store_pd(p, x); }
static inline __m512d hs_v_splat(const double *p) { return _mm512_set1_pd(*p); }
static inline __m512d hs_v_zero(void) { return _mm512_setzero_pd(); }
static inline __m512d hs_v_multiply_add(__m512d a, __m512d b, __m512d c) {
    return _mm512_add_pd(c, _mm512_mul_pd(a, b));
}

#include "cpu/exact/vectors/avx512.h"
#include "cpu/exact/vectors/tile.h"

HS_INLINE void transpose(__m512d r[8]) {
    __m512d t[8];
    HS_UNROLL
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm512_unpacklo_pd(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_pd(r[i], r[i + 1]);
    }
    /* Now t[2 q + j] holds columns j, j + 2, j + 4, j + 6 of rows 2 q and 2 q + 1, a column in each quarter. */
    HS_UNROLL
    for (int j = 0; j < 2; j++) {
        const __m512d even0 = _mm512_shuffle_f64x2(t[j], t[2 + j], 0x88),
                      odd0 = _mm512_shuffle_f64x2(t[j], t[2 + j], 0xdd),
                      even1 = _mm512_shuffle_f64x2(t[4 + j], t[6 + j], 0x88),
                      odd1 = _mm512_shuffle_f64x2(t[4 + j], t[6 + j], 0xdd);
        r[j] = _mm512_shuffle_f64x2(even0, even1, 0x88);
        r[j + 2] = _mm512_shuffle_f64x2(odd0, odd1, 0x88);
        r[j + 4] = _mm512_shuffle_f64x2(even0, even1, 0xdd);
        r[j + 6] = _mm512_shuffle_f64x2(odd0, odd1, 0xdd);
    }
}

/* The range of f64 operands is of no use. */
typedef int seen;

HS_INLINE seen seen_nothing(void) { return 0; }

HS_INLINE void widen_range(bool half, const seen *s, hs_range *range) { (void)half, (void)s, (void)range; }

HS_INLINE __m512d operands(hstep_precision h, bool half, const void *x, size_t count, seen *s) {
    (void)h, (void)half, (void)s;
    return _mm512_maskz_loadu_pd(hs_first_of_8(count), x);
}

/* Which lanes are not finite. */
typedef __mmask8 flags;

HS_INLINE bool any_nonfinite(flags f) { return f != 0; }

HS_INLINE flags put(hstep_precision h, bool half, __m512d x, size_t count, void *y) {
    (void)h, (void)half;
    const __m512i magnitude = _mm512_and_si512(_mm512_castpd_si512(x), _mm512_set1_epi64(INT64_MAX));
    const __mmask8 exist = hs_first_of_8(count);
    _mm512_mask_storeu_pd(y, exist, x);
    return _mm512_mask_cmpge_epu64_mask(exist, magnitude, _mm512_set1_epi64(0x7ff0000000000000));
}

#include "cpu/exact/vectors/pack.h"

HS_DEFINE_PARTS(f64, HSTEP_PRECISION_F64)

const hs_kit hs_kit_avx512_f64 = {.depth = 256, HS_PARTS(f64)};
