#version 460
#extension GL_GOOGLE_include_directive : require
#define HS_GROUP 64
#include "vulkan/shaders/common.glsl"
#include "vulkan/shaders/reduction/column_sum.glsl"

/* Last stage: each invocation adds up the blocks of one column. */
void main() {
    uint column = hs_group() * HS_GROUP + gl_LocalInvocationID.x;
    if (column >= hs_columns(HS_OUT(0)))
        return;
    uint blocks = hs_blocks();
    double sum = 0.0lf;
    for (uint block = 0u; block < blocks; block++) {
        precise double next = sum + hs_block_sums(block).at[column];
        sum = next;
    }
    hs_store(HS_OUT(0), hs_row(HS_OUT(0), 0u), column, sum);
}
