/*
 * The portable kit, for one precision. Included with
 *   HS_REAL, HS_KIT(name)   the type of a sum, and how a function of this precision is called
 *   HS_ROWS, HS_COLUMNS     the tile
 *   HS_OPERANDS(n, x, y)    n operands from f64
 *   HS_RESULTS(n, x, y)     n results to f64; gives the hs_nonfinite of them
 * Multiplication and addition are two roundings everywhere, so it needs no range.
 */

/* Steps of k that are converted at a time when the source runs along k. */
enum { HS_KIT(chunk) = 64 };

/* The source runs along k: lines are converted by themselves and then interleaved. */
static inline void HS_KIT(pack_along)(const size_t width, hs_lines lines, size_t count, size_t depth, HS_REAL *panel) {
    HS_REAL converted[HS_COLUMNS][HS_KIT(chunk)] = {{0}};
    for (size_t k0 = 0; k0 < depth; k0 += HS_KIT(chunk)) {
        const size_t steps = depth - k0 < HS_KIT(chunk) ? depth - k0 : HS_KIT(chunk);
        for (size_t line = 0; line < count; line++)
            HS_OPERANDS(steps, lines.data + line * lines.line_stride + k0, converted[line]);
        for (size_t k = 0; k < steps; k++)
            for (size_t line = 0; line < width; line++)
                panel[(k0 + k) * width + line] = converted[line][k];
    }
}

/* The source runs across the lines, as a panel does. */
static inline void HS_KIT(pack_across)(const size_t width, hs_lines lines, size_t count, size_t depth, HS_REAL *panel) {
    for (size_t k = 0; k < depth; k++) {
        const double *source = lines.data + k * lines.k_stride;
        HS_REAL *target = panel + k * width;
        HS_OPERANDS(count, source, target);
        for (size_t line = count; line < width; line++)
            target[line] = 0;
    }
}

static inline void HS_KIT(pack)(const size_t width, hs_lines lines, size_t count, size_t depth, HS_REAL *panel) {
    if (lines.k_stride == 1)
        HS_KIT(pack_along)(width, lines, count, depth, panel);
    else if (count == width)
        HS_KIT(pack_across)(width, lines, width, depth, panel);
    else
        HS_KIT(pack_across)(width, lines, count, depth, panel);
}

static void HS_KIT(pack_left)(hs_lines lines, size_t count, size_t depth, void *panel, hs_range *range) {
    (void)range;
    HS_KIT(pack)(HS_ROWS, lines, count, depth, panel);
}

static void HS_KIT(pack_right)(hs_lines lines, size_t count, size_t depth, void *panel, hs_range *range) {
    (void)range;
    HS_KIT(pack)(HS_COLUMNS, lines, count, depth, panel);
}

static void HS_KIT(tile)(size_t rows, size_t depth, const void *a_panel, const void *b_panel, bool fused, bool fresh,
                         void *sums, hs_ahead ahead) {
    const HS_REAL *restrict a = a_panel, *restrict b = b_panel;
    HS_REAL s[HS_ROWS][HS_COLUMNS] = {{0}};
    (void)rows, (void)fused, (void)ahead;
    if (!fresh)
        memcpy(s, sums, sizeof s);
    for (size_t k = 0; k < depth; k++)
        for (size_t i = 0; i < HS_ROWS; i++)
            for (size_t j = 0; j < HS_COLUMNS; j++)
                s[i][j] += a[k * HS_ROWS + i] * b[k * HS_COLUMNS + j];
    memcpy(sums, s, sizeof s);
}

static void HS_KIT(step)(size_t row, const void *a_panel, const void *b_panel, void *sums) {
    const HS_REAL a = ((const HS_REAL *)a_panel)[row], *restrict b = b_panel;
    HS_REAL *restrict s = (HS_REAL *)sums + row * HS_COLUMNS;
    for (size_t j = 0; j < HS_COLUMNS; j++)
        s[j] += a * b[j];
}

static bool HS_KIT(store)(size_t rows, size_t columns, const void *sums, double *y, size_t pitch) {
    const HS_REAL *s = (const HS_REAL *)sums;
    double results[HS_ROWS * HS_COLUMNS];
    /* A cell outside the matrix is nonfinite only where an operand is, and then cells inside are, too. */
    const uint64_t seen = HS_RESULTS(rows * HS_COLUMNS, s, results);
    for (size_t i = 0; i < rows; i++)
        if (columns == HS_COLUMNS)
            memcpy(y + i * pitch, results + i * HS_COLUMNS, HS_COLUMNS * sizeof *y);
        else
            memcpy(y + i * pitch, results + i * HS_COLUMNS, columns * sizeof *y);
    return hs_any_nonfinite(seen);
}

const hs_kit HS_KIT(hs_kit_portable) = {sizeof(HS_REAL),
                                        2048 / sizeof(HS_REAL),
                                        {HS_ROWS, HS_ROWS, HS_KIT(pack_left)},
                                        {HS_COLUMNS, HS_COLUMNS, HS_KIT(pack_right)},
                                        HS_KIT(tile),
                                        HS_KIT(step),
                                        HS_KIT(store)};

#undef HS_REAL
#undef HS_KIT
#undef HS_ROWS
#undef HS_COLUMNS
#undef HS_OPERANDS
#undef HS_RESULTS
