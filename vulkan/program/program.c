#include "vulkan/program/program.h"

#include <stdlib.h>
#include <string.h>

#include "engine/check_call.h"
#include "vulkan/program/record.h"

/* A word of flags has a bit for each of so many calls: they cross the bus for every micro-batch. */
enum { FLAGS = 32 };

static size_t flag_words(size_t calls) { return (calls + FLAGS - 1) / FLAGS; }

static hs_vk_operand operand(const hs_view *view) {
    const hs_vk_buffer *buffer = (const hs_vk_buffer *)view->buffer;
    return (hs_vk_operand){.address = buffer->address + view->offset,
                           .pitch = hs_vk_pitch(view) * hs_dtype_size(view->dtype),
                           .rows = (uint32_t)hs_vk_rows(view),
                           .columns = (uint32_t)hs_vk_columns(view)};
}

static hs_vk_record make_record(const hs_program *program, size_t i) {
    const hs_call *call = &program->calls[i];
    const hs_attributes *a = &call->attributes;
    hs_vk_record record = {.flag = program->flags.address + i / FLAGS * sizeof(uint32_t),
                           .scratch = program->scratch.address,
                           .epsilon = a->epsilon,
                           .factor = a->factor,
                           .sequences = (uint32_t)a->sequences,
                           .heads = (uint32_t)a->heads,
                           .kv_heads = (uint32_t)a->kv_heads,
                           .head_width = (uint32_t)a->head_width,
                           .flag_mask = 1U << i % FLAGS};
    for (uint32_t j = 0; j < call->input_count; j++)
        record.operands[j] = operand(&call->inputs[j]);
    for (uint32_t j = 0; j < call->output_count; j++)
        record.operands[HS_VK_INPUTS + j] = operand(&call->outputs[j]);
    return record;
}

/* About how many multiplications a call takes. */
static double cost(const hs_call *call) {
    const double elements = (double)hs_view_elements(&call->outputs[0]);
    switch (call->operation) {
    case HS_OP_MATMUL:
        return elements * (double)call->inputs[0].dims[call->attributes.a_form == HSTEP_TRANSPOSE ? 0 : 1];
    case HS_OP_ATTENTION:
    case HS_OP_ATTENTION_BACKWARD:
        return 5.0 * elements * (double)(hs_vk_rows(&call->inputs[2]) / call->attributes.sequences);
    default:
        return 16.0 * ((double)hs_view_elements(&call->inputs[0]) + elements);
    }
}

/* Shaders count rows, columns and groups in 32 bits. */
static bool is_small(const hs_view *view) { return hs_vk_rows(view) < UINT32_MAX && hs_vk_columns(view) < UINT32_MAX; }

static hstep_status check(const hs_vk_backend *backend, const hs_call *call, hstep_error *error) {
    const char *name = hs_operation_name(call->operation);
    hs_vk_variant gated;
    HS_FORWARD(hs_check_call(call, error));
    HS_BLAME_IF(!hs_vk_supports(call) && !hs_vk_levers_serve(backend, call, &gated), error, HSTEP_ERROR_UNSUPPORTED,
                name, "the backend vulkan has no shader for %s", name);
    bool small = true;
    for (uint32_t i = 0; i < call->input_count; i++)
        small = small && is_small(&call->inputs[i]);
    for (uint32_t i = 0; i < call->output_count; i++)
        small = small && is_small(&call->outputs[i]);
    HS_BLAME_IF(!small, error, HSTEP_ERROR_SHAPE, name, "%s: an operand has 2^32 rows or columns or more", name);
    return HSTEP_OK;
}

static hstep_status make_dispatch(hs_vk_backend *backend, const hs_call *call, const hs_vk_variant *variant,
                                  hs_vk_groups *groups, hs_vk_dispatch *dispatch, hstep_error *error) {
    dispatch->groups = groups(call);
    HS_BLAME_IF(dispatch->groups >= UINT32_MAX, error, HSTEP_ERROR_SHAPE, hs_operation_name(call->operation),
                "%s: more work groups than 2^32", hs_operation_name(call->operation));
    return hs_vk_pipelines_get(&backend->device, &backend->pipelines, variant, &dispatch->pipeline, error);
}

/* Finds the pipelines of a call and widens *scratch to what it needs. A gated lever's dispatch has as many groups as
 * the mirror's, whose tiles are as large. */
static hstep_status prepare(hs_vk_backend *backend, const hs_call *call, hs_vk_step *step, size_t *scratch,
                            hstep_error *error) {
    const hs_vk_operation *operation = hs_vk_find(call);
    hs_vk_variant gated;
    step->cost = cost(call);
    step->stage_count = operation->stage_count;
    if (hs_vk_levers_serve(backend, call, &gated))
        HS_FORWARD(make_dispatch(backend, call, &gated, operation->stages[0].groups, &step->gated, error));
    for (uint32_t i = 0; i < operation->stage_count && hs_vk_supports(call); i++) {
        const hs_vk_variant variant = hs_vk_variant_of(call, operation->stages[i].shader);
        HS_FORWARD(make_dispatch(backend, call, &variant, operation->stages[i].groups, &step->stages[i], error));
    }
    const size_t needed = operation->scratch ? operation->scratch(call) : 0;
    *scratch = needed > *scratch ? needed : *scratch;
    return HSTEP_OK;
}

static hs_program *allocate(size_t count) {
    hs_program *program = calloc(1, sizeof *program);
    if (!program)
        return NULL;
    program->count = count;
    program->calls = calloc(count ? count : 1, sizeof *program->calls);
    program->steps = calloc(count ? count : 1, sizeof *program->steps);
    if (program->calls && program->steps)
        return program;
    free(program->calls);
    free(program->steps);
    free(program);
    return NULL;
}

