/*
 * Which values stand in 16 bits. A computed value may where that loses nothing: because a product made it, whose
 * results are of the half format anyway, or because products alone read it, which would round it themselves (policy,
 * section 2). It does where the backend has kernels for it. Parameters keep their f64 masters; products read the casts
 * that the model keeps beside them.
 */
#include "engine/plan/plan.h"

static bool has_products(const hs_node *node) {
    return node->operation == HS_OP_MATMUL || node->operation == HS_OP_ATTENTION ||
           node->operation == HS_OP_ATTENTION_BACKWARD;
}

/* The format that a node's output is of whatever its slot, or f64 for none. */
static hstep_dtype result_format(const hs_node *node, uint32_t output) {
    const hs_attributes *a = &node->attributes;
    if (!has_products(node))
        return HSTEP_DTYPE_F64;
    /* Grouped heads add up in f64. */
    if (node->operation == HS_OP_ATTENTION_BACKWARD && output > 0 && a->heads != a->kv_heads)
        return HSTEP_DTYPE_F64;
    return hs_operand_dtype(node->precision);
}

static bool reads(const hs_node *node, hstep_value value) {
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] == value)
            return true;
    return false;
}

/* The format to which every reader of a value rounds it, or f64 for none. */
static hstep_dtype operand_format(const hs_plan *plan, hstep_value value) {
    const hstep_graph *graph = plan->request.graph;
    hstep_dtype format = HSTEP_DTYPE_F64;
    bool first = true;
    for (size_t n = 0; n < graph->node_count; n++) {
        const hs_node *node = &graph->nodes[n];
        if (!plan->needed[n] || !reads(node, value))
            continue;
        const hstep_dtype wanted = has_products(node) ? hs_operand_dtype(node->precision) : HSTEP_DTYPE_F64;
        if (!first && wanted != format)
            return HSTEP_DTYPE_F64;
        format = wanted;
        first = false;
    }
    return format;
}

/* Whether the backend takes every call that a value has a part in, as the plan's views stand. */
static bool is_supported(const hs_plan *plan, const hs_node *producer, hstep_value value) {
    const hstep_graph *graph = plan->request.graph;
    const hs_backend *backend = plan->request.backend;
    for (size_t n = 0; n < graph->node_count; n++) {
        const hs_node *node = &graph->nodes[n];
        if (!plan->needed[n] || (node != producer && !reads(node, value)))
            continue;
        const hs_call call = hs_plan_make_call(plan, node);
        if (!backend->api->supports(backend, &call))
            return false;
    }
    return true;
}

/* Values that somebody outside the program reads stay f64. */
static bool is_kept(const hs_plan *plan, hstep_value value) {
    const hstep_graph *graph = plan->request.graph;
    if (value == graph->loss || (value == graph->output && plan->request.mode == HS_MODE_OUTPUT))
        return true;
    for (size_t v = 0; v < graph->value_count; v++)
        if (graph->values[v].role == HS_ROLE_PARAMETER && graph->values[v].adjoint == value)
            return true;
    return false;
}

static void choose(hs_plan *plan, const hs_node *node, uint32_t output) {
    const hstep_value value = node->outputs[output];
    hs_view *view = &plan->views[value - 1];
    if (is_kept(plan, value))
        return;
    const hstep_dtype own = result_format(node, output);
    view->dtype = own != HSTEP_DTYPE_F64 ? own : operand_format(plan, value);
    if (view->dtype != HSTEP_DTYPE_F64 && !is_supported(plan, node, value))
        view->dtype = HSTEP_DTYPE_F64;
}

void hs_plan_compact(hs_plan *plan) {
    const hstep_graph *graph = plan->request.graph;
    for (size_t n = 0; n < graph->node_count; n++)
        for (uint32_t i = 0; i < graph->nodes[n].output_count && plan->needed[n]; i++)
            choose(plan, &graph->nodes[n], i);
}

hstep_dtype hs_plan_cast_format(const hstep_graph *graph, const hs_backend *backend, hstep_value parameter) {
    for (size_t n = 0; n < graph->node_count; n++) {
        const hs_node *node = &graph->nodes[n];
        const hstep_dtype format = hs_operand_dtype(node->precision);
        if (node->operation != HS_OP_MATMUL || !reads(node, parameter) || format == HSTEP_DTYPE_F64)
            continue;
        const hs_call calls[] = {
            {.operation = HS_OP_MATMUL, .precision = node->precision, .input_count = 1, .inputs = {{.dtype = format}}},
            {.operation = HS_OP_SCALE, .output_count = 1, .outputs = {{.dtype = format}}},
            {.operation = HS_OP_ADAMW, .output_count = 4, .outputs = {[HS_ADAMW_CAST] = {.dtype = format}}}};
        bool supported = true;
        for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
            supported = supported && backend->api->supports(backend, &calls[i]);
        if (supported)
            return format;
    }
    return HSTEP_DTYPE_F64;
}
