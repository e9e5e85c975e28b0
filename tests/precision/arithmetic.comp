#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_explicit_arithmetic_types_float64 : require

#include "precision/arithmetic.h"

layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) readonly buffer Given { double x[]; };
layout(std430, set = 0, binding = 1) writeonly buffer Found { double y[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    y[3 * i] = hs_exp(x[i]);
    y[3 * i + 1] = hs_log(x[i]);
    y[3 * i + 2] = hs_sigmoid(x[i]);
}
