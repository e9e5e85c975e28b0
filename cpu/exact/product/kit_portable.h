/*
 * The portable kit, for one element type. Included with
 *   HS_REAL, HS_KIT(name)           the type, and how a function of it is called
 *   HS_ROWS, HS_COLUMNS             the tile
 *   HS_OPERAND(rounding, n, x, y)   n operands from f64
 *   HS_RESULTS(rounding, n, x, y)   n results to f64; gives the hs_nonfinite of them
 * Multiplication and addition are two roundings everywhere.
 */

/* Steps of k that are converted at a time when the source runs along k. */
enum { HS_KIT(chunk) = 64 };

/* The source runs along k: lines are converted by themselves and then interleaved. */
static inline void HS_KIT(pack_along)(const hs_rounding *rounding, const size_t width, hs_lines lines, size_t count,
                                      size_t depth, HS_REAL *panel) {
    HS_REAL converted[HS_COLUMNS][HS_KIT(chunk)] = {{0}};
    for (size_t k0 = 0; k0 < depth; k0 += HS_KIT(chunk)) {
        const size_t steps = depth - k0 < HS_KIT(chunk) ? depth - k0 : HS_KIT(chunk);
        for (size_t line = 0; line < count; line++)
            HS_OPERAND(rounding, steps, lines.data + line * lines.line_stride + k0, converted[line]);
        for (size_t k = 0; k < steps; k++)
            for (size_t line = 0; line < width; line++)
                panel[(k0 + k) * width + line] = converted[line][k];
    }
}

/* The source runs across the lines, as a panel does. */
static inline void HS_KIT(pack_across)(const hs_rounding *rounding, const size_t width, hs_lines lines, size_t count,
                                       size_t depth, HS_REAL *panel) {
    for (size_t k = 0; k < depth; k++) {
        const double *source = lines.data + k * lines.k_stride;
        HS_REAL *target = panel + k * width;
        HS_OPERAND(rounding, count, source, target);
        for (size_t line = count; line < width; line++)
            target[line] = 0;
    }
}

static inline void HS_KIT(pack_width)(const hs_rounding *rounding, const size_t width, hs_lines lines, size_t count,
                                      size_t depth, HS_REAL *panel) {
    if (lines.k_stride == 1)
        HS_KIT(pack_along)(rounding, width, lines, count, depth, panel);
    else if (count == width)
        HS_KIT(pack_across)(rounding, width, lines, width, depth, panel);
    else
        HS_KIT(pack_across)(rounding, width, lines, count, depth, panel);
}

static void HS_KIT(pack)(const hs_rounding *rounding, size_t width, hs_lines lines, size_t count, size_t depth,
                         void *panel) {
    if (width == HS_ROWS)
        HS_KIT(pack_width)(rounding, HS_ROWS, lines, count, depth, panel);
    else
        HS_KIT(pack_width)(rounding, HS_COLUMNS, lines, count, depth, panel);
}

static void HS_KIT(tile)(size_t depth, const void *a_panel, const void *b_panel, void *sums) {
    const HS_REAL *restrict a = a_panel, *restrict b = b_panel;
    HS_REAL s[HS_ROWS][HS_COLUMNS];
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

static void HS_KIT(load)(size_t rows, size_t columns, const double *y, size_t pitch, void *sums) {
    HS_REAL *s = sums;
    memset(s, 0, HS_ROWS * HS_COLUMNS * sizeof *s);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++)
            s[i * HS_COLUMNS + j] = (HS_REAL)y[i * pitch + j];
}

static void HS_KIT(keep)(size_t rows, size_t columns, const void *sums, double *y, size_t pitch) {
    const HS_REAL *s = sums;
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++)
            y[i * pitch + j] = (double)s[i * HS_COLUMNS + j];
}

static uint64_t HS_KIT(store)(const hs_rounding *rounding, size_t rows, size_t columns, const void *sums, double *y,
                              size_t pitch) {
    const HS_REAL *s = sums;
    double results[HS_ROWS * HS_COLUMNS];
    /* A cell outside the matrix is nonfinite only where an operand is, and then cells inside are, too. */
    const uint64_t seen = HS_RESULTS(rounding, HS_ROWS * HS_COLUMNS, s, results);
    for (size_t i = 0; i < rows; i++)
        if (columns == HS_COLUMNS)
            memcpy(y + i * pitch, results + i * HS_COLUMNS, HS_COLUMNS * sizeof *y);
        else
            memcpy(y + i * pitch, results + i * HS_COLUMNS, columns * sizeof *y);
    return seen;
}
