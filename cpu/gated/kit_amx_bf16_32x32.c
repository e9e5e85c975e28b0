/*
 * Products in bf16 on AMX tiles, 32 x 32 sums in four of them: of the operands' four, each serves two multiplications,
 * so that as many are loaded as multiplied. Per block of 32 steps the even and the odd ones form two chains from zero,
 * which are added to each other and then to the sum. Subnormal numbers count as zero.
 */
#include "cpu/gated/amx_tile.h"

/* Whatever the exponents: what the tiles do to small numbers is declared. */
static bool fits(hs_range a, hs_range b) {
    (void)a, (void)b;
    return true;
}

static void walk(bool fused, size_t rows, size_t depth, const void *left, const void *right, bool fresh, void *sums,
                 hs_ahead ahead) {
    const uint16_t *a = left, *b = right;
    (void)fused;
    const bool both = rows > HS_TILE_ROWS;
    hs_amx_load_sums(fresh, both, sums);
    for (size_t k = 0; k < depth; k += HS_PAIRS_STEPS, a += BLOCK_A, b += BLOCK_B) {
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

const hs_kit hs_kit_amx_bf16 = {HS_AMX_KIT(1),
                                .columns = 384,
                                .left = {HS_PAIRS_ROWS, HS_PAIRS_ROWS, hs_pairs_pack_left_bf16},
                                .right = {HS_PAIRS_COLUMNS, HS_PAIRS_COLUMNS, hs_pairs_pack_right_bf16},
                                .fits = fits,
                                .walk = walk,
                                .store = hs_avx512_store_bf16};
