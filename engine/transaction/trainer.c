/* A trainer's life and what it tells. */
#include "engine/transaction/trainer.h"

#include <stdlib.h>
#include <string.h>

#include "engine/error.h"
#include "optim/schedule.h"

hstep_trainer_config hstep_trainer_defaults(hstep_precision precision) {
    return (hstep_trainer_config){.adamw = hstep_adamw_defaults(),
                                  .schedule = hstep_schedule_defaults(),
                                  .scaler = hstep_scaler_defaults(precision),
                                  .replicas = 1,
                                  .micro_batches = 1};
}

hstep_trainer_config hstep_trainer_defaults_for(const hstep_model *model) {
    return hstep_trainer_defaults(hs_graph_scaled_precision(model->graph));
}

static hstep_status check_config(const hstep_trainer_config *config, hstep_error *error) {
    const char *refusal = hs_adamw_refusal(&config->adamw);
    HS_RETURN_IF(refusal != NULL, error, HSTEP_ERROR_ARGUMENT, "AdamW: %s", refusal);
    refusal = hs_schedule_refusal(&config->schedule);
    HS_RETURN_IF(refusal != NULL, error, HSTEP_ERROR_ARGUMENT, "schedule: %s", refusal);
    refusal = hs_scaler_refusal(&config->scaler);
    HS_RETURN_IF(refusal != NULL, error, HSTEP_ERROR_ARGUMENT, "loss scaler: %s", refusal);
    HS_RETURN_IF((unsigned)config->recompute > HSTEP_RECOMPUTE_BLOCKS, error, HSTEP_ERROR_ARGUMENT,
                 "recompute is %d; give HSTEP_RECOMPUTE_NONE or HSTEP_RECOMPUTE_BLOCKS", (int)config->recompute);
    size_t window = 0;
    HS_RETURN_IF(config->replicas == 0 || config->micro_batches == 0 ||
                     __builtin_mul_overflow(config->replicas, config->micro_batches, &window) || window > 1u << 20,
                 error, HSTEP_ERROR_ARGUMENT, "a window of %zu replicas x %zu micro-batches; give 1 or more of each",
                 config->replicas, config->micro_batches);
    return HSTEP_OK;
}

static hstep_status check_gradients(const hstep_model *model, hstep_error *error) {
    for (size_t i = 0; i < model->parameter_count; i++) {
        const hs_value_info *info = hs_graph_value(model->graph, model->parameter_values[i]);
        if (info->adjoint == 0)
            return hs_fail_operation(error, HSTEP_ERROR_MISSING_GRADIENT, info->name,
                                     "the loss does not depend on parameter \"%s\"; use it or leave it out",
                                     info->name);
    }
    return HSTEP_OK;
}

/* Tensors in parameter order, one after another: as rows that are scattered into one place. */
static hs_call add_up_call(const hstep_trainer *trainer) {
    const size_t count = trainer->model->parameter_count;
    hs_view sums = hs_flat_view(trainer->square_sums, count), total = hs_flat_view(trainer->square_total, 1),
            rows = hs_flat_view(trainer->no_rows, count);
    sums.rank = total.rank = 2;
    sums.dims[1] = total.dims[1] = sums.strides[1] = total.strides[1] = 1;
    rows.dtype = HSTEP_DTYPE_I32;
    return (hs_call){.operation = HS_OP_GATHER_BACKWARD,
                     .input_count = 2,
                     .output_count = 1,
                     .inputs = {sums, rows},
                     .outputs = {total}};
}

static hstep_status make_norm_program(hstep_trainer *trainer, hs_call *calls, hstep_error *error) {
    const hstep_model *model = trainer->model;
    for (size_t i = 0; i < model->parameter_count; i++) {
        hs_view sum = hs_flat_view(trainer->square_sums, 1);
        sum.offset = i * sizeof(double);
        calls[i] = (hs_call){.operation = HS_OP_SQUARE_SUM,
                             .input_count = 2,
                             .output_count = 1,
                             .inputs = {hs_flat_view(trainer->gradients[i], hs_model_elements(model, i)),
                                        hs_flat_view(trainer->unscale, 1)},
                             .outputs = {sum}};
    }
    calls[model->parameter_count] = add_up_call(trainer);
    hs_backend *backend = model->context->backend;
    return backend->api->program_create(backend, calls, model->parameter_count + 1, &trainer->norm, error);
}

hs_call hs_trainer_commit_call(const hstep_trainer *trainer, size_t parameter) {
    const hstep_model *model = trainer->model;
    const size_t elements = hs_model_elements(model, parameter);
    const uint32_t rank = hs_graph_value(model->graph, model->parameter_values[parameter])->rank;
    const hs_view cast = model->casts[parameter];
    return (hs_call){.operation = HS_OP_ADAMW,
                     .attributes = {.decay = rank >= 2 || trainer->config.adamw.decay_vectors != 0},
                     .input_count = 2,
                     .output_count = cast.buffer != NULL ? 4 : 3,
                     .inputs = {hs_flat_view(trainer->gradients[parameter], elements),
                                hs_flat_view(trainer->scalars, HS_ADAMW_SCALARS)},
                     .outputs = {hs_flat_view(model->parameters[parameter], elements),
                                 hs_flat_view(trainer->first_moments[parameter], elements),
                                 hs_flat_view(trainer->second_moments[parameter], elements), cast}};
}

