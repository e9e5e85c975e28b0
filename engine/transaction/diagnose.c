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
    HS_FORWARD(hs_read_numbers(backend, view, first, count, values, NULL));
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

/* Gives a view a buffer of the reference's, which knows no 16 bits; an operand's values come along. */
static hstep_status move_view(const rerun *r, hs_view *view, bool operand) {
    const hs_view source = *view;
    view->dtype = hs_dtype_is_half(source.dtype) ? HSTEP_DTYPE_F64 : source.dtype;
    view->offset = 0;
    const size_t bytes = hs_view_bytes(view);
    HS_FORWARD(r->reference->api->buffer_create(r->reference, bytes, &view->buffer, NULL));
    if (!operand)
        return HSTEP_OK;
    void *data = malloc(bytes + 1);
    if (data == NULL)
        return HSTEP_ERROR_MEMORY;
    hstep_status status = hs_read_numbers(r->from, &source, 0, hs_view_elements(&source), data, NULL);
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

/* Whether a call has values that its outputs may hide: inside, or rounded to infinity where they are stored. */
static bool hides_values(const hs_call *call) {
    bool rounds = false;
    for (uint32_t i = 0; i < call->output_count; i++)
        rounds = rounds || (call->operation != HS_OP_MATMUL && hs_dtype_is_half(call->outputs[i].dtype));
    return rounds || call->operation == HS_OP_ATTENTION || call->operation == HS_OP_ATTENTION_BACKWARD;
}

hstep_status hs_run_again(hs_plan *plan, bool exact, size_t first, size_t count, uint32_t *flags) {
    hs_backend *backend = plan->request.backend;
    HS_FORWARD((exact ? backend->api->program_run_exact : backend->api->program_run)(backend, plan->program, first,
                                                                                     count, NULL));
    return backend->api->program_finish(backend, plan->program, flags, NULL);
}

/* Where an attempt ended that flagged `call`. */
static size_t attempt_end(const hs_plan *plan, size_t call) {
    return hs_plan_is_forward(plan, call) ? plan->forward_calls : plan->calls;
}

/* Whether gated levers took part, which the reference knows nothing of. */
static bool is_gated(const hstep_model *model) {
    const hs_lever_table *table = &model->context->levers;
    for (size_t i = 0; i < table->count; i++)
        if (!table->levers[i].exact && table->levers[i].state == HSTEP_LEVER_ACTIVE)
            return model->context->backend->api->program_run_exact != NULL;
    return false;
}

/* The first call of the same phase that exact kernels flag. Where they flag none, false: it is the lever's alone. */
static bool find_exact_call(hs_plan *plan, size_t *call) {
    const size_t end = attempt_end(plan, *call);
    if (hs_run_again(plan, true, 0, end, plan->flags) != HSTEP_OK)
        return false;
    const size_t first = hs_plan_first_flagged(plan, hs_plan_call_node(plan, *call)->phase);
    if (first == plan->calls)
        return false;
    *call = first;
    return true;
}

/* Where the first cell of an output stands in the whole value, of which a node may make some rows. */
static uint64_t first_cell(const hs_node *node, const hs_view *output) {
    const bool of_rows = node->cut.rows != 0 && !node->attributes.continues && !node->attributes.unfinished;
    return of_rows ? (uint64_t)node->cut.first * output->strides[0] : 0;
}

static hs_fault locate(hstep_model *model, hs_plan *plan, size_t call, bool exact) {
    hs_backend *backend = plan->request.backend;
    if (backend->api->locate != NULL)
        return backend->api->locate(backend, plan->program, call);
    const hs_call again = hs_plan_call(plan, call);
    hs_fault fault = {0};
    if (hs_run_again(plan, exact, 0, call, NULL) != HSTEP_OK)
        return fault;
    if (hides_values(&again))
        fault = locate_on_reference(model, &again);
    if (hs_run_again(plan, exact, call, 1, NULL) == HSTEP_OK && !fault.found)
        fault = scan_outputs(backend, &again);
    return fault;
}

/* What the attempt left behind stands there again: a caller may read the gradients of a step-by-step attempt. */
static void restore(hs_plan *plan, size_t flagged, size_t located, bool exact) {
    const size_t end = attempt_end(plan, flagged), first = exact ? 0 : located + 1;
    if (plan->request.backend->api->locate == NULL)
        (void)hs_run_again(plan, false, first, end - first, NULL);
}

hs_diagnosis hs_diagnose(hstep_model *model, hs_plan *plan, size_t call, hstep_overflow *overflow) {
    const size_t flagged = call;
    const bool exact = is_gated(model) && find_exact_call(plan, &call);
    const hs_node *node = hs_plan_call_node(plan, call);
    hs_fault fault = locate(model, plan, call, exact);
    restore(plan, flagged, call, exact);
    if (!fault.found)
        fault = (hs_fault){.value = NAN};
    const char *tensor = fault.part;
    if (fault.found && tensor == NULL) {
        const hs_call found = hs_plan_call(plan, call);
        fault.index += first_cell(node, &found.outputs[fault.output]);
    }
    if (tensor == NULL)
        tensor = hs_graph_value(plan->request.graph, node->outputs[fault.output])->name;
    (void)snprintf(overflow->operation, sizeof overflow->operation, "%s", node->name);
    (void)snprintf(overflow->tensor, sizeof overflow->tensor, "%s", tensor);
    overflow->phase = node->phase == HS_PHASE_FORWARD ? "forward" : "backward";
    overflow->kind = hs_nonfinite_kind(fault.value);
    overflow->index = fault.index;
    return (hs_diagnosis){call, exact};
}
