#version 460
#extension GL_GOOGLE_include_directive : require
#include "vulkan/shaders/common.glsl"
#include "vulkan/shaders/reduction/measure.glsl"

/* Last stage, of one group: what was found in all rows. */
void main() {
    uint parts = hs_measure_parts();
    double found[HS_MEASURES] = double[HS_MEASURES](0.0lf, 0.0lf, 0.0lf, 0.0lf, 0.0lf);
    for (uint part = gl_LocalInvocationID.x; part < parts; part += HS_GROUP) {
        double more[HS_MEASURES];
        for (uint i = 0u; i < HS_MEASURES; i++)
            more[i] = hs_scratch(uint64_t(part) * uint64_t(HS_MEASURES)).at[i];
        hs_measure_merge(found, more);
    }
    hs_measure_fold(found);
    if (gl_LocalInvocationID.x == 0u)
        for (uint i = 0u; i < HS_MEASURES; i++)
            hs_write(HS_OUT(0), hs_row(HS_OUT(0), 0u), i, found[i]);
}
