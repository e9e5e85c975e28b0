/*
 * Parameters in 16 bits: a cast made once serves every product that reads it (policy, section 2). The commit makes them
 * along with the new weights; here they are made when parameters came another way.
 */
#include <stdlib.h>

#include "engine/error.h"
#include "engine/model/model.h"

static hs_view cast_view(const hstep_model *model, size_t index) {
    hs_view view = hs_flat_view(NULL, hs_model_elements(model, index));
    view.dtype = hs_plan_cast_format(model->graph, model->context->backend, model->parameter_values[index]);
    return view;
}

static hstep_status create_buffers(hstep_model *model, hstep_error *error) {
    hs_backend *backend = model->context->backend;
    for (size_t i = 0; i < model->parameter_count; i++) {
        const hs_view view = cast_view(model, i);
        if (view.dtype == HSTEP_DTYPE_F64)
            continue;
        hs_buffer *buffer = NULL;
        HS_FORWARD(backend->api->buffer_create(backend, hs_view_bytes(&view), &buffer, error));
        model->casts[i] = view;
        model->casts[i].buffer = buffer;
        model->cast_count++;
    }
    return HSTEP_OK;
}

static hstep_status create_program(hstep_model *model, hstep_error *error) {
    hs_backend *backend = model->context->backend;
    hs_call *calls = calloc(model->cast_count, sizeof *calls);
    if (calls == NULL)
        return hs_fail_memory(error, "a model");
    size_t count = 0;
    for (size_t i = 0; i < model->parameter_count; i++) {
        if (model->casts[i].buffer == NULL)
            continue;
        calls[count++] = (hs_call){.operation = HS_OP_SCALE,
                                   .attributes = {.factor = 1},
                                   .input_count = 1,
                                   .output_count = 1,
                                   .inputs = {hs_flat_view(model->parameters[i], hs_model_elements(model, i))},
                                   .outputs = {model->casts[i]}};
    }
    const hstep_status status = backend->api->program_create(backend, calls, count, &model->cast, error);
    free(calls);
    return status;
}

hstep_status hs_model_create_casts(hstep_model *model, hstep_error *error) {
    model->casts = calloc(model->parameter_count + 1, sizeof *model->casts);
    if (model->casts == NULL)
        return hs_fail_memory(error, "a model");
    HS_FORWARD(create_buffers(model, error));
    model->cast_revision = UINT64_MAX;
    return model->cast_count > 0 ? create_program(model, error) : HSTEP_OK;
}

void hs_model_destroy_casts(hstep_model *model) {
    hs_backend *backend = model->context->backend;
    if (model->cast != NULL)
        backend->api->program_destroy(backend, model->cast);
    for (size_t i = 0; i < model->parameter_count && model->casts != NULL; i++)
        if (model->casts[i].buffer != NULL)
            backend->api->buffer_destroy(backend, model->casts[i].buffer);
    free(model->casts);
}

hstep_status hs_model_refresh_casts(hstep_model *model, hstep_error *error) {
    if (model->cast == NULL || model->cast_revision == model->revision)
        return HSTEP_OK;
    hs_backend *backend = model->context->backend;
    HS_FORWARD(backend->api->program_run(backend, model->cast, 0, model->cast_count, error));
    model->cast_revision = model->revision;
    return HSTEP_OK;
}
