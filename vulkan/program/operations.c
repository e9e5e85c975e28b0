#include "vulkan/program/operations.h"

#include "vulkan/program/record.h"

#include "engine/check_call.h"

/* Invocations of a group that takes elements; local_size_x in the shaders. */
enum { GROUP = 256 };

/* Elements of output 0, row by row (hs_find_element in the shaders). */
static uint64_t by_element(const hs_call *call) {
    const hs_view *y = &call->outputs[0];
    return (uint64_t)hs_vk_rows(y) * ((hs_vk_columns(y) + GROUP - 1) / GROUP);
}

/* The same of input 0. */
static uint64_t by_input(const hs_call *call) {
    const hs_view *x = &call->inputs[0];
    return (uint64_t)hs_vk_rows(x) * ((hs_vk_columns(x) + GROUP - 1) / GROUP);
}

/* Tiles of 64 x 64 cells. */
static uint64_t by_tile(const hs_call *call) {
    const hs_view *y = &call->outputs[0];
    return (uint64_t)((hs_vk_rows(y) + 63) / 64) * ((hs_vk_columns(y) + 63) / 64);
}

/* Columns of output 0, 64 to a group. */
static uint64_t by_column(const hs_call *call) { return (hs_vk_columns(&call->outputs[0]) + 63) / 64; }

/* A group for each row of input 0. */
static uint64_t by_row(const hs_call *call) { return hs_vk_rows(&call->inputs[0]); }

static uint64_t by_output_row(const hs_call *call) { return hs_vk_rows(&call->outputs[0]); }

static uint64_t once(const hs_call *call) {
    (void)call;
    return 1;
}

/* Rows of 4096 elements, whose sums a sum of a tensor adds up (reduction/tensor_sum.glsl). */
static size_t sum_parts(size_t elements) { return elements / 4096 + (elements % 4096 != 0); }

static uint64_t by_sum(const hs_call *call) { return sum_parts(hs_view_elements(&call->inputs[0])); }

static size_t sum_scratch(const hs_call *call) { return by_sum(call) * sizeof(double); }

static size_t measure_scratch(const hs_call *call) { return by_sum(call) * HS_MEASURES * sizeof(double); }

/* None where the losses of rows are the result. */
static uint64_t by_losses(const hs_call *call) {
    return call->attributes.unfinished ? 0 : sum_parts(call->inputs[0].dims[0]);
}

static uint64_t once_for_losses(const hs_call *call) { return call->attributes.unfinished ? 0 : 1; }

static size_t losses_scratch(const hs_call *call) {
    return call->attributes.unfinished ? 0 : (by_losses(call) + call->inputs[0].dims[0]) * sizeof(double);
}

static uint32_t losses_options(const hs_call *call) { return call->attributes.unfinished ? 4 : 2; }

/* Blocks of 64 rows, whose sums a sum down rows adds up (reduction/column_sum.glsl). */
static size_t row_blocks(const hs_call *call) { return (hs_vk_rows(&call->inputs[0]) + 63) / 64; }

static uint64_t by_block(const hs_call *call) { return row_blocks(call) * by_column(call); }

static size_t blocks_scratch(const hs_call *call) {
    return row_blocks(call) * hs_vk_columns(&call->inputs[0]) * sizeof(double);
}

static size_t gain_scratch(const hs_call *call) {
    return blocks_scratch(call) + hs_vk_rows(&call->inputs[0]) * sizeof(double);
}

/* Rows of input 0, 64 to a group, and a word for each (rows/links.glsl). */
static uint64_t by_gathered(const hs_call *call) { return (hs_vk_rows(&call->inputs[0]) + 63) / 64; }

/* Elements of input 0, 64 of a row to a group. */
static uint64_t by_row_parts(const hs_call *call) {
    return (uint64_t)hs_vk_rows(&call->inputs[0]) * ((hs_vk_columns(&call->inputs[0]) + 63) / 64);
}

static size_t links_scratch(const hs_call *call) { return hs_vk_rows(&call->inputs[0]) * sizeof(uint32_t); }

/* Blocks of 32 queries, for each head of each sequence (attention/queries.glsl). */
static uint64_t by_queries(const hs_call *call, uint32_t q) {
    const hs_attributes *a = &call->attributes;
    return a->sequences * a->heads * ((hs_vk_rows(&call->inputs[q]) / a->sequences + 31) / 32);
}

static uint64_t by_attention(const hs_call *call) { return by_queries(call, 0); }

static uint64_t by_attention_backward(const hs_call *call) { return by_queries(call, 1); }

/* Blocks of 32 keys, for each head of keys. */
static uint64_t by_keys(const hs_call *call) {
    const hs_attributes *a = &call->attributes;
    return a->sequences * a->kv_heads * ((hs_vk_rows(&call->inputs[2]) / a->sequences + 31) / 32);
}

