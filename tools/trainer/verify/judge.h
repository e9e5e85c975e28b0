/* How far two loss curves are from each other. */
#ifndef HS_TRAINER_VERIFY_JUDGE_H
#define HS_TRAINER_VERIFY_JUDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <halfstep/types.h>

/* Single losses scatter with the batch, and one batch that two sides answer a little differently is no other curve. */
enum { HS_CURVE_WINDOW = 20 };

/* The policy's limit: what is beyond it is remembered. */
#define HS_CURVE_LIMIT 0.01

typedef struct hs_curve_gap {
    double largest; /* relative to the reference; infinite where a curve is not finite */
    uint64_t step;  /* from 1; where it is largest, the first of equals */
} hs_curve_gap;

/*
 * The smoothed curve at a step is the mean of the `window` losses that end there. It begins where the first window is
 * full; curves that are shorter have one window, of all their steps.
 */
hs_curve_gap hs_curve_gap_of(const double *reference, const double *tested, size_t steps, size_t window);

/* |tested - reference| / |reference|; 0 for equal numbers, infinite where one is not finite. */
double hs_relative_gap(double reference, double tested);

/*
 * How far the first gradient may be from the reference's, relative to its norm, and its norm from the reference's. In
 * step 1 all sides have the same weights and batch: only kernels can make their gradients differ, and sums in another
 * order do so by far less than this. A kernel that loses bits at random shows in the gradient, one that always loses
 * them to the same side in the norm, and no curve of some hundred steps need show either. `in_use` says by
 * hstep_precision what products have.
 */
typedef struct hs_first_limits {
    double gradient, norm;
} hs_first_limits;

hs_first_limits hs_first_limits_of(const bool *in_use);

/* The first step, from 1, where two rows of numbers differ in any bit; 0 where they are equal. */
uint64_t hs_first_difference(const double *a, const double *b, size_t count);

#endif
