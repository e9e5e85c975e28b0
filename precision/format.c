#include "precision/format.h"

#include <fp16.h>
#include <stdbool.h>
#include <string.h>

enum { HS_FP16_NAN = 0x7e00, HS_BF16_NAN = 0x7fc0, HS_BF16_INFINITY = 0x7f80 };

static uint32_t hs_f32_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float hs_f32_from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float hs_f32_round_to_odd(double value) {
    float nearest = (float)value;
    double back = (double)nearest;
    if (back == value || value != value)
        return nearest;
    /* The bits of a magnitude rise with it, so one less is the next f32 towards zero, below infinity the largest one.
     */
    bool away = value < 0 ? back < value : back > value;
    uint32_t truncated = hs_f32_bits(nearest) - (away ? 1 : 0);
    return hs_f32_from_bits(truncated | 1);
}

uint16_t hs_fp16_from_f32(float value) { return value != value ? HS_FP16_NAN : fp16_ieee_from_fp32_value(value); }

uint16_t hs_fp16_from_f64(double value) { return hs_fp16_from_f32(hs_f32_round_to_odd(value)); }

uint16_t hs_bf16_from_f32(float value) {
    if (value != value)
        return HS_BF16_NAN;
    uint32_t bits = hs_f32_bits(value);
    /* A carry out of the fraction moves into the exponent, and from the largest exponent into infinity. */
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

uint16_t hs_bf16_from_f64(double value) {
    if (value != value)
        return HS_BF16_NAN;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t sign = (uint32_t)(bits >> 63) << 15;
    int exponent = (int)(bits >> 52 & 0x7ff);
    /* The f64 exponent field of 2^-126, the smallest normal bf16. Every f64 subnormal lies far below and rounds to 0.
     */
    const int smallest_normal = 1023 - 126;
    uint64_t significand = (bits & UINT64_C(0xfffffffffffff)) | UINT64_C(1) << 52;
    /* 8 of the 53 bits stay; below the normals one less for each binade. 55 already drops every bit and the tie. */
    int below = exponent < smallest_normal ? smallest_normal - exponent : 0;
    int drop = below > 10 ? 55 : 45 + below;
    uint64_t kept = significand >> drop;
    uint64_t dropped = significand & ((UINT64_C(1) << drop) - 1);
    uint64_t half = UINT64_C(1) << (drop - 1);
    kept += dropped > half || (dropped == half && (kept & 1) != 0);
    /* The leading bit of a normal significand counts as one step of the exponent field. */
    uint32_t magnitude = (uint32_t)kept + (below > 0 ? 0 : (uint32_t)(exponent - smallest_normal) << 7);
    return (uint16_t)(sign | (magnitude > HS_BF16_INFINITY ? HS_BF16_INFINITY : magnitude));
}

float hs_fp16_to_f32(uint16_t bits) { return fp16_ieee_to_fp32_value(bits); }

float hs_bf16_to_f32(uint16_t bits) { return hs_f32_from_bits((uint32_t)bits << 16); }

uint16_t hs_encode(hstep_format format, double value) {
    return format == HSTEP_FP16 ? hs_fp16_from_f64(value) : hs_bf16_from_f64(value);
}

double hs_decode(hstep_format format, uint16_t bits) {
    return (double)(format == HSTEP_FP16 ? hs_fp16_to_f32(bits) : hs_bf16_to_f32(bits));
}

hstep_format hs_precision_format(hstep_precision precision) {
    return precision == HSTEP_PRECISION_FP16 ? HSTEP_FP16 : HSTEP_BF16;
}

hstep_format hs_dtype_format(hstep_dtype dtype) { return dtype == HSTEP_DTYPE_FP16 ? HSTEP_FP16 : HSTEP_BF16; }

double hs_precision_round(hstep_precision precision, double value) {
    if (precision == HSTEP_PRECISION_F64)
        return value;
    const hstep_format format = hs_precision_format(precision);
    return hs_decode(format, hs_encode(format, value));
}

double hs_precision_smallest_normal(hstep_precision precision) {
    if (precision == HSTEP_PRECISION_F64)
        return 0x1p-1022;
    return precision == HSTEP_PRECISION_FP16 ? 0x1p-14 : 0x1p-126;
}
