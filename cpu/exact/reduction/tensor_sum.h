/* The sum of a tensor: rows of 4096, then the same rule over the row sums (policy, section 3). */
#ifndef HS_CPU_EXACT_TENSOR_SUM_H
#define HS_CPU_EXACT_TENSOR_SUM_H

#include "cpu/exact/sums.h"

static inline size_t hs_tensor_sum_rows(size_t count) { return (count + HS_SUM_ROW - 1) / HS_SUM_ROW; }

/* By one thread; rows has room for hs_tensor_sum_rows(count). */
static inline double hs_tensor_sum(size_t count, const double *x, double *rows) {
    double sum;
    for (size_t row = 0; row < hs_tensor_sum_rows(count); row++) {
        const size_t first = row * HS_SUM_ROW, rest = count - first;
        HS_SUM_OVER(rows[row], rest < HS_SUM_ROW ? rest : HS_SUM_ROW, i, x[first + i]);
    }
    HS_SUM_OVER(sum, hs_tensor_sum_rows(count), i, rows[i]);
    return sum;
}

#endif
