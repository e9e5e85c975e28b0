#version 460
#extension GL_GOOGLE_include_directive : require
#include "vulkan/shaders/common.glsl"
#include "vulkan/shaders/elementwise/silu.glsl"

void main() {
    hs_element e = hs_find_element(HS_OUT(0));
    if (!e.there)
        return;
    double dy = hs_get(HS_IN(0), e), gate = hs_get(HS_IN(1), e), up = hs_get(HS_IN(2), e);
    precise double dgate = (dy * up) * hs_silu_slope(gate);
    precise double dup = dy * hs_silu(gate);
    hs_put(HS_OUT(0), e, dgate);
    hs_put(HS_OUT(1), e, dup);
}
