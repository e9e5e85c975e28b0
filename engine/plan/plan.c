#include "engine/plan/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/error.h"
#include "precision/format.h"

/* ---- Which nodes are needed ---- */

static void mark_wanted(const hs_plan *plan, bool *wanted) {
    const hstep_graph *graph = plan->request.graph;
    if (plan->request.mode == HS_MODE_OUTPUT) {
        wanted[graph->output - 1] = true;
        return;
    }
    wanted[graph->loss - 1] = true;
    for (size_t i = 0; i < graph->value_count && plan->request.mode == HS_MODE_TRAIN; i++) {
        if (graph->values[i].role == HS_ROLE_PARAMETER && graph->values[i].adjoint != 0)
            wanted[graph->values[i].adjoint - 1] = true;
    }
}

/* Fills plan->needed; a value that no needed node touches keeps wanted[] false. */
static void select_nodes(hs_plan *plan, bool *wanted) {
    const hstep_graph *graph = plan->request.graph;
    mark_wanted(plan, wanted);
    for (size_t n = graph->node_count; n-- > 0;) {
        const hs_node *node = &graph->nodes[n];
        for (uint32_t i = 0; i < node->output_count; i++)
            plan->needed[n] |= wanted[node->outputs[i] - 1];
        if (!plan->needed[n])
            continue;
        for (uint32_t i = 0; i < node->input_count; i++)
            wanted[node->inputs[i] - 1] = true;
        for (uint32_t i = 0; i < node->output_count; i++)
            wanted[node->outputs[i] - 1] = true;
    }
}

/* ---- Shapes ---- */

static hstep_status resolve_shape(const hs_plan *plan, const hs_value_info *info, hs_view *view, hstep_error *error) {
    *view = (hs_view){.dtype = info->dtype, .rank = info->rank};
    size_t elements = 1;
    for (uint32_t i = info->rank; i-- > 0;) {
        const size_t dim = hs_resolve_dim(info->dims[i], plan->request.sequences, plan->request.length);
        view->dims[i] = dim;
        view->strides[i] = elements;
        HS_RETURN_IF(__builtin_mul_overflow(elements, dim, &elements) || elements > SIZE_MAX / 64, error,
                     HSTEP_ERROR_SHAPE, "\"%s\" has more elements than memory can hold; use a smaller batch",
                     info->name);
    }
    return HSTEP_OK;
}

static hstep_status resolve_shapes(hs_plan *plan, const bool *wanted, hstep_error *error) {
    const hstep_graph *graph = plan->request.graph;
    for (size_t v = 0; v < graph->value_count; v++) {
        if (wanted[v])
            HS_FORWARD(resolve_shape(plan, &graph->values[v], &plan->views[v], error));
    }
    return HSTEP_OK;
}

/* ---- Calls ---- */

static void bind_parameters(hs_plan *plan) {
    size_t index = 0;
    for (size_t v = 0; v < plan->request.graph->value_count; v++) {
        if (plan->request.graph->values[v].role == HS_ROLE_PARAMETER)
            plan->views[v].buffer = plan->request.parameters[index++];
    }
}

/* States have the type that the first of their plans chose; it made their buffers, too. */
static hstep_status bind_states(hs_plan *plan, hstep_error *error) {
    hs_backend *backend = plan->request.backend;
    size_t index = 0;
    for (size_t v = 0; v < plan->request.graph->value_count; v++) {
        hs_view *view = &plan->views[v];
        if (plan->request.graph->values[v].role != HS_ROLE_STATE)
            continue;
        hs_view *state = &plan->request.states[index++];
        if (state->buffer == NULL) {
            hs_buffer *buffer = NULL;
            HS_FORWARD(backend->api->buffer_create(backend, hs_view_bytes(view), &buffer, error));
            *state = *view;
            state->buffer = buffer;
        }
        *view = *state;
    }
    return HSTEP_OK;
}

