/*
 * What a matrix product is made of on one instruction set, in one precision: packing of operands into panels, a tile
 * that walks along k, and the last rounding. Threads, blocks and prefetching are products' in common (matmul.c).
 *
 * There are two kinds. Kits of vectors (cpu/exact/vectors, and a portable one) serve attention too, which reads their
 * panels: lines (rows of the left operand, columns of the right one) stand side by side, element (line, k) at
 * k * pitch + line, in f32 after the cast to the half format, in f64 without one. Kits of pairs take two steps of a
 * chain at once, and serve products alone (cpu/exact/pairs/pairs.h). In both, lines that an operand lacks are zeros.
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

/* The sums of one tile, row-major with the pitch of the right side; room for the largest tile of all kits of vectors.
 */
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
 * Continues the sums of the first `rows` rows of a tile over `depth` steps, from zeros where `fresh`. `fused`: by
 * instructions that take more than one rounding step of the chain, which the kit allows on some panels (fits); else
 * step by step. Meanwhile the line at `ahead` and the ones every `ahead.step` bytes after it are loaded into the
 * second-level cache, one for every `at_once` steps.
 */
typedef void hs_walk(bool fused, size_t rows, size_t depth, const void *a, const void *b, bool fresh, void *sums,
                     hs_ahead ahead);

/* Stores what the sums of a tile come to. Returns whether a value that it stored is not finite. */
typedef bool hs_store(size_t rows, size_t columns, const void *sums, hs_cells y);

struct hs_kit {
    size_t element, sum; /* bytes of a packed number and of a sum */
    size_t at_once;      /* steps of a chain that an instruction takes */
    size_t steps;        /* the depth of a panel is rounded up to a multiple of it, with zeros */
    size_t depth;        /* steps of a chain that are best packed at a time: panels stay near the processor */
    size_t columns;      /* of the result that a thread takes at a time, of whole tiles */
    hs_side left, right; /* their widths are the tile */

    /* Whether `walk` may be fused on panels with these exponents; NULL: as hs_fusible says. */
    bool (*fits)(hs_range a, hs_range b);
    bool stays_apart; /* what was not fused once is not fused later: its sums need not be what instructions take */
    hs_walk *walk;

    /* The last rounding; and none: the sums as they are, in f64 slots (NULL in kits of exact levers). */
    hs_store *store, *store_sums;

    /* What a thread does before its first tile and after its last one; NULL for nothing. */
    void (*enter)(void);
    void (*leave)(void);

    /* For attention; NULL in kits of pairs. Continues the sums of the rows [row, row + rows) of a tile alone. */
    void (*part)(size_t row, size_t rows, size_t depth, const void *a, const void *b, bool fused, void *sums);

    /* Q_h of f64, one rounding, and the way back; x and y do not overlap. NULL in f64 too. */
    void (*narrow)(size_t count, const double *x, uint16_t *y);
    void (*widen)(size_t count, const uint16_t *x, double *y);
};

extern hs_kits hs_kits_portable, hs_kits_avx2, hs_kits_avx512, hs_kits_avx512bf16, hs_kits_amx;

extern const hs_kit hs_kit_portable_f64, hs_kit_portable_fp16, hs_kit_portable_bf16;
extern const hs_kit hs_kit_avx2_f64, hs_kit_avx2_fp16, hs_kit_avx2_bf16;
extern const hs_kit hs_kit_avx512_f64, hs_kit_avx512_fp16, hs_kit_avx512_bf16;
extern const hs_kit hs_kit_avx512bf16, hs_kit_amx_fp16, hs_kit_amx_bf16;

/* The last rounding of the kits of AVX-512 in f32, for any tile of 32 columns. */
hs_store hs_avx512_store_fp16, hs_avx512_store_bf16;

static inline size_t hs_panels(size_t lines, size_t width) { return (lines + width - 1) / width; }

/* A tile that prefetches nothing. */
static inline void hs_tile(const hs_kit *kit, size_t rows, size_t depth, const void *a, const void *b, bool fused,
                           bool fresh, void *sums) {
    kit->walk(fused, rows, depth, a, b, fresh, sums, (hs_ahead){(uintptr_t)sums, 0});
}

/* Bytes of a panel. */
static inline size_t hs_panel_bytes(const hs_kit *kit, const hs_side *side, size_t depth) {
    return side->pitch * hs_panels(depth, kit->steps) * kit->steps * kit->element;
}

#endif
