/*
 * What a matrix product is made of on one instruction set: packing of operands into panels, a register tile that walks
 * along k, and the last rounding. Products and attention are written against it.
 *
 * A panel holds `width` lines (rows of the left operand, columns of the right one) side by side: element (line, k)
 * stands at k * width + line, in f32 after the cast to the half format, in f64 without one. Lines that the operand
 * lacks are zeros; their cells are computed and never stored.
 */
#ifndef HS_CPU_EXACT_KIT_H
#define HS_CPU_EXACT_KIT_H

#include "cpu/exact/product/convert.h"

/* A strided operand; element (line, k) stands at data[line * line_stride + k * k_stride], and one stride is 1. */
typedef struct hs_lines {
    const double *data;
    size_t line_stride, k_stride;
} hs_lines;

enum { HS_TILE_CELLS = 32 }; /* the largest tile, for buffers */

typedef struct hs_kit {
    size_t rows, columns; /* of a tile; a left panel is `rows` wide, a right one `columns` */
    size_t element;       /* bytes of an operand and of a sum */

    /* Packs the first `count` <= width lines, k = 0..depth-1. */
    void (*pack)(const hs_rounding *rounding, size_t width, hs_lines lines, size_t count, size_t depth, void *panel);

    /* Continues every sum of a tile, row-major, over `depth` steps. */
    void (*tile)(size_t depth, const void *a, const void *b, void *sums);

    /* Continues the sums of one row of a tile over one step. */
    void (*step)(size_t row, const void *a, const void *b, void *sums);

    /* Sums that wait in y between two blocks of k; an f32 is exact there. */
    void (*load)(size_t rows, size_t columns, const double *y, size_t pitch, void *sums);
    void (*keep)(size_t rows, size_t columns, const void *sums, double *y, size_t pitch);

    /* The last rounding. Returns the hs_nonfinite of what it stored. */
    uint64_t (*store)(const hs_rounding *rounding, size_t rows, size_t columns, const void *sums, double *y,
                      size_t pitch);
} hs_kit;

extern const hs_kit hs_kit_portable_f32, hs_kit_portable_f64;

const hs_kit *hs_kit_of(hstep_precision precision);

static inline size_t hs_panels(size_t lines, size_t width) { return (lines + width - 1) / width; }

#endif