/* The view of an operand; that of a parameter in a product may be its cast. */
static hs_view operand_view(const hs_plan *plan, const hs_node *node, hstep_value value) {
    const hs_view view = plan->views[value - 1];
    if (node->operation != HS_OP_MATMUL || plan->request.graph->values[value - 1].role != HS_ROLE_PARAMETER ||
        plan->request.casts == NULL)
        return view;
    const hs_view *cast = &plan->request.casts[hs_graph_parameter_index(plan->request.graph, value)];
    if (cast->buffer == NULL || cast->dtype != hs_operand_dtype(node->precision))
        return view;
    hs_view compact = view;
    compact.buffer = cast->buffer;
    compact.dtype = cast->dtype;
    return compact;
}

/* The rows of an operand that a node sees. */
static hs_view cut_rows(const hs_cut *cut, hs_view view) {
    view.offset += cut->first * view.strides[0] * hs_dtype_size(view.dtype);
    view.dims[0] = cut->rows;
    return view;
}

hs_call hs_plan_make_call(const hs_plan *plan, const hs_node *node) {
    hs_call call = {.operation = node->operation,
                    .precision = node->precision,
                    .attributes = node->attributes,
                    .input_count = node->input_count,
                    .output_count = node->output_count};
    call.attributes.sequences = plan->request.sequences;
    for (uint32_t i = 0; i < node->input_count; i++) {
        call.inputs[i] = operand_view(plan, node, node->inputs[i]);
        if (node->cut.inputs >> i & 1)
            call.inputs[i] = cut_rows(&node->cut, call.inputs[i]);
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        call.outputs[i] = plan->views[node->outputs[i] - 1];
        if (node->cut.outputs >> i & 1)
            call.outputs[i] = cut_rows(&node->cut, call.outputs[i]);
    }
    return call;
}

/* Calls that measure are taken for their node's, and never flagged. */
static void append_calls(hs_plan *plan, size_t node, size_t count, bool measuring) {
    const hs_node *of = &plan->request.graph->nodes[node];
    if (of->cut.rows != 0 && plan->head_call == SIZE_MAX)
        plan->head_call = plan->calls;
    for (size_t i = 0; i < count; i++) {
        plan->measuring[plan->calls] = measuring;
        plan->call_nodes[plan->calls++] = node;
    }
    if (of->phase == HS_PHASE_FORWARD)
        plan->forward_calls = plan->calls;
}

static hstep_status fill_program(hs_plan *plan, hs_call *calls, hstep_error *error) {
    const hstep_graph *graph = plan->request.graph;
    hs_backend *backend = plan->request.backend;
    bool first = true;
    plan->head_call = SIZE_MAX;
    for (size_t n = 0; n < graph->node_count; n++) {
        const hs_node *node = &graph->nodes[n];
        if (!plan->needed[n])
            continue;
        if (first)
            append_calls(plan, n, hs_plan_measure(plan, NULL, NULL, calls), true);
        first = false;
        const hs_call call = hs_plan_make_call(plan, node);
        if (!backend->api->supports(backend, &call))
            return hs_fail_operation(error, HSTEP_ERROR_UNSUPPORTED, node->name,
                                     "backend %s has no %s, which \"%s\" needs; choose another backend",
                                     backend->api->name, hs_operation_name(node->operation), node->name);
        calls[plan->calls] = call;
        append_calls(plan, n, 1, false);
        append_calls(plan, n, hs_plan_measure(plan, node, &call, &calls[plan->calls]), true);
    }
    if (plan->head_call == SIZE_MAX)
        plan->head_call = plan->forward_calls;
    return backend->api->program_create(backend, calls, plan->calls, &plan->program, error);
}

static hstep_status make_program(hs_plan *plan, hstep_error *error) {
    const size_t most = plan->request.graph->node_count + hs_plan_most_measures(plan);
    hs_call *calls = calloc(most + 1, sizeof *calls);
    plan->call_nodes = calloc(most + 1, sizeof *plan->call_nodes);
    plan->flags = calloc(most + 1, sizeof *plan->flags);
    plan->measuring = calloc(most + 1, sizeof *plan->measuring);
    const hstep_status status =
        calls == NULL || plan->call_nodes == NULL || plan->flags == NULL || plan->measuring == NULL
            ? hs_fail_memory(error, "a plan")
            : fill_program(plan, calls, error);
    free(calls);
    return status;
}

