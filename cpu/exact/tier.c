#include "cpu/exact/kernels.h"

enum { PORTABLE, LEVERS };

static const hstep_lever levers[LEVERS] = {
    [PORTABLE] = {"cpu.portable", 1, HSTEP_LEVER_ACTIVE, "plain C, threaded, runs on every processor"},
};

/* Rows of other levers go before those of the portable kernels, which serve whatever is left. */
static const hs_kernel_entry entries[] = {
    {HS_OP_MATMUL, PORTABLE, hs_exact_matmul, hs_exact_matmul_scratch},
    {HS_OP_GATHER, PORTABLE, hs_exact_gather, NULL},
    {HS_OP_GATHER_BACKWARD, PORTABLE, hs_exact_gather_backward, NULL},
    {HS_OP_RMSNORM, PORTABLE, hs_exact_rmsnorm, NULL},
    {HS_OP_RMSNORM_BACKWARD_INPUT, PORTABLE, hs_exact_rmsnorm_backward_input, NULL},
    {HS_OP_RMSNORM_BACKWARD_GAIN, PORTABLE, hs_exact_rmsnorm_backward_gain, hs_exact_sum_rows_scratch},
    {HS_OP_ROTARY, PORTABLE, hs_exact_rotary, NULL},
    {HS_OP_ROTARY_BACKWARD, PORTABLE, hs_exact_rotary_backward, NULL},
    {HS_OP_ATTENTION, PORTABLE, hs_exact_attention, hs_exact_attention_scratch},
    {HS_OP_ATTENTION_BACKWARD, PORTABLE, hs_exact_attention_backward, hs_exact_attention_backward_scratch},
    {HS_OP_SWIGLU, PORTABLE, hs_exact_swiglu, NULL},
    {HS_OP_SWIGLU_BACKWARD, PORTABLE, hs_exact_swiglu_backward, NULL},
    {HS_OP_ADD, PORTABLE, hs_exact_add, NULL},
    {HS_OP_CROSS_ENTROPY, PORTABLE, hs_exact_cross_entropy, hs_exact_cross_entropy_scratch},
    {HS_OP_CROSS_ENTROPY_BACKWARD, PORTABLE, hs_exact_cross_entropy_backward, NULL},
    {HS_OP_ADD_BIAS, PORTABLE, hs_exact_add_bias, NULL},
    {HS_OP_SUM_ROWS, PORTABLE, hs_exact_sum_rows, hs_exact_sum_rows_scratch},
    {HS_OP_MULTIPLY, PORTABLE, hs_exact_multiply, NULL},
    {HS_OP_SCALE, PORTABLE, hs_exact_scale, NULL},
    {HS_OP_SUM, PORTABLE, hs_exact_sum, hs_exact_sum_scratch},
    {HS_OP_FILL, PORTABLE, hs_exact_fill, NULL},
    {HS_OP_TRANSPOSE, PORTABLE, hs_exact_transpose, NULL},
    {HS_OP_SOFTMAX, PORTABLE, hs_exact_softmax, NULL},
    {HS_OP_SOFTMAX_BACKWARD, PORTABLE, hs_exact_softmax_backward, NULL},
    {HS_OP_LOG, PORTABLE, hs_exact_log, NULL},
    {HS_OP_LOG_BACKWARD, PORTABLE, hs_exact_log_backward, NULL},
    {HS_OP_SILU, PORTABLE, hs_exact_silu, NULL},
    {HS_OP_SILU_BACKWARD, PORTABLE, hs_exact_silu_backward, NULL},
    {HS_OP_SQUARE_SUM, PORTABLE, hs_exact_square_sum, hs_exact_sum_scratch},
    {HS_OP_ADAMW, PORTABLE, hs_exact_adamw, NULL},
};

const hs_cpu_tier hs_cpu_exact_tier = {
    .name = "cpu",
    .locates = false,
    .levers = levers,
    .lever_count = LEVERS,
    .entries = entries,
    .entry_count = sizeof entries / sizeof entries[0],
};
