/* What several row operations share. */
#ifndef HS_CPU_EXACT_ROWS_H
#define HS_CPU_EXACT_ROWS_H

#include "cpu/exact/sums.h"

static inline double hs_reciprocal_rms(size_t count, const double *x, double epsilon) {
    double squares;
    HS_SUM_OVER(squares, count, i, x[i] * x[i]);
    return 1.0 / sqrt(squares / (double)count + epsilon);
}

#endif
