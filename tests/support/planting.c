#include "support/planting.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

typedef struct planting_backend {
    hs_backend head;
    hs_backend_api api;
    hs_backend *inner;
    hs_plant *plant;
} planting_backend;

struct hs_program {
    hs_program *inner;
    hs_call *calls;
    size_t count;
    bool planted; /* in an output, since the last finish */
};

static planting_backend *self(const hs_backend *backend) { return (planting_backend *)(void *)(uintptr_t)backend; }

static hs_backend *inner_of(const hs_backend *backend) { return self(backend)->inner; }

static void destroy(hs_backend *backend) {
    inner_of(backend)->api->destroy(inner_of(backend));
    free(backend);
}

static const char *device(const hs_backend *b) { return inner_of(b)->api->device(inner_of(b)); }
static unsigned threads(const hs_backend *b) { return inner_of(b)->api->threads(inner_of(b)); }
static size_t levers(const hs_backend *b, const hstep_lever **l) { return inner_of(b)->api->levers(inner_of(b), l); }

static bool supports(const hs_backend *b, const hs_call *call) { return inner_of(b)->api->supports(inner_of(b), call); }

static size_t held(const hs_backend *b) { return inner_of(b)->api->held(inner_of(b)); }

static hstep_status buffer_create(hs_backend *b, size_t bytes, hs_buffer **buffer, hstep_error *error) {
    return inner_of(b)->api->buffer_create(inner_of(b), bytes, buffer, error);
}

static void buffer_destroy(hs_backend *b, hs_buffer *buffer) { inner_of(b)->api->buffer_destroy(inner_of(b), buffer); }

static hstep_status write(hs_backend *b, hs_buffer *buffer, size_t offset, const void *data, size_t bytes,
                          hstep_error *error) {
    return inner_of(b)->api->write(inner_of(b), buffer, offset, data, bytes, error);
}

static hstep_status read(hs_backend *b, const hs_buffer *buffer, size_t offset, void *data, size_t bytes,
                         hstep_error *error) {
    return inner_of(b)->api->read(inner_of(b), buffer, offset, data, bytes, error);
}

static hstep_status clear(hs_backend *b, hs_buffer *buffer, size_t offset, size_t bytes, hstep_error *error) {
    return inner_of(b)->api->clear(inner_of(b), buffer, offset, bytes, error);
}

static hstep_status program_create(hs_backend *b, const hs_call *calls, size_t count, hs_program **program,
                                   hstep_error *error) {
    hs_program *made = calloc(1, sizeof *made);
    cr_assert_not_null(made);
    made->calls = malloc((count + 1) * sizeof *calls);
    cr_assert_not_null(made->calls);
    memcpy(made->calls, calls, count * sizeof *calls);
    made->count = count;
    *program = made;
    return inner_of(b)->api->program_create(inner_of(b), calls, count, &made->inner, error);
}

static void program_destroy(hs_backend *b, hs_program *program) {
    inner_of(b)->api->program_destroy(inner_of(b), program->inner);
    free(program->calls);
    free(program);
}

static hstep_status run_inner(hs_backend *b, hs_program *program, size_t first, size_t count, hstep_error *error) {
    return count == 0 ? HSTEP_OK : inner_of(b)->api->program_run(inner_of(b), program->inner, first, count, error);
}

static hstep_status put_infinity(hs_backend *b, const hs_view *view, hstep_error *error) {
    const double infinity = INFINITY;
    const uint16_t half = view->dtype == HSTEP_DTYPE_FP16 ? 0x7c00 : 0x7f80;
    const bool compact = hs_dtype_is_half(view->dtype);
    return write(b, view->buffer, view->offset, compact ? (const void *)&half : &infinity, hs_dtype_size(view->dtype),
                 error);
}

static hstep_status program_run(hs_backend *b, hs_program *program, size_t first, size_t count, hstep_error *error) {
    hs_plant *plant = self(b)->plant;
    bool meant = plant->place != HS_PLANT_NOWHERE && program->count == plant->calls && plant->call >= first &&
                 plant->call < first + count;
    if (meant && inner_of(b)->api->locate == NULL)
        meant = plant->seen++ >= plant->skip_runs;
    if (!meant)
        return run_inner(b, program, first, count, error);
    const hs_call *call = &program->calls[plant->call];
    hstep_status status = run_inner(b, program, first, plant->call - first, error);
    if (status == HSTEP_OK && plant->place == HS_PLANT_OPERAND)
        status = put_infinity(b, &call->inputs[plant->operand], error);
    if (status == HSTEP_OK)
        status = run_inner(b, program, plant->call, 1, error);
    if (status == HSTEP_OK && plant->place == HS_PLANT_OUTPUT) {
        status = put_infinity(b, &call->outputs[0], error);
        program->planted = true;
    }
    if (status == HSTEP_OK)
        status = run_inner(b, program, plant->call + 1, first + count - plant->call - 1, error);
    return status;
}

static hstep_status program_finish(hs_backend *b, hs_program *program, uint32_t *flags, hstep_error *error) {
    const hstep_status status = inner_of(b)->api->program_finish(inner_of(b), program->inner, flags, error);
    if (status == HSTEP_OK && program->planted && flags != NULL)
        flags[self(b)->plant->call] = 1;
    program->planted = false;
    return status;
}

static hs_fault locate(const hs_backend *b, const hs_program *program, size_t call) {
    const hs_plant *plant = self(b)->plant;
    if (plant->place == HS_PLANT_OUTPUT && program->count == plant->calls && call == plant->call)
        return (hs_fault){.found = true, .value = INFINITY};
    return inner_of(b)->api->locate(inner_of(b), program->inner, call);
}

hs_backend *hs_planting_backend_create(hs_backend *inner, hs_plant *plant) {
    planting_backend *made = calloc(1, sizeof *made);
    cr_assert_not_null(made);
    made->api = (hs_backend_api){.name = inner->api->name,
                                 .destroy = destroy,
                                 .device = device,
                                 .threads = threads,
                                 .levers = levers,
                                 .supports = supports,
                                 .held = held,
                                 .buffer_create = buffer_create,
                                 .buffer_destroy = buffer_destroy,
                                 .write = write,
                                 .read = read,
                                 .clear = clear,
                                 .program_create = program_create,
                                 .program_destroy = program_destroy,
                                 .program_run = program_run,
                                 .program_finish = program_finish,
                                 .locate = inner->api->locate != NULL ? locate : NULL};
    made->head.api = &made->api;
    made->inner = inner;
    made->plant = plant;
    return &made->head;
}
