/* r = 1/sqrt(ss/d + eps) of a row (policy, section 3), by a group of 32 invocations. */
#include "vulkan/shaders/sums.glsl"

double hs_reciprocal_rms(uint slot, uint64_t row) {
    double lane = 0.0lf;
    for (uint i = gl_LocalInvocationID.x; i < hs_columns(slot); i += HS_LANES) {
        double x = hs_load(slot, row, i);
        precise double square = x * x;
        precise double next = lane + square;
        lane = next;
    }
    precise double mean = hs_fold_lanes(lane) / double(hs_columns(slot));
    precise double guarded = mean + hs_call.record.epsilon;
    precise double root = sqrt(guarded);
    precise double r = 1.0lf / root;
    return r;
}
