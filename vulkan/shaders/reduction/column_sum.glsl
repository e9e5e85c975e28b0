/*
 * The sum down rows (policy, section 3): blocks of 64 rows, then the blocks, both ascending. Scratch holds the sums of
 * the blocks, [block][column], and behind them 1/rms of each row, where those are needed.
 * Option 1: the terms are dy*(x*r), inputs 0 and 1, else input 0.
 */
#ifndef HS_SHADER_COLUMN_SUM
#define HS_SHADER_COLUMN_SUM

#define HS_BLOCK_ROWS 64u

uint hs_blocks() {
    return (hs_rows(HS_IN(0)) + HS_BLOCK_ROWS - 1u) / HS_BLOCK_ROWS;
}

hs_doubles hs_block_sums(uint block) {
    return hs_scratch(uint64_t(block) * uint64_t(hs_columns(HS_IN(0))));
}

/* 1/rms of all rows. */
hs_doubles hs_row_scales() {
    return hs_block_sums(hs_blocks());
}

#endif
