/*
 * Measuring what products round. A value is measured right behind the call that puts it out, since its memory may be
 * another's later; nothing that measures writes to a value, so that no bit of a result depends on it.
 */
#include <math.h>
#include <stdlib.h>

#include "engine/error.h"
#include "engine/plan/plan.h"

/* Whether it is what measurement `measured` is about, or some rows of that. */
static bool is_of(const hs_plan *plan, size_t measured, hstep_value value) {
    const hstep_value whole = hs_graph_value(plan->request.graph, value)->whole;
    return plan->request.measured[measured].value == (whole != 0 ? whole : value);
}

bool hs_plan_is_measured(const hs_plan *plan, hstep_value value) {
    for (size_t i = 0; i < plan->request.measured_count; i++)
        if (is_of(plan, i, value))
            return true;
    return false;
}

/* No more calls than that can be needed: one for each output of a node, or each input, in each precision. */
size_t hs_plan_most_measures(const hs_plan *plan) {
    const hstep_graph *graph = plan->request.graph;
    size_t outputs = plan->request.measured_count;
    for (size_t n = 0; n < graph->node_count; n++)
        for (uint32_t i = 0; i < graph->nodes[n].output_count && plan->needed[n]; i++)
            outputs += hs_plan_is_measured(plan, graph->nodes[n].outputs[i]) ? HSTEP_PRECISION_BF16 : 0;
    return outputs;
}

hstep_status hs_plan_prepare_measures(hs_plan *plan, hstep_error *error) {
    if (plan->request.measured_count == 0)
        return HSTEP_OK;
    hs_backend *backend = plan->request.backend;
    const size_t most = hs_plan_most_measures(plan);
    plan->measures = calloc(most, sizeof *plan->measures);
    if (plan->measures == NULL)
        return hs_fail_memory(error, "a plan");
    return backend->api->buffer_create(backend, most * HS_MEASURES * sizeof(double), &plan->measure_results, error);
}

static hs_call measure_view(hs_plan *plan, size_t measured, const hs_view *view, bool backward) {
    hs_view found = hs_flat_view(plan->measure_results, HS_MEASURES);
    found.offset = plan->measure_count * HS_MEASURES * sizeof(double);
    plan->measures[plan->measure_count++] =
        (hs_plan_measurement){.measured = measured, .elements = hs_view_elements(view), .backward = backward};
    return (hs_call){.operation = HS_OP_MEASURE,
                     .precision = plan->request.measured[measured].precision,
                     .input_count = 1,
                     .output_count = 1,
                     .inputs = {*view},
                     .outputs = {found}};
}

static size_t measure_inputs(hs_plan *plan, hs_call *calls) {
    size_t count = 0;
    for (size_t i = 0; i < plan->request.measured_count; i++) {
        const hstep_value value = plan->request.measured[i].value;
        const hs_view *view = &plan->views[value - 1];
        if (hs_graph_value(plan->request.graph, value)->role == HS_ROLE_INPUT && view->buffer != NULL)
            calls[count++] = measure_view(plan, i, view, false);
    }
    return count;
}

size_t hs_plan_measure(hs_plan *plan, const hs_node *node, const hs_call *call, hs_call *calls) {
    if (node == NULL)
        return measure_inputs(plan, calls);
    size_t count = 0;
    for (uint32_t output = 0; output < node->output_count && !node->attributes.unfinished; output++)
        for (size_t i = 0; i < plan->request.measured_count; i++)
            if (is_of(plan, i, node->outputs[output]))
                calls[count++] = measure_view(plan, i, &call->outputs[output], node->phase == HS_PHASE_BACKWARD);
    return count;
}

/* Takes what was found in other numbers into account. */
static void add(hs_findings *sum, uint64_t elements, const double found[HS_MEASURES]) {
    sum->elements += elements;
    sum->found[HS_MEASURE_LARGEST] = fmax(sum->found[HS_MEASURE_LARGEST], found[HS_MEASURE_LARGEST]);
    for (int i = HS_MEASURE_LARGEST + 1; i < HS_MEASURES; i++)
        sum->found[i] += found[i];
}

hstep_status hs_plan_add_measures(hs_plan *plan, bool forward, bool backward, hs_findings *sums, hstep_error *error) {
    const size_t count = plan->measure_count;
    if (count == 0)
        return HSTEP_OK;
    double(*found)[HS_MEASURES] = malloc(count * sizeof *found);
    if (found == NULL)
        return hs_fail_memory(error, "statistics");
    hs_backend *backend = plan->request.backend;
    const hstep_status status =
        backend->api->read(backend, plan->measure_results, 0, found, count * sizeof *found, error);
    for (size_t i = 0; i < count && status == HSTEP_OK; i++) {
        const hs_plan_measurement *measure = &plan->measures[i];
        if (measure->backward ? backward : forward)
            add(&sums[measure->measured], measure->elements, found[i]);
    }
    free(found);
    return status;
}
