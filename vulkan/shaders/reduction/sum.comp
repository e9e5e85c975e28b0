#version 460
#extension GL_GOOGLE_include_directive : require
#define HS_GROUP 32
#include "vulkan/shaders/common.glsl"
#include "vulkan/shaders/sums.glsl"
#include "vulkan/shaders/reduction/tensor_sum.glsl"

/* The sums of rows of 4096. */
void main() {
    uint part = hs_group(), parts = hs_sum_parts();
    if (part >= parts)
        return;
    uint64_t first = uint64_t(part) * uint64_t(HS_SUM_ROW), left = hs_sum_count() - first;
    uint count = left < uint64_t(HS_SUM_ROW) ? uint(left) : HS_SUM_ROW;
    hs_doubles x = hs_doubles(hs_row(HS_IN(0), 0u) + 8UL * first);
    if (hs_options == HS_SUM_LOSSES)
        x = hs_scratch(uint64_t(parts) + first);
    double lane = 0.0lf, unscale = 0.0lf;
    if (hs_options == HS_SUM_SQUARES)
        unscale = hs_load(HS_IN(1), hs_row(HS_IN(1), 0u), 0u);
    for (uint i = gl_LocalInvocationID.x; i < count; i += HS_LANES) {
        precise double term = x.at[i];
        if (hs_options == HS_SUM_SQUARES) {
            precise double value = term * unscale;
            term = value * value;
        }
        precise double next = lane + term;
        lane = next;
    }
    double sum = hs_fold_lanes(lane);
    if (gl_LocalInvocationID.x == 0u)
        hs_scratch(uint64_t(part)).at[0] = sum;
}
