/*
 * How a vector kit packs operands and stores results. Included once, after tile.h, with
 *   seen                                 what operands have shown so far, of the type that the kit needs for its range;
 *                                        all zeros but for what seen_nothing() sets
 *   transpose(r)                         HS_LANES vectors as rows to HS_LANES vectors as columns
 *   operands(h, half, x, count, s)       Q_h of the first `count` operands at x, the others +0; count may be 0
 *   put(h, half, x, count, y)            stores Q_h of the first `count` of x; gives `flags`, to be joined by |
 *   any_nonfinite(flags), widen_range(half, s, range)
 * and, where HS_HALVES is defined, for operands in 16 bits
 *   load_pairs(h, x, count, s)           the first `count` of 2 * HS_LANES operands as they stand, the others 0
 *   split(h, pairs, even, odd)           the even and the odd ones of them, in f32
 *   any_beyond(h, rows, sums)            whether Q_h of any sum of a tile is not finite
 *   put_finite(h, half, x, count, y)     put, for a tile without such sums
 */
#include "cpu/exact/product/kit.h"

/* The source runs along k: blocks of HS_LANES x HS_LANES are turned in registers. */
HS_INLINE void pack_along(const hstep_precision h, const bool half, const size_t pitch, hs_lines lines, size_t count,
                          size_t depth, HS_REAL *panel, seen *s) {
    for (size_t k0 = 0; k0 < depth; k0 += HS_LANES) {
        const size_t steps = depth - k0 < HS_LANES ? depth - k0 : HS_LANES;
        HS_VECTOR r[HS_LANES];
        HS_UNROLL
        for (size_t i = 0; i < HS_LANES; i++)
            r[i] = i < count ? operands(h, half, hs_lines_from(lines, i, k0).data, steps, s) : hs_v_zero();
        transpose(r);
        HS_UNROLL
        for (size_t k = 0; k < HS_LANES; k++)
            if (k < steps)
                hs_v_store(panel + (k0 + k) * pitch, r[k]);
    }
}

#ifdef HS_HALVES
/* The same in 16 bits: two steps of k are turned as one. */
HS_INLINE void pack_pairs_along(const hstep_precision h, const size_t pitch, hs_lines lines, size_t count, size_t depth,
                                HS_REAL *panel, seen *s) {
    for (size_t k0 = 0; k0 < depth; k0 += 2 * HS_LANES) {
        const size_t steps = depth - k0 < 2 * HS_LANES ? depth - k0 : 2 * HS_LANES;
        HS_VECTOR r[HS_LANES];
        HS_UNROLL
        for (size_t i = 0; i < HS_LANES; i++)
            r[i] = i < count ? load_pairs(h, hs_lines_from(lines, i, k0).data, steps, s) : hs_v_zero();
        transpose(r);
        HS_REAL *target = panel + k0 * pitch;
        HS_UNROLL
        for (size_t k = 0; k < 2 * HS_LANES; k += 2, target += 2 * pitch) {
            HS_VECTOR even, odd;
            split(h, r[k / 2], &even, &odd);
            if (k < steps)
                hs_v_store(target, even);
            if (k + 1 < steps)
                hs_v_store(target + pitch, odd);
        }
    }
}
#endif

/* The source runs across the lines, as a panel does; rows of it may stand far apart, where no prefetcher follows. */
HS_INLINE void pack_across(const hstep_precision h, const bool half, const size_t pitch, hs_lines lines, size_t count,
                           size_t depth, HS_REAL *panel, seen *widened) {
    enum { AHEAD = 8, LINE = 64 };
    seen s = *widened;
    for (size_t k = 0; k < depth; k++, panel += pitch) {
        const unsigned char *row = hs_lines_from(lines, 0, k).data;
        const unsigned char *later = hs_lines_from(lines, 0, k + AHEAD < depth ? k + AHEAD : k).data;
        HS_UNROLL
        for (size_t byte = 0; byte < pitch * hs_slot(half); byte += LINE)
            _mm_prefetch((const char *)later + byte, _MM_HINT_T0);
        HS_UNROLL
        for (size_t i = 0; i < pitch; i += HS_LANES)
            hs_v_store(panel + i, operands(h, half, row + i * hs_slot(half), hs_beyond(count, i), &s));
    }
    *widened = s;
}

