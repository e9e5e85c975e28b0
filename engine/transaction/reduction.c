#include "engine/transaction/reduction.h"

#include <stdlib.h>

#include "engine/error.h"
#include "engine/transaction/trainer.h"

/* to = from (store) or to = to + from, for every parameter. */
static hstep_status make_program(const hs_reduction *reduction, hs_buffer **from, hs_buffer **to, bool store,
                                 hs_program **program, hstep_error *error) {
    const hstep_model *model = reduction->model;
    hs_backend *backend = model->context->backend;
    hs_call *calls = calloc(model->parameter_count + 1, sizeof *calls);
    if (calls == NULL)
        return hs_fail_memory(error, "a reduction");
    for (size_t i = 0; i < model->parameter_count; i++) {
        const hs_view source = hs_flat_view(from[i], hs_model_elements(model, i));
        const hs_view target = hs_flat_view(to[i], hs_model_elements(model, i));
        calls[i] = store ? (hs_call){.operation = HS_OP_SCALE, .attributes = {.factor = 1}, .input_count = 1}
                         : (hs_call){.operation = HS_OP_ADD, .input_count = 2};
        calls[i].inputs[0] = store ? source : target;
        calls[i].inputs[1] = source;
        calls[i].output_count = 1;
        calls[i].outputs[0] = target;
    }
    const hstep_status status = backend->api->program_create(backend, calls, model->parameter_count, program, error);
    free(calls);
    return status;
}

static hstep_status run(const hs_reduction *reduction, hs_program *program, hstep_error *error) {
    hs_backend *backend = reduction->model->context->backend;
    return backend->api->program_run(backend, program, 0, reduction->model->parameter_count, error);
}

static hstep_status reduce_here(hs_reduction *reduction, size_t replica, hstep_error *error) {
    return run(reduction, replica == 0 ? reduction->store_replica : reduction->add_replica, error);
}

hstep_status hs_reduction_create(hs_reduction *reduction, const hstep_model *model, size_t replicas,
                                 size_t micro_batches, hs_buffer **window, hstep_error *error) {
    *reduction = (hs_reduction){.model = model,
                                .replicas = replicas,
                                .micro_batches = micro_batches,
                                .window = window,
                                .replica = window,
                                .reduce = reduce_here};
    hs_backend *backend = model->context->backend;
    if (replicas > 1) {
        reduction->replica = NULL;
        HS_FORWARD(hs_parameter_buffers_create(model, backend, &reduction->replica, error));
        HS_FORWARD(make_program(reduction, reduction->replica, window, true, &reduction->store_replica, error));
        HS_FORWARD(make_program(reduction, reduction->replica, window, false, &reduction->add_replica, error));
    }
    reduction->batch = reduction->replica;
    if (micro_batches > 1) {
        reduction->batch = NULL;
        HS_FORWARD(hs_parameter_buffers_create(model, backend, &reduction->batch, error));
        HS_FORWARD(make_program(reduction, reduction->batch, reduction->replica, true, &reduction->store_batch, error));
        HS_FORWARD(make_program(reduction, reduction->batch, reduction->replica, false, &reduction->add_batch, error));
    }
    return HSTEP_OK;
}

void hs_reduction_destroy(hs_reduction *reduction) {
    if (reduction->model == NULL)
        return;
    hs_backend *backend = reduction->model->context->backend;
    hs_program *const programs[] = {reduction->store_batch, reduction->add_batch, reduction->store_replica,
                                    reduction->add_replica};
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        if (programs[i] != NULL)
            backend->api->program_destroy(backend, programs[i]);
    }
    if (reduction->micro_batches > 1)
        hs_parameter_buffers_destroy(reduction->model, backend, reduction->batch);
    if (reduction->replicas > 1)
        hs_parameter_buffers_destroy(reduction->model, backend, reduction->replica);
}

hstep_status hs_reduction_take(hs_reduction *reduction, size_t replica, size_t micro_batch, hstep_error *error) {
    if (reduction->micro_batches > 1)
        HS_FORWARD(run(reduction, micro_batch == 0 ? reduction->store_batch : reduction->add_batch, error));
    if (reduction->replicas > 1 && micro_batch + 1 == reduction->micro_batches)
        HS_FORWARD(reduction->reduce(reduction, replica, error));
    return HSTEP_OK;
}
