#version 460
#extension GL_GOOGLE_include_directive : require
#define HS_GROUP 32
#include "vulkan/shaders/common.glsl"
#include "vulkan/shaders/reduction/softmax.glsl"

void main() {
    uint row = hs_group();
    if (row >= hs_rows(HS_OUT(0)))
        return;
    uint64_t x = hs_row(HS_IN(0), row), y = hs_row(HS_OUT(0), row);
    double maximum = hs_row_maximum(HS_IN(0), x);
    precise double r = 1.0lf / hs_row_exponentials(HS_IN(0), x, maximum);
    for (uint i = gl_LocalInvocationID.x; i < hs_columns(HS_OUT(0)); i += HS_LANES) {
        precise double p = hs_exp_below(hs_load(HS_IN(0), x, i), maximum) * r;
        hs_store(HS_OUT(0), y, i, p);
    }
}
