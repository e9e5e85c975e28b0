/*
 * The project's own exponential, logarithm, sine and cosine (policy, section 3), because libm's bits change between
 * processors. The C compiler and, for hs_exp, hs_log and hs_sigmoid, glslang compile this one source, so that a
 * processor and a shader give the same bits: only + - * / and bit operations, each rounded by itself, never fma.
 * A shader must say
 *     #extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
 *     #extension GL_EXT_shader_explicit_arithmetic_types_float64 : require
 * before it includes this file.
 *
 * Largest errors in units of the last place, over 1.2 to 2.5 million inputs each, as tests/precision/test_arithmetic.c
 * measures them against a 64-bit long double (and a search of 3 million inputs against 113-bit arithmetic):
 *     hs_exp 0.93   hs_log 0.85   hs_sin 0.82   hs_cos 0.85
 *
 * GLSL spells a double literal as C cannot. Values that an f32 holds are written plainly, since it widens them exactly;
 * the others stand in HS_F64 as value and bits, and a test holds the two together.
 *
 * The polynomials interpolate at Chebyshev nodes; their own error is below 0.17 * 2^-53 of the result.
 */
#ifndef HS_PRECISION_ARITHMETIC_H
#define HS_PRECISION_ARITHMETIC_H

#ifdef GL_core_profile
/* "precise" forbids a driver to fuse or reorder. */
#define HS_INLINE
#define HS_DOUBLE precise double
#define HS_F64(value, bits) uint64BitsToDouble(bits)
#define HS_BITS(value) doubleBitsToUint64(value)
#define HS_FROM_BITS(bits) uint64BitsToDouble(bits)
#else
#include <stdbool.h>
#include <stdint.h>
#define HS_INLINE static inline
#define HS_DOUBLE double
#define HS_F64(value, bits) value
#define HS_BITS(value) hs_bits(value)
#define HS_FROM_BITS(bits) hs_from_bits(bits)

typedef union hs_double_bits {
    double value;
    uint64_t bits;
} hs_double_bits;

static inline uint64_t hs_bits(double value) {
    hs_double_bits u = {.value = value};
    return u.bits;
}

static inline double hs_from_bits(uint64_t bits) {
    hs_double_bits u = {.bits = bits};
    return u.value;
}
#endif

/*
 * e^x. Below -708 +0, above 709 the value at 709, NaN for NaN. There is no branch, so a loop over it is vectorised.
 * x = k ln 2 + r with |r| <= ln 2 / 2; adding 1.5 * 2^52 rounds x / ln 2 to k and leaves k in the low bits.
 */
HS_INLINE double hs_exp(double x) {
    HS_DOUBLE top = x > 709.0 ? 709.0 : x;
    HS_DOUBLE shifted = top * HS_F64(1.4426950408889634, 0x3ff71547652b82feUL) + 6755399441055744.0;
    HS_DOUBLE k = shifted - 6755399441055744.0;
    /* The first part of ln 2 has 32 bits: its product with k is exact. */
    HS_DOUBLE r = (top - k * HS_F64(0.6931471803691238, 0x3fe62e42fee00000UL)) -
                  k * HS_F64(1.9082149292705877e-10, 0x3dea39ef35793c76UL);
    HS_DOUBLE q = HS_F64(2.0914686968086876e-09, 0x3e21f730349868ceUL);
    q = q * r + HS_F64(2.5105217004720745e-08, 0x3e5af4de97ca4194UL);
    q = q * r + HS_F64(2.75572736431103e-07, 0x3e927e4db646b17eUL);
    q = q * r + HS_F64(2.7557255400206422e-06, 0x3ec71de0231960ebUL);
    q = q * r + HS_F64(2.4801587325547743e-05, 0x3efa01a01a6d889cUL);
    q = q * r + HS_F64(0.00019841269874820627, 0x3f2a01a01abe7fe1UL);
    q = q * r + HS_F64(0.0013888888888883748, 0x3f56c16c16c162d4UL);
    q = q * r + HS_F64(0.008333333333326136, 0x3f811111111100dcUL);
    q = q * r + HS_F64(0.04166666666666667, 0x3fa5555555555556UL);
    q = q * r + HS_F64(0.1666666666666667, 0x3fc5555555555557UL);
    q = q * r + 0.5;
    HS_DOUBLE fraction = 1.0 + (r + (r * r) * q);
    HS_DOUBLE y = fraction * HS_FROM_BITS((HS_BITS(shifted) + 1023UL) << 52);
    return x < -708.0 ? 0.0 : y;
}

/*
 * Natural logarithm: -inf for either zero, NaN below zero, inf for inf, NaN for NaN.
 * x = 2^k m with m from sqrt(1/2) to sqrt(2), f = m - 1, s = f / (2 + f), log m = 2 s + s^3 R(s^2), where 2 s is
 * written f - s f so that the leading term stays exact.
 */
