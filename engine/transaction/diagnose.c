#include "engine/transaction/diagnose.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/error.h"

const char *hs_nonfinite_kind(double value) { return isnan(value) ? "nan" : "inf"; }

/* Copies `bytes` from one backend's buffer to another's. */
static hstep_status copy_across(hs_backend *from, const hs_view *source, hs_backend *to, const hs_view *target,
                                hstep_error *error) {
    const size_t bytes = hs_view_bytes(source);
    void *data = malloc(bytes + 1);
    if (data == NULL)
        return hs_fail_memory(error, "naming an overflow");
    hstep_status status = from->api->read(from, source->buffer, source->offset, data, bytes, error);
    if (status == HSTEP_OK)
        status = to->api->write(to, target->buffer, target->offset, data, bytes, error);
    free(data);
    return status;
}

/* Parameters, inputs and the seed: all that a plan's program reads and does not compute. */
static hstep_status copy_operands(const hs_plan *failed, hs_plan *again, hstep_error *error) {
    for (size_t v = 0; v < failed->request.graph->value_count; v++) {
        const hs_role role = failed->request.graph->values[v].role;
        if (failed->views[v].rank != 0 && (role == HS_ROLE_PARAMETER || role == HS_ROLE_INPUT || role == HS_ROLE_SEED))
            HS_FORWARD(copy_across(failed->request.backend, &failed->views[v], again->request.backend, &again->views[v],
                                   error));
    }
    return HSTEP_OK;
}

static void describe(const hs_plan *plan, size_t call, const hs_fault *fault, hstep_overflow *overflow) {
    const hs_node *node = hs_plan_call_node(plan, call);
    const char *tensor = fault->part;
    if (tensor == NULL)
        tensor = hs_graph_value(plan->request.graph, node->outputs[fault->output])->name;
    (void)snprintf(overflow->operation, sizeof overflow->operation, "%s", node->name);
    (void)snprintf(overflow->tensor, sizeof overflow->tensor, "%s", tensor);
    overflow->phase = node->phase == HS_PHASE_FORWARD ? "forward" : "backward";
    overflow->kind = hs_nonfinite_kind(fault->value);
    overflow->index = fault->index;
}

/* The first call of that phase that is flagged, or plan->calls. */
static size_t first_flagged(const hs_plan *plan, hs_phase phase) {
    size_t call = phase == HS_PHASE_FORWARD ? 0 : plan->forward_calls;
    const size_t end = phase == HS_PHASE_FORWARD ? plan->forward_calls : plan->calls;
    while (call < end && plan->flags[call] == 0)
        call++;
    return call < end ? call : plan->calls;
}

static hstep_status run_again(const hs_plan *failed, hs_plan *again, hs_phase phase, hstep_overflow *overflow,
                              hstep_error *error) {
    HS_FORWARD(copy_operands(failed, again, error));
    HS_FORWARD(hs_plan_forward(again, error));
    if (phase == HS_PHASE_BACKWARD)
        HS_FORWARD(hs_plan_backward(again, error));
    size_t ignored = 0;
    HS_FORWARD(hs_plan_finish(again, &ignored, error));
    const size_t call = first_flagged(again, phase);
    if (call < again->calls) {
        const hs_fault fault = again->request.backend->api->locate(again->request.backend, again->program, call);
        describe(again, call, &fault, overflow);
    } else {
        const hs_fault fault = {.found = true, .value = INFINITY};
        describe(failed, first_flagged(failed, phase), &fault, overflow);
    }
    return HSTEP_OK;
}

hstep_status hs_diagnose(hstep_model *model, const hs_plan *failed, hs_phase phase, hstep_overflow *overflow,
                         hstep_error *error) {
    hs_backend *reference = NULL;
    hs_buffer **parameters = NULL, **gradients = NULL;
    hs_plan *again = NULL;
    HS_FORWARD(hs_context_reference(model->context, &reference, error));
    hstep_status status = hs_parameter_buffers_create(model, reference, &parameters, error);
    if (status == HSTEP_OK)
        status = hs_parameter_buffers_create(model, reference, &gradients, error);
    if (status == HSTEP_OK) {
        hs_plan_request request = failed->request;
        request.backend = reference;
        request.parameters = parameters;
        request.gradients = gradients;
        status = hs_plan_create(&request, &again, error);
    }
    if (status == HSTEP_OK)
        status = run_again(failed, again, phase, overflow, error);
    hs_plan_destroy(again);
    hs_parameter_buffers_destroy(model, reference, parameters);
    hs_parameter_buffers_destroy(model, reference, gradients);
    return status;
}
