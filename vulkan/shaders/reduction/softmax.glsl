/*
 * Softmax of a row by a group of 32 invocations: m = max, e = exp(x-m), z their sum, r = 1/z (policy, section 3).
 * Exponentials are computed again where they are needed, so that nothing has to be kept and rows may be of 16 bits.
 */
#include "vulkan/shaders/sums.glsl"

/*
 * The largest of a row, NaN aside. Which zero it is, and what it is where the row has a NaN, changes nothing: then all
 * that is made of the row is NaN.
 */
double hs_row_maximum(uint slot, uint64_t row) {
    double largest = packDouble2x32(uvec2(0u, 0xfff00000u));
    for (uint i = gl_LocalInvocationID.x; i < hs_columns(slot); i += HS_LANES) {
        double x = hs_load(slot, row, i);
        largest = x > largest ? x : largest;
    }
    return hs_fold_maximum(largest);
}

double hs_exp_below(double x, double maximum) {
    precise double difference = x - maximum;
    return hs_exp(difference);
}

double hs_row_exponentials(uint slot, uint64_t row, double maximum) {
    double lane = 0.0lf;
    for (uint i = gl_LocalInvocationID.x; i < hs_columns(slot); i += HS_LANES) {
        precise double sum = lane + hs_exp_below(hs_load(slot, row, i), maximum);
        lane = sum;
    }
    return hs_fold_lanes(lane);
}
