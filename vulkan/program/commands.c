/* Recording calls: dispatches, and barriers where a call touches what an earlier one wrote or still reads. */
#include "vulkan/program/record.h"

#include <stdlib.h>

#include "vulkan/program/program.h"

/*
 * About as many multiplications as one submission may hold: a tenth of a second on a small GPU, so that no watchdog
 * takes it for hung. What a single call needs beyond is dispatched in parts.
 */
static const double submission_cost = 8e9;

/* Memory that a call touches: rows of `width` bytes, `pitch` bytes apart. */
typedef struct access {
    uint64_t start, end, pitch, width;
    bool written;
} access;

/* What was touched since the last barrier. */
typedef struct recorder {
    hs_vk_backend *backend;
    const hs_program *program;
    hs_vk_range *range;
    VkCommandBuffer commands; /* NULL between parts */
    double cost;
    access *touched;
    size_t touched_count;
    VkPipeline bound;
} recorder;

enum { MOST_TOUCHED = HS_MAX_INPUTS + HS_MAX_OUTPUTS + 1 };

static access make_access(const hs_view *view, bool written) {
    const hs_vk_buffer *buffer = (const hs_vk_buffer *)view->buffer;
    const size_t element = hs_dtype_size(view->dtype), rows = hs_vk_rows(view), columns = hs_vk_columns(view);
    access made = {.start = buffer->address + view->offset,
                   .pitch = hs_vk_pitch(view) * element,
                   .width = columns * element,
                   .written = written};
    made.end = made.start + (rows && columns ? (rows - 1) * made.pitch + made.width : 0);
    return made;
}

/* ADAMW reads and writes all but its scalars. */
static size_t list_accesses(const hs_program *program, const hs_call *call, access *list) {
    size_t count = 0;
    for (uint32_t i = 0; i < call->input_count; i++)
        list[count++] = make_access(&call->inputs[i], call->operation == HS_OP_ADAMW && i == 0);
    for (uint32_t i = 0; i < call->output_count; i++)
        list[count++] = make_access(&call->outputs[i], true);
    if (hs_vk_find(call)->scratch) {
        const uint64_t start = program->scratch.address, size = program->scratch.size;
        list[count++] = (access){start, start + size, size, size, true};
    }
    return count;
}

/* Columns of one matrix, side by side, have nothing in common. */
static bool overlap(const access *a, const access *b) {
    if (a->start >= b->end || b->start >= a->end)
        return false;
    if (a->pitch != b->pitch || a->pitch == 0)
        return true;
    const uint64_t pitch = a->pitch, shift = (b->start % pitch + pitch - a->start % pitch) % pitch;
    return shift < a->width || shift + b->width > pitch;
}

static bool conflicts(const recorder *r, const access *list, size_t count) {
    for (size_t i = 0; i < r->touched_count; i++)
        for (size_t j = 0; j < count; j++)
            if ((r->touched[i].written || list[j].written) && overlap(&r->touched[i], &list[j]))
                return true;
    return false;
}

static hstep_status begin_part(recorder *r, hstep_error *error) {
    hs_vk_range *range = r->range;
    if (range->part_count == range->part_room) {
        const size_t room = 2 * range->part_room + 4;
        VkCommandBuffer *parts = realloc(range->parts, room * sizeof(VkCommandBuffer));
        if (!parts)
            return hs_fail_memory(error, "command buffers");
        range->parts = parts;
        range->part_room = room;
    }
    HS_FORWARD(hs_vk_commands_make(&r->backend->device, &r->commands, error));
    range->parts[range->part_count++] = r->commands;
    r->touched_count = 0; /* a part begins with a barrier */
    r->cost = 0;
    r->bound = VK_NULL_HANDLE;
    range->barriers++;
    return hs_vk_commands_begin(&r->backend->device, r->commands, true, error);
}

static hstep_status end_part(recorder *r, hstep_error *error) {
    if (!r->commands)
        return HSTEP_OK;
    const VkCommandBuffer commands = r->commands;
    r->commands = NULL;
    return hs_vk_commands_end(&r->backend->device, commands, error);
}

