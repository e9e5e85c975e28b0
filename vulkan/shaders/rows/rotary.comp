#version 460
#extension GL_GOOGLE_include_directive : require
#include "vulkan/shaders/common.glsl"

/* Option 1: the adjoint, which turns the pairs back. */
void main() {
    hs_element e = hs_find_element(HS_OUT(0));
    if (!e.there)
        return;
    uint width = hs_call.record.head_width, pair_half = width / 2u;
    uint head = e.column / width * width, i = (e.column - head) % pair_half;
    bool second = e.column - head >= pair_half;
    uint position = uint(hs_load_index(HS_IN(1), e.row));
    double c = hs_load(HS_IN(2), hs_row(HS_IN(2), position), i);
    double s = hs_load(HS_IN(3), hs_row(HS_IN(3), position), i);
    uint64_t row = hs_row(HS_IN(0), e.row);
    double own = hs_load(HS_IN(0), row, e.column);
    double other = hs_load(HS_IN(0), row, second ? head + i : head + i + pair_half);
    precise double kept = own * c;
    precise double turned = other * s;
    /* Forward x1*c - x2*s and x2*c + x1*s; back with the other sign of s. */
    precise double plus = kept + turned;
    precise double minus = kept - turned;
    bool adds = second != (hs_options == 1u);
    hs_put(HS_OUT(0), e, adds ? plus : minus);
}
