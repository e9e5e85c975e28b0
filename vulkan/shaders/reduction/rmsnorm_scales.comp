#version 460
#extension GL_GOOGLE_include_directive : require
#define HS_GROUP 32
#include "vulkan/shaders/common.glsl"
#include "vulkan/shaders/reduction/rmsnorm.glsl"
#include "vulkan/shaders/reduction/column_sum.glsl"

/* First stage of the gain's adjoint: 1/rms of each row of input 1. */
void main() {
    uint row = hs_group();
    if (row >= hs_rows(HS_IN(1)))
        return;
    double r = hs_reciprocal_rms(HS_IN(1), hs_row(HS_IN(1), row));
    if (gl_LocalInvocationID.x == 0u)
        hs_row_scales().at[row] = r;
}
