/* Programs: records of the calls in device memory, and command buffers recorded once for each range that is run. */
#ifndef HS_VULKAN_PROGRAM_PROGRAM_H
#define HS_VULKAN_PROGRAM_PROGRAM_H

#include "vulkan/backend.h"
#include "vulkan/program/operations.h"

/* One stage of one call. */
typedef struct hs_vk_dispatch {
    VkPipeline pipeline;
    uint64_t groups;
} hs_vk_dispatch;

/* A call as it is dispatched. */
typedef struct hs_vk_step {
    uint64_t record; /* its address */
    uint32_t stage_count;
    hs_vk_dispatch stages[HS_VK_STAGES];
    hs_vk_dispatch gated; /* in place of them, by a gated lever; without a pipeline: none serves */
    double cost;          /* about how many multiplications it takes */
} hs_vk_step;

/* Command buffers of one range, each submitted by itself. */
typedef struct hs_vk_range {
    size_t first, count;
    bool exact; /* without gated levers */
    VkCommandBuffer *parts;
    size_t part_count, part_room;
    uint32_t dispatches, barriers;
} hs_vk_range;

enum { HS_VK_RANGES = 8 };

struct hs_program {
    size_t count;
    hs_call *calls;
    hs_vk_step *steps;
    bool is_gated; /* a gated lever serves some call */
    hs_vk_buffer records, flags, scratch;
    hs_vk_range ranges[HS_VK_RANGES];
    size_t range_count, oldest;
};

hstep_status hs_vk_program_create(hs_backend *backend, const hs_call *calls, size_t count, hs_program **program,
                                  hstep_error *error);
void hs_vk_program_destroy(hs_backend *backend, hs_program *program);
hstep_status hs_vk_program_run(hs_backend *backend, hs_program *program, size_t first, size_t count,
                               hstep_error *error);
hstep_status hs_vk_program_run_exact(hs_backend *backend, hs_program *program, size_t first, size_t count,
                                     hstep_error *error);
hstep_status hs_vk_program_finish(hs_backend *backend, hs_program *program, uint32_t *flags, hstep_error *error);

/* Records the calls that *range names into it (program/commands.c). */
hstep_status hs_vk_record_range(hs_vk_backend *backend, const hs_program *program, hs_vk_range *range,
                                hstep_error *error);
void hs_vk_range_free(hs_vk_backend *backend, hs_vk_range *range);

#endif