HS_INLINE void pack_from(const hstep_precision h, const bool half, const size_t pitch, hs_lines lines, size_t count,
                         size_t depth, HS_REAL *panel, hs_range *range) {
    seen s = seen_nothing();
    lines.half = half; /* known to the compiler */
    if (lines.k_stride != 1)
        pack_across(h, half, pitch, lines, count, depth, panel, &s);
    else
        for (size_t first = 0; first < pitch; first += HS_LANES) {
            const hs_lines part = hs_lines_from(lines, first, 0);
#ifdef HS_HALVES
            if (half) {
                pack_pairs_along(h, pitch, part, hs_beyond(count, first), depth, panel + first, &s);
                continue;
            }
#endif
            pack_along(h, half, pitch, part, hs_beyond(count, first), depth, panel + first, &s);
        }
    if (h == HSTEP_PRECISION_BF16)
        widen_range(half, &s, range);
}

HS_INLINE void pack(const hstep_precision h, const size_t pitch, hs_lines lines, size_t count, size_t depth,
                    HS_REAL *panel, hs_range *range) {
    if (h != HSTEP_PRECISION_F64 && lines.half)
        pack_from(h, true, pitch, lines, count, depth, panel, range);
    else
        pack_from(h, false, pitch, lines, count, depth, panel, range);
}

HS_INLINE bool store_as(const hstep_precision h, const bool half, size_t rows, size_t columns, const HS_REAL *sums,
                        hs_cells y) {
    const size_t pitch = y.pitch * hs_slot(half), beside = HS_LANES * hs_slot(half);
    unsigned char *target = y.data;
#ifdef HS_HALVES
    if (!any_beyond(h, rows, sums)) {
        for (size_t i = 0; i < rows; i++, sums += 2 * HS_LANES, target += pitch) {
            put_finite(h, half, hs_v_load(sums), columns, target);
            if (columns > HS_LANES)
                put_finite(h, half, hs_v_load(sums + HS_LANES), columns - HS_LANES, target + beside);
        }
        return false;
    }
#endif
    flags nonfinite = {0};
    for (size_t i = 0; i < rows; i++, sums += 2 * HS_LANES, target += pitch) {
        nonfinite |= put(h, half, hs_v_load(sums), columns, target);
        if (columns > HS_LANES)
            nonfinite |= put(h, half, hs_v_load(sums + HS_LANES), columns - HS_LANES, target + beside);
    }
    return any_nonfinite(nonfinite);
}

HS_INLINE bool store(const hstep_precision h, size_t rows, size_t columns, const HS_REAL *sums, hs_cells y) {
    if (h != HSTEP_PRECISION_F64 && y.half)
        return store_as(h, true, rows, columns, sums, y);
    return store_as(h, false, rows, columns, sums, y);
}

/* What a kit is made of, in one precision. */
#define HS_DEFINE_PARTS(name, h)                                                                                       \
    static void pack_left_##name(hs_lines lines, size_t count, size_t depth, void *panel, hs_range *range) {           \
        pack(h, HS_ROW_PITCH, lines, count, depth, panel, range);                                                      \
    }                                                                                                                  \
    static void pack_right_##name(hs_lines lines, size_t count, size_t depth, void *panel, hs_range *range) {          \
        pack(h, 2 * HS_LANES, lines, count, depth, panel, range);                                                      \
    }                                                                                                                  \
    static bool store_##name(size_t rows, size_t columns, const void *sums, hs_cells y) {                              \
        return store(h, rows, columns, sums, y);                                                                       \
    }

#define HS_PARTS(name)                                                                                                 \
    .element = sizeof(HS_REAL), .sum = sizeof(HS_REAL), .at_once = 1, .steps = 1, .columns = 64,                       \
    .left = {HS_ROWS, HS_ROW_PITCH, pack_left_##name}, .right = {2 * HS_LANES, 2 * HS_LANES, pack_right_##name},       \
    .walk = walk, .part = part, .store = store_##name

#ifdef HS_HALVES
#define HS_DEFINE_CASTS(name, h)                                                                                       \
    static void narrow_##name(size_t count, const double *x, uint16_t *y) {                                            \
        seen s = seen_nothing();                                                                                       \
        for (size_t i = 0; i < count; i += HS_LANES)                                                                   \
            (void)put(h, true, operands(h, false, x + i, count - i, &s), count - i, y + i);                            \
    }                                                                                                                  \
    static void widen_##name(size_t count, const uint16_t *x, double *y) {                                             \
        seen s = seen_nothing();                                                                                       \
        for (size_t i = 0; i < count; i += HS_LANES)                                                                   \
            put_doubles(operands(h, true, x + i, count - i, &s), count - i, y + i);                                    \
    }
#define HS_CASTS(name) .narrow = narrow_##name, .widen = widen_##name
#endif
