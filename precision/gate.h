/* How a reordered kernel is judged (policy, section 7), and how another framework is compared (section 8). */
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

/* The distance from RN32(|v|) to the next f32 above; inf and NaN for themselves. */
double hs_f32_step(double v);

typedef struct hs_comparison {
    double largest;      /* largest |referee| */
    double f32_step;     /* the step of f32 there */
    double error_f32;    /* largest |ours - theirs in f32| */
    double error_f64;    /* largest |ours - referee| */
    double their_error;  /* largest |theirs in f32 - referee| */
    size_t argmax_flips; /* rows whose largest element stands elsewhere than in the referee */
} hs_comparison;

/* Three tensors of rows x columns; argmax is taken along columns, the first of equals. */
hs_comparison hs_compare(size_t rows, size_t columns, const double *ours, const double *theirs, const double *referee);

#endif
