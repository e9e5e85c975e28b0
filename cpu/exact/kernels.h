/* The kernels of the exact tier, one for every operation, and what scratch they ask for. */
#ifndef HS_CPU_EXACT_KERNELS_H
#define HS_CPU_EXACT_KERNELS_H

#include "cpu/exact/target.h"
#include "cpu/kernel.h"

/* Products: what differs between levers is in the kit. */
hs_kernel hs_kit_matmul;
hs_kernel_scratch hs_kit_matmul_scratch;

/* All others, for one target. */
#define HS_DECLARE_KERNELS(target)                                                                                     \
    hs_kernel HS_JOINED(attention, target), HS_JOINED(attention_backward, target);                                     \
    hs_kernel_scratch HS_JOINED(attention_scratch, target), HS_JOINED(attention_backward_scratch, target);             \
    hs_kernel HS_JOINED(add, target), HS_JOINED(multiply, target), HS_JOINED(add_bias, target),                        \
        HS_JOINED(scale, target), HS_JOINED(fill, target), HS_JOINED(log, target), HS_JOINED(log_backward, target),    \
        HS_JOINED(transpose, target);                                                                                  \
    hs_kernel HS_JOINED(silu, target), HS_JOINED(silu_backward, target), HS_JOINED(swiglu, target),                    \
        HS_JOINED(swiglu_backward, target);                                                                            \
    hs_kernel HS_JOINED(rotary, target), HS_JOINED(rotary_backward, target);                                           \
    hs_kernel_scratch HS_JOINED(rotary_scratch, target), HS_JOINED(rmsnorm_scratch, target);                           \
    hs_kernel HS_JOINED(gather, target), HS_JOINED(gather_backward, target), HS_JOINED(store_rows, target);            \
    hs_kernel HS_JOINED(adamw, target);                                                                                \
    hs_kernel HS_JOINED(rmsnorm, target), HS_JOINED(rmsnorm_backward_input, target),                                   \
        HS_JOINED(rmsnorm_backward_gain, target), HS_JOINED(sum_rows, target);                                         \
    hs_kernel_scratch HS_JOINED(sum_rows_scratch, target);                                                             \
    hs_kernel HS_JOINED(softmax, target), HS_JOINED(softmax_backward, target), HS_JOINED(cross_entropy, target),       \
        HS_JOINED(cross_entropy_backward, target);                                                                     \
    hs_kernel_scratch HS_JOINED(cross_entropy_scratch, target), HS_JOINED(cross_entropy_backward_scratch, target);     \
    hs_kernel HS_JOINED(sum, target), HS_JOINED(square_sum, target), HS_JOINED(measure, target);                       \
    hs_kernel_scratch HS_JOINED(sum_scratch, target)

HS_DECLARE_KERNELS(portable);
HS_DECLARE_KERNELS(avx2);
HS_DECLARE_KERNELS(avx512);

#endif
