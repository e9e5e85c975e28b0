/* The fixed orders of summation (policy, section 3), written so that a compiler vectorises them, and the check of
 * stored values that costs no second pass. */
#ifndef HS_CPU_EXACT_SUMS_H
#define HS_CPU_EXACT_SUMS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "precision/arithmetic.h"
#include "precision/reduce.h"

/*
 * Values whose exponent is all ones carry into bit 63, which is otherwise clear: OR the results of many values
 * together and look once, with hs_any_nonfinite.
 */
static inline uint64_t hs_nonfinite(double value) {
    return (hs_bits(value) & UINT64_C(0x7fffffffffffffff)) + UINT64_C(0x0010000000000000);
}

static inline bool hs_any_nonfinite(uint64_t seen) { return seen >> 63 != 0; }

static inline double hs_fold_lanes(double lanes[HS_SUM_LANES]) {
    for (size_t width = HS_SUM_LANES / 2; width > 0; width /= 2)
        for (size_t j = 0; j < width; j++)
            lanes[j] += lanes[j + width];
    return lanes[0];
}

/* sum = the sum of a row whose element i is `expression`. */
#define HS_SUM_OVER(sum, count, i, expression)                                                                         \
    do {                                                                                                               \
        double lanes_[HS_SUM_LANES] = {0};                                                                             \
        const size_t count_ = (count);                                                                                 \
        size_t base_ = 0;                                                                                              \
        for (; base_ + HS_SUM_LANES <= count_; base_ += HS_SUM_LANES)                                                  \
            for (size_t lane_ = 0; lane_ < HS_SUM_LANES; lane_++) {                                                    \
                const size_t i = base_ + lane_;                                                                        \
                lanes_[lane_] += (expression);                                                                         \
            }                                                                                                          \
        for (size_t i = base_; i < count_; i++)                                                                        \
            lanes_[i - base_] += (expression);                                                                         \
        (sum) = hs_fold_lanes(lanes_);                                                                                 \
    } while (0)

/* The largest element, NaNs passed over; -inf for none. Eight independent lanes, because one chain cannot be vectorised
 * while NaN counts. */
static inline double hs_largest(size_t count, const double *x) {
    enum { LANES = 8 };
    double lanes[LANES];
    for (size_t j = 0; j < LANES; j++)
        lanes[j] = -INFINITY;
    size_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (size_t j = 0; j < LANES; j++)
            lanes[j] = x[i + j] > lanes[j] ? x[i + j] : lanes[j];
    for (size_t j = 0; i + j < count; j++)
        lanes[j] = x[i + j] > lanes[j] ? x[i + j] : lanes[j];
    for (size_t j = 1; j < LANES; j++)
        lanes[0] = lanes[j] > lanes[0] ? lanes[j] : lanes[0];
    return lanes[0];
}

#endif
