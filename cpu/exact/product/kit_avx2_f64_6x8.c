/* Products in f64 on AVX2. Multiplication and addition are two roundings, always. */
#include <immintrin.h>

#define HS_REAL double
#define HS_VECTOR __m256d
#define HS_LANES 4
#define HS_ROWS 6
#define HS_ROW_PITCH 8
#define HS_HEIGHTS(X) X(1) X(2) X(3) X(4) X(5) X(6)

static inline __m256d hs_v_load(const double *p) { return _mm256_load_pd(p); }
static inline void hs_v_store(double *p, __m256d x) { _mm256_store_pd(p, x); }
static inline __m256d hs_v_splat(const double *p) { return _mm256_broadcast_sd(p); }
static inline __m256d hs_v_zero(void) { return _mm256_setzero_pd(); }
static inline __m256d hs_v_multiply_add(__m256d a, __m256d b, __m256d c) {
    return _mm256_add_pd(c, _mm256_mul_pd(a, b));
}

#include "cpu/exact/product/avx2.h"
#include "cpu/exact/product/tile.h"

HS_INLINE void transpose(__m256d r[4]) {
    const __m256d t0 = _mm256_unpacklo_pd(r[0], r[1]), t1 = _mm256_unpackhi_pd(r[0], r[1]),
                  t2 = _mm256_unpacklo_pd(r[2], r[3]), t3 = _mm256_unpackhi_pd(r[2], r[3]);
    r[0] = _mm256_permute2f128_pd(t0, t2, 0x20);
    r[1] = _mm256_permute2f128_pd(t1, t3, 0x20);
    r[2] = _mm256_permute2f128_pd(t0, t2, 0x31);
    r[3] = _mm256_permute2f128_pd(t1, t3, 0x31);
}

/* The source runs along k: blocks of 4 x 4 are turned in registers. */
HS_INLINE void pack_along(hs_lines lines, size_t count, size_t depth, double *panel) {
    for (size_t k0 = 0; k0 < depth; k0 += 4) {
        const size_t steps = depth - k0 < 4 ? depth - k0 : 4;
        const __m256i exist = hs_first_lanes(steps);
        __m256d r[4];
        HS_UNROLL
        for (size_t i = 0; i < 4; i++)
            r[i] = i < count ? _mm256_maskload_pd(lines.data + i * lines.line_stride + k0, exist) : _mm256_setzero_pd();
        transpose(r);
        HS_UNROLL
        for (size_t k = 0; k < 4; k++)
            if (k < steps)
                _mm256_store_pd(panel + (k0 + k) * HS_ROW_PITCH, r[k]);
    }
}

/* Both panels are eight lines wide in memory. */
static void pack(hs_lines lines, size_t count, size_t depth, void *panel, hs_range *range) {
    double *target = panel;
    (void)range;
    for (size_t first = 0; first < HS_ROW_PITCH && lines.k_stride == 1; first += 4) {
        const hs_lines part = {lines.data + first * lines.line_stride, lines.line_stride, 1};
        pack_along(part, hs_beyond(count, first), depth, target + first);
    }
    if (lines.k_stride == 1)
        return;
    const __m256i low = hs_first_lanes(count), high = hs_first_lanes(hs_beyond(count, 4));
    for (size_t k = 0; k < depth; k++, target += HS_ROW_PITCH) {
        const double *source = lines.data + k * lines.k_stride;
        _mm256_store_pd(target, _mm256_maskload_pd(source, low));
        _mm256_store_pd(target + 4, _mm256_maskload_pd(source + 4, high));
    }
}

/* In the sign bits, which of four are not finite. */
HS_INLINE __m256i nonfinite_lanes(__m256d x) {
    const __m256i magnitude = _mm256_and_si256(_mm256_castpd_si256(x), _mm256_set1_epi64x(INT64_MAX));
    return _mm256_add_epi64(magnitude, _mm256_set1_epi64x(0x0010000000000000));
}

static bool store(size_t rows, size_t columns, const void *sums, double *y, size_t pitch) {
    const double *s = sums;
    const __m256i exist[2] = {hs_first_lanes(columns), hs_first_lanes(hs_beyond(columns, 4))};
    __m256i nonfinite = _mm256_setzero_si256();
    for (size_t i = 0; i < rows; i++, s += 8, y += pitch) {
        for (size_t half = 0; half < 2; half++) {
            const __m256d x = _mm256_and_pd(_mm256_load_pd(s + 4 * half), _mm256_castsi256_pd(exist[half]));
            nonfinite = _mm256_or_si256(nonfinite, nonfinite_lanes(x));
        }
        memcpy(y, s, columns * sizeof *y);
    }
    return _mm256_movemask_pd(_mm256_castsi256_pd(nonfinite)) != 0;
}

const hs_kit hs_kit_avx2_f64 = {sizeof(double), 128, {6, 8, pack}, {8, 8, pack}, tile, step, store};
