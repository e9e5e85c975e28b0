/* The kernels of the exact tier, one for every operation, and what scratch they ask for. */
#ifndef HS_CPU_EXACT_KERNELS_H
#define HS_CPU_EXACT_KERNELS_H

#include "cpu/kernel.h"

hs_kernel hs_exact_matmul;
hs_kernel_scratch hs_exact_matmul_scratch;
hs_kernel hs_exact_attention, hs_exact_attention_backward;
hs_kernel_scratch hs_exact_attention_scratch, hs_exact_attention_backward_scratch;

hs_kernel hs_exact_add, hs_exact_multiply, hs_exact_add_bias, hs_exact_scale, hs_exact_fill, hs_exact_log,
    hs_exact_log_backward, hs_exact_transpose;
hs_kernel hs_exact_silu, hs_exact_silu_backward, hs_exact_swiglu, hs_exact_swiglu_backward;
hs_kernel hs_exact_rotary, hs_exact_rotary_backward;
hs_kernel hs_exact_gather, hs_exact_gather_backward;
hs_kernel hs_exact_adamw;

hs_kernel hs_exact_rmsnorm, hs_exact_rmsnorm_backward_input, hs_exact_rmsnorm_backward_gain, hs_exact_sum_rows;
hs_kernel_scratch hs_exact_sum_rows_scratch;
hs_kernel hs_exact_softmax, hs_exact_softmax_backward, hs_exact_cross_entropy, hs_exact_cross_entropy_backward;
hs_kernel_scratch hs_exact_cross_entropy_scratch;
hs_kernel hs_exact_sum, hs_exact_square_sum;
hs_kernel_scratch hs_exact_sum_scratch;

#endif
