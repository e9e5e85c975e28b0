#version 460
#extension GL_GOOGLE_include_directive : require
#include "vulkan/shaders/common.glsl"

/* Products of the mixed precisions: operands of 16 bits, f32 sums. */
#define HS_REAL float
#define HS_PAD 1u

float hs_fetch_operand(uint slot, uint64_t row, uint column) {
    return hs_load_operand(slot, row, column);
}

float hs_step(float sum, float a, float b) {
    precise float product = a * b;
    precise float next = sum + product;
    return next;
}

void hs_store_sum(uint64_t row, uint column, float sum) {
    hs_store_product(HS_OUT(0), row, column, sum);
}

#include "vulkan/shaders/product/sums_f32.glsl"
#include "vulkan/shaders/product/matmul.glsl"
