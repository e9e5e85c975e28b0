/*
 * Numbers in 16 bits for the kernels in plain C: without branches, so that a compiler vectorises the loops. The bits of
 * precision/format.h, by another way.
 */
#ifndef HS_CPU_EXACT_HALF_H
#define HS_CPU_EXACT_HALF_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <halfstep/types.h>

#include "cpu/exact/product/convert.h"

static inline float hs_f32_from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t hs_f32_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double hs_widen_bf16(uint16_t half) { return (double)hs_f32_from_bits((uint32_t)half << 16); }

/* Normal numbers get another bias, infinities and NaNs the largest exponent; a subnormal is an integer times 2^-24. */
static inline double hs_widen_fp16(uint16_t half) {
    const uint32_t magnitude = half & 0x7fffu, sign = (uint32_t)(half & 0x8000u) << 16;
    const uint32_t normal = (magnitude << 13) + (magnitude < 0x7c00u ? UINT32_C(112) << 23 : UINT32_C(224) << 23);
    const uint32_t small = hs_f32_bits((float)(int32_t)magnitude * 0x1p-24f);
    return (double)hs_f32_from_bits((magnitude < 0x0400u ? small : normal) | sign);
}

/* Rounded once. The f32 between is exact: the number is of the format already. */
static inline uint16_t hs_narrow_bf16(double x) {
    const uint32_t bits = hs_f32_bits((float)hs_round_to_half(x, &hs_rounding_bf16));
    return (uint16_t)(x == x ? bits >> 16 : 0x7fc0u);
}

static inline uint16_t hs_narrow_fp16(double x) {
    const float rounded = (float)hs_round_to_half(x, &hs_rounding_fp16);
    const uint32_t bits = hs_f32_bits(rounded), magnitude = bits & 0x7fffffffu, sign = bits >> 16 & 0x8000u;
    const uint32_t least_normal = UINT32_C(113) << 23;
    /* Clamped, because what no number fits in is not converted in every lane alike. */
    const float little = hs_f32_from_bits(magnitude < least_normal ? magnitude : least_normal) * 0x1p24f;
    const uint32_t small = (uint32_t)(int32_t)little;
    const uint32_t large = magnitude < 0x7f800000u ? (magnitude - (UINT32_C(112) << 23)) >> 13 : 0x7c00u;
    const uint32_t value = (magnitude < least_normal ? small : large) | sign;
    return (uint16_t)(x == x ? value : 0x7e00u);
}

static inline void hs_widen_all(hstep_dtype dtype, size_t count, const uint16_t *half, double *x) {
    if (dtype == HSTEP_DTYPE_BF16) {
        for (size_t i = 0; i < count; i++)
            x[i] = hs_widen_bf16(half[i]);
    } else {
        for (size_t i = 0; i < count; i++)
            x[i] = hs_widen_fp16(half[i]);
    }
}

static inline void hs_narrow_all(hstep_dtype dtype, size_t count, const double *x, uint16_t *half) {
    if (dtype == HSTEP_DTYPE_BF16) {
        for (size_t i = 0; i < count; i++)
            half[i] = hs_narrow_bf16(x[i]);
    } else {
        for (size_t i = 0; i < count; i++)
            half[i] = hs_narrow_fp16(x[i]);
    }
}

#endif
