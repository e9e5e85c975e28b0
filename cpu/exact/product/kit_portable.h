/*
 * The portable kit, for one precision. Included with
 *   HS_REAL, HS_KIT(name)   the type of a sum, and how a function of this precision is called
 *   HS_ROWS, HS_COLUMNS     the tile
 *   HS_OPERANDS(n, x, y)    n operands from f64
 *   HS_RESULTS(n, x, y)     n results to f64; gives the hs_nonfinite of them
 *   HS_HALF                 its type of 16 bits; not defined in f64, as the next two
 *   HS_FROM_HALF(half), HS_TO_HALF(value)   the f32 of 16 bits, and the 16 bits of a sum, rounded
 * Multiplication and addition are two roundings everywhere, so it needs no range.
 */

/* Steps of k that are converted at a time when the source runs along k. */
enum { HS_KIT(chunk) = 64 };

static inline void HS_KIT(take)(const bool half, size_t count, const void *x, HS_REAL *y) {
#ifdef HS_HALF
    if (half) {
        for (size_t i = 0; i < count; i++)
            y[i] = HS_FROM_HALF(((const uint16_t *)x)[i]);
        return;
    }
#endif
    (void)half;
    HS_OPERANDS(count, x, y);
}

/* The source runs along k: lines are converted by themselves and then interleaved. */
static inline void HS_KIT(pack_along)(const bool half, const size_t width, hs_lines lines, size_t count, size_t depth,
                                      HS_REAL *panel) {
    HS_REAL converted[HS_COLUMNS][HS_KIT(chunk)] = {{0}};
    for (size_t k0 = 0; k0 < depth; k0 += HS_KIT(chunk)) {
        const size_t steps = depth - k0 < HS_KIT(chunk) ? depth - k0 : HS_KIT(chunk);
        for (size_t line = 0; line < count; line++)
            HS_KIT(take)(half, steps, hs_lines_from(lines, line, k0).data, converted[line]);
        for (size_t k = 0; k < steps; k++)
            for (size_t line = 0; line < width; line++)
                panel[(k0 + k) * width + line] = converted[line][k];
    }
}

/* The source runs across the lines, as a panel does. */
static inline void HS_KIT(pack_across)(const bool half, const size_t width, hs_lines lines, size_t count, size_t depth,
                                       HS_REAL *panel) {
    for (size_t k = 0; k < depth; k++) {
        HS_REAL *target = panel + k * width;
        HS_KIT(take)(half, count, hs_lines_from(lines, 0, k).data, target);
        for (size_t line = count; line < width; line++)
            target[line] = 0;
    }
}

static inline void HS_KIT(pack_from)(const bool half, const size_t width, hs_lines lines, size_t count, size_t depth,
                                     HS_REAL *panel) {
    lines.half = half; /* known to the compiler */
    if (lines.k_stride == 1)
        HS_KIT(pack_along)(half, width, lines, count, depth, panel);
    else if (count == width)
        HS_KIT(pack_across)(half, width, lines, width, depth, panel);
    else
        HS_KIT(pack_across)(half, width, lines, count, depth, panel);
}

static inline void HS_KIT(pack)(const size_t width, hs_lines lines, size_t count, size_t depth, HS_REAL *panel) {
#ifdef HS_HALF
    if (lines.half) {
        HS_KIT(pack_from)(true, width, lines, count, depth, panel);
        return;
    }
#endif
    HS_KIT(pack_from)(false, width, lines, count, depth, panel);
}

static void HS_KIT(pack_left)(hs_lines lines, size_t count, size_t depth, void *panel, hs_range *range) {
    (void)range;
    HS_KIT(pack)(HS_ROWS, lines, count, depth, panel);
}

static void HS_KIT(pack_right)(hs_lines lines, size_t count, size_t depth, void *panel, hs_range *range) {
    (void)range;
    HS_KIT(pack)(HS_COLUMNS, lines, count, depth, panel);
}

