/*
 * What a matrix product is made of on one instruction set, in one precision: packing of operands into panels, a
 * register tile that walks along k, and the last rounding. Products and attention are written against it.
 *
 * A panel holds lines (rows of the left operand, columns of the right one) side by side: element (line, k) stands at
 * k * pitch + line, in f32 after the cast to the half format, in f64 without one. Lines that the operand lacks are
 * zeros.
 */
#ifndef HS_CPU_EXACT_KIT_H
#define HS_CPU_EXACT_KIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <halfstep/types.h>

#include "cpu/kernel.h"

#if defined(__x86_64__)
#define HS_X86_64 1 /* the AVX kits are built */
#endif

/*
 * A strided operand; element (line, k) is number line * line_stride + k * k_stride from data on, and one stride is 1.
 * Elements are f64, or 16 bits of the kit's format.
 */
typedef struct hs_lines {
    const void *data;
    size_t line_stride, k_stride;
    bool half;
} hs_lines;

/* Where results go; element (row, column) is number row * pitch + column. */
typedef struct hs_cells {
    void *data;
    size_t pitch;
    bool half;
} hs_cells;

static inline size_t hs_slot(bool half) { return half ? sizeof(uint16_t) : sizeof(double); }

/* The lines from `line` on, and their elements from `k` on. */
static inline hs_lines hs_lines_from(hs_lines lines, size_t line, size_t k) {
    lines.data =
        (const unsigned char *)lines.data + (line * lines.line_stride + k * lines.k_stride) * hs_slot(lines.half);
    return lines;
}

static inline hs_cells hs_cells_from(hs_cells cells, size_t row, size_t column) {
    cells.data = (unsigned char *)cells.data + (row * cells.pitch + column) * hs_slot(cells.half);
    return cells;
}

/*
 * The least and the largest exponent of a panel's nonzero values, where the format needs a look at them before a fused
 * multiply-add may be used: in bf16. Elsewhere it stays hs_no_range. The exponent of a subnormal counts as -127.
 */
typedef struct hs_range {
    int least, largest;
} hs_range;

static const hs_range hs_no_range = {1000, -1000};

/* Widens a range by the least nonzero and the largest magnitude of some f32, given as bits; 0 and 0 for none. */
static inline void hs_widen(hs_range *range, uint32_t least, uint32_t largest) {
    const int low = (int)(least >> 23) - 127, high = (int)(largest >> 23) - 127;
    if (largest == 0)
        return;
    range->least = low < range->least ? low : range->least;
    range->largest = high > range->largest ? high : range->largest;
}

/*
 * Policy, section 2: within these limits every product of the two panels is exact in f32 and finite, and then one
 * rounding of product and sum together is the rounding of the sum.
 */
static inline bool hs_fusible(hs_range a, hs_range b) {
    return a.least + b.least >= -135 && a.largest + b.largest <= 125;
}

/* Packs the first `count` <= width lines, k = 0..depth-1, and widens the range by what it packed. */
typedef void hs_pack(hs_lines lines, size_t count, size_t depth, void *panel, hs_range *range);

/* How one of the operands is packed. */
typedef struct hs_side {
    size_t width, pitch;
    hs_pack *pack;
} hs_side;

/* The sums of one tile, row-major with the pitch of the right side; room for the largest tile of all kits. */
enum { HS_TILE_BYTES = 1792 };
typedef struct hs_sums {
    _Alignas(64) unsigned char bytes[HS_TILE_BYTES];
} hs_sums;

/* The bits of the least f32 that rounds to an infinity. */
enum { HS_FP16_BEYOND = 0x477ff000, HS_BF16_BEYOND = 0x7f7f8000 };

/* What a tile prefetches, an address at each step; it may lie outside any operand. */
typedef struct hs_ahead {
    uintptr_t at, step;
} hs_ahead;

/*
 * Continues the sums of a tile over `depth` steps, from zeros where `fresh`. Loads the line at `ahead` and the ones
 * every `ahead.step` bytes after it into the second-level cache meanwhile.
 */
typedef void hs_walk(size_t depth, const void *a, const void *b, bool fresh, void *sums, hs_ahead ahead);

struct hs_kit {
    size_t element;      /* bytes of an operand and of a sum */
    size_t depth;        /* steps of a chain that are best packed at a time: panels stay near the processor */
    hs_side left, right; /* their widths are the tile */

    /* By whether multiply-adds are fused (hs_fusible), and by the rows of the tile less one. */
    hs_walk *const *walks[2];

    /* Continues the sums of the rows [row, row + rows) of a tile alone. */
    void (*part)(size_t row, size_t rows, size_t depth, const void *a, const void *b, bool fused, void *sums);

    /* The last rounding. Returns whether a value that it stored is not finite. */
    bool (*store)(size_t rows, size_t columns, const void *sums, hs_cells y);

    /* Q_h of f64, one rounding, and the way back; x and y do not overlap. NULL in f64. */
    void (*narrow)(size_t count, const double *x, uint16_t *y);
    void (*widen)(size_t count, const uint16_t *x, double *y);
};

extern hs_kits hs_kits_portable, hs_kits_avx2, hs_kits_avx512;

extern const hs_kit hs_kit_portable_f64, hs_kit_portable_fp16, hs_kit_portable_bf16;
extern const hs_kit hs_kit_avx2_f64, hs_kit_avx2_fp16, hs_kit_avx2_bf16;
extern const hs_kit hs_kit_avx512_f64, hs_kit_avx512_fp16, hs_kit_avx512_bf16;

static inline size_t hs_panels(size_t lines, size_t width) { return (lines + width - 1) / width; }

/* A tile that prefetches nothing. */
static inline void hs_tile(const hs_kit *kit, size_t rows, size_t depth, const void *a, const void *b, bool fused,
                           bool fresh, void *sums) {
    kit->walks[fused][rows - 1](depth, a, b, fresh, sums, (hs_ahead){(uintptr_t)sums, 0});
}

/* Bytes of a panel. */
static inline size_t hs_panel_bytes(const hs_kit *kit, const hs_side *side, size_t depth) {
    return side->pitch * depth * kit->element;
}

#endif
