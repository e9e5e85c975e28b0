/* How a tensor stands beside that of another framework (policy, section 8): figures, then a claim. */
#ifndef HS_PRECISION_COMPARE_H
#define HS_PRECISION_COMPARE_H

#include <stdbool.h>
#include <stddef.h>

#include <halfstep/compare.h>

/* The distance from RN32(|v|) to the next f32 above; inf and NaN for themselves. */
double hs_f32_step(double v);

/* The largest element of the row that is being read. */
typedef struct hs_argmax {
    double value;
    size_t column;
} hs_argmax;

/* A comparison that goes on. */
typedef struct hs_comparing {
    hstep_comparison figures;
    size_t columns, column; /* of a row, and the next one to come */
    hs_argmax ours, other;
} hs_comparing;

/* Rows are `columns` long, 1 at least. */
hs_comparing hs_compare_begin(size_t columns, bool has_referee);

/* The next elements, row-major, in pieces of any length; `referee` is not read where there is none. */
void hs_compare_add(hs_comparing *comparing, size_t count, const double *ours, const double *theirs,
                    const double *referee);

hstep_comparison hs_compare_end(const hs_comparing *comparing);

hstep_claim hs_compare_judge(const hstep_comparison *comparison, hstep_comparison_rule rule, double target);

#endif
