/*
 * Products in bf16 by vdpbf16ps, with the policy's bits. The instruction adds the product of the odd elements of a pair
 * to the sum first, then that of the even ones, each step rounded once to nearest even: with the earlier step of the
 * chain in the odd place that is the chain itself. It takes subnormal numbers for zero and makes none, so panels whose
 * products could have any part below 2^-126, or could overflow by themselves, take plain steps.
 */
#include <immintrin.h>

#include "cpu/exact/pairs/pairs.h"
#include "cpu/exact/vectors/avx512.h"

#define HS_HEIGHTS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#define HS_FEW_HEIGHTS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7)

enum { ROWS = HS_PAIRS_FEW_ROWS, FEW_ROWS = 7, LANES = 16, PAIRS = HS_PAIRS_STEPS / 2 };

/*
 * No operand is subnormal, and every product is a multiple of 2^-126: so is then every sum, which is zero or normal.
 * And no product overflows or is infinite or NaN, where the instruction would not round it by itself.
 */
static bool fits(hs_range a, hs_range b) {
    return a.least >= -126 && b.least >= -126 && a.least + b.least - 14 >= -126 && a.largest + b.largest <= 125;
}

HS_INLINE __m512i pair_of(const uint16_t *a, size_t row) {
    return _mm512_set1_epi32(*(const int *)(const void *)(a + row * HS_PAIRS_STEPS));
}

HS_INLINE __m512i pairs_at(const uint16_t *b) { return _mm512_load_si512(b); }

HS_INLINE void load_sums(const size_t rows, bool fresh, const float *sums, __m512 s[][2]) {
    HS_UNROLL
    for (size_t i = 0; i < rows; i++) {
        s[i][0] = fresh ? _mm512_setzero_ps() : _mm512_load_ps(sums + i * HS_PAIRS_COLUMNS);
        s[i][1] = fresh ? _mm512_setzero_ps() : _mm512_load_ps(sums + i * HS_PAIRS_COLUMNS + LANES);
    }
}

HS_INLINE void store_sums(const size_t rows, float *sums, __m512 s[][2]) {
    HS_UNROLL
    for (size_t i = 0; i < rows; i++) {
        _mm512_store_ps(sums + i * HS_PAIRS_COLUMNS, s[i][0]);
        _mm512_store_ps(sums + i * HS_PAIRS_COLUMNS + LANES, s[i][1]);
    }
}

HS_INLINE void walk_rows(const size_t rows, size_t blocks, const uint16_t *a, const uint16_t *b, bool fresh,
                         float *sums, hs_ahead ahead) {
    __m512 s[ROWS][2];
    load_sums(rows, fresh, sums, s);
    for (; blocks > 0; blocks--, a += (ROWS - 1) * HS_PAIRS_STEPS)
        for (size_t pair = 0; pair < PAIRS; pair++, a += 2, b += 2 * HS_PAIRS_COLUMNS, ahead.at += ahead.step) {
            _mm_prefetch((const char *)ahead.at, _MM_HINT_T1);
            const __m512bh b0 = (__m512bh)pairs_at(b), b1 = (__m512bh)pairs_at(b + 2 * LANES);
            HS_UNROLL
            for (size_t i = 0; i < rows; i++) {
                const __m512bh x = (__m512bh)pair_of(a, i);
                s[i][0] = _mm512_dpbf16_ps(s[i][0], x, b0);
                s[i][1] = _mm512_dpbf16_ps(s[i][1], x, b1);
            }
        }
    store_sums(rows, sums, s);
}

/* The f32 numbers of the earlier and of the later step of a pair. */
HS_INLINE __m512 earlier(__m512i pairs) {
    return _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32((int)0xffff0000)));
}
HS_INLINE __m512 later(__m512i pairs) { return _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)); }

HS_INLINE __m512 continued(__m512 a, __m512 b, __m512 sum) { return _mm512_add_ps(sum, _mm512_mul_ps(a, b)); }

HS_INLINE void walk_rows_apart(const size_t rows, size_t blocks, const uint16_t *a, const uint16_t *b, bool fresh,
                               float *sums) {
    __m512 s[FEW_ROWS][2];
    load_sums(rows, fresh, sums, s);
    for (; blocks > 0; blocks--, a += (ROWS - 1) * HS_PAIRS_STEPS)
        for (size_t pair = 0; pair < PAIRS; pair++, a += 2, b += 2 * HS_PAIRS_COLUMNS) {
            const __m512i b0 = pairs_at(b), b1 = pairs_at(b + 2 * LANES);
            HS_UNROLL
            for (size_t i = 0; i < rows; i++) {
                const __m512i x = pair_of(a, i);
                s[i][0] = continued(earlier(x), earlier(b0), s[i][0]);
                s[i][1] = continued(earlier(x), earlier(b1), s[i][1]);
                s[i][0] = continued(later(x), later(b0), s[i][0]);
                s[i][1] = continued(later(x), later(b1), s[i][1]);
            }
        }
    store_sums(rows, sums, s);
}

typedef void walk_of_rows(size_t blocks, const uint16_t *a, const uint16_t *b, bool fresh, float *sums, hs_ahead ahead);
typedef void walk_apart_of_rows(size_t blocks, const uint16_t *a, const uint16_t *b, bool fresh, float *sums);

#define HS_DEFINE(rows)                                                                                                \
    static void walk_##rows(size_t blocks, const uint16_t *a, const uint16_t *b, bool fresh, float *sums,              \
                            hs_ahead ahead) {                                                                          \
        walk_rows(rows, blocks, a, b, fresh, sums, ahead);                                                             \
    }
#define HS_DEFINE_APART(rows)                                                                                          \
    static void walk_apart_##rows(size_t blocks, const uint16_t *a, const uint16_t *b, bool fresh, float *sums) {      \
        walk_rows_apart(rows, blocks, a, b, fresh, sums);                                                              \
    }
#define HS_NAME(rows) walk_##rows,
#define HS_NAME_APART(rows) walk_apart_##rows,
HS_HEIGHTS(HS_DEFINE)
HS_FEW_HEIGHTS(HS_DEFINE_APART)

static void walk(bool fused, size_t rows, size_t depth, const void *a, const void *b, bool fresh, void *sums,
                 hs_ahead ahead) {
    static walk_of_rows *const walks[ROWS] = {HS_HEIGHTS(HS_NAME)};
    static walk_apart_of_rows *const walks_apart[FEW_ROWS] = {HS_FEW_HEIGHTS(HS_NAME_APART)};
    const size_t blocks = hs_panels(depth, HS_PAIRS_STEPS);
    if (fused) {
        walks[rows - 1](blocks, a, b, fresh, sums, ahead);
        return;
    }
    for (size_t row = 0; row < rows; row += FEW_ROWS) {
        const size_t few = rows - row < FEW_ROWS ? rows - row : FEW_ROWS;
        walks_apart[few - 1](blocks, (const uint16_t *)a + row * HS_PAIRS_STEPS, b, fresh,
                             (float *)sums + row * HS_PAIRS_COLUMNS);
    }
}

const hs_kit hs_kit_avx512bf16 = {HS_PAIRS_KIT(1),
                                  .depth = 384,
                                  .columns = 128,
                                  .left = {ROWS, ROWS, hs_pairs_pack_left_swapped},
                                  .right = {HS_PAIRS_COLUMNS, HS_PAIRS_COLUMNS, hs_pairs_pack_right_swapped},
                                  .fits = fits,
                                  .stays_apart = true,
                                  .walk = walk,
                                  .store = hs_avx512_store_bf16};
