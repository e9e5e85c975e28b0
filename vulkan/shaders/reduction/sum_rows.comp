#version 460
#extension GL_GOOGLE_include_directive : require
#define HS_GROUP 64
#include "vulkan/shaders/common.glsl"
#include "vulkan/shaders/reduction/column_sum.glsl"

double hs_term(uint r, uint column) {
    double first = hs_load(HS_IN(0), hs_row(HS_IN(0), r), column);
    if (hs_options == 0u)
        return first;
    precise double n = hs_load(HS_IN(1), hs_row(HS_IN(1), r), column) * hs_row_scales().at[r];
    precise double term = first * n;
    return term;
}

/* The sums of blocks of 64 rows: each invocation has a column of one. */
void main() {
    uint columns = hs_columns(HS_IN(0)), parts = (columns + HS_GROUP - 1u) / HS_GROUP;
    uint block = hs_group() / parts, column = hs_group() % parts * HS_GROUP + gl_LocalInvocationID.x;
    if (block >= hs_blocks() || column >= columns)
        return;
    uint first = block * HS_BLOCK_ROWS, left = hs_rows(HS_IN(0)) - first;
    uint count = left < HS_BLOCK_ROWS ? left : HS_BLOCK_ROWS;
    double sum = 0.0lf;
    for (uint r = first; r < first + count; r++) {
        precise double next = sum + hs_term(r, column);
        sum = next;
    }
    hs_block_sums(block).at[column] = sum;
}
