/* The table of the reference tier. */
#include "cpu/reference/reference.h"

void hs_fault_note(hs_kernel_run *run, const char *part, uint64_t index, double value) {
    run->nonfinite = true;
    if (run->fault && !run->fault->found)
        *run->fault = (hs_fault){true, -1, part, index, value};
}

static const hs_cpu_lever levers[] = {
    {.name = "cpu.reference", .exact = true, .active = "always there: it is the oracle"}};

static const hs_kernel_entry entries[] = {
    {HS_OP_MATMUL, 0, hs_reference_matmul, NULL, NULL},
    {HS_OP_GATHER, 0, hs_reference_gather, NULL, NULL},
    {HS_OP_GATHER_BACKWARD, 0, hs_reference_gather_backward, NULL, NULL},
    {HS_OP_STORE_ROWS, 0, hs_reference_store_rows, NULL, NULL},
    {HS_OP_RMSNORM, 0, hs_reference_rmsnorm, hs_reference_rmsnorm_scratch, NULL},
    {HS_OP_RMSNORM_BACKWARD_INPUT, 0, hs_reference_rmsnorm_backward_input, hs_reference_rmsnorm_scratch, NULL},
    {HS_OP_RMSNORM_BACKWARD_GAIN, 0, hs_reference_rmsnorm_backward_gain, hs_reference_rmsnorm_backward_gain_scratch,
     NULL},
    {HS_OP_ROTARY, 0, hs_reference_rotary, NULL, NULL},
    {HS_OP_ROTARY_BACKWARD, 0, hs_reference_rotary_backward, NULL, NULL},
    {HS_OP_ATTENTION, 0, hs_reference_attention, hs_reference_attention_scratch, NULL},
    {HS_OP_ATTENTION_BACKWARD, 0, hs_reference_attention_backward, hs_reference_attention_backward_scratch, NULL},
    {HS_OP_SWIGLU, 0, hs_reference_swiglu, NULL, NULL},
    {HS_OP_SWIGLU_BACKWARD, 0, hs_reference_swiglu_backward, NULL, NULL},
    {HS_OP_ADD, 0, hs_reference_add, NULL, NULL},
    {HS_OP_CROSS_ENTROPY, 0, hs_reference_cross_entropy, hs_reference_cross_entropy_scratch, NULL},
    {HS_OP_CROSS_ENTROPY_BACKWARD, 0, hs_reference_cross_entropy_backward, NULL, NULL},
    {HS_OP_ADD_BIAS, 0, hs_reference_add_bias, NULL, NULL},
    {HS_OP_SUM_ROWS, 0, hs_reference_sum_rows, hs_reference_sum_rows_scratch, NULL},
    {HS_OP_MULTIPLY, 0, hs_reference_multiply, NULL, NULL},
    {HS_OP_SCALE, 0, hs_reference_scale, NULL, NULL},
    {HS_OP_SUM, 0, hs_reference_sum, NULL, NULL},
    {HS_OP_FILL, 0, hs_reference_fill, NULL, NULL},
    {HS_OP_TRANSPOSE, 0, hs_reference_transpose, NULL, NULL},
    {HS_OP_SOFTMAX, 0, hs_reference_softmax, NULL, NULL},
    {HS_OP_SOFTMAX_BACKWARD, 0, hs_reference_softmax_backward, hs_reference_softmax_backward_scratch, NULL},
    {HS_OP_LOG, 0, hs_reference_log, NULL, NULL},
    {HS_OP_LOG_BACKWARD, 0, hs_reference_log_backward, NULL, NULL},
    {HS_OP_SILU, 0, hs_reference_silu, NULL, NULL},
    {HS_OP_SILU_BACKWARD, 0, hs_reference_silu_backward, NULL, NULL},
    {HS_OP_SQUARE_SUM, 0, hs_reference_square_sum, hs_reference_square_sum_scratch, NULL},
    {HS_OP_MEASURE, 0, hs_reference_measure, NULL, NULL},
    {HS_OP_ADAMW, 0, hs_reference_adamw, NULL, NULL},
};

const hs_cpu_tier hs_cpu_reference_tier = {
    .name = "cpu-reference",
    .locates = true,
    .levers = levers,
    .lever_count = sizeof levers / sizeof *levers,
    .compact = sizeof levers / sizeof *levers,
    .entries = entries,
    .entry_count = sizeof entries / sizeof *entries,
};
