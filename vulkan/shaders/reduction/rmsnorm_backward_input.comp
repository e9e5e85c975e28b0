#version 460
#extension GL_GOOGLE_include_directive : require
#define HS_GROUP 32
#include "vulkan/shaders/common.glsl"
#include "vulkan/shaders/reduction/rmsnorm.glsl"

/* n = x*r and u = dy*gain of an element. */
struct hs_pair {
    double n, u;
};

hs_pair hs_find_pair(uint row, uint i, double r) {
    precise double n = hs_load(HS_IN(1), hs_row(HS_IN(1), row), i) * r;
    precise double u = hs_load(HS_IN(0), hs_row(HS_IN(0), row), i) * hs_load(HS_IN(2), hs_row(HS_IN(2), 0u), i);
    return hs_pair(n, u);
}

/* r*(u - n*(sum(u*n)/d)) */
void main() {
    uint row = hs_group(), columns = hs_columns(HS_OUT(0));
    if (row >= hs_rows(HS_OUT(0)))
        return;
    double r = hs_reciprocal_rms(HS_IN(1), hs_row(HS_IN(1), row));
    double lane = 0.0lf;
    for (uint i = gl_LocalInvocationID.x; i < columns; i += HS_LANES) {
        hs_pair e = hs_find_pair(row, i, r);
        precise double term = e.u * e.n;
        precise double next = lane + term;
        lane = next;
    }
    precise double mean = hs_fold_lanes(lane) / double(columns);
    uint64_t dx_row = hs_row(HS_OUT(0), row);
    for (uint i = gl_LocalInvocationID.x; i < columns; i += HS_LANES) {
        hs_pair e = hs_find_pair(row, i, r);
        precise double dx = r * (e.u - e.n * mean);
        hs_store(HS_OUT(0), dx_row, i, dx);
    }
}
