/*
 * Kits of products whose instructions take two steps of a chain at once: vdpbf16ps and the AMX tiles.
 *
 * Panels are made of blocks of 32 steps. In a left panel a block holds, line after line, the 32 steps of a line: 64
 * bytes. In a right panel it holds, pair of steps after pair of steps, the pair of each of the 32 lines: 128 bytes.
 * Both are what a tile register is loaded from. Steps and lines that an operand lacks are zeros.
 */
#ifndef HS_CPU_EXACT_PAIRS_H
#define HS_CPU_EXACT_PAIRS_H

#include "cpu/exact/product/kit.h"

enum {
    HS_PAIRS_STEPS = 32,   /* of a block */
    HS_PAIRS_COLUMNS = 32, /* lines of a right panel, and columns of a tile */
    HS_PAIRS_ROWS = 32,    /* rows of a tile of AMX, and lines of a left panel for it */
    HS_PAIRS_FEW_ROWS = 14 /* of a tile in vector registers */
};

/* bf16 numbers, the earlier step of a pair in its upper half, for tiles in vector registers; and in its lower half, for
 * those of AMX. */
hs_pack hs_pairs_pack_left_swapped, hs_pairs_pack_right_swapped;
hs_pack hs_pairs_pack_left_bf16, hs_pairs_pack_right_bf16;

/* fp16 numbers in two parts, both bf16 numbers: the first eight significant bits, and the rest, which is zero beside
 * infinities and NaNs. A block of the former is followed by the same block of the latter. */
hs_pack hs_pairs_pack_left_parts, hs_pairs_pack_right_parts;

/* Stores f32 sums as they are. */
hs_store hs_pairs_store_sums;

/* What all these kits have in common; `parts` that a number is packed in. */
#define HS_PAIRS_KIT(parts)                                                                                            \
    .element = (parts) * sizeof(uint16_t), .sum = sizeof(float), .at_once = 2, .steps = HS_PAIRS_STEPS

#endif
