#include "engine/model/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "engine/error.h"

size_t hs_model_elements(const hstep_model *model, size_t index) {
    const hs_value_info *info = hs_graph_value(model->graph, model->parameter_values[index]);
    size_t count = 1;
    for (uint32_t i = 0; i < info->rank; i++)
        count *= (size_t)info->dims[i];
    return count;
}

void hs_model_touch(hstep_model *model, size_t index) {
    model->revisions[index]++;
    model->revision++;
}

hstep_status hs_model_check_whole(const hstep_model *model, hstep_error *error) {
    HS_RETURN_IF(model->half_loaded, error, HSTEP_ERROR_ARGUMENT,
                 "reading a checkpoint broke off in the middle, so that what was loaded is no state of any run; load "
                 "one that can be read");
    return HSTEP_OK;
}

/* ---- Life ---- */

void hs_parameter_buffers_destroy(const hstep_model *model, hs_backend *backend, hs_buffer **buffers) {
    if (buffers == NULL)
        return;
    for (size_t i = 0; i < model->parameter_count; i++) {
        if (buffers[i] != NULL)
            backend->api->buffer_destroy(backend, buffers[i]);
    }
    free(buffers);
}

hstep_status hs_parameter_buffers_create(const hstep_model *model, hs_backend *backend, hs_buffer ***buffers,
                                         hstep_error *error) {
    hs_buffer **made = calloc(model->parameter_count + 1, sizeof *made);
    if (made == NULL)
        return hs_fail_memory(error, "parameters");
    for (size_t i = 0; i < model->parameter_count; i++) {
        const size_t bytes = hs_model_elements(model, i) * sizeof(double);
        const hstep_status status = backend->api->buffer_create(backend, bytes, &made[i], error);
        if (status != HSTEP_OK) {
            hs_parameter_buffers_destroy(model, backend, made);
            return status;
        }
    }
    *buffers = made;
    return HSTEP_OK;
}

static hstep_status fill_model(hstep_model *model, hstep_error *error) {
    const hstep_graph *graph = model->graph;
    model->parameter_count = hs_graph_parameter_count(graph);
    model->parameter_values = calloc(model->parameter_count + 1, sizeof *model->parameter_values);
    model->revisions = calloc(model->parameter_count + 1, sizeof *model->revisions);
    if (model->parameter_values == NULL || model->revisions == NULL)
        return hs_fail_memory(error, "a model");
    for (size_t i = 0; i < model->parameter_count; i++)
        model->parameter_values[i] = hs_graph_parameter_value(graph, i);
    HS_FORWARD(hs_parameter_buffers_create(model, model->context->backend, &model->parameters, error));
    return hs_model_create_casts(model, error);
}

hstep_status hstep_model_create(hstep_context *context, hstep_graph *graph, hstep_model **model, hstep_error *error) {
    HS_RETURN_IF(context == NULL || graph == NULL || model == NULL, error, HSTEP_ERROR_ARGUMENT,
                 "hstep_model_create needs a context, a graph and a place for the model");
    HS_RETURN_IF(graph->loss == 0, error, HSTEP_ERROR_ARGUMENT, "the graph has no loss; call hstep_graph_set_loss");
    hstep_model *made = calloc(1, sizeof *made);
    if (made == NULL)
        return hs_fail_memory(error, "a model");
    made->context = context;
    made->graph = graph;
    hs_graph_mark_uses(graph);
    const hstep_status status = fill_model(made, error);
    if (status != HSTEP_OK) {
        made->graph = NULL; /* stays the caller's */
        hstep_model_destroy(made);
        return status;
    }
    *model = made;
    return HSTEP_OK;
}

void hstep_model_destroy(hstep_model *model) {
    if (model == NULL)
        return;
    hs_plan_cache_clear(&model->plans);
    hs_model_destroy_casts(model);
    hs_parameter_buffers_destroy(model, model->context->backend, model->parameters);
    free(model->parameter_values);
    free(model->revisions);
    free(model->rules);
    hstep_graph_destroy(model->graph);
    free(model);
}

/* ---- Parameters ---- */

size_t hstep_model_parameter_count(const hstep_model *model) { return model->parameter_count; }

hstep_status hstep_model_products(const hstep_model *model, hstep_product *products, size_t room, size_t *count,
                                  hstep_error *error) {
    HS_RETURN_IF(model == NULL, error, HSTEP_ERROR_ARGUMENT, "no model was given");
    return hstep_graph_products(model->graph, products, room, count, error);
}

size_t hstep_model_scalar_count(const hstep_model *model) {
    size_t count = 0;
    for (size_t i = 0; i < model->parameter_count; i++)
        count += hs_model_elements(model, i);
    return count;
}

