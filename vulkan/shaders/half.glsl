/*
 * Half formats by integer operations alone (policy, section 1): every driver gives the same bits, and none may delete a
 * rounding.
 */
#ifndef HS_SHADER_HALF
#define HS_SHADER_HALF

/* Types and precisions bear the same numbers. */
#define HS_TYPE_F64 0u
#define HS_TYPE_FP16 1u
#define HS_TYPE_BF16 2u

bool hs_is_finite(double value) {
    return (unpackDouble2x32(value).y & 0x7ff00000u) != 0x7ff00000u;
}

/* Bits of the fraction, and of the largest exponent field. */
uint hs_half_fraction(uint format) {
    return format == HS_TYPE_FP16 ? 10u : 7u;
}

uint hs_half_infinity(uint format) {
    return format == HS_TYPE_FP16 ? 0x7c00u : 0x7f80u;
}

uint hs_half_nan(uint format) {
    return format == HS_TYPE_FP16 ? 0x7e00u : 0x7fc0u;
}

/*
 * The half nearest to 2^(exponent) * (significand / 2^31), ties to even; `significand` has its highest bit set, and its
 * lowest stands for all that was cut off below it.
 */
uint hs_half_round(uint format, int exponent, uint significand) {
    uint fraction = hs_half_fraction(format);
    int least = format == HS_TYPE_FP16 ? -14 : -126;
    uint field = exponent < least ? 0u : uint(exponent - least);
    uint dropped = 31u - fraction + (exponent < least ? uint(least - exponent) : 0u);
    if (exponent > 1 - least)
        return hs_half_infinity(format);
    if (dropped > 32u)
        return 0u;
    if (dropped == 32u)
        return significand > 0x80000000u ? 1u : 0u;
    uint kept = significand >> dropped, rest = significand << (32u - dropped);
    if (rest > 0x80000000u || (rest == 0x80000000u && (kept & 1u) != 0u))
        kept++;
    /* The highest bit of a normal significand raises the field by one, a carry by one more. */
    return (field << fraction) + kept;
}

/* One rounding from all 53 bits. */
uint hs_half_from_f64(uint format, double value) {
    uvec2 words = unpackDouble2x32(value);
    uint sign = words.y >> 16 & 0x8000u, magnitude = words.y & 0x7fffffffu;
    if (magnitude >= 0x7ff00000u)
        return magnitude == 0x7ff00000u && words.x == 0u ? sign | hs_half_infinity(format) : hs_half_nan(format);
    /* Subnormal: far below half of any format's least. */
    if (magnitude < 0x00100000u)
        return sign;
    uint significand = 0x80000000u | (magnitude & 0xfffffu) << 11 | words.x >> 21;
    if ((words.x & 0x1fffffu) != 0u)
        significand |= 1u;
    return sign | hs_half_round(format, int(magnitude >> 20) - 1023, significand);
}

/* One rounding from f32, for the result of a chain of f32 sums. */
uint hs_half_from_f32(uint format, float value) {
    uint bits = floatBitsToUint(value);
    uint sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return hs_half_nan(format);
    if (magnitude == 0x7f800000u)
        return sign | hs_half_infinity(format);
    if (format == HS_TYPE_BF16) {
        /* The same exponents: the upper half, and a carry may reach infinity. */
        uint rounded = magnitude + 0x7fffu + (magnitude >> 16 & 1u);
        return sign | rounded >> 16;
    }
    if (magnitude < 0x00800000u)
        return sign;
    return sign | hs_half_round(format, int(magnitude >> 23) - 127, 0x80000000u | (magnitude & 0x7fffffu) << 8);
}

/* Exact. What is subnormal in bf16 is so in f32, and made of bits alone. */
float hs_half_to_f32(uint format, uint bits) {
    uint sign = (bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
    if (format == HS_TYPE_BF16)
        return uintBitsToFloat(bits << 16);
    if (magnitude < 0x0400u) {
        precise float little = float(magnitude) * uintBitsToFloat(0x33800000u); /* 2^-24 */
        return uintBitsToFloat(floatBitsToUint(little) | sign);
    }
    return uintBitsToFloat(sign | (magnitude << 13) + (magnitude < 0x7c00u ? 112u << 23 : 224u << 23));
}

/* Exact; every half is a normal f64. */
double hs_half_to_f64(uint format, uint bits) {
    uint fraction = hs_half_fraction(format), infinity = hs_half_infinity(format);
    uint sign = (bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
    uint field = magnitude >> fraction;
    if (field == 0u) {
        /* 2^-24 and 2^-133 */
        precise double little =
            double(magnitude) * packDouble2x32(uvec2(0u, format == HS_TYPE_FP16 ? 0x3e700000u : 0x37a00000u));
        return packDouble2x32(unpackDouble2x32(little) | uvec2(0u, sign));
    }
    uint bias = format == HS_TYPE_FP16 ? 1023u - 15u : 1023u - 127u;
    uint exponent = magnitude >= infinity ? 0x7ffu : field + bias;
    return packDouble2x32(uvec2(0u, sign | exponent << 20 | (magnitude & ((1u << fraction) - 1u)) << (20u - fraction)));
}

/* Exact: the number whose f32 bits are given. Of a NaN the payload may change. */
double hs_f32_to_f64(uint bits) {
    uint sign = bits & 0x80000000u, magnitude = bits & 0x7fffffffu;
    if (magnitude < 0x00800000u) {
        precise double little = double(magnitude) * packDouble2x32(uvec2(0u, 0x36a00000u)); /* 2^-149 */
        return packDouble2x32(unpackDouble2x32(little) | uvec2(0u, sign));
    }
    uint exponent = magnitude >= 0x7f800000u ? 0x7ffu : (magnitude >> 23) + (1023u - 127u);
    return packDouble2x32(uvec2(magnitude << 29, sign | exponent << 20 | (magnitude & 0x7fffffu) >> 3));
}

/* The f32 bits of a number that f32 holds exactly, or of a NaN. */
uint hs_f32_from_f64(double value) {
    uvec2 words = unpackDouble2x32(value);
    uint sign = words.y & 0x80000000u, field = words.y >> 20 & 0x7ffu;
    uint significand = 0x00800000u | (words.y & 0xfffffu) << 3 | words.x >> 29;
    if (field == 0x7ffu)
        return ((words.y & 0xfffffu) | words.x) != 0u ? 0x7fc00000u : sign | 0x7f800000u;
    if (field == 0u)
        return sign;
    if (field > 1023u - 127u)
        return sign | (field - (1023u - 127u)) << 23 | (significand & 0x7fffffu);
    uint dropped = 1023u - 126u - field;
    return dropped < 24u ? sign | significand >> dropped : sign;
}

#endif
