/*
 * Weights, gradients and updates. A program looks at weights and gradients before the verdict. A commit that is traced
 * is another program: around ADAMW it notes the negative of a parameter's old values and adds the new ones to it.
 */
#include <stdlib.h>

#include "engine/error.h"
#include "engine/transaction/trainer.h"

static hs_view result_view(const hs_trace *trace, size_t place, size_t count) {
    hs_view view = hs_flat_view(trace->results, count);
    view.offset = place * sizeof(double);
    return view;
}

static hs_call measure(const hs_trace *trace, hs_view view, hstep_precision precision, size_t place) {
    return (hs_call){.operation = HS_OP_MEASURE,
                     .precision = precision,
                     .input_count = 1,
                     .output_count = 1,
                     .inputs = {view},
                     .outputs = {result_view(trace, place, HS_MEASURES)}};
}

static hs_call square_sum(const hs_trace *trace, hs_view view, size_t place) {
    return (hs_call){.operation = HS_OP_SQUARE_SUM,
                     .input_count = 2,
                     .output_count = 1,
                     .inputs = {view, hs_flat_view(trace->one, 1)},
                     .outputs = {result_view(trace, place, 1)}};
}

static hs_trace_layout lay_out(const hs_trace *trace, size_t parameters) {
    hs_trace_layout l = {.weight_squares = 0, .weights = parameters};
    l.gradients = l.weights + trace->rows.weight_count * HS_MEASURES;
    l.end_of_looks = l.gradients + parameters * HS_MEASURES;
    l.update_squares = l.end_of_looks;
    l.updates = l.update_squares + parameters;
    l.end = l.updates + parameters * HS_MEASURES;
    return l;
}

static hs_view parameter_view(const hstep_model *model, hs_buffer *const *buffers, size_t parameter) {
    return hs_flat_view(buffers[parameter], hs_model_elements(model, parameter));
}

static hstep_status make_looks(hstep_trainer *trainer, hs_call *calls, hstep_error *error) {
    const hstep_model *model = trainer->model;
    hs_trace *trace = &trainer->trace;
    size_t count = 0;
    for (size_t i = 0; i < model->parameter_count; i++)
        calls[count++] =
            square_sum(trace, parameter_view(model, model->parameters, i), trace->layout.weight_squares + i);
    for (size_t i = 0; i < trace->rows.weight_count; i++) {
        const hs_traced_weight *weight = &trace->rows.weights[i];
        calls[count++] = measure(trace, parameter_view(model, model->parameters, weight->parameter), weight->precision,
                                 trace->layout.weights + i * HS_MEASURES);
    }
    trace->looks_at_weights = count;
    for (size_t i = 0; i < model->parameter_count; i++)
        calls[count++] = measure(trace, parameter_view(model, trainer->gradients, i), HSTEP_PRECISION_F64,
                                 trace->layout.gradients + i * HS_MEASURES);
    hs_backend *backend = model->context->backend;
    return backend->api->program_create(backend, calls, count, &trace->looks, error);
}

/* HS_TRACE_COMMIT_CALLS of them. */
static void fill_commit(const hstep_trainer *trainer, size_t i, hs_call *calls) {
    const hs_trace *trace = &trainer->trace;
    const hs_view weights = parameter_view(trainer->model, trainer->model->parameters, i);
    hs_view change = weights;
    change.buffer = trace->change;
    calls[0] = (hs_call){.operation = HS_OP_SCALE,
                         .attributes = {.factor = -1},
                         .input_count = 1,
                         .output_count = 1,
                         .inputs = {weights},
                         .outputs = {change}};
    calls[1] = hs_trainer_commit_call(trainer, i);
    calls[2] = (hs_call){
        .operation = HS_OP_ADD, .input_count = 2, .output_count = 1, .inputs = {change, weights}, .outputs = {change}};
    calls[3] = square_sum(trace, change, trace->layout.update_squares + i);
    calls[4] = measure(trace, change, HSTEP_PRECISION_F64, trace->layout.updates + i * HS_MEASURES);
}

static hstep_status make_commit(hstep_trainer *trainer, hs_call *calls, hstep_error *error) {
    const size_t count = trainer->model->parameter_count;
    for (size_t i = 0; i < count; i++)
        fill_commit(trainer, i, &calls[i * HS_TRACE_COMMIT_CALLS]);
    hs_backend *backend = trainer->model->context->backend;
    return backend->api->program_create(backend, calls, count * HS_TRACE_COMMIT_CALLS, &trainer->trace.commit, error);
}

static hstep_status make_buffers(hstep_trainer *trainer, hstep_error *error) {
    hs_trace *trace = &trainer->trace;
    hs_backend *backend = trainer->model->context->backend;
    const double one = 1;
    size_t largest = 0;
    for (size_t i = 0; i < trainer->model->parameter_count; i++)
        if (hs_model_elements(trainer->model, i) > largest)
            largest = hs_model_elements(trainer->model, i);
    trace->layout = lay_out(trace, trainer->model->parameter_count);
    trace->values = calloc(trace->layout.end + 1, sizeof *trace->values);
    if (trace->values == NULL)
        return hs_fail_memory(error, "statistics");
    HS_FORWARD(backend->api->buffer_create(backend, trace->layout.end * sizeof(double), &trace->results, error));
    HS_FORWARD(backend->api->buffer_create(backend, largest * sizeof(double), &trace->change, error));
    HS_FORWARD(backend->api->buffer_create(backend, sizeof one, &trace->one, error));
    return backend->api->write(backend, trace->one, 0, &one, sizeof one, error);
}

hstep_status hs_trace_weights_make(hstep_trainer *trainer, hstep_error *error) {
    HS_FORWARD(make_buffers(trainer, error));
    const size_t parameters = trainer->model->parameter_count, weights = trainer->trace.rows.weight_count;
    hs_call *calls = calloc(parameters * HS_TRACE_COMMIT_CALLS + weights + 1, sizeof *calls);
    if (calls == NULL)
        return hs_fail_memory(error, "statistics");
    hstep_status status = make_looks(trainer, calls, error);
    if (status == HSTEP_OK)
        status = make_commit(trainer, calls, error);
    free(calls);
    return status;
}

static hstep_status read_results(hstep_trainer *trainer, size_t first, size_t end, hstep_error *error) {
    hs_trace *trace = &trainer->trace;
    hs_backend *backend = trainer->model->context->backend;
    return backend->api->read(backend, trace->results, first * sizeof(double), trace->values + first,
                              (end - first) * sizeof(double), error);
}

hstep_status hs_trace_look(hstep_trainer *trainer, bool has_gradients, hstep_error *error) {
    hs_trace *trace = &trainer->trace;
    hs_backend *backend = trainer->model->context->backend;
    if (!trace->on)
        return HSTEP_OK;
    const size_t calls = trace->looks_at_weights + (has_gradients ? trainer->model->parameter_count : 0);
    HS_FORWARD(hs_run_and_wait(backend, trace->looks, 0, calls, NULL, error));
    trace->has_gradients = has_gradients;
    return read_results(trainer, 0, trace->layout.end_of_looks, error);
}

hstep_status hs_trace_look_at_updates(hstep_trainer *trainer, hstep_error *error) {
    return read_results(trainer, trainer->trace.layout.update_squares, trainer->trace.layout.end, error);
}