HS_INLINE double hs_log(double x) {
    uint64_t given = HS_BITS(x);
    bool subnormal = given < 0x0010000000000000UL;
    HS_DOUBLE scaled = subnormal ? x * 18014398509481984.0 : x;
    /* The offset makes the exponent field step where m passes sqrt(2). */
    uint64_t bits = HS_BITS(scaled) + (0x3ff0000000000000UL - 0x3fe6a09e667f3bcdUL);
    HS_DOUBLE k = HS_FROM_BITS(0x4330000000000000UL | (bits >> 52)) - HS_F64(4503599627371519.0, 0x43300000000003ffUL);
    k = subnormal ? k - 54.0 : k;
    HS_DOUBLE f = HS_FROM_BITS((bits & 0x000fffffffffffffUL) + 0x3fe6a09e667f3bcdUL) - 1.0;
    HS_DOUBLE s = f / (2.0 + f);
    HS_DOUBLE z = s * s;
    HS_DOUBLE p = HS_F64(0.14616449685043406, 0x3fc2b584aae78a57UL);
    p = p * z + HS_F64(0.15331721600556042, 0x3fc39fe606542ddeUL);
    p = p * z + HS_F64(0.18182889125261723, 0x3fc7462b4ab2ef6bUL);
    p = p * z + HS_F64(0.2222221113479508, 0x3fcc71c62e5800a1UL);
    p = p * z + HS_F64(0.28571428625975487, 0x3fd2492492df148dUL);
    p = p * z + HS_F64(0.39999999999899505, 0x3fd99999999952e2UL);
    p = p * z + HS_F64(0.666666666666667, 0x3fe5555555555558UL);
    HS_DOUBLE half_square = 0.5 * f * f;
    /* s f = half_square - s * half_square, since f - s f = 2 s. */
    HS_DOUBLE tail = s * (half_square + z * p) + k * HS_F64(1.9082149292705877e-10, 0x3dea39ef35793c76UL);
    HS_DOUBLE y = k * HS_F64(0.6931471803691238, 0x3fe62e42fee00000UL) - ((half_square - tail) - f);
    y = given == 0x7ff0000000000000UL ? x : y;
    y = given > 0x7ff0000000000000UL ? HS_FROM_BITS(0x7ff8000000000000UL) : y;
    return (given << 1) == 0UL ? HS_FROM_BITS(0xfff0000000000000UL) : y;
}

/* The logistic function, as SwiGLU uses it. */
HS_INLINE double hs_sigmoid(double x) {
    HS_DOUBLE y = 1.0 / (1.0 + hs_exp(-x));
    return y;
}

#ifndef GL_core_profile
/* An angle of at most 2^20 * pi/2 as quadrant * pi/2 + (high + low), |high| <= pi/4 and a little. */
typedef struct hs_reduced_angle {
    double high, low;
    uint64_t quadrant;
} hs_reduced_angle;

/*
 * pi/2 in four parts. The first three have 33 bits, so their products with the quadrant are exact; so is the difference
 * with the first. What the next two differences round off is caught and kept in low.
 */
static inline hs_reduced_angle hs_reduce_angle(double x) {
    double shifted = x * 0.6366197723675814 + 6755399441055744.0;
    double n = shifted - 6755399441055744.0;
    double first = x - n * 1.5707963267341256;
    double second_part = n * 6.077100506303966e-11;
    double second = first - second_part;
    double third_part = n * 2.0222662487111665e-21;
    double third = second - third_part;
    /* Knuth's error term, which asks for no order of magnitude. */
    double b = first - second;
    double lost = (first - (second + b)) + (b - second_part);
    double c = second - third;
    lost += (second - (third + c)) + (c - third_part);
    lost -= n * 8.4784276603689e-32;
    double high = third + lost;
    hs_reduced_angle angle = {high, (third - high) + lost, hs_bits(shifted)};
    return angle;
}

/* Sine of r.high + r.low within pi/4. */
static inline double hs_sine_kernel(hs_reduced_angle r) {
    double z = r.high * r.high;
    double p = 1.5918115263265974e-10;
    p = p * z - 2.505113165023518e-08;
    p = p * z + 2.7557316101617874e-06;
    p = p * z - 0.00019841269836756774;
    p = p * z + 0.008333333333330948;
    p = p * z - 0.16666666666666666;
    return r.high + ((r.high * z) * p + r.low * (1.0 - 0.5 * z));
}

/* Cosine of r.high + r.low within pi/4. */
static inline double hs_cosine_kernel(hs_reduced_angle r) {
    double z = r.high * r.high;
    double p = -1.1382623647474604e-11;
    p = p * z + 2.087614614655861e-09;
    p = p * z - 2.7557317271145144e-07;
    p = p * z + 2.480158729876456e-05;
    p = p * z - 0.0013888888888887398;
    p = p * z + 0.041666666666666664;
    double half = 0.5 * z;
    double leading = 1.0 - half;
    return leading + (((1.0 - leading) - half) + ((z * z) * p - r.high * r.low));
}

/* The largest angle of hs_sin and hs_cos, 2^20 * pi/2; beyond it, and for inf and NaN, they give NaN. */
#define HS_LARGEST_ANGLE 1647099.3291652855

static inline double hs_sine_of_quadrant(double x, uint64_t turn) {
    bool inside = x >= -HS_LARGEST_ANGLE && x <= HS_LARGEST_ANGLE;
    hs_reduced_angle r = hs_reduce_angle(inside ? x : 0.0);
    uint64_t quadrant = r.quadrant + turn;
    double y = (quadrant & 1) != 0 ? hs_cosine_kernel(r) : hs_sine_kernel(r);
    y = (quadrant & 2) != 0 ? -y : y;
    return inside ? y : hs_from_bits(0x7ff8000000000000UL);
}

/* Sine; -0 for -0. */
static inline double hs_sin(double x) { return x == 0.0 ? x : hs_sine_of_quadrant(x, 0); }

static inline double hs_cos(double x) { return hs_sine_of_quadrant(x, 1); }
#endif

#endif
