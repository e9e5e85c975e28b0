/*
 * What both products on AMX tiles have in common: tiles 0 and 1 hold the upper 16 rows of 32 x 32 sums, 2 and 3 the
 * lower ones; 4 and 5 are loaded from the left operand, 6 and 7 from the right one.
 */
#ifndef HS_CPU_GATED_AMX_TILE_H
#define HS_CPU_GATED_AMX_TILE_H

#include "cpu/exact/pairs/pairs.h"
#include "cpu/gated/tiles.h"

enum {
    PITCH_A = HS_TILE_ROW_BYTES,                    /* a line's 32 steps */
    PITCH_B = HS_PAIRS_COLUMNS * 2 * 2,             /* a pair of steps of 32 columns */
    PITCH_SUMS = HS_PAIRS_COLUMNS * 4,              /* bytes */
    LOWER_A = HS_TILE_ROWS * HS_PAIRS_STEPS,        /* elements */
    RIGHT_B = HS_PAIRS_COLUMNS,                     /* elements: 16 columns' pairs */
    BLOCK_A = HS_PAIRS_ROWS * HS_PAIRS_STEPS,       /* elements */
    BLOCK_B = HS_PAIRS_COLUMNS * HS_PAIRS_STEPS,    /* elements */
    LOWER_SUMS = HS_TILE_ROWS * HS_PAIRS_COLUMNS,   /* elements */
    RIGHT_SUMS = HS_TILE_ROW_BYTES / sizeof(float), /* elements */
    LINES_AHEAD = HS_PAIRS_STEPS / 2                /* that a block prefetches */
};

static inline void hs_amx_enter(void) { hs_tiles_configure(&hs_tiles_full_size); }

static inline void hs_amx_leave(void) { hs_tiles_release(); }

static inline void hs_amx_prefetch(hs_ahead *ahead) {
    for (int i = 0; i < LINES_AHEAD; i++, ahead->at += ahead->step)
        __builtin_prefetch((const void *)ahead->at, 0, 2);
}

/* The lower tiles take part where there are more than 16 rows. */
static inline void hs_amx_load_sums(bool fresh, bool both, const float *sums) {
    hs_tile_zero(0);
    hs_tile_zero(1);
    hs_tile_zero(2);
    hs_tile_zero(3);
    if (fresh)
        return;
    hs_tile_load(0, sums, PITCH_SUMS);
    hs_tile_load(1, sums + RIGHT_SUMS, PITCH_SUMS);
    if (both) {
        hs_tile_load(2, sums + LOWER_SUMS, PITCH_SUMS);
        hs_tile_load(3, sums + LOWER_SUMS + RIGHT_SUMS, PITCH_SUMS);
    }
}

static inline void hs_amx_store_sums(bool both, float *sums) {
    hs_tile_store(0, sums, PITCH_SUMS);
    hs_tile_store(1, sums + RIGHT_SUMS, PITCH_SUMS);
    if (both) {
        hs_tile_store(2, sums + LOWER_SUMS, PITCH_SUMS);
        hs_tile_store(3, sums + LOWER_SUMS + RIGHT_SUMS, PITCH_SUMS);
    }
}

#define HS_AMX_KIT(parts)                                                                                              \
    HS_PAIRS_KIT(parts), .depth = 512, .store_sums = hs_pairs_store_sums, .enter = hs_amx_enter, .leave = hs_amx_leave

#endif
