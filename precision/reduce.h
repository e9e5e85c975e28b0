/* The fixed orders of summation (policy, section 3). Plain C, for the reference and for host code. */
#ifndef HS_PRECISION_REDUCE_H
#define HS_PRECISION_REDUCE_H

#include <stddef.h>

enum { HS_SUM_LANES = 32, HS_SUM_ROW = 4096, HS_SUM_ROWS_BLOCK = 64 };

/* Lane j adds elements i = j (mod 32), ascending, from +0; lanes fold by 16, 8, 4, 2, 1. */
double hs_sum_row(size_t count, const double *x);

/* Rows of 4096 elements by the rule above, then the rule above once more over all the row sums. */
double hs_sum_tensor(size_t count, const double *x);

#endif
