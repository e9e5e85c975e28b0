#version 460
#extension GL_GOOGLE_include_directive : require
#include "vulkan/shaders/common.glsl"

/* First stage: the table begins as the base, or as +0 (option 1), or is the base already (option 2). */
void main() {
    hs_element e = hs_find_element(HS_OUT(0));
    if (!e.there)
        return;
    if (hs_options == 2u) {
        if (!hs_is_finite(hs_get(HS_OUT(0), e)))
            hs_raise();
        return;
    }
    double base = 0.0lf;
    if (hs_options == 0u)
        base = hs_get(HS_IN(2), e);
    hs_put(HS_OUT(0), e, base);
}