static hstep_status upload_records(hs_vk_backend *backend, hs_program *program, hstep_error *error) {
    hs_vk_record *records = calloc(program->count ? program->count : 1, sizeof *records);
    if (!records)
        return hs_fail_memory(error, "a program");
    for (size_t i = 0; i < program->count; i++) {
        records[i] = make_record(program, i);
        program->steps[i].record = program->records.address + i * sizeof *records;
    }
    const hstep_status status = hs_vk_write(&backend->device, &backend->transfer, &program->records, 0, records,
                                            program->count * sizeof *records, error);
    free(records);
    return status;
}

static hstep_status fill(hs_vk_backend *backend, const hs_call *calls, hs_program *program, hstep_error *error) {
    size_t scratch = 0;
    for (size_t i = 0; i < program->count; i++) {
        HS_FORWARD(check(backend, &calls[i], error));
        program->calls[i] = hs_vk_flatten(&calls[i]);
        HS_FORWARD(prepare(backend, &program->calls[i], &program->steps[i], &scratch, error));
        program->is_gated = program->is_gated || program->steps[i].gated.pipeline;
    }
    HS_FORWARD(hs_vk_take(backend, program->count * sizeof(hs_vk_record), &program->records, error));
    HS_FORWARD(hs_vk_take(backend, flag_words(program->count) * sizeof(uint32_t), &program->flags, error));
    if (scratch > 0)
        HS_FORWARD(hs_vk_take(backend, scratch, &program->scratch, error));
    return upload_records(backend, program, error);
}

hstep_status hs_vk_program_create(hs_backend *base, const hs_call *calls, size_t count, hs_program **program,
                                  hstep_error *error) {
    hs_program *made = allocate(count);
    if (!made)
        return hs_fail_memory(error, "a program");
    const hstep_status status = fill((hs_vk_backend *)base, calls, made, error);
    if (status != HSTEP_OK)
        hs_vk_program_destroy(base, made);
    else
        *program = made;
    return status;
}

void hs_vk_program_destroy(hs_backend *base, hs_program *program) {
    hs_vk_backend *backend = (hs_vk_backend *)base;
    if (!program)
        return;
    hs_vk_drop(backend, &program->records);
    hs_vk_drop(backend, &program->flags);
    hs_vk_drop(backend, &program->scratch);
    for (size_t i = 0; i < program->range_count; i++)
        hs_vk_range_free(backend, &program->ranges[i]);
    free(program->calls);
    free(program->steps);
    free(program);
}

/* The range's command buffers, recorded when it is met first. Of many ranges the oldest makes place. */
static hstep_status find_range(hs_vk_backend *backend, hs_program *program, hs_vk_range wanted, hs_vk_range **range,
                               hstep_error *error) {
    for (size_t i = 0; i < program->range_count; i++) {
        *range = &program->ranges[i];
        if ((*range)->first == wanted.first && (*range)->count == wanted.count && (*range)->exact == wanted.exact)
            return HSTEP_OK;
    }
    const bool full = program->range_count == HS_VK_RANGES;
    if (full) /* the oldest may still be running */
        HS_FORWARD(hs_vk_wait(&backend->device, backend->device.submitted, error));
    const hstep_status status = hs_vk_record_range(backend, program, &wanted, error);
    if (status != HSTEP_OK) {
        hs_vk_range_free(backend, &wanted);
        return status;
    }
    if (!full) {
        *range = &program->ranges[program->range_count++];
    } else {
        *range = &program->ranges[program->oldest];
        program->oldest = (program->oldest + 1) % HS_VK_RANGES;
        hs_vk_range_free(backend, *range);
    }
    **range = wanted;
    return HSTEP_OK;
}

static hstep_status run(hs_vk_backend *backend, hs_program *program, hs_vk_range wanted, hstep_error *error) {
    hs_vk_range *range;
    HS_FORWARD(hs_check_calls(program->count, wanted.first, wanted.count, error));
    HS_FORWARD(find_range(backend, program, wanted, &range, error));
    for (size_t i = 0; i < range->part_count; i++)
        HS_FORWARD(hs_vk_submit(&backend->device, range->parts[i], error));
    backend->dispatches += range->dispatches;
    backend->barriers += range->barriers;
    return HSTEP_OK;
}

hstep_status hs_vk_program_run(hs_backend *base, hs_program *program, size_t first, size_t count, hstep_error *error) {
    return run((hs_vk_backend *)base, program, (hs_vk_range){.first = first, .count = count}, error);
}

hstep_status hs_vk_program_run_exact(hs_backend *base, hs_program *program, size_t first, size_t count,
                                     hstep_error *error) {
    return run((hs_vk_backend *)base, program,
               (hs_vk_range){.first = first, .count = count, .exact = program->is_gated}, error);
}

/* The words stand at the front of `flags`: taken apart from the last flag on, none is lost. */
static void unpack(uint32_t *flags, size_t count) {
    for (size_t i = count; i-- > 0;)
        flags[i] = flags[i / FLAGS] >> i % FLAGS & 1U;
}

hstep_status hs_vk_program_finish(hs_backend *base, hs_program *program, uint32_t *flags, hstep_error *error) {
    hs_vk_backend *backend = (hs_vk_backend *)base;
    const size_t bytes = flag_words(program->count) * sizeof *flags;
    if (flags)
        HS_FORWARD(hs_vk_read(&backend->device, &backend->transfer, &program->flags, 0, flags, bytes, error));
    if (flags)
        unpack(flags, program->count);
    const uint64_t ran = backend->device.submitted;
    HS_FORWARD(hs_vk_clear(&backend->device, &backend->transfer, &program->flags, 0, bytes, error));
    /* Nobody has to see the flags cleared; whoever read them has waited already. */
    return hs_vk_wait(&backend->device, ran, error);
}
