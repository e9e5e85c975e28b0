#version 460
#extension GL_GOOGLE_include_directive : require
#define HS_GROUP 32
#include "vulkan/shaders/common.glsl"
#include "vulkan/shaders/reduction/softmax.glsl"

/* (p - [i = t]) * seed. The output may be the logits themselves: an invocation overwrites what only it still reads. */
void main() {
    uint row = hs_group();
    if (row >= hs_rows(HS_OUT(0)))
        return;
    uint64_t x = hs_row(HS_IN(1), row), dx_row = hs_row(HS_OUT(0), row);
    int target = hs_load_index(HS_IN(2), row);
    double seed = hs_load(HS_IN(0), hs_row(HS_IN(0), 0u), 0u);
    double maximum = hs_row_maximum(HS_IN(1), x);
    precise double r = 1.0lf / hs_row_exponentials(HS_IN(1), x, maximum);
    for (uint i = gl_LocalInvocationID.x; i < hs_columns(HS_OUT(0)); i += HS_LANES) {
        precise double p = hs_exp_below(hs_load(HS_IN(1), x, i), maximum) * r;
        precise double dx = (p - (uint(target) == i ? 1.0lf : 0.0lf)) * seed;
        hs_store(HS_OUT(0), dx_row, i, target >= 0 ? dx : 0.0lf);
    }
}
