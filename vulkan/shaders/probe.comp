#version 460
#extension GL_GOOGLE_include_directive : require
#include "vulkan/shaders/common.glsl"

/*
 * The operations that the mirror is made of, on numbers of the host's choosing (vulkan/probe.c): add, multiply, divide,
 * square root, and multiply then add, in f64 and in f32.
 */
layout(buffer_reference, std430, buffer_reference_align = 4) buffer hs_floats { float at[]; };

void main() {
    uint i = hs_group() * HS_GROUP + gl_LocalInvocationID.x;
    if (i >= hs_rows(HS_OUT(0)))
        return;
    hs_doubles given = hs_doubles(hs_row(HS_IN(0), i)), found = hs_doubles(hs_row(HS_OUT(0), i));
    precise double sum = given.at[0] + given.at[1];
    precise double product = given.at[0] * given.at[1];
    precise double quotient = given.at[0] / given.at[1];
    precise double root = sqrt(given.at[0]);
    precise double both = product + given.at[2];
    found.at[0] = sum;
    found.at[1] = product;
    found.at[2] = quotient;
    found.at[3] = root;
    found.at[4] = both;
    hs_floats given_f32 = hs_floats(hs_row(HS_IN(1), i)), found_f32 = hs_floats(hs_row(HS_OUT(1), i));
    precise float sum_f32 = given_f32.at[0] + given_f32.at[1];
    precise float product_f32 = given_f32.at[0] * given_f32.at[1];
    precise float quotient_f32 = given_f32.at[0] / given_f32.at[1];
    precise float root_f32 = sqrt(given_f32.at[0]);
    precise float both_f32 = product_f32 + given_f32.at[2];
    found_f32.at[0] = sum_f32;
    found_f32.at[1] = product_f32;
    found_f32.at[2] = quotient_f32;
    found_f32.at[3] = root_f32;
    found_f32.at[4] = both_f32;
}
