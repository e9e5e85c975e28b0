/* The statistics of an attempt, from its first pass to its rows. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/error.h"
#include "engine/transaction/trainer.h"

/* ---- Life ---- */

static hstep_status make(hstep_trainer *trainer, hstep_error *error) {
    hs_trace *trace = &trainer->trace;
    HS_FORWARD(hs_trace_rows_make(trainer->model, &trace->rows, error));
    trace->sums = calloc(trace->rows.measured_count + 1, sizeof *trace->sums);
    if (trace->sums == NULL)
        return hs_fail_memory(error, "statistics");
    HS_FORWARD(hs_trace_weights_make(trainer, error));
    trace->made = true;
    return HSTEP_OK;
}

void hs_trace_free(hstep_trainer *trainer) {
    hs_trace *trace = &trainer->trace;
    hs_backend *backend = trainer->model->context->backend;
    hs_program *const programs[] = {trace->looks, trace->commit};
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++)
        if (programs[i] != NULL)
            backend->api->program_destroy(backend, programs[i]);
    hs_buffer *const buffers[] = {trace->one, trace->change, trace->results};
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++)
        if (buffers[i] != NULL)
            backend->api->buffer_destroy(backend, buffers[i]);
    hs_trace_rows_free(&trace->rows);
    free(trace->sums);
    free(trace->values);
    *trace = (hs_trace){0};
}

hstep_status hstep_trainer_set_trace(hstep_trainer *trainer, int on, hstep_error *error) {
    HS_RETURN_IF(trainer == NULL, error, HSTEP_ERROR_ARGUMENT, "hstep_trainer_set_trace needs a trainer");
    HS_FORWARD(hs_trainer_check_state(trainer, error));
    if (on && !trainer->trace.made) {
        const hstep_status status = make(trainer, error);
        if (status != HSTEP_OK) {
            hs_trace_free(trainer);
            return status;
        }
    }
    trainer->trace.on = on != 0;
    trainer->tape = (hs_tape){0};
    return HSTEP_OK;
}

/* ---- The passes ---- */

void hs_trace_begin(hstep_trainer *trainer) {
    hs_trace *trace = &trainer->trace;
    trace->taken = trace->has_gradients = trace->has_updates = false;
    if (trace->on)
        memset(trace->sums, 0, trace->rows.measured_count * sizeof *trace->sums);
}

hstep_status hs_trace_take(hstep_trainer *trainer, hs_plan *plan, bool forward, bool backward, hstep_error *error) {
    return hs_plan_add_measures(plan, forward, backward, trainer->trace.sums, error);
}

/* ---- The rows ---- */

/* Square sums of gradients are still where the norm was made of them. */
static bool read_square_sums(hstep_trainer *trainer, double *sums) {
    hs_backend *backend = trainer->model->context->backend;
    const size_t bytes = trainer->model->parameter_count * sizeof *sums;
    return backend->api->read(backend, trainer->square_sums, 0, sums, bytes, NULL) == HSTEP_OK;
}

/* The first look at a parameter's weights; others are in other precisions, of the same numbers. */
static const double *find_weights(const hs_trace *trace, size_t parameter) {
    size_t i = 0;
    while (trace->rows.weights[i].parameter != parameter)
        i++;
    return trace->values + trace->layout.weights + i * HS_MEASURES;
}

static void fill_tensor(const hs_trace *trace, size_t i, double square_sum, double unscale) {
    const double *values = trace->values;
    hstep_tensor_trace *row = &trace->rows.tensors[i];
    *row = (hstep_tensor_trace){.name = row->name};
    row->weight_norm = sqrt(values[trace->layout.weight_squares + i]);
    row->weight_largest = find_weights(trace, i)[HS_MEASURE_LARGEST];
    if (trace->has_gradients) {
        row->gradient_norm = sqrt(square_sum);
        row->gradient_largest = values[trace->layout.gradients + i * HS_MEASURES + HS_MEASURE_LARGEST] * unscale;
    }
    if (trace->has_updates) {
        row->update_norm = sqrt(values[trace->layout.update_squares + i]);
        row->update_largest = values[trace->layout.updates + i * HS_MEASURES + HS_MEASURE_LARGEST];
        row->update_ratio = row->weight_norm == 0 ? NAN : row->update_norm / row->weight_norm;
    }
}

static void fill_operand(const hstep_trainer *trainer, size_t i) {
    const hs_trace *trace = &trainer->trace;
    const hs_trace_source source = trace->rows.sources[i];
    hstep_operand_trace *row = &trace->rows.operands[i];
    const double *found = trace->sums[source.place].found;
    row->elements = trace->sums[source.place].elements;
    if (source.is_weight) {
        found = trace->values + trace->layout.weights + source.place * HS_MEASURES;
        row->elements = hs_model_elements(trainer->model, trace->rows.weights[source.place].parameter);
    }
    row->largest = found[HS_MEASURE_LARGEST];
    row->to_zero = (uint64_t)found[HS_MEASURE_TO_ZERO];
    row->to_subnormal = (uint64_t)found[HS_MEASURE_TO_SUBNORMAL];
    row->to_infinity = (uint64_t)found[HS_MEASURE_TO_INFINITY];
    row->nonfinite = (uint64_t)found[HS_MEASURE_NONFINITE];
}

void hs_trace_end(hstep_trainer *trainer, double unscale, bool committed) {
    hs_trace *trace = &trainer->trace;
    const size_t count = trainer->model->parameter_count;
    double *square_sums = calloc(count + 1, sizeof *square_sums);
    trace->has_updates = committed;
    trace->taken = square_sums != NULL && (!trace->has_gradients || read_square_sums(trainer, square_sums)) &&
                   (!committed || hs_trace_look_at_updates(trainer, NULL) == HSTEP_OK);
    for (size_t i = 0; i < count && trace->taken; i++)
        fill_tensor(trace, i, square_sums[i], unscale);
    for (size_t i = 0; i < trace->rows.operand_count && trace->taken; i++)
        fill_operand(trainer, i);
    free(square_sums);
}

hstep_status hstep_trainer_trace(const hstep_trainer *trainer, hstep_trace *trace, hstep_error *error) {
    HS_RETURN_IF(trainer == NULL || trace == NULL, error, HSTEP_ERROR_ARGUMENT,
                 "hstep_trainer_trace needs a trainer and a place for the statistics");
    HS_RETURN_IF(!trainer->trace.taken, error, HSTEP_ERROR_ARGUMENT,
                 "there are no statistics of the last attempt; call hstep_trainer_set_trace before it");
    *trace = (hstep_trace){.tensors = trainer->trace.rows.tensors,
                           .tensor_count = trainer->model->parameter_count,
                           .operands = trainer->trace.rows.operands,
                           .operand_count = trainer->trace.rows.operand_count,
                           .has_gradients = trainer->trace.has_gradients,
                           .has_updates = trainer->trace.has_updates};
    return HSTEP_OK;
}
