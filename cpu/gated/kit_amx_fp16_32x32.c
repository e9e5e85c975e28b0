/*
 * Products in fp16 on AMX tiles, 32 x 32 sums in four of them. A finite fp16 number is exactly the sum of two bf16
 * numbers, its first eight significant bits and the rest, so four products of parts make one of numbers: per block of
 * 32 steps low by low, low by high, high by high and high by low, each as kit_amx_bf16_32x32.c has it. No part and
 * no product of parts is subnormal. Infinities and NaNs have no parts: where a panel holds one, the policy's steps run.
 */
#include "cpu/gated/amx_tile.h"

enum { PLANE_A = BLOCK_A, PLANE_B = BLOCK_B, PLANES = 2 };

static bool fits(hs_range a, hs_range b) { return a.largest < 128 && b.largest < 128; }

/* Sums += what tiles 4 and 5 hold times what 6 and 7 hold. */
static inline void multiply(bool both) {
    hs_tile_multiply(0, 4, 6);
    hs_tile_multiply(1, 4, 7);
    if (both) {
        hs_tile_multiply(2, 5, 6);
        hs_tile_multiply(3, 5, 7);
    }
}

static inline void load_left(bool both, const uint16_t *a) {
    hs_tile_load(4, a, PITCH_A);
    if (both)
        hs_tile_load(5, a + LOWER_A, PITCH_A);
}

static inline void load_right(const uint16_t *b) {
    hs_tile_load(6, b, PITCH_B);
    hs_tile_load(7, b + RIGHT_B, PITCH_B);
}

static void walk_fused(size_t rows, size_t depth, const uint16_t *a, const uint16_t *b, bool fresh, float *sums,
                       hs_ahead ahead) {
    const bool both = rows > HS_TILE_ROWS;
    hs_amx_load_sums(fresh, both, sums);
    for (size_t k = 0; k < depth; k += HS_PAIRS_STEPS, a += PLANES * BLOCK_A, b += PLANES * BLOCK_B) {
        load_left(both, a + PLANE_A);
        load_right(b + PLANE_B);
        multiply(both);
        load_right(b);
        multiply(both);
        load_left(both, a);
        multiply(both);
        load_right(b + PLANE_B);
        multiply(both);
        hs_amx_prefetch(&ahead);
    }
    hs_amx_store_sums(both, sums);
}

static float upper_half(uint16_t bits) {
    const union {
        uint32_t bits;
        float value;
    } x = {.bits = (uint32_t)bits << 16};
    return x.value;
}

/* The number whose parts stand at `part` and in the plane after it: an infinity or NaN has zero for its low part. */
static float whole(const uint16_t *part, size_t plane) { return upper_half(part[0]) + upper_half(part[plane]); }

static void walk_apart(size_t rows, size_t depth, const uint16_t *a, const uint16_t *b, bool fresh, float *sums) {
    for (size_t i = 0; i < rows * HS_PAIRS_COLUMNS && fresh; i++)
        sums[i] = 0.0F;
    for (size_t k = 0; k < depth; k += HS_PAIRS_STEPS, a += PLANES * BLOCK_A, b += PLANES * BLOCK_B)
        for (size_t step = 0; step < HS_PAIRS_STEPS; step++) {
            float right[HS_PAIRS_COLUMNS];
            for (size_t j = 0; j < HS_PAIRS_COLUMNS; j++)
                right[j] = whole(b + step / 2 * 2 * HS_PAIRS_COLUMNS + 2 * j + step % 2, PLANE_B);
            for (size_t i = 0; i < rows; i++) {
                const float left = whole(a + i * HS_PAIRS_STEPS + step, PLANE_A);
                for (size_t j = 0; j < HS_PAIRS_COLUMNS; j++)
                    sums[i * HS_PAIRS_COLUMNS + j] += left * right[j];
            }
        }
}

static void walk(bool fused, size_t rows, size_t depth, const void *a, const void *b, bool fresh, void *sums,
                 hs_ahead ahead) {
    if (fused)
        walk_fused(rows, depth, a, b, fresh, sums, ahead);
    else
        walk_apart(rows, depth, a, b, fresh, sums);
}

const hs_kit hs_kit_amx_fp16 = {HS_AMX_KIT(PLANES),
                                .columns = 256,
                                .left = {HS_PAIRS_ROWS, HS_PAIRS_ROWS, hs_pairs_pack_left_parts},
                                .right = {HS_PAIRS_COLUMNS, HS_PAIRS_COLUMNS, hs_pairs_pack_right_parts},
                                .fits = fits,
                                .stays_apart = true,
                                .walk = walk,
                                .store = hs_avx512_store_fp16};
