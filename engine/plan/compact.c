/*
 * Which values stand in 16 bits. A computed value may where that loses nothing: because a product made it, whose
 * results are of the half format anyway, or because products alone read it, which would round it themselves (policy,
 * section 2). It does where the backend has kernels for it. Parameters keep their f64 masters; products read the casts
 * that the model keeps beside them.
 */
#include <stdlib.h>

#include "engine/error.h"
#include "engine/plan/plan.h"

/* The format that a node's output is of whatever its slot, or f64 for none. */
static hstep_dtype result_format(const hs_node *node, uint32_t output) {
    const hs_attributes *a = &node->attributes;
    if (!hs_has_products(node->operation) || a->continues || a->unfinished)
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

/* What is asked of every value, gathered in one pass over the graph. */
typedef struct uses {
    size_t *first;   /* by value: the readers of value v are nodes[first[v]] .. nodes[first[v + 1] - 1] */
    uint32_t *nodes; /* those that the plan needs, ascending; once for each input */
    bool *kept;      /* by value - 1: somebody outside the program reads it, so that it stays f64 */
} uses;

static void find_kept(const hs_plan *plan, bool *kept) {
    const hstep_graph *graph = plan->request.graph;
    for (size_t v = 0; v < graph->value_count; v++)
        if (graph->values[v].role == HS_ROLE_PARAMETER && graph->values[v].adjoint != 0)
            kept[graph->values[v].adjoint - 1] = true;
    if (graph->loss != 0)
        kept[graph->loss - 1] = true;
    if (graph->output != 0 && plan->request.mode == HS_MODE_OUTPUT)
        kept[graph->output - 1] = true;
}

/* Counts the readers of each value, then puts them behind each other. */
static void find_readers(const hs_plan *plan, uses *u) {
    const hstep_graph *graph = plan->request.graph;
    for (size_t n = 0; n < graph->node_count; n++)
        for (uint32_t i = 0; i < graph->nodes[n].input_count && plan->needed[n]; i++)
            u->first[graph->nodes[n].inputs[i]]++;
    for (size_t v = 0; v <= graph->value_count; v++)
        u->first[v + 1] += u->first[v];
    for (size_t n = graph->node_count; n-- > 0;)
        for (uint32_t i = 0; i < graph->nodes[n].input_count && plan->needed[n]; i++)
            u->nodes[--u->first[graph->nodes[n].inputs[i]]] = (uint32_t)n;
}

/* The format to which every reader of a value rounds it, or f64 for none. */
static hstep_dtype operand_format(const hs_plan *plan, const uses *u, hstep_value value) {
    hstep_dtype format = HSTEP_DTYPE_F64;
    for (size_t r = u->first[value]; r < u->first[value + 1]; r++) {
        const hs_node *node = &plan->request.graph->nodes[u->nodes[r]];
        const hstep_dtype wanted =
            hs_has_products(node->operation) ? hs_operand_dtype(node->precision) : HSTEP_DTYPE_F64;
        if (r > u->first[value] && wanted != format)
            return HSTEP_DTYPE_F64;
        format = wanted;
    }
    return format;
}

static bool is_supported(const hs_plan *plan, const hs_node *node) {
    const hs_call call = hs_plan_make_call(plan, node);
    return plan->request.backend->api->supports(plan->request.backend, &call);
}

/* Whether the backend takes every call that a value has a part in, as the plan's views stand. */
static bool is_taken(const hs_plan *plan, const uses *u, const hs_node *producer, hstep_value value) {
    bool taken = is_supported(plan, producer);
    for (size_t r = u->first[value]; r < u->first[value + 1] && taken; r++)
        taken = is_supported(plan, &plan->request.graph->nodes[u->nodes[r]]);
    return taken;
}

static void choose(hs_plan *plan, const uses *u, const hs_node *node, uint32_t output) {
    const hstep_value value = node->outputs[output];
    hs_view *view = &plan->views[value - 1];
    if (u->kept[value - 1])
        return;
    const hstep_dtype own = result_format(node, output);
    view->dtype = own != HSTEP_DTYPE_F64 || hs_plan_is_measured(plan, value) ? own : operand_format(plan, u, value);
    if (view->dtype != HSTEP_DTYPE_F64 && !is_taken(plan, u, node, value))
        view->dtype = HSTEP_DTYPE_F64;
}

hstep_status hs_plan_compact(hs_plan *plan, hstep_error *error) {
    const hstep_graph *graph = plan->request.graph;
    uses u = {calloc(graph->value_count + 2, sizeof *u.first),
              calloc(graph->node_count * HS_MAX_INPUTS + 1, sizeof *u.nodes),
              calloc(graph->value_count + 1, sizeof *u.kept)};
    const bool whole = u.first != NULL && u.nodes != NULL && u.kept != NULL;
    if (whole) {
        find_readers(plan, &u);
        find_kept(plan, u.kept);
        for (size_t n = 0; n < graph->node_count; n++)
            for (uint32_t i = 0; i < graph->nodes[n].output_count && plan->needed[n]; i++)
                choose(plan, &u, &graph->nodes[n], i);
    }
    free(u.first);
    free(u.nodes);
    free(u.kept);
    return whole ? HSTEP_OK : hs_fail_memory(error, "a plan");
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
