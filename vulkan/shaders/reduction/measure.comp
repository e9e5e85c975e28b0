#version 460
#extension GL_GOOGLE_include_directive : require
#include "vulkan/shaders/common.glsl"
#include "vulkan/shaders/reduction/measure.glsl"

void count(inout double number) {
    precise double next = number + 1.0lf;
    number = next;
}

void count_rounding(double value, inout double found[HS_MEASURES]) {
    uint magnitude = hs_half_from_f64(hs_precision, value) & 0x7fffu;
    uvec2 words = unpackDouble2x32(value);
    if (magnitude == 0u && ((words.y & 0x7fffffffu) | words.x) != 0u)
        count(found[HS_MEASURE_TO_ZERO]);
    if (magnitude != 0u && magnitude >> hs_half_fraction(hs_precision) == 0u)
        count(found[HS_MEASURE_TO_SUBNORMAL]);
    if (magnitude == hs_half_infinity(hs_precision))
        count(found[HS_MEASURE_TO_INFINITY]);
}

/* The numbers of a row of 4096. */
void main() {
    uint part = hs_group();
    if (part >= hs_measure_parts())
        return;
    uint64_t first = uint64_t(part) * uint64_t(HS_MEASURE_ROW), left = hs_measure_count() - first;
    uint elements = left < uint64_t(HS_MEASURE_ROW) ? uint(left) : HS_MEASURE_ROW;
    uint64_t row = hs_row(HS_IN(0), 0u) + first * (hs_type(HS_IN(0)) == HS_TYPE_F64 ? 8UL : 2UL);
    double found[HS_MEASURES] = double[HS_MEASURES](0.0lf, 0.0lf, 0.0lf, 0.0lf, 0.0lf);
    for (uint i = gl_LocalInvocationID.x; i < elements; i += HS_GROUP) {
        double value = hs_load(HS_IN(0), row, i);
        if (!hs_is_finite(value)) {
            count(found[HS_MEASURE_NONFINITE]);
            continue;
        }
        double magnitude = packDouble2x32(unpackDouble2x32(value) & uvec2(0xffffffffu, 0x7fffffffu));
        if (magnitude > found[HS_MEASURE_LARGEST])
            found[HS_MEASURE_LARGEST] = magnitude;
        if (hs_precision != HS_TYPE_F64)
            count_rounding(value, found);
    }
    hs_measure_fold(found);
    if (gl_LocalInvocationID.x == 0u)
        for (uint i = 0u; i < HS_MEASURES; i++)
            hs_scratch(uint64_t(part) * uint64_t(HS_MEASURES)).at[i] = found[i];
}
