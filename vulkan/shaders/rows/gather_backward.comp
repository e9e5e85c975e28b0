#version 460
#extension GL_GOOGLE_include_directive : require
#define HS_GROUP 64
#include "vulkan/shaders/common.glsl"

/* Second stage: each invocation has a column to itself and adds the rows of dy to it, ascending. */
void main() {
    uint column = hs_group() * HS_GROUP + gl_LocalInvocationID.x;
    if (column >= hs_columns(HS_OUT(0)))
        return;
    uint rows = hs_rows(HS_IN(0));
    for (uint r = 0u; r < rows; r++) {
        uint64_t target = hs_row(HS_OUT(0), uint(hs_load_index(HS_IN(1), r)));
        precise double sum = hs_load(HS_OUT(0), target, column) + hs_load(HS_IN(0), hs_row(HS_IN(0), r), column);
        hs_store(HS_OUT(0), target, column, sum);
    }
}