/* Three numbers for each query of each head (attention/adjoint.glsl). */
static size_t attention_scratch(const hs_call *call) {
    return 3 * hs_vk_rows(&call->inputs[1]) * call->attributes.heads * sizeof(double);
}

static uint32_t always_one(const hs_call *call) {
    (void)call;
    return 1;
}

/* Of the table's beginning: without a base, and with one that stands there. */
static uint32_t base_options(const hs_call *call) {
    if (call->input_count == 2)
        return 1;
    const hs_view *base = &call->inputs[2], *table = &call->outputs[0];
    return base->buffer == table->buffer && base->offset == table->offset ? 2U : 0U;
}

static uint32_t adamw_options(const hs_call *call) {
    return (call->attributes.decay ? 1U : 0U) | (call->output_count > HS_ADAMW_CAST ? 2U : 0U);
}

static uint32_t matmul_options(const hs_call *call) {
    const hs_attributes *a = &call->attributes;
    return (a->a_form == HSTEP_TRANSPOSE ? 1U : 0U) | (a->b_form == HSTEP_TRANSPOSE ? 2U : 0U) |
           (a->continues ? 4U : 0U) | (a->unfinished ? HS_VK_SUMS : 0U);
}

#define ELEMENTWISE(name)                                                                                              \
    { .stages = {{HS_VK_SHADER_##name, by_element}}, .stage_count = 1, .flattens = true }

#define ONE_STAGE(name, groups)                                                                                        \
    { .stages = {{HS_VK_SHADER_##name, groups}}, .stage_count = 1 }

static const hs_vk_operation operations[HS_OP_COUNT] = {
    [HS_OP_MATMUL] = {{{HS_VK_SHADER_matmul, by_tile}}, 1, .options = matmul_options},
    [HS_OP_ADD] = ELEMENTWISE(add),
    [HS_OP_MULTIPLY] = ELEMENTWISE(multiply),
    [HS_OP_SCALE] = ELEMENTWISE(scale),
    [HS_OP_FILL] = ELEMENTWISE(fill),
    [HS_OP_LOG] = ELEMENTWISE(log),
    [HS_OP_LOG_BACKWARD] = ELEMENTWISE(log_backward),
    [HS_OP_SILU] = ELEMENTWISE(silu),
    [HS_OP_SILU_BACKWARD] = ELEMENTWISE(silu_backward),
    [HS_OP_SWIGLU] = ELEMENTWISE(swiglu),
    [HS_OP_SWIGLU_BACKWARD] = ELEMENTWISE(swiglu_backward),
    [HS_OP_ADAMW] = {{{HS_VK_SHADER_adamw, by_element}}, 1, .flattens = true, .options = adamw_options},
    [HS_OP_ADD_BIAS] = ONE_STAGE(add_bias, by_element),
    [HS_OP_TRANSPOSE] = ONE_STAGE(transpose, by_element),
    [HS_OP_ROTARY] = ONE_STAGE(rotary, by_element),
    [HS_OP_ROTARY_BACKWARD] = {{{HS_VK_SHADER_rotary, by_element}}, 1, .options = always_one},
    [HS_OP_GATHER] = ONE_STAGE(gather, by_element),
    [HS_OP_GATHER_BACKWARD] = {{{HS_VK_SHADER_gather_backward_base, by_element},
                                {HS_VK_SHADER_gather_backward_links, by_gathered},
                                {HS_VK_SHADER_gather_backward, by_row_parts}},
                               3,
                               .scratch = links_scratch,
                               .options = base_options},
    [HS_OP_RMSNORM] = ONE_STAGE(rmsnorm, by_row),
    [HS_OP_RMSNORM_BACKWARD_INPUT] = ONE_STAGE(rmsnorm_backward_input, by_row),
    [HS_OP_RMSNORM_BACKWARD_GAIN] = {{{HS_VK_SHADER_rmsnorm_scales, by_row},
                                      {HS_VK_SHADER_sum_rows, by_block},
                                      {HS_VK_SHADER_sum_rows_last, by_column}},
                                     3,
                                     .scratch = gain_scratch,
                                     .options = always_one},
    [HS_OP_ATTENTION] = ONE_STAGE(attention, by_attention),
    [HS_OP_ATTENTION_BACKWARD] = {{{HS_VK_SHADER_attention_backward_queries, by_attention_backward},
                                   {HS_VK_SHADER_attention_backward_keys, by_keys}},
                                  2,
                                  .scratch = attention_scratch},
    [HS_OP_SUM_ROWS] = {{{HS_VK_SHADER_sum_rows, by_block}, {HS_VK_SHADER_sum_rows_last, by_column}},
                        2,
                        .scratch = blocks_scratch},
    [HS_OP_SUM] = {{{HS_VK_SHADER_sum, by_sum}, {HS_VK_SHADER_sum_last, once}}, 2, .scratch = sum_scratch},
    [HS_OP_SQUARE_SUM] = {{{HS_VK_SHADER_sum, by_sum}, {HS_VK_SHADER_sum_last, once}},
                          2,
                          .scratch = sum_scratch,
                          .options = always_one},
    [HS_OP_MEASURE] = {{{HS_VK_SHADER_measure, by_sum}, {HS_VK_SHADER_measure_last, once}},
                       2,
                       .scratch = measure_scratch},
    [HS_OP_SOFTMAX] = ONE_STAGE(softmax, by_row),
    [HS_OP_SOFTMAX_BACKWARD] = ONE_STAGE(softmax_backward, by_row),
    [HS_OP_CROSS_ENTROPY] = {{{HS_VK_SHADER_cross_entropy, by_row},
                              {HS_VK_SHADER_sum, by_losses},
                              {HS_VK_SHADER_sum_last, once_for_losses}},
                             3,
                             .scratch = losses_scratch,
                             .options = losses_options},
    [HS_OP_CROSS_ENTROPY_BACKWARD] = ONE_STAGE(cross_entropy_backward, by_output_row),
    [HS_OP_STORE_ROWS] = ONE_STAGE(store_rows, by_input),
};

/* What is another shader in precision f64. */
static const hs_vk_operation operations_f64[HS_OP_COUNT] = {
    [HS_OP_MATMUL] = {{{HS_VK_SHADER_matmul_f64, by_tile}}, 1, .options = matmul_options},
    [HS_OP_ATTENTION] = ONE_STAGE(attention_f64, by_attention),
    [HS_OP_ATTENTION_BACKWARD] = {{{HS_VK_SHADER_attention_backward_queries_f64, by_attention_backward},
                                   {HS_VK_SHADER_attention_backward_keys_f64, by_keys}},
                                  2,
                                  .scratch = attention_scratch},
};

const hs_vk_operation *hs_vk_find(const hs_call *call) {
    const hs_vk_operation *of_f64 = &operations_f64[call->operation];
    return call->precision == HSTEP_PRECISION_F64 && of_f64->stage_count ? of_f64 : &operations[call->operation];
}

bool hs_vk_supports(const hs_call *call) {
    if (!hs_check_types(call) || hs_vk_find(call)->stage_count == 0)
        return false;
    /* Sums before their last rounding are the result itself in f64; the mirror keeps no others. */
    return !call->attributes.sums || call->precision == HSTEP_PRECISION_F64;
}

static uint32_t type_bits(const hs_view *view) {
    switch (view->dtype) {
    case HSTEP_DTYPE_FP16:
        return 1;
    case HSTEP_DTYPE_BF16:
        return 2;
    case HSTEP_DTYPE_F64:
    case HSTEP_DTYPE_I32:
        break;
    }
    return 0;
}

hs_vk_variant hs_vk_variant_of(const hs_call *call, hs_vk_shader shader) {
    const hs_vk_operation *operation = hs_vk_find(call);
    hs_vk_variant variant = {.shader = shader, .precision = (uint32_t)call->precision};
    for (uint32_t i = 0; i < call->input_count; i++)
        variant.types |= type_bits(&call->inputs[i]) << 2 * i;
    for (uint32_t i = 0; i < call->output_count; i++)
        variant.types |= type_bits(&call->outputs[i]) << 2 * (HS_VK_INPUTS + i);
    variant.options = operation->options ? operation->options(call) : 0;
    return variant;
}

static bool has_gaps(const hs_view *view) { return hs_vk_pitch(view) != hs_vk_columns(view); }

/* Whether flattening changes neither what an operand is nor how it goes with the others. */
static bool may_flatten(const hs_view *view, size_t elements) {
    return view->rank < 2 || (!has_gaps(view) && hs_view_elements(view) == elements);
}

static void flatten(hs_view *view) {
    view->dims[0] = hs_view_elements(view);
    view->strides[0] = 1;
    view->rank = 1;
}

hs_call hs_vk_flatten(const hs_call *call) {
    hs_call flat = *call;
    const size_t elements = hs_view_elements(&call->outputs[0]);
    bool may = hs_vk_find(call)->flattens && elements < UINT32_MAX;
    for (uint32_t i = 0; i < call->input_count; i++)
        may = may && may_flatten(&call->inputs[i], elements);
    for (uint32_t i = 0; i < call->output_count; i++)
        may = may && may_flatten(&call->outputs[i], elements);
    for (uint32_t i = 0; may && i < call->input_count; i++)
        flatten(&flat.inputs[i]);
    for (uint32_t i = 0; may && i < call->output_count; i++)
        flatten(&flat.outputs[i]);
    return flat;
}