static hstep_status check_index(const hstep_model *model, size_t index, const void *place, hstep_error *error) {
    HS_RETURN_IF(model == NULL || place == NULL, error, HSTEP_ERROR_ARGUMENT, "no model or no place for values");
    HS_RETURN_IF(index >= model->parameter_count, error, HSTEP_ERROR_ARGUMENT,
                 "parameter %zu does not exist; the model has %zu", index, model->parameter_count);
    return HSTEP_OK;
}

hstep_status hstep_model_parameter(const hstep_model *model, size_t index, hstep_parameter *parameter,
                                   hstep_error *error) {
    HS_FORWARD(check_index(model, index, parameter, error));
    const hs_value_info *info = hs_graph_value(model->graph, model->parameter_values[index]);
    *parameter = (hstep_parameter){.name = info->name,
                                   .rank = info->rank,
                                   .elements = hs_model_elements(model, index),
                                   .revision = model->revisions[index]};
    for (uint32_t i = 0; i < info->rank; i++)
        parameter->dims[i] = (size_t)info->dims[i];
    return HSTEP_OK;
}

size_t hstep_model_find_parameter(const hstep_model *model, const char *name) {
    for (size_t i = 0; i < model->parameter_count && name != NULL; i++) {
        if (strcmp(hs_graph_value(model->graph, model->parameter_values[i])->name, name) == 0)
            return i;
    }
    return SIZE_MAX;
}

hstep_status hstep_model_read_parameter(hstep_model *model, size_t index, double *values, hstep_error *error) {
    HS_FORWARD(check_index(model, index, values, error));
    hs_backend *backend = model->context->backend;
    return backend->api->read(backend, model->parameters[index], 0, values,
                              hs_model_elements(model, index) * sizeof *values, error);
}

hstep_status hstep_model_write_parameter(hstep_model *model, size_t index, const double *values, hstep_error *error) {
    HS_FORWARD(check_index(model, index, values, error));
    hs_backend *backend = model->context->backend;
    HS_FORWARD(backend->api->write(backend, model->parameters[index], 0, values,
                                   hs_model_elements(model, index) * sizeof *values, error));
    hs_model_touch(model, index);
    return HSTEP_OK;
}

hstep_status hs_model_host_data(const hstep_model *model, hs_buffer *const *buffers, size_t index, double **values,
                                hstep_error *error) {
    HS_FORWARD(check_index(model, index, values, error));
    double *const data = (double *)(void *)buffers[index]->data;
    HS_RETURN_IF(data == NULL && hs_model_elements(model, index) != 0, error, HSTEP_ERROR_UNSUPPORTED,
                 "the backend \"%s\" keeps tensors in memory that programs do not see; copy them instead",
                 hstep_context_backend_name(model->context));
    *values = data;
    return HSTEP_OK;
}

hstep_status hstep_model_parameter_data(hstep_model *model, size_t index, double **values, hstep_error *error) {
    HS_RETURN_IF(model == NULL, error, HSTEP_ERROR_ARGUMENT, "no model was given");
    return hs_model_host_data(model, model->parameters, index, values, error);
}

hstep_status hstep_model_mark_parameter(hstep_model *model, size_t index, hstep_error *error) {
    HS_FORWARD(check_index(model, index, model, error));
    hs_model_touch(model, index);
    return HSTEP_OK;
}

/* Piece by piece: a copy of a large table would be memory that training does not need. */
static hstep_status hash_parameter(hstep_model *model, size_t index, XXH3_state_t *state, hstep_error *error) {
    enum { PIECE = 1024 };
    double piece[PIECE];
    hs_backend *backend = model->context->backend;
    const size_t elements = hs_model_elements(model, index);
    for (size_t first = 0; first < elements; first += PIECE) {
        const size_t bytes = (elements - first < PIECE ? elements - first : PIECE) * sizeof *piece;
        HS_FORWARD(backend->api->read(backend, model->parameters[index], first * sizeof *piece, piece, bytes, error));
        (void)XXH3_64bits_update(state, piece, bytes);
    }
    return HSTEP_OK;
}

hstep_status hstep_model_checksum(hstep_model *model, uint64_t *checksum, hstep_error *error) {
    HS_RETURN_IF(model == NULL || checksum == NULL, error, HSTEP_ERROR_ARGUMENT, "no model or no place");
    XXH3_state_t *state = XXH3_createState();
    if (state == NULL)
        return hs_fail_memory(error, "a checksum");
    (void)XXH3_64bits_reset(state);
    hstep_status status = HSTEP_OK;
    for (size_t i = 0; i < model->parameter_count && status == HSTEP_OK; i++)
        status = hash_parameter(model, i, state, error);
    if (status == HSTEP_OK)
        *checksum = XXH3_64bits_digest(state);
    (void)XXH3_freeState(state);
    return status;
}