static hstep_status build(hs_plan *plan, bool *wanted, hstep_error *error) {
    select_nodes(plan, wanted);
    HS_FORWARD(resolve_shapes(plan, wanted, error));
    bind_parameters(plan);
    HS_FORWARD(hs_plan_compact(plan, error));
    HS_FORWARD(bind_states(plan, error));
    HS_FORWARD(hs_plan_make_tables(plan, error));
    HS_FORWARD(hs_plan_place(plan, error));
    HS_FORWARD(hs_plan_prepare_measures(plan, error));
    return make_program(plan, error);
}

hstep_status hs_plan_create(const hs_plan_request *request, hs_plan **plan, hstep_error *error) {
    hs_plan *made = calloc(1, sizeof *made);
    if (made == NULL)
        return hs_fail_memory(error, "a plan");
    made->request = *request;
    made->source = request->graph;
    hstep_status status = hs_plan_divide_head(made, error);
    const hstep_graph *graph = made->request.graph;
    bool *wanted = calloc(graph->value_count + 1, sizeof *wanted);
    if (status == HSTEP_OK) {
        made->needed = calloc(graph->node_count + 1, sizeof *made->needed);
        made->views = calloc(graph->value_count + 1, sizeof *made->views);
        made->owned = calloc(graph->value_count + 1, sizeof(hs_buffer *));
    }
    if (status == HSTEP_OK && (wanted == NULL || made->needed == NULL || made->views == NULL || made->owned == NULL))
        status = hs_fail_memory(error, "a plan");
    if (status == HSTEP_OK)
        status = build(made, wanted, error);
    free(wanted);
    if (status != HSTEP_OK) {
        hs_plan_destroy(made);
        return status;
    }
    *plan = made;
    return HSTEP_OK;
}

void hs_plan_destroy(hs_plan *plan) {
    if (plan == NULL)
        return;
    hs_backend *backend = plan->request.backend;
    if (plan->program != NULL)
        backend->api->program_destroy(backend, plan->program);
    for (size_t v = 0; v < plan->request.graph->value_count && plan->owned != NULL; v++) {
        if (plan->owned[v] != NULL)
            backend->api->buffer_destroy(backend, plan->owned[v]);
    }
    if (plan->measure_results != NULL)
        backend->api->buffer_destroy(backend, plan->measure_results);
    free(plan->measures);
    free(plan->needed);
    free(plan->views);
    free(plan->owned);
    free(plan->call_nodes);
    free(plan->flags);
    free(plan->measuring);
    hstep_graph_destroy(plan->divided);
    free(plan);
}

hs_call hs_plan_call(const hs_plan *plan, size_t call) {
    return hs_plan_make_call(plan, hs_plan_call_node(plan, call));
}

/* ---- Running ---- */

hstep_status hs_plan_write_seed(hs_plan *plan, double seed, hstep_error *error) {
    const hs_view *view = &plan->views[plan->request.graph->seed - 1];
    if (view->buffer == NULL) /* nothing depends on a parameter */
        return HSTEP_OK;
    return plan->request.backend->api->write(plan->request.backend, view->buffer, view->offset, &seed, sizeof seed,
                                             error);
}

static hstep_status run(hs_plan *plan, size_t first, size_t end, hstep_error *error) {
    return plan->request.backend->api->program_run(plan->request.backend, plan->program, first, end - first, error);
}

/* What a divided head computes of the backward pass is left out. */
hstep_status hs_plan_forward(hs_plan *plan, hstep_error *error) {
    if (plan->divided == NULL)
        return run(plan, 0, plan->forward_calls, error);
    for (size_t first = 0, end; first < plan->forward_calls; first = end) {
        for (end = first; hs_plan_is_forward(plan, end); end++)
            ;
        HS_FORWARD(run(plan, first, end, error));
        while (end < plan->forward_calls && !hs_plan_is_forward(plan, end))
            end++;
    }
    return HSTEP_OK;
}

/* A divided head forms its logits once more: they are gone. */
hstep_status hs_plan_backward(hs_plan *plan, hstep_error *error) {
    return run(plan, plan->head_call, plan->calls, error);
}

