/* The matrix policy as a plain loop: the oracle that every product is held against (policy, section 2). */
#ifndef HS_PRECISION_MATMUL_H
#define HS_PRECISION_MATMUL_H

#include <stddef.h>

#include <halfstep/types.h>

/* A strided matrix operand: element (r, c) stands at data[r * row_stride + c * column_stride]. */
typedef struct hs_matrix {
    const double *data;
    size_t row_stride, column_stride;
} hs_matrix;

/*
 * y[i * y_stride + j] for i < m, j < n, with a(i, k) and b(k, j). Where sums is not NULL, sums[i * n + j] gets the
 * chain before the last rounding: an f32 in the mixed precisions, an f64 in f64.
 */
void hs_policy_matmul(hstep_precision precision, size_t m, size_t n, size_t k, hs_matrix a, hs_matrix b, double *y,
                      size_t y_stride, double *sums);

/* Continues the chains that sums[i * stride + j] hold, unrounded, over k more steps; and the last rounding of them. */
void hs_policy_continue(hstep_precision precision, size_t m, size_t n, size_t k, hs_matrix a, hs_matrix b, double *sums,
                        size_t stride);
void hs_policy_round(hstep_precision precision, size_t m, size_t n, double *sums, size_t stride);

/*
 * The same chains before the last rounding, for dense row-major operands that the precision represents as they are, and
 * the sums of |p_k|: what the gate of a lever compares with, in a form that vectorises.
 */
void hs_policy_sums(hstep_precision precision, size_t m, size_t n, size_t k, const double *a, const double *b,
                    double *sums, double *magnitudes);

#endif
