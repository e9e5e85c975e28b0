/* How a reordered kernel is judged (policy, section 7). */
#ifndef HS_PRECISION_GATE_H
#define HS_PRECISION_GATE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct hs_gate {
    double mean_ref;       /* mean |r| */
    double max_abs;        /* largest |f - r| */
    double max_abs_limit;  /* 1% of mean_ref; max_abs must be below */
    double mean_rel;       /* mean of |f - r| / max(|r|, 1% of mean_ref) */
    double mean_rel_limit; /* 0.005; mean_rel must be below */
    double max_rel;        /* reported, decides nothing */
    bool pass;
} hs_gate;

/* f: the sums of the kernel under test, r: the reference's, before the last rounding. Empty, all-zero or nonfinite
 * references fail, and so does a nonfinite f. */
hs_gate hs_gate_measure(size_t count, const double *f, const double *r);

/* |f - r| <= k * step * magnitude in every cell, step 2^-23 (2^-52 for f64), magnitude[i] = sum of |p_k|.
 * Returns the number of cells that break it; NaN breaks it. */
size_t hs_gate_cells(size_t count, const double *f, const double *r, const double *magnitude, size_t k, double step);

#endif