hstep_status hs_plan_both_passes(hs_plan *plan, hstep_error *error) {
    if (plan->divided != NULL)
        return run(plan, 0, plan->calls, error);
    HS_FORWARD(hs_plan_forward(plan, error));
    return hs_plan_backward(plan, error);
}

size_t hs_plan_first_flagged(const hs_plan *plan, hs_phase phase) {
    size_t first = plan->calls;
    for (size_t call = 0; call < plan->calls; call++) {
        const hs_node *node = hs_plan_call_node(plan, call);
        if (plan->flags[call] != 0 && node->phase == phase &&
            (first == plan->calls || node->origin < hs_plan_call_node(plan, first)->origin))
            first = call;
    }
    return first;
}

hstep_status hs_plan_finish(hs_plan *plan, size_t *first_flagged, hstep_error *error) {
    HS_FORWARD(plan->request.backend->api->program_finish(plan->request.backend, plan->program, plan->flags, error));
    *first_flagged = hs_plan_first_flagged(plan, HS_PHASE_FORWARD);
    if (*first_flagged == plan->calls)
        *first_flagged = hs_plan_first_flagged(plan, HS_PHASE_BACKWARD);
    return HSTEP_OK;
}

static hstep_status fail_forward(const hs_plan *plan, size_t call, hstep_error *error) {
    const char *name = hs_plan_call_node(plan, call)->name;
    return hs_fail_operation(error, HSTEP_ERROR_NONFINITE_FORWARD, name,
                             "operation \"%s\" gave a forward value that is not finite; lower the learning rate, or "
                             "compute in a wider precision",
                             name);
}

hstep_status hs_plan_evaluate(hs_plan *plan, hstep_error *error) {
    size_t flagged = 0;
    HS_FORWARD(hs_plan_forward(plan, error));
    HS_FORWARD(hs_plan_finish(plan, &flagged, error));
    return flagged == plan->calls ? HSTEP_OK : fail_forward(plan, flagged, error);
}

hstep_status hs_plan_step(hs_plan *plan, size_t call, hstep_error *error) {
    hs_backend *backend = plan->request.backend;
    HS_FORWARD(hs_run_and_wait(backend, plan->program, call, 1, plan->flags, error));
    return plan->flags[call] == 0 ? HSTEP_OK : fail_forward(plan, call, error);
}

hstep_status hs_read_numbers(hs_backend *backend, const hs_view *view, size_t first, size_t count, void *numbers,
                             hstep_error *error) {
    const size_t size = hs_dtype_size(view->dtype);
    if (!hs_dtype_is_half(view->dtype))
        return backend->api->read(backend, view->buffer, view->offset + first * size, numbers, count * size, error);
    /* Halves are read into the end of their place, and widened from front to back. */
    double *wide = numbers;
    unsigned char *halves = (unsigned char *)(wide + count) - count * size;
    HS_FORWARD(backend->api->read(backend, view->buffer, view->offset + first * size, halves, count * size, error));
    for (size_t i = 0; i < count; i++) {
        uint16_t half;
        memcpy(&half, halves + i * size, sizeof half);
        wide[i] = hs_decode(hs_dtype_format(view->dtype), half);
    }
    return HSTEP_OK;
}

hstep_status hs_plan_read(hs_plan *plan, hstep_value value, void *data, hstep_error *error) {
    const hs_view *view = &plan->views[value - 1];
    return hs_read_numbers(plan->request.backend, view, 0, hs_view_elements(view), data, error);
}

hstep_status hs_plan_read_loss(hs_plan *plan, double *loss, hstep_error *error) {
    const hstep_graph *graph = plan->request.graph;
    double value = 0;
    HS_FORWARD(hs_plan_read(plan, graph->loss, &value, error));
    if (!isfinite(value)) {
        const char *name = hs_graph_value(graph, graph->loss)->name;
        return hs_fail_operation(error, HSTEP_ERROR_NONFINITE_FORWARD, name, "the loss \"%s\" is not finite", name);
    }
    *loss = value;
    return HSTEP_OK;
}