static hstep_status make_commit_program(hstep_trainer *trainer, hs_call *calls, hstep_error *error) {
    const size_t count = trainer->model->parameter_count;
    for (size_t i = 0; i < count; i++)
        calls[i] = hs_trainer_commit_call(trainer, i);
    hs_backend *backend = trainer->model->context->backend;
    return backend->api->program_create(backend, calls, count, &trainer->commit, error);
}

static hstep_status fill_trainer(hstep_trainer *trainer, hstep_error *error) {
    const hstep_model *model = trainer->model;
    hs_backend *backend = model->context->backend;
    if (trainer->config.recompute == HSTEP_RECOMPUTE_BLOCKS)
        HS_FORWARD(hs_graph_recompute(model->graph, &trainer->recomputing, error));
    HS_FORWARD(hs_parameter_buffers_create(model, backend, &trainer->gradients, error));
    HS_FORWARD(hs_parameter_buffers_create(model, backend, &trainer->first_moments, error));
    HS_FORWARD(hs_parameter_buffers_create(model, backend, &trainer->second_moments, error));
    HS_FORWARD(backend->api->buffer_create(backend, sizeof(double), &trainer->unscale, error));
    HS_FORWARD(
        backend->api->buffer_create(backend, model->parameter_count * sizeof(double), &trainer->square_sums, error));
    HS_FORWARD(backend->api->buffer_create(backend, sizeof(double), &trainer->square_total, error));
    HS_FORWARD(
        backend->api->buffer_create(backend, model->parameter_count * sizeof(int32_t), &trainer->no_rows, error));
    HS_FORWARD(backend->api->buffer_create(backend, HS_ADAMW_SCALARS * sizeof(double), &trainer->scalars, error));
    HS_FORWARD(hs_reduction_create(&trainer->reduction, model, trainer->config.replicas, trainer->config.micro_batches,
                                   trainer->gradients, error));
    hs_call *calls = calloc(model->parameter_count + 1, sizeof *calls);
    if (calls == NULL)
        return hs_fail_memory(error, "a trainer");
    hstep_status status = make_norm_program(trainer, calls, error);
    if (status == HSTEP_OK)
        status = make_commit_program(trainer, calls, error);
    free(calls);
    return status;
}

hstep_status hstep_trainer_create(hstep_model *model, const hstep_trainer_config *config, hstep_trainer **trainer,
                                  hstep_error *error) {
    HS_RETURN_IF(model == NULL || config == NULL || trainer == NULL, error, HSTEP_ERROR_ARGUMENT,
                 "hstep_trainer_create needs a model, settings and a place for the trainer");
    HS_RETURN_IF(model->has_trainer, error, HSTEP_ERROR_ARGUMENT,
                 "the model has a trainer already; destroy that one first");
    HS_FORWARD(check_config(config, error));
    HS_FORWARD(check_gradients(model, error));
    hstep_trainer *made = calloc(1, sizeof *made);
    if (made == NULL)
        return hs_fail_memory(error, "a trainer");
    made->model = model;
    made->config = *config;
    made->scaler = hs_scaler_init(&config->scaler);
    made->adamw = hs_adamw_init();
    model->has_trainer = true;
    model->head_rows = config->head_rows;
    const hstep_status status = fill_trainer(made, error);
    if (status != HSTEP_OK) {
        hstep_trainer_destroy(made);
        return status;
    }
    *trainer = made;
    return HSTEP_OK;
}

void hstep_trainer_destroy(hstep_trainer *trainer) {
    if (trainer == NULL)
        return;
    const hstep_model *model = trainer->model;
    hs_backend *backend = model->context->backend;
    hs_plan_cache_clear(&trainer->plans);
    hs_trace_free(trainer);
    hstep_graph_destroy(trainer->recomputing);
    if (trainer->norm != NULL)
        backend->api->program_destroy(backend, trainer->norm);
    if (trainer->commit != NULL)
        backend->api->program_destroy(backend, trainer->commit);
    hs_reduction_destroy(&trainer->reduction);
    hs_parameter_buffers_destroy(model, backend, trainer->gradients);
    hs_parameter_buffers_destroy(model, backend, trainer->first_moments);
    hs_parameter_buffers_destroy(model, backend, trainer->second_moments);
    hs_buffer *const small[] = {trainer->unscale, trainer->square_sums, trainer->square_total, trainer->no_rows,
                                trainer->scalars};
    for (size_t i = 0; i < sizeof small / sizeof small[0]; i++) {
        if (small[i] != NULL)
            backend->api->buffer_destroy(backend, small[i]);
    }
    trainer->model->has_trainer = false;
    trainer->model->head_rows = 0;
    free(trainer);
}

