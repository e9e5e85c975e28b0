/* What a model computes without learning. */
#include <math.h>
#include <stdlib.h>

#include "engine/error.h"
#include "engine/model/model.h"

/* The input that holds a cross-entropy loss's targets, or 0 for another loss. */
static hstep_value find_targets(const hstep_graph *graph) {
    for (size_t n = 0; n < graph->forward_count; n++) {
        const hs_node *node = &graph->nodes[n];
        if (node->outputs[0] == graph->loss && node->operation == HS_OP_CROSS_ENTROPY)
            return node->inputs[1];
    }
    return 0;
}

static double count_targets(const hstep_graph *graph, hstep_value targets, const hstep_batch *batch) {
    const hs_value_info *info = hs_graph_value(graph, targets);
    const int32_t *data = hs_batch_data(batch, info->name);
    size_t count = hs_resolve_dim(info->dims[0], batch->sequences, batch->length);
    double valid = 0;
    while (count-- > 0)
        valid += data[count] >= 0;
    return valid;
}

hstep_status hs_model_batch_weight(const hstep_model *model, const hstep_batch *batch, double *weight,
                                   hstep_error *error) {
    HS_RETURN_IF(!isfinite(batch->weight) || batch->weight < 0, error, HSTEP_ERROR_ARGUMENT,
                 "a batch's weight must be finite and at least 0");
    const hstep_value targets = find_targets(model->graph);
    *weight = targets != 0 ? count_targets(model->graph, targets, batch) : 1;
    if (batch->weight > 0 && *weight > 0)
        *weight = batch->weight;
    return HSTEP_OK;
}

/* Of the head's logits, the plan has `head_rows` rows at a time (hs_plan_request). */
static hstep_status find_plan(hstep_model *model, hs_mode mode, size_t sequences, size_t length, size_t head_rows,
                              hs_plan **plan, hstep_error *error) {
    const hs_plan_request request = {.backend = model->context->backend,
                                     .graph = model->graph,
                                     .mode = mode,
                                     .sequences = sequences,
                                     .length = length,
                                     .parameters = model->parameters,
                                     .casts = model->casts,
                                     .head_rows = head_rows};
    return hs_plan_cache_get(&model->plans, &request, plan, error);
}

hstep_status hstep_model_prepare_loss(hstep_model *model, size_t sequences, size_t length, hstep_error *error) {
    HS_RETURN_IF(model == NULL, error, HSTEP_ERROR_ARGUMENT, "hstep_model_prepare_loss needs a model");
    HS_FORWARD(hs_batch_check_shape(sequences, length, error));
    hs_plan *plan = NULL;
    return find_plan(model, HS_MODE_LOSS, sequences, length, model->head_rows, &plan, error);
}

/* Checks a batch and feeds it to its plan. */
static hstep_status make_ready(hstep_model *model, const hstep_batch *batch, hs_mode mode, size_t head_rows,
                               hs_plan **plan, hstep_error *error) {
    HS_FORWARD(hs_model_check_whole(model, error));
    HS_FORWARD(hs_batch_check(model->graph, mode, batch, error));
    HS_FORWARD(find_plan(model, mode, batch->sequences, batch->length, head_rows, plan, error));
    HS_FORWARD(hs_model_refresh_casts(model, error));
    return hs_plan_feed(*plan, batch, error);
}

/* Runs the forward pass and reads one value. */
static hstep_status compute(hstep_model *model, const hstep_batch *batch, hs_mode mode, hstep_value value,
                            double *result, double *weight, hstep_error *error) {
    hs_plan *plan = NULL;
    HS_FORWARD(make_ready(model, batch, mode, model->head_rows, &plan, error));
    if (weight != NULL)
        HS_FORWARD(hs_model_batch_weight(model, batch, weight, error));
    HS_FORWARD(hs_plan_evaluate(plan, error));
    return mode == HS_MODE_LOSS ? hs_plan_read_loss(plan, result, error) : hs_plan_read(plan, value, result, error);
}

