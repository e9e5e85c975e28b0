/* Softmax of one row (policy, section 3), for softmax, attention and cross-entropy. */
#ifndef HS_CPU_EXACT_SOFTMAX_H
#define HS_CPU_EXACT_SOFTMAX_H

#include "cpu/exact/sums.h"

/* p = softmax of x; p may be x. */
static inline void hs_softmax_row(size_t count, const double *x, double *p) {
    const double largest = hs_largest(count, x);
    double sum;
#pragma omp simd
    for (size_t i = 0; i < count; i++)
        p[i] = hs_exp(x[i] - largest);
    HS_SUM_OVER(sum, count, i, p[i]);
    const double reciprocal = 1.0 / sum;
    for (size_t i = 0; i < count; i++)
        p[i] *= reciprocal;
}

#endif
