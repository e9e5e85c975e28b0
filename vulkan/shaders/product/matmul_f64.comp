#version 460
#extension GL_GOOGLE_include_directive : require
#include "vulkan/shaders/common.glsl"

/* Products in f64. */
#define HS_REAL double

double hs_fetch_operand(uint slot, uint64_t row, uint column) {
    return hs_load(slot, row, column);
}

void hs_store_sum(uint64_t row, uint column, double sum) {
    hs_store(HS_OUT(0), row, column, sum);
}

#include "vulkan/shaders/product/matmul.glsl"
