/* Tensors between a backend's memory and a file, a piece at a time. */
#include <string.h>

#include "engine/checkpoint/checkpoint.h"
#include "engine/error.h"

enum { CHUNK_ELEMENTS = HS_CHUNK / sizeof(double) };

static size_t piece(size_t elements, size_t done) {
    return elements - done < CHUNK_ELEMENTS ? elements - done : CHUNK_ELEMENTS;
}

hstep_status hs_stream_out(const hstep_model *model, size_t parameter, const hs_buffer *buffer, void *chunk,
                           hs_tensor_writer *writer, hstep_error *error) {
    hs_backend *backend = model->context->backend;
    const size_t elements = hs_model_elements(model, parameter);
    for (size_t done = 0; done < elements;) {
        const size_t count = piece(elements, done), bytes = count * sizeof(double);
        HS_FORWARD(backend->api->read(backend, buffer, done * sizeof(double), chunk, bytes, error));
        HS_FORWARD(hs_tensor_writer_write(writer, chunk, bytes, error));
        done += count;
    }
    return HSTEP_OK;
}

hstep_status hs_stream_in(const hstep_model *model, size_t parameter, hs_buffer *buffer, void *chunk,
                          const hstep_tensor_file *file, const char *prefix, hstep_error *error) {
    hs_backend *backend = model->context->backend;
    const size_t elements = hs_model_elements(model, parameter);
    const size_t index =
        hs_find_prefixed(file, prefix, hs_graph_value(model->graph, model->parameter_values[parameter])->name);
    for (size_t done = 0; done < elements;) {
        const size_t count = piece(elements, done);
        HS_FORWARD(hstep_tensor_file_read(file, index, done, count, chunk, error));
        HS_FORWARD(backend->api->write(backend, buffer, done * sizeof(double), chunk, count * sizeof(double), error));
        done += count;
    }
    return HSTEP_OK;
}

size_t hs_find_prefixed(const hstep_tensor_file *file, const char *prefix, const char *name) {
    const size_t length = strlen(prefix);
    for (size_t i = 0; i < file->count; i++)
        if (strncmp(file->tensors[i].name, prefix, length) == 0 && strcmp(file->tensors[i].name + length, name) == 0)
            return i;
    return SIZE_MAX;
}
