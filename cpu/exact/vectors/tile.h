/*
 * The register tile of a vector kit: rows of two vectors each, whose sums stay in registers while it walks along k.
 * Included once for an element type, with
 *   HS_REAL, HS_VECTOR, HS_LANES    the type, a vector of it, and how many it holds
 *   HS_ROWS, HS_ROW_PITCH           of a left panel
 *   HS_UNROLL_STEPS                 HS_UNROLL_FOUR, where a step of k is short beside the counting of steps
 *   HS_HEIGHTS(X)                   X(1) X(2) ... X(HS_ROWS)
 *   hs_v_load, hs_v_store, hs_v_splat, hs_v_zero, hs_v_multiply_add   the last as two roundings
 *   HS_V_FUSED(a, b, c)             as one rounding; undefined where the policy never allows that
 * Defines walk and part, as in hs_kit. Every number of rows has a function of its own: a tile on the lower edge does no
 * needless work.
 */
#include "cpu/exact/product/kit.h"
#include "cpu/exact/vectors/vector.h"

#ifndef HS_UNROLL_STEPS
#define HS_UNROLL_STEPS
#endif

/* One more product on a sum. */
static inline HS_VECTOR continued(const bool fused, HS_VECTOR a, HS_VECTOR b, HS_VECTOR sum) {
#ifdef HS_V_FUSED
    if (fused)
        return HS_V_FUSED(a, b, sum);
#endif
    (void)fused;
    return hs_v_multiply_add(a, b, sum);
}

HS_INLINE void walk_rows(const bool fused, const size_t rows, size_t depth, const HS_REAL *a, const HS_REAL *b,
                         bool fresh, HS_REAL *sums, hs_ahead ahead) {
    HS_VECTOR s[HS_ROWS][2];
    HS_UNROLL
    for (size_t i = 0; i < rows; i++) {
        s[i][0] = fresh ? hs_v_zero() : hs_v_load(sums + 2 * i * HS_LANES);
        s[i][1] = fresh ? hs_v_zero() : hs_v_load(sums + (2 * i + 1) * HS_LANES);
    }
    HS_UNROLL_STEPS
    for (size_t k = 0; k < depth; k++, a += HS_ROW_PITCH, b += 2 * HS_LANES, ahead.at += ahead.step) {
        _mm_prefetch((const char *)ahead.at, _MM_HINT_T1);
        const HS_VECTOR b0 = hs_v_load(b), b1 = hs_v_load(b + HS_LANES);
        HS_UNROLL
        for (size_t i = 0; i < rows; i++) {
            const HS_VECTOR x = hs_v_splat(a + i);
            s[i][0] = continued(fused, x, b0, s[i][0]);
            s[i][1] = continued(fused, x, b1, s[i][1]);
        }
    }
    HS_UNROLL
    for (size_t i = 0; i < rows; i++) {
        hs_v_store(sums + 2 * i * HS_LANES, s[i][0]);
        hs_v_store(sums + (2 * i + 1) * HS_LANES, s[i][1]);
    }
}

#define HS_DEFINE_APART(rows)                                                                                          \
    static void walk_apart_##rows(size_t depth, const void *a, const void *b, bool fresh, void *sums,                  \
                                  hs_ahead ahead) {                                                                    \
        walk_rows(false, rows, depth, a, b, fresh, sums, ahead);                                                       \
    }
#define HS_NAME_APART(rows) walk_apart_##rows,
HS_HEIGHTS(HS_DEFINE_APART)

#ifdef HS_V_FUSED
#define HS_DEFINE_FUSED(rows)                                                                                          \
    static void walk_fused_##rows(size_t depth, const void *a, const void *b, bool fresh, void *sums,                  \
                                  hs_ahead ahead) {                                                                    \
        walk_rows(true, rows, depth, a, b, fresh, sums, ahead);                                                        \
    }
#define HS_NAME_FUSED(rows) walk_fused_##rows,
HS_HEIGHTS(HS_DEFINE_FUSED)
#else
#define HS_NAME_FUSED HS_NAME_APART
#endif

typedef void walk_of_rows(size_t depth, const void *a, const void *b, bool fresh, void *sums, hs_ahead ahead);
static walk_of_rows *const walks[2][HS_ROWS] = {{HS_HEIGHTS(HS_NAME_APART)}, {HS_HEIGHTS(HS_NAME_FUSED)}};

static void walk(bool fused, size_t rows, size_t depth, const void *a, const void *b, bool fresh, void *sums,
                 hs_ahead ahead) {
    walks[fused][rows - 1](depth, a, b, fresh, sums, ahead);
}

static void part(size_t row, size_t rows, size_t depth, const void *a, const void *b, bool fused, void *sums) {
    HS_REAL *s = (HS_REAL *)sums + 2 * row * HS_LANES;
    walk(fused, rows, depth, (const HS_REAL *)a + row, b, false, s, (hs_ahead){(uintptr_t)s, 0});
}