static void add_barrier(recorder *r) {
    hs_vk_barrier(&r->backend->device, r->commands);
    r->touched_count = 0;
    r->range->barriers++;
}

static void dispatch(recorder *r, const hs_vk_step *step, const hs_vk_dispatch *stage, uint64_t first, uint64_t count) {
    const hs_vk_device *device = &r->backend->device;
    const hs_vk_push push = {.record = step->record, .first_group = (uint32_t)first};
    if (r->bound != stage->pipeline)
        device->vk.CmdBindPipeline(r->commands, VK_PIPELINE_BIND_POINT_COMPUTE, stage->pipeline);
    r->bound = stage->pipeline;
    device->vk.CmdPushConstants(r->commands, r->backend->pipelines.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                                HS_VK_PUSH_BYTES, &push);
    device->vk.CmdDispatch(r->commands, (uint32_t)count, 1, 1);
    r->range->dispatches++;
}

/* So many groups of a stage that neither the device nor a submission has too much of them. */
static uint64_t most_groups(const recorder *r, const hs_vk_step *step, const hs_vk_dispatch *stage) {
    uint64_t most = r->backend->device.facts.most_groups;
    if (step->cost > submission_cost) {
        const uint64_t fitting = (uint64_t)((double)stage->groups * (submission_cost / step->cost)) + 1;
        most = fitting < most ? fitting : most;
    }
    return most;
}

static hstep_status record_stage(recorder *r, const hs_vk_step *step, const hs_vk_dispatch *stage, hstep_error *error) {
    const uint64_t most = most_groups(r, step, stage);
    for (uint64_t first = 0; first < stage->groups; first += most) {
        const uint64_t left = stage->groups - first, count = left < most ? left : most;
        if (r->cost > submission_cost) {
            HS_FORWARD(end_part(r, error));
            HS_FORWARD(begin_part(r, error));
        }
        dispatch(r, step, stage, first, count);
        r->cost += step->cost * ((double)count / (double)stage->groups);
    }
    return HSTEP_OK;
}

static hstep_status record_call(recorder *r, size_t i, hstep_error *error) {
    const hs_vk_step *step = &r->program->steps[i];
    access list[MOST_TOUCHED];
    const size_t count = list_accesses(r->program, &r->program->calls[i], list);
    if (conflicts(r, list, count))
        add_barrier(r);
    if (step->gated.pipeline && !r->range->exact)
        HS_FORWARD(record_stage(r, step, &step->gated, error));
    for (uint32_t stage = 0; stage < step->stage_count && (!step->gated.pipeline || r->range->exact); stage++) {
        if (stage > 0)
            add_barrier(r);
        HS_FORWARD(record_stage(r, step, &step->stages[stage], error));
    }
    for (size_t j = 0; j < count; j++)
        r->touched[r->touched_count++] = list[j];
    return HSTEP_OK;
}

hstep_status hs_vk_record_range(hs_vk_backend *backend, const hs_program *program, hs_vk_range *range,
                                hstep_error *error) {
    const size_t first = range->first, count = range->count;
    recorder r = {.backend = backend, .program = program, .range = range};
    r.touched = calloc(count * MOST_TOUCHED + 1, sizeof *r.touched);
    if (!r.touched)
        return hs_fail_memory(error, "recording a program");
    hstep_status status = begin_part(&r, error);
    for (size_t i = first; i < first + count && status == HSTEP_OK; i++)
        status = record_call(&r, i, error);
    if (status == HSTEP_OK)
        status = end_part(&r, error);
    free(r.touched);
    return status;
}

void hs_vk_range_free(hs_vk_backend *backend, hs_vk_range *range) {
    for (size_t i = 0; i < range->part_count; i++)
        hs_vk_commands_free(&backend->device, range->parts[i]);
    free(range->parts);
    *range = (hs_vk_range){0};
}
