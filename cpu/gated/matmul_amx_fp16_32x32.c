/*
 * Products in fp16 on AMX tiles, 32 x 32 sums in four of them. A finite fp16 number is exactly the sum of two bf16
 * numbers, its first eight significant bits and the rest, so four products of parts make one of numbers: per block of
 * 32 steps low by low, low by high, high by high and high by low, each as matmul_amx_bf16_32x32.c has it. No part and
 * no product of parts is subnormal. Infinities and NaNs have no parts: where a panel holds one, the policy's steps run.
 */
#include "cpu/gated/amx.h"
#include "cpu/gated/amx_tile.h"

enum { PLANE_A = BLOCK_A, PLANE_B = BLOCK_B, PLANES = 2, PAIRS = HS_PAIRS_STEPS / 2 };

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

static void tile(size_t rows, size_t blocks, const uint16_t *a, const uint16_t *b, bool fresh, float *sums,
                 hs_ahead ahead) {
    const bool both = rows > HS_TILE_ROWS;
    hs_amx_load_sums(fresh, both, sums);
    for (; blocks > 0; blocks--, a += PLANES * BLOCK_A, b += PLANES * BLOCK_B) {
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

static void plain(size_t rows, size_t blocks, const uint16_t *a, const uint16_t *b, bool fresh, float *sums) {
    for (size_t i = 0; i < rows * HS_PAIRS_COLUMNS && fresh; i++)
        sums[i] = 0.0F;
    for (; blocks > 0; blocks--, a += PLANES * BLOCK_A, b += PLANES * BLOCK_B)
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

static const hs_pairs_kit kit = {.precision = HSTEP_PRECISION_FP16,
                                 .planes = PLANES,
                                 .rows = HS_PAIRS_ROWS,
                                 .depth = 512,
                                 .columns = 256,
                                 .fits = fits,
                                 .enter = hs_amx_enter,
                                 .leave = hs_amx_leave,
                                 .tile = tile,
                                 .plain = plain};

bool hs_amx_fp16_accepts(const hs_call *call) { return hs_pairs_accept(call, HSTEP_PRECISION_FP16); }

void hs_matmul_amx_fp16(const hs_call *call, hs_kernel_run *run) { hs_pairs_matmul(call, run, &kit); }

size_t hs_matmul_amx_fp16_scratch(const hs_call *call, const hs_kernel_run *run) {
    return hs_pairs_matmul_scratch(call, run, &kit);
}
