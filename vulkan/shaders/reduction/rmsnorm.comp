#version 460
#extension GL_GOOGLE_include_directive : require
#define HS_GROUP 32
#include "vulkan/shaders/common.glsl"
#include "vulkan/shaders/reduction/rmsnorm.glsl"

/* (x*r)*gain */
void main() {
    uint row = hs_group();
    if (row >= hs_rows(HS_OUT(0)))
        return;
    uint64_t x_row = hs_row(HS_IN(0), row), gain = hs_row(HS_IN(1), 0u), y_row = hs_row(HS_OUT(0), row);
    double r = hs_reciprocal_rms(HS_IN(0), x_row);
    for (uint i = gl_LocalInvocationID.x; i < hs_columns(HS_OUT(0)); i += HS_LANES) {
        precise double n = hs_load(HS_IN(0), x_row, i) * r;
        precise double y = n * hs_load(HS_IN(1), gain, i);
        hs_store(HS_OUT(0), y_row, i, y);
    }
}
