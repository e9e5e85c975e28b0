#version 460
#extension GL_GOOGLE_include_directive : require
#define HS_GROUP 32
#include "vulkan/shaders/common.glsl"
#include "vulkan/shaders/sums.glsl"
#include "vulkan/shaders/reduction/tensor_sum.glsl"

/* Last stage, of one group: the sum of the row sums. */
void main() {
    uint parts = hs_sum_parts();
    double lane = 0.0lf;
    for (uint i = gl_LocalInvocationID.x; i < parts; i += HS_LANES) {
        precise double next = lane + hs_scratch(uint64_t(i)).at[0];
        lane = next;
    }
    double sum = hs_fold_lanes(lane);
    if (gl_LocalInvocationID.x == 0u)
        hs_store(HS_OUT(0), hs_row(HS_OUT(0), 0u), 0u, sum);
}