hstep_status hstep_trainer_set_observer(hstep_trainer *trainer, hstep_observer *observer, void *user,
                                        hstep_error *error) {
    HS_RETURN_IF(trainer == NULL, error, HSTEP_ERROR_ARGUMENT, "hstep_trainer_set_observer needs a trainer");
    trainer->observer = observer;
    trainer->observer_user = user;
    return HSTEP_OK;
}

double hstep_trainer_loss_scale(const hstep_trainer *trainer) { return trainer->scaler.scale; }

uint64_t hstep_trainer_optimizer_step(const hstep_trainer *trainer) { return trainer->adamw.step; }

uint64_t hstep_trainer_attempts(const hstep_trainer *trainer) { return trainer->attempts; }

uint64_t hstep_trainer_finite_updates(const hstep_trainer *trainer) { return trainer->scaler.finite_updates; }

hstep_status hstep_trainer_set_scaler(hstep_trainer *trainer, const hstep_scaler *scaler, hstep_error *error) {
    HS_RETURN_IF(trainer == NULL || scaler == NULL, error, HSTEP_ERROR_ARGUMENT,
                 "hstep_trainer_set_scaler needs a trainer and settings");
    const char *refusal = hs_scaler_refusal(scaler);
    HS_RETURN_IF(refusal != NULL, error, HSTEP_ERROR_ARGUMENT, "loss scaler: %s", refusal);
    HS_RETURN_IF(trainer->gradient_state != HS_GRADIENTS_CLEAR, error, HSTEP_ERROR_DIRTY_GRADIENT,
                 "gradients under the old scale are still there; commit or clear them first");
    trainer->scaler = hs_scaler_init(scaler);
    trainer->config.scaler = *scaler;
    return HSTEP_OK;
}

static hstep_status read_tensor(const hstep_trainer *trainer, hs_buffer *const *buffers, size_t parameter,
                                double *values, hstep_error *error) {
    hs_backend *backend = trainer->model->context->backend;
    return backend->api->read(backend, buffers[parameter], 0, values,
                              hs_model_elements(trainer->model, parameter) * sizeof *values, error);
}

static hstep_status check_parameter(const hstep_trainer *trainer, size_t parameter, hstep_error *error) {
    HS_RETURN_IF(trainer == NULL, error, HSTEP_ERROR_ARGUMENT, "no trainer was given");
    HS_RETURN_IF(parameter >= trainer->model->parameter_count, error, HSTEP_ERROR_ARGUMENT,
                 "parameter %zu does not exist; the model has %zu", parameter, trainer->model->parameter_count);
    return HSTEP_OK;
}

hstep_status hstep_trainer_read_gradient(hstep_trainer *trainer, size_t parameter, double *values, hstep_error *error) {
    HS_FORWARD(check_parameter(trainer, parameter, error));
    HS_RETURN_IF(values == NULL, error, HSTEP_ERROR_ARGUMENT, "no place for the gradient");
    return read_tensor(trainer, trainer->gradients, parameter, values, error);
}

hstep_status hstep_trainer_read_moments(hstep_trainer *trainer, size_t parameter, double *first, double *second,
                                        hstep_error *error) {
    HS_FORWARD(check_parameter(trainer, parameter, error));
    if (first != NULL)
        HS_FORWARD(read_tensor(trainer, trainer->first_moments, parameter, first, error));
    if (second != NULL)
        HS_FORWARD(read_tensor(trainer, trainer->second_moments, parameter, second, error));
    return HSTEP_OK;
}

static hstep_status data_of(const hstep_trainer *trainer, hs_buffer *const *buffers, size_t parameter,
                            const double **values, hstep_error *error) {
    double *data = NULL;
    HS_FORWARD(hs_model_host_data(trainer->model, buffers, parameter, &data, error));
    *values = data;
    return HSTEP_OK;
}

hstep_status hstep_trainer_gradient_data(hstep_trainer *trainer, size_t parameter, const double **values,
                                         hstep_error *error) {
    HS_FORWARD(check_parameter(trainer, parameter, error));
    HS_RETURN_IF(values == NULL, error, HSTEP_ERROR_ARGUMENT, "no place for the gradient");
    return data_of(trainer, trainer->gradients, parameter, values, error);
}

hstep_status hstep_trainer_moments_data(hstep_trainer *trainer, size_t parameter, const double **first,
                                        const double **second, hstep_error *error) {
    HS_FORWARD(check_parameter(trainer, parameter, error));
    if (first != NULL)
        HS_FORWARD(data_of(trainer, trainer->first_moments, parameter, first, error));
    if (second != NULL)
        HS_FORWARD(data_of(trainer, trainer->second_moments, parameter, second, error));
    return HSTEP_OK;
}
