#include "engine/transaction/diagnose.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/error.h"

const char *hs_nonfinite_kind(double value) { return isnan(value) ? "nan" : "inf"; }

/* ---- The outputs of a call, as the backend left them ---- */

/* Looks at `count` elements from `first` on; they fit into `values`. */
static hstep_status scan_part(hs_backend *backend, const hs_view *view, size_t first, size_t count, double *values,
                              hs_fault *fault) {
    HS_FORWARD(backend->api->read(backend, view->buffer, view->offset + first * sizeof *values, values,
                                  count * sizeof *values, NULL));
    for (size_t i = 0; i < count && !fault->found; i++) {
        if (!isfinite(values[i]))
            *fault = (hs_fault){.found = true, .output = fault->output, .index = first + i, .value = values[i]};
    }
    return HSTEP_OK;
}

static hs_fault scan_outputs(hs_backend *backend, const hs_call *call) {
    enum { PART = 512 };
    double values[PART];
    hs_fault fault = {0};
    for (uint32_t output = 0; output < call->output_count && !fault.found; output++) {
        const size_t count = hs_view_elements(&call->outputs[output]);
        fault.output = (int)output;
        for (size_t first = 0; first < count && !fault.found; first += PART) {
            const size_t part = count - first < PART ? count - first : PART;
            if (scan_part(backend, &call->outputs[output], first, part, values, &fault) != HSTEP_OK)
                return (hs_fault){0};
        }
    }
    return fault;
}

/* ---- A call on the reference ---- */

typedef struct rerun {
    hs_backend *from, *reference;
    hs_call call; /* on the reference's buffers */
    hs_program *program;
} rerun;

/* Gives a view a buffer of the reference's; an operand's values come along. */
static hstep_status move_view(const rerun *r, hs_view *view, bool operand) {
    const size_t bytes = hs_view_bytes(view);
    hs_buffer *const source = view->buffer;
    HS_FORWARD(r->reference->api->buffer_create(r->reference, bytes, &view->buffer, NULL));
    const size_t offset = view->offset;
    view->offset = 0;
    if (!operand)
        return HSTEP_OK;
    void *data = malloc(bytes + 1);
    if (data == NULL)
        return HSTEP_ERROR_MEMORY;
    hstep_status status = r->from->api->read(r->from, source, offset, data, bytes, NULL);
    if (status == HSTEP_OK)
        status = r->reference->api->write(r->reference, view->buffer, 0, data, bytes, NULL);
    free(data);
    return status;
}

static hstep_status move_call(rerun *r, const hs_call *call, uint32_t *moved) {
    r->call = *call;
    for (uint32_t i = 0; i < call->input_count; i++, ++*moved)
        HS_FORWARD(move_view(r, &r->call.inputs[i], true));
    for (uint32_t i = 0; i < call->output_count; i++, ++*moved)
        HS_FORWARD(move_view(r, &r->call.outputs[i], false));
    return HSTEP_OK;
}

static hstep_status run_on_reference(rerun *r, hs_fault *fault) {
    const hs_backend_api *api = r->reference->api;
    HS_FORWARD(api->program_create(r->reference, &r->call, 1, &r->program, NULL));
    const hstep_status status = hs_run_and_wait(r->reference, r->program, 0, 1, NULL, NULL);
    if (status == HSTEP_OK)
        *fault = api->locate(r->reference, r->program, 0);
    api->program_destroy(r->reference, r->program);
    return status;
}

/* The call's operands must still be what it read. */
static hs_fault locate_on_reference(hstep_model *model, const hs_call *call) {
    rerun r = {.from = model->context->backend};
    hs_fault fault = {0};
    uint32_t moved = 0;
    if (hs_context_reference(model->context, &r.reference, NULL) != HSTEP_OK)
        return fault;
    if (move_call(&r, call, &moved) == HSTEP_OK && run_on_reference(&r, &fault) != HSTEP_OK)
        fault = (hs_fault){0};
    for (uint32_t i = 0; i < moved; i++) {
        hs_view *view = i < call->input_count ? &r.call.inputs[i] : &r.call.outputs[i - call->input_count];
        r.reference->api->buffer_destroy(r.reference, view->buffer);
    }
    return fault;
}

/* ---- Putting it together ---- */

/* Whether an operation has values inside that its outputs may hide. */
static bool has_parts(hs_operation operation) {
    return operation == HS_OP_ATTENTION || operation == HS_OP_ATTENTION_BACKWARD;
}

static hs_fault locate(hstep_model *model, hs_plan *plan, size_t call) {
    hs_backend *backend = plan->request.backend;
    if (backend->api->locate != NULL)
        return backend->api->locate(backend, plan->program, call);
    const hs_call again = hs_plan_call(plan, call);
    hs_fault fault = {0};
    if (hs_run_and_wait(backend, plan->program, 0, call, NULL, NULL) != HSTEP_OK)
        return fault;
    if (has_parts(again.operation))
        fault = locate_on_reference(model, &again);
    if (hs_run_and_wait(backend, plan->program, call, 1, NULL, NULL) == HSTEP_OK && !fault.found)
        fault = scan_outputs(backend, &again);
    /* What the attempt left behind stands there again: a caller may read the gradients of a step-by-step attempt. */
    const size_t end = call < plan->forward_calls ? plan->forward_calls : plan->calls;
    (void)hs_run_and_wait(backend, plan->program, call + 1, end - call - 1, NULL, NULL);
    return fault;
}

void hs_diagnose(hstep_model *model, hs_plan *plan, size_t call, hstep_overflow *overflow) {
    const hs_node *node = hs_plan_call_node(plan, call);
    hs_fault fault = locate(model, plan, call);
    if (!fault.found)
        fault = (hs_fault){.value = NAN};
    const char *tensor = fault.part;
    if (tensor == NULL)
        tensor = hs_graph_value(plan->request.graph, node->outputs[fault.output])->name;
    (void)snprintf(overflow->operation, sizeof overflow->operation, "%s", node->name);
    (void)snprintf(overflow->tensor, sizeof overflow->tensor, "%s", tensor);
    overflow->phase = node->phase == HS_PHASE_FORWARD ? "forward" : "backward";
    overflow->kind = hs_nonfinite_kind(fault.value);
    overflow->index = fault.index;
}