/* Whole tiles, always. */
static void HS_KIT(walk)(bool fused, size_t rows, size_t depth, const void *a_panel, const void *b_panel, bool fresh,
                         void *sums, hs_ahead ahead) {
    const HS_REAL *restrict a = a_panel, *restrict b = b_panel;
    HS_REAL s[HS_ROWS][HS_COLUMNS] = {{0}};
    (void)fused, (void)rows, (void)ahead;
    if (!fresh)
        memcpy(s, sums, sizeof s);
    for (size_t k = 0; k < depth; k++)
        for (size_t i = 0; i < HS_ROWS; i++)
            for (size_t j = 0; j < HS_COLUMNS; j++)
                s[i][j] += a[k * HS_ROWS + i] * b[k * HS_COLUMNS + j];
    memcpy(sums, s, sizeof s);
}

static void HS_KIT(part)(size_t row, size_t rows, size_t depth, const void *a_panel, const void *b_panel, bool fused,
                         void *sums) {
    const HS_REAL *restrict a = a_panel, *restrict b = b_panel;
    (void)fused;
    for (size_t i = row; i < row + rows; i++) {
        HS_REAL *restrict s = (HS_REAL *)sums + i * HS_COLUMNS;
        for (size_t k = 0; k < depth; k++)
            for (size_t j = 0; j < HS_COLUMNS; j++)
                s[j] += a[k * HS_ROWS + i] * b[k * HS_COLUMNS + j];
    }
}

/* Copies rows of the whole tile to those of the matrix, `slot` bytes an element. */
static inline void HS_KIT(place)(const size_t slot, size_t rows, size_t columns, const void *results, hs_cells y) {
    for (size_t i = 0; i < rows; i++) {
        const unsigned char *row = (const unsigned char *)results + i * HS_COLUMNS * slot;
        if (columns == HS_COLUMNS)
            memcpy(hs_cells_from(y, i, 0).data, row, HS_COLUMNS * slot);
        else
            memcpy(hs_cells_from(y, i, 0).data, row, columns * slot);
    }
}

/* A cell outside the matrix is nonfinite only where an operand is, and then cells inside are, too. */
static bool HS_KIT(store)(size_t rows, size_t columns, const void *sums, hs_cells y) {
    const HS_REAL *s = (const HS_REAL *)sums;
    double results[HS_ROWS * HS_COLUMNS];
#ifdef HS_HALF
    if (y.half) {
        uint16_t halves[HS_ROWS * HS_COLUMNS];
        uint64_t seen_half = 0;
        for (size_t i = 0; i < rows * HS_COLUMNS; i++) {
            halves[i] = HS_TO_HALF(s[i]);
            seen_half |= hs_nonfinite((double)HS_FROM_HALF(halves[i]));
        }
        HS_KIT(place)(sizeof *halves, rows, columns, halves, y);
        return hs_any_nonfinite(seen_half);
    }
#endif
    const uint64_t seen = HS_RESULTS(rows * HS_COLUMNS, s, results);
    HS_KIT(place)(sizeof *results, rows, columns, results, y);
    return hs_any_nonfinite(seen);
}

#ifdef HS_HALF
static void HS_KIT(narrow)(size_t count, const double *x, uint16_t *y) { hs_narrow_all(HS_HALF, count, x, y); }

static void HS_KIT(widen)(size_t count, const uint16_t *x, double *y) { hs_widen_all(HS_HALF, count, x, y); }
#endif

const hs_kit HS_KIT(hs_kit_portable) = {.element = sizeof(HS_REAL),
                                        .sum = sizeof(HS_REAL),
                                        .at_once = 1,
                                        .steps = 1,
                                        .columns = 64,
                                        .depth = 2048 / sizeof(HS_REAL),
                                        .left = {HS_ROWS, HS_ROWS, HS_KIT(pack_left)},
                                        .right = {HS_COLUMNS, HS_COLUMNS, HS_KIT(pack_right)},
                                        .walk = HS_KIT(walk),
                                        .part = HS_KIT(part),
#ifdef HS_HALF
                                        .narrow = HS_KIT(narrow),
                                        .widen = HS_KIT(widen),
#endif
                                        .store = HS_KIT(store)};

#undef HS_REAL
#undef HS_KIT
#undef HS_ROWS
#undef HS_COLUMNS
#undef HS_OPERANDS
#undef HS_RESULTS
#undef HS_HALF
#undef HS_FROM_HALF
#undef HS_TO_HALF