hstep_status hstep_model_loss(hstep_model *model, const hstep_batch *batch, double *sum, double *weight,
                              hstep_error *error) {
    HS_RETURN_IF(model == NULL || batch == NULL || sum == NULL || weight == NULL, error, HSTEP_ERROR_ARGUMENT,
                 "hstep_model_loss needs a model, a batch and two places");
    double total = 0, divisor = 0;
    HS_FORWARD(compute(model, batch, HS_MODE_LOSS, model->graph->loss, &total, &divisor, error));
    *sum = total;
    *weight = divisor;
    return HSTEP_OK;
}

hstep_status hstep_model_output(hstep_model *model, const hstep_batch *batch, double *output, hstep_error *error) {
    HS_RETURN_IF(model == NULL || batch == NULL || output == NULL, error, HSTEP_ERROR_ARGUMENT,
                 "hstep_model_output needs a model, a batch and a place for the output");
    HS_RETURN_IF(model->graph->output == 0, error, HSTEP_ERROR_ARGUMENT,
                 "the graph has no output; call hstep_graph_set_output before the model is made");
    return compute(model, batch, HS_MODE_OUTPUT, model->graph->output, output, NULL, error);
}

size_t hstep_model_output_size(const hstep_model *model, size_t sequences, size_t length) {
    if (model->graph->output == 0)
        return 0;
    const hs_value_info *info = hs_graph_value(model->graph, model->graph->output);
    size_t count = 1;
    for (uint32_t i = 0; i < info->rank; i++)
        count *= hs_resolve_dim(info->dims[i], sequences, length);
    return count;
}

/* ---- Every value on the way ---- */

static hstep_status show(hs_plan *plan, size_t call, double *room, hstep_trace_function see, void *data,
                         hstep_error *error) {
    const hs_node *node = hs_plan_call_node(plan, call);
    const hs_view *view = &plan->views[node->outputs[0] - 1];
    hstep_traced_value value = {.name = node->name,
                                .rank = view->rank,
                                .elements = hs_view_elements(view),
                                .dtype = view->dtype,
                                .values = room};
    for (uint32_t i = 0; i < view->rank; i++)
        value.dims[i] = view->dims[i];
    HS_FORWARD(hs_read_numbers(plan->request.backend, view, 0, value.elements, room, error));
    see(data, &value);
    return HSTEP_OK;
}

/* The most elements that an operation of the forward pass gives. */
static size_t largest_output(const hs_plan *plan) {
    size_t most = 1;
    for (size_t call = 0; call < plan->forward_calls; call++) {
        const size_t elements = hs_view_elements(&plan->views[hs_plan_call_node(plan, call)->outputs[0] - 1]);
        most = elements > most ? elements : most;
    }
    return most;
}

hstep_status hstep_model_trace(hstep_model *model, const hstep_batch *batch, hstep_trace_function see, void *data,
                               hstep_error *error) {
    HS_RETURN_IF(model == NULL || batch == NULL || see == NULL, error, HSTEP_ERROR_ARGUMENT,
                 "hstep_model_trace needs a model, a batch and a function that sees the values");
    hs_plan *plan = NULL;
    HS_FORWARD(make_ready(model, batch, HS_MODE_LOSS, SIZE_MAX, &plan, error));
    double *room = calloc(largest_output(plan), sizeof *room);
    if (room == NULL)
        return hs_fail_memory(error, "a trace");
    hstep_status status = HSTEP_OK;
    for (size_t call = 0; call < plan->forward_calls && status == HSTEP_OK; call++) {
        status = hs_plan_step(plan, call, error);
        if (status == HSTEP_OK || status == HSTEP_ERROR_NONFINITE_FORWARD) {
            const hstep_status shown = show(plan, call, room, see, data, error);
            status = shown != HSTEP_OK ? shown : status;
        }
    }
    free(room);
    return status;
}
