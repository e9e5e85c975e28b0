/*
 * Products of 16-bit operands whose instructions take two steps of a chain at once: vdpbf16ps and the AMX tiles.
 * Packing, blocking and threads are theirs in common (matmul_pairs.c); a kit is what differs.
 *
 * Panels are made of blocks of 32 steps. In a left panel a block holds, line after line, the 32 steps of a line: 64
 * bytes. In a right panel it holds, pair of steps after pair of steps, the pair of each of the 32 lines: 128 bytes.
 * Both are what a tile register is loaded from. Steps and lines that an operand lacks are zeros. With two planes (high
 * and low parts of fp16 numbers) a block of the first one is followed by the same block of the second.
 */
#ifndef HS_CPU_EXACT_PAIRS_H
#define HS_CPU_EXACT_PAIRS_H

#include "cpu/exact/product/kit.h"

enum {
    HS_PAIRS_STEPS = 32,   /* of a block */
    HS_PAIRS_COLUMNS = 32, /* lines of a right panel, and columns of a tile */
    HS_PAIRS_ROWS = 32     /* rows of a tile, at most */
};

/* What the 16 bits of a packed element are. */
typedef enum hs_pairs_part {
    HS_PAIRS_WHOLE, /* a bf16 number */
    HS_PAIRS_HIGH,  /* of an fp16 number the bf16 number that its first 8 significant bits make, ... */
    HS_PAIRS_LOW    /* ... and the rest, which is one too; zero beside infinities and NaNs */
} hs_pairs_part;

typedef struct hs_pairs_kit {
    hstep_precision precision;
    size_t planes;  /* 1: whole numbers; 2: high and low parts */
    bool swapped;   /* the earlier step of a pair stands in its upper half */
    size_t rows;    /* of a tile; lines of a left panel */
    size_t depth;   /* steps that are best packed at a time, a multiple of HS_PAIRS_STEPS */
    size_t columns; /* of the result that a thread takes at a time, a multiple of HS_PAIRS_COLUMNS */

    /* Whether `tile` may be used on panels with these exponents; NULL: on any. */
    bool (*fits)(hs_range a, hs_range b);

    /* What a thread does before its first tile and after its last one; NULL for nothing. */
    void (*enter)(void);
    void (*leave)(void);

    /* Continue the sums[rows][HS_PAIRS_COLUMNS] over some blocks, from zeros where `fresh`: in the order of the
       instruction, and where `tile` does not fit in that of the policy. A tile loads a cache line into the second-level
       cache at each pair of steps. */
    void (*tile)(size_t rows, size_t blocks, const uint16_t *a, const uint16_t *b, bool fresh, float *sums,
                 hs_ahead ahead);
    void (*plain)(size_t rows, size_t blocks, const uint16_t *a, const uint16_t *b, bool fresh, float *sums);
} hs_pairs_kit;

/* Packs `count` lines into a panel of `width`, k = 0..depth-1, and widens the range by what it packed. */
void hs_pairs_pack(const hs_pairs_kit *kit, bool left, hs_lines lines, size_t count, size_t depth, uint16_t *panel,
                   hs_range *range);

/*
 * Stores what sums[rows][HS_PAIRS_COLUMNS] come to: rounded, or as they are in f64 slots where `raw`. Returns whether a
 * stored value is not finite.
 */
bool hs_pairs_store(hstep_precision precision, bool raw, size_t rows, size_t columns, const float *sums, hs_cells y);

/* A kernel, but for its kit. */
void hs_pairs_matmul(const hs_call *call, hs_kernel_run *run, const hs_pairs_kit *kit);
size_t hs_pairs_matmul_scratch(const hs_call *call, const hs_kernel_run *run, const hs_pairs_kit *kit);

/* Whether the operands of a call are of types that are packed here: f64, or 16 bits of the precision. */
bool hs_pairs_accept(const hs_call *call, hstep_precision precision);

#endif
