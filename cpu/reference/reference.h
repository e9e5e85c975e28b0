/*
 * The reference kernels: plain loops on one thread, in the forms and orders that the policy fixes. They do not look at
 * what they store; the backend looks for nonfinite outputs after each call. Parts inside an operation they note here.
 */
#ifndef HS_CPU_REFERENCE_REFERENCE_H
#define HS_CPU_REFERENCE_REFERENCE_H

#include "cpu/kernel.h"

/* Notes a nonfinite value of a part; the first one stays. */
void hs_fault_note(hs_kernel_run *run, const char *part, uint64_t index, double value);

/* Elements from one row of a view to the next. */
static inline size_t hs_reference_pitch(const hs_view *view) {
    return view->rank >= 2 ? view->strides[view->rank - 2] : hs_columns(view);
}

/* The largest of count > 0 values, NaN aside: where there is one, everything made of the row is NaN anyway. */
static inline double hs_reference_maximum(size_t count, const double *x) {
    double maximum = x[0];
    for (size_t i = 1; i < count; i++)
        maximum = x[i] > maximum ? x[i] : maximum;
    return maximum;
}

/* y[columns] = sum down the rows of dense x: blocks of HS_SUM_ROWS_BLOCK rows, then the blocks. block[columns]. */
void hs_reference_sum_down(size_t rows, size_t columns, const double *x, double *y, double *block);

hs_kernel hs_reference_matmul;
hs_kernel hs_reference_gather, hs_reference_gather_backward, hs_reference_store_rows;
hs_kernel hs_reference_rmsnorm, hs_reference_rmsnorm_backward_input, hs_reference_rmsnorm_backward_gain;
hs_kernel hs_reference_rotary, hs_reference_rotary_backward;
hs_kernel hs_reference_attention, hs_reference_attention_backward;
hs_kernel hs_reference_swiglu, hs_reference_swiglu_backward, hs_reference_silu, hs_reference_silu_backward;
hs_kernel hs_reference_add, hs_reference_add_bias, hs_reference_multiply, hs_reference_scale, hs_reference_fill;
hs_kernel hs_reference_transpose, hs_reference_log, hs_reference_log_backward;
hs_kernel hs_reference_cross_entropy, hs_reference_cross_entropy_backward;
hs_kernel hs_reference_softmax, hs_reference_softmax_backward;
hs_kernel hs_reference_sum, hs_reference_sum_rows, hs_reference_square_sum;
hs_kernel hs_reference_measure, hs_reference_adamw;

hs_kernel_scratch hs_reference_rmsnorm_scratch, hs_reference_rmsnorm_backward_gain_scratch;
hs_kernel_scratch hs_reference_attention_scratch, hs_reference_attention_backward_scratch;
hs_kernel_scratch hs_reference_cross_entropy_scratch;
hs_kernel_scratch hs_reference_softmax_backward_scratch;
hs_kernel_scratch hs_reference_sum_rows_scratch, hs_reference_square_sum_scratch;

#endif
