/*
 * Rounding to a half format without its bits: the value Q_h(x) as a double or a float, in a form without branches that
 * a compiler vectorises. The bits of precision/format.h, by another way.
 */
#ifndef HS_CPU_EXACT_CONVERT_H
#define HS_CPU_EXACT_CONVERT_H

#include <math.h>
#include <stddef.h>

#include "cpu/exact/sums.h"
#include "precision/arithmetic.h"

/*
 * With 2^e <= |x| < 2^(e+1), adding and subtracting c = 1.5 * 2^(e + 52 - fraction bits) rounds x once, to nearest
 * even, at the last fraction bit of the format. Below the smallest normal the step stays, which gives the subnormals.
 */
typedef struct hs_rounding {
    double factor; /* 1.5 * 2^(52 - fraction bits) */
    double low;    /* the smallest normal */
    double high;   /* the power of two above the largest finite value: what rounds to it or beyond is infinite */
} hs_rounding;

static const hs_rounding hs_rounding_fp16 = {0x1.8p42, 0x1p-14, 0x1p16};
static const hs_rounding hs_rounding_bf16 = {0x1.8p45, 0x1p-126, 0x1p128};

static inline double hs_round_to_half(double x, const hs_rounding *rounding) {
    const uint64_t bits = hs_bits(x);
    double power = hs_from_bits(bits & UINT64_C(0x7ff0000000000000));
    power = power > rounding->low ? power : rounding->low;
    power = power < rounding->high ? power : rounding->high;
    const double shift = power * rounding->factor;
    const double rounded = (x + shift) - shift;
    double magnitude = hs_from_bits(hs_bits(rounded) & UINT64_C(0x7fffffffffffffff));
    magnitude = magnitude >= rounding->high ? (double)INFINITY : magnitude;
    /* A negative value that rounds to zero comes out of the subtraction as +0. */
    return hs_from_bits(hs_bits(magnitude) | (bits & UINT64_C(0x8000000000000000)));
}

/* The operands of a product: y[i] = Q_h(x[i]), exact in f32. */
static inline void hs_represent(const hs_rounding *rounding, size_t count, const double *x, float *y) {
    const hs_rounding r = *rounding;
    for (size_t i = 0; i < count; i++)
        y[i] = (float)hs_round_to_half(x[i], &r);
}

/* The results of a product: y[i] = Q_h(x[i]), every NaN the one quiet NaN. Returns the hs_nonfinite of all of them. */
static inline uint64_t hs_round_results(const hs_rounding *rounding, size_t count, const float *x, double *y) {
    const hs_rounding r = *rounding;
    uint64_t seen = 0;
    for (size_t i = 0; i < count; i++) {
        const double value = hs_round_to_half((double)x[i], &r);
        seen |= hs_nonfinite(value);
        y[i] = value == value ? value : (double)NAN;
    }
    return seen;
}

#endif
