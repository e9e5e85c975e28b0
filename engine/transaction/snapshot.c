/* The bytes that a skip must keep, one after the other. */
#include <stdlib.h>
#include <string.h>

#include "engine/error.h"
#include "engine/transaction/trainer.h"

typedef struct sink {
    unsigned char *at;
} sink;

static void append(sink *to, const void *data, size_t bytes) {
    memcpy(to->at, data, bytes);
    to->at += bytes;
}

static hstep_status append_tensor(sink *to, const hstep_trainer *trainer, hs_buffer *const *buffers, size_t index,
                                  hstep_error *error) {
    const size_t bytes = hs_model_elements(trainer->model, index) * sizeof(double);
    hs_backend *backend = trainer->model->context->backend;
    HS_FORWARD(backend->api->read(backend, buffers[index], 0, to->at, bytes, error));
    to->at += bytes;
    return HSTEP_OK;
}

hstep_status hstep_trainer_snapshot(hstep_trainer *trainer, void *buffer, size_t *size, hstep_error *error) {
    HS_RETURN_IF(trainer == NULL || size == NULL, error, HSTEP_ERROR_ARGUMENT,
                 "hstep_trainer_snapshot needs a trainer and a size");
    const hstep_model *model = trainer->model;
    const size_t tensors = 4 * sizeof(double) * hstep_model_scalar_count(model);
    const size_t needed = tensors + model->parameter_count * sizeof(uint64_t) + 2 * sizeof(double) + sizeof(uint64_t);
    if (buffer == NULL) {
        *size = needed;
        return HSTEP_OK;
    }
    HS_RETURN_IF(*size < needed, error, HSTEP_ERROR_ARGUMENT, "a snapshot takes %zu bytes; there is room for %zu",
                 needed, *size);
    sink to = {.at = buffer};
    hs_buffer *const *const groups[] = {model->parameters, trainer->gradients, trainer->first_moments,
                                        trainer->second_moments};
    for (size_t g = 0; g < sizeof groups / sizeof groups[0]; g++) {
        for (size_t i = 0; i < model->parameter_count; i++)
            HS_FORWARD(append_tensor(&to, trainer, groups[g], i, error));
    }
    append(&to, model->revisions, model->parameter_count * sizeof(uint64_t));
    append(&to, &trainer->adamw.power1, sizeof(double));
    append(&to, &trainer->adamw.power2, sizeof(double));
    append(&to, &trainer->adamw.step, sizeof(uint64_t));
    *size = needed;
    return HSTEP_OK;
}
