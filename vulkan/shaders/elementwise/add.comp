#version 460
#extension GL_GOOGLE_include_directive : require
#include "vulkan/shaders/common.glsl"

void main() {
    hs_element e = hs_find_element(HS_OUT(0));
    if (!e.there)
        return;
    precise double y = hs_get(HS_IN(0), e) + hs_get(HS_IN(1), e);
    hs_put(HS_OUT(0), e, y);
}
