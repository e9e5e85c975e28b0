#version 460
#extension GL_GOOGLE_include_directive : require
#define HS_GROUP 32
#include "vulkan/shaders/common.glsl"
#include "vulkan/shaders/sums.glsl"

/* p*(g - sum(p*g)) */
void main() {
    uint row = hs_group();
    if (row >= hs_rows(HS_OUT(0)))
        return;
    uint64_t g_row = hs_row(HS_IN(0), row), p_row = hs_row(HS_IN(1), row), dx_row = hs_row(HS_OUT(0), row);
    double lane = 0.0lf;
    for (uint i = gl_LocalInvocationID.x; i < hs_columns(HS_OUT(0)); i += HS_LANES) {
        precise double term = hs_load(HS_IN(1), p_row, i) * hs_load(HS_IN(0), g_row, i);
        precise double next = lane + term;
        lane = next;
    }
    double sum = hs_fold_lanes(lane);
    for (uint i = gl_LocalInvocationID.x; i < hs_columns(HS_OUT(0)); i += HS_LANES) {
        precise double dx = hs_load(HS_IN(1), p_row, i) * (hs_load(HS_IN(0), g_row, i) - sum);
        hs_store(HS_OUT(0), dx_row, i, dx);
    }
}
