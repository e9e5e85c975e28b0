#version 460
#extension GL_GOOGLE_include_directive : require
#define HS_GROUP 32
#include "vulkan/shaders/common.glsl"
#include "vulkan/shaders/reduction/softmax.glsl"
#include "vulkan/shaders/reduction/tensor_sum.glsl"

/* First stage: log z - (x_t - m) of each row, or +0 without a target. Options: 4 there is no other stage. */
void main() {
    uint row = hs_group();
    if (row >= hs_rows(HS_IN(0)))
        return;
    int target = hs_load_index(HS_IN(1), row);
    precise double loss = 0.0lf;
    if (target >= 0) {
        uint64_t x = hs_row(HS_IN(0), row);
        double maximum = hs_row_maximum(HS_IN(0), x);
        double z = hs_row_exponentials(HS_IN(0), x, maximum);
        loss = hs_log(z) - (hs_load(HS_IN(0), x, uint(target)) - maximum);
    }
    if (gl_LocalInvocationID.x == 0u && hs_options == 4u)
        hs_write(HS_OUT(0), hs_row(HS_OUT(0), 0u), row, loss);
    else if (gl_LocalInvocationID.x == 0u)
        hs_scratch(uint64_t(hs_sum_parts())).at[row] = loss;
}
