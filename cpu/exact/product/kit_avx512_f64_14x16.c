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

#include "cpu/exact/product/avx512.h"
#include "cpu/exact/product/tile.h"

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

/* The source runs along k: blocks of 8 x 8 are turned in registers. */
HS_INLINE void pack_along(hs_lines lines, size_t count, size_t depth, double *panel) {
    for (size_t k0 = 0; k0 < depth; k0 += 8) {
        const size_t steps = depth - k0 < 8 ? depth - k0 : 8;
        __m512d r[8];
        HS_UNROLL
        for (size_t i = 0; i < 8; i++)
            r[i] = i < count ? _mm512_maskz_loadu_pd(hs_first_lanes(steps), lines.data + i * lines.line_stride + k0)
                             : _mm512_setzero_pd();
        transpose(r);
        HS_UNROLL
        for (size_t k = 0; k < 8; k++)
            if (k < steps)
                _mm512_store_pd(panel + (k0 + k) * HS_ROW_PITCH, r[k]);
    }
}

/* Both panels are sixteen lines wide in memory. */
static void pack(hs_lines lines, size_t count, size_t depth, void *panel, hs_range *range) {
    double *target = panel;
    (void)range;
    for (size_t first = 0; first < HS_ROW_PITCH && lines.k_stride == 1; first += 8) {
        const hs_lines part = {lines.data + first * lines.line_stride, lines.line_stride, 1};
        pack_along(part, hs_beyond(count, first), depth, target + first);
    }
    if (lines.k_stride == 1)
        return;
    const __mmask8 low = hs_first_lanes(count), high = hs_first_lanes(hs_beyond(count, 8));
    for (size_t k = 0; k < depth; k++, target += HS_ROW_PITCH) {
        const double *source = lines.data + k * lines.k_stride;
        _mm512_store_pd(target, _mm512_maskz_loadu_pd(low, source));
        _mm512_store_pd(target + 8, _mm512_maskz_loadu_pd(high, source + 8));
    }
}

/* Which of eight are not finite. */
HS_INLINE __mmask8 nonfinite_lanes(__mmask8 exist, __m512d x) {
    const __m512i magnitude = _mm512_and_si512(_mm512_castpd_si512(x), _mm512_set1_epi64(INT64_MAX));
    return _mm512_mask_cmpge_epu64_mask(exist, magnitude, _mm512_set1_epi64(0x7ff0000000000000));
}

static bool store(size_t rows, size_t columns, const void *sums, double *y, size_t pitch) {
    const double *s = sums;
    const __mmask8 low = hs_first_lanes(columns), high = hs_first_lanes(hs_beyond(columns, 8));
    __mmask8 nonfinite = 0;
    for (size_t i = 0; i < rows; i++, s += 16, y += pitch) {
        const __m512d x0 = _mm512_load_pd(s), x1 = _mm512_load_pd(s + 8);
        nonfinite |= nonfinite_lanes(low, x0) | nonfinite_lanes(high, x1);
        _mm512_mask_storeu_pd(y, low, x0);
        _mm512_mask_storeu_pd(y + 8, high, x1);
    }
    return nonfinite != 0;
}

const hs_kit hs_kit_avx512_f64 = {sizeof(double), 256, {14, 16, pack}, {16, 16, pack}, tile, step, store};
