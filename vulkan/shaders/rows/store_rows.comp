#version 460
#extension GL_GOOGLE_include_directive : require
#include "vulkan/shaders/common.glsl"

/* Row r of the input becomes row indices[r] of the output. */
void main() {
    hs_element e = hs_find_element(HS_IN(0));
    if (!e.there)
        return;
    uint index = uint(hs_load_index(HS_IN(1), e.row));
    hs_store(HS_OUT(0), hs_row(HS_OUT(0), index), e.column, hs_get(HS_IN(0), e));
}
