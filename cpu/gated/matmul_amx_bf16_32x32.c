/*
 * Products in bf16 on AMX tiles, 32 x 32 sums in four of them: of the operands' four, each serves two multiplications,
 * so that as many are loaded as multiplied. Per block of 32 steps the even and the odd ones form two chains from zero,
 * which are added to each other and then to the sum. Subnormal numbers count as zero.
 */
#include "cpu/gated/amx.h"
#include "cpu/gated/amx_tile.h"

static void tile(size_t rows, size_t blocks, const uint16_t *a, const uint16_t *b, bool fresh, float *sums,
                 hs_ahead ahead) {
    const bool both = rows > HS_TILE_ROWS;
    hs_amx_load_sums(fresh, both, sums);
    for (; blocks > 0; blocks--, a += BLOCK_A, b += BLOCK_B) {
        hs_tile_load(4, a, PITCH_A);
        hs_tile_load(6, b, PITCH_B);
        hs_tile_multiply(0, 4, 6);
        hs_tile_load(7, b + RIGHT_B, PITCH_B);
        hs_tile_multiply(1, 4, 7);
        if (both) {
            hs_tile_load(5, a + LOWER_A, PITCH_A);
            hs_tile_multiply(2, 5, 6);
            hs_tile_multiply(3, 5, 7);
        }
        hs_amx_prefetch(&ahead);
    }
    hs_amx_store_sums(both, sums);
}

static const hs_pairs_kit kit = {.precision = HSTEP_PRECISION_BF16,
                                 .planes = 1,
                                 .rows = HS_PAIRS_ROWS,
                                 .depth = 512,
                                 .columns = 384,
                                 .enter = hs_amx_enter,
                                 .leave = hs_amx_leave,
                                 .tile = tile};

bool hs_amx_bf16_accepts(const hs_call *call) { return hs_pairs_accept(call, HSTEP_PRECISION_BF16); }

void hs_matmul_amx_bf16(const hs_call *call, hs_kernel_run *run) { hs_pairs_matmul(call, run, &kit); }

size_t hs_matmul_amx_bf16_scratch(const hs_call *call, const hs_kernel_run *run) {
    return hs_pairs_matmul_scratch(call, run, &kit);
}
