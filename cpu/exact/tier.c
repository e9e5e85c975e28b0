#include "cpu/exact/kernels.h"
#include "cpu/exact/product/kit.h"
#include "cpu/processor.h"

enum { AVX512, AVX2, PORTABLE, LEVERS };

static const hs_cpu_lever levers[LEVERS] = {
    [AVX512] = {"cpu.avx512", true, hs_detect_avx512, "vectors of 512 bits for products and attention",
                "the processor or the system lacks AVX-512 F, BW, DQ or VL"},
    [AVX2] = {"cpu.avx2", true, hs_detect_avx2, "vectors of 256 bits with FMA for products and attention",
              "the processor or the system lacks AVX2, FMA or F16C"},
    [PORTABLE] = {"cpu.portable", true, NULL, "plain C, threaded, runs on every processor", NULL},
};

/* Rows of faster levers go before those of the portable kernels, which serve whatever is left. */
static const hs_kernel_entry entries[] = {
#ifdef HS_X86_64
    {HS_OP_MATMUL, AVX512, hs_exact_matmul, hs_exact_matmul_scratch, &hs_kits_avx512},
    {HS_OP_MATMUL, AVX2, hs_exact_matmul, hs_exact_matmul_scratch, &hs_kits_avx2},
    {HS_OP_ATTENTION, AVX512, hs_exact_attention, hs_exact_attention_scratch, &hs_kits_avx512},
    {HS_OP_ATTENTION, AVX2, hs_exact_attention, hs_exact_attention_scratch, &hs_kits_avx2},
    {HS_OP_ATTENTION_BACKWARD, AVX512, hs_exact_attention_backward, hs_exact_attention_backward_scratch,
     &hs_kits_avx512},
    {HS_OP_ATTENTION_BACKWARD, AVX2, hs_exact_attention_backward, hs_exact_attention_backward_scratch, &hs_kits_avx2},
#endif
    {HS_OP_MATMUL, PORTABLE, hs_exact_matmul, hs_exact_matmul_scratch, &hs_kits_portable},
    {HS_OP_GATHER, PORTABLE, hs_exact_gather, NULL, NULL},
    {HS_OP_GATHER_BACKWARD, PORTABLE, hs_exact_gather_backward, NULL, NULL},
    {HS_OP_RMSNORM, PORTABLE, hs_exact_rmsnorm, NULL, NULL},
    {HS_OP_RMSNORM_BACKWARD_INPUT, PORTABLE, hs_exact_rmsnorm_backward_input, NULL, NULL},
    {HS_OP_RMSNORM_BACKWARD_GAIN, PORTABLE, hs_exact_rmsnorm_backward_gain, hs_exact_sum_rows_scratch, NULL},
    {HS_OP_ROTARY, PORTABLE, hs_exact_rotary, NULL, NULL},
    {HS_OP_ROTARY_BACKWARD, PORTABLE, hs_exact_rotary_backward, NULL, NULL},
    {HS_OP_ATTENTION, PORTABLE, hs_exact_attention, hs_exact_attention_scratch, &hs_kits_portable},
    {HS_OP_ATTENTION_BACKWARD, PORTABLE, hs_exact_attention_backward, hs_exact_attention_backward_scratch,
     &hs_kits_portable},
    {HS_OP_SWIGLU, PORTABLE, hs_exact_swiglu, NULL, NULL},
    {HS_OP_SWIGLU_BACKWARD, PORTABLE, hs_exact_swiglu_backward, NULL, NULL},
    {HS_OP_ADD, PORTABLE, hs_exact_add, NULL, NULL},
    {HS_OP_CROSS_ENTROPY, PORTABLE, hs_exact_cross_entropy, hs_exact_cross_entropy_scratch, NULL},
    {HS_OP_CROSS_ENTROPY_BACKWARD, PORTABLE, hs_exact_cross_entropy_backward, NULL, NULL},
    {HS_OP_ADD_BIAS, PORTABLE, hs_exact_add_bias, NULL, NULL},
    {HS_OP_SUM_ROWS, PORTABLE, hs_exact_sum_rows, hs_exact_sum_rows_scratch, NULL},
    {HS_OP_MULTIPLY, PORTABLE, hs_exact_multiply, NULL, NULL},
    {HS_OP_SCALE, PORTABLE, hs_exact_scale, NULL, NULL},
    {HS_OP_SUM, PORTABLE, hs_exact_sum, hs_exact_sum_scratch, NULL},
    {HS_OP_FILL, PORTABLE, hs_exact_fill, NULL, NULL},
    {HS_OP_TRANSPOSE, PORTABLE, hs_exact_transpose, NULL, NULL},
    {HS_OP_SOFTMAX, PORTABLE, hs_exact_softmax, NULL, NULL},
    {HS_OP_SOFTMAX_BACKWARD, PORTABLE, hs_exact_softmax_backward, NULL, NULL},
    {HS_OP_LOG, PORTABLE, hs_exact_log, NULL, NULL},
    {HS_OP_LOG_BACKWARD, PORTABLE, hs_exact_log_backward, NULL, NULL},
    {HS_OP_SILU, PORTABLE, hs_exact_silu, NULL, NULL},
    {HS_OP_SILU_BACKWARD, PORTABLE, hs_exact_silu_backward, NULL, NULL},
    {HS_OP_SQUARE_SUM, PORTABLE, hs_exact_square_sum, hs_exact_sum_scratch, NULL},
    {HS_OP_ADAMW, PORTABLE, hs_exact_adamw, NULL, NULL},
};

const hs_cpu_tier hs_cpu_exact_tier = {
    .name = "cpu",
    .locates = false,
    .levers = levers,
    .lever_count = LEVERS,
    .entries = entries,
    .entry_count = sizeof entries / sizeof entries[0],
};
