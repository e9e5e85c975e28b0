#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "vulkan/shaders/common.glsl"

/*
 * Products in fp16 with fused steps, of operands that the device widens itself. Two fp16 numbers have a product of 22
 * bits, which f32 holds: a step is rounded once whether it is fused or not.
 */
#define HS_REAL float
#define HS_PAD 1u

layout(buffer_reference, std430, buffer_reference_align = 2) readonly buffer hs_float16s { float16_t at[]; };

float hs_fetch_operand(uint slot, uint64_t row, uint column) {
    if (hs_type(slot) == HS_TYPE_F64)
        return hs_load_operand(slot, row, column);
    return float(hs_float16s(row).at[column]);
}

float hs_step(float sum, float a, float b) {
    return fma(a, b, sum);
}

void hs_store_sum(uint64_t row, uint column, float sum) {
    hs_store_product(HS_OUT(0), row, column, sum);
}

#include "vulkan/shaders/product/sums_f32.glsl"
#include "vulkan/shaders/product/matmul.glsl"
