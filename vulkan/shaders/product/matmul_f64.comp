#version 460
#extension GL_GOOGLE_include_directive : require
#include "vulkan/shaders/common.glsl"

/* Products in f64. */
#define HS_REAL double
#define HS_PAD 0u

double hs_fetch_operand(uint slot, uint64_t row, uint column) {
    return hs_load(slot, row, column);
}

double hs_step(double sum, double a, double b) {
    precise double product = a * b;
    precise double next = sum + product;
    return next;
}

void hs_store_sum(uint64_t row, uint column, double sum) {
    hs_store(HS_OUT(0), row, column, sum);
}

double hs_narrow_sum(double sum) {
    return sum;
}

double hs_widen_sum(double sum) {
    return sum;
}

#include "vulkan/shaders/product/matmul.glsl"
