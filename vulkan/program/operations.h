/*
 * How the device computes each operation: one table. A row names one to three stages, each a shader with a count of
 * work groups; stages run one after another, with a barrier between.
 */
#ifndef HS_VULKAN_PROGRAM_OPERATIONS_H
#define HS_VULKAN_PROGRAM_OPERATIONS_H

#include "engine/backend.h"
#include "vulkan/program/pipelines.h"

enum { HS_VK_STAGES = 3 };

/* Work groups of a stage: a function of dimensions and attributes. 0 for nothing to do. */
typedef uint64_t hs_vk_groups(const hs_call *call);

typedef struct hs_vk_stage {
    hs_vk_shader shader;
    hs_vk_groups *groups;
} hs_vk_stage;

typedef struct hs_vk_operation {
    hs_vk_stage stages[HS_VK_STAGES];
    uint32_t stage_count; /* 0: the device has no shader for it */
    bool flattens;        /* element by element: operands without gaps may be seen as one row */
    /* Bytes of device memory that the call works with; NULL for none. */
    size_t (*scratch)(const hs_call *call);
    /* What the shaders are specialised for beside precision and types (hs_options in them); NULL for 0. */
    uint32_t (*options)(const hs_call *call);
} hs_vk_operation;

/* Of the options of products: y gets the sums before their last rounding. */
enum { HS_VK_SUMS = 8 };

/* The row for a call of known operation and precision. */
const hs_vk_operation *hs_vk_find(const hs_call *call);

/* Whether the device computes such a call. */
bool hs_vk_supports(const hs_call *call);

/* What its pipelines are made for. */
hs_vk_variant hs_vk_variant_of(const hs_call *call, hs_vk_shader shader);

/* The call with operands without gaps seen as one row, where its operation and its sizes allow. */
hs_call hs_vk_flatten(const hs_call *call);

/* Rows and columns as the shaders see them: the last dimension, and all before it. */
static inline size_t hs_vk_columns(const hs_view *view) { return view->rank ? view->dims[view->rank - 1] : 1; }

static inline size_t hs_vk_rows(const hs_view *view) {
    size_t count = 1;
    for (uint32_t i = 0; i + 1 < view->rank; i++)
        count *= view->dims[i];
    return count;
}

/* Elements from row to row. */
static inline size_t hs_vk_pitch(const hs_view *view) {
    return view->rank >= 2 ? view->strides[view->rank - 2] : hs_vk_columns(view);
}

#endif
