#version 460
#extension GL_GOOGLE_include_directive : require
#include "vulkan/shaders/common.glsl"

void main() {
    hs_element e = hs_find_element(HS_OUT(0));
    if (!e.there)
        return;
    uint index = uint(hs_load_index(HS_IN(1), e.row));
    hs_put(HS_OUT(0), e, hs_load(HS_IN(0), hs_row(HS_IN(0), index), e.column));
}
