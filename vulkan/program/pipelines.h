/* Compute pipelines: made when a program first needs them, and kept, in the user's cache directory too. */
#ifndef HS_VULKAN_PROGRAM_PIPELINES_H
#define HS_VULKAN_PROGRAM_PIPELINES_H

#include "vulkan/device/device.h"

/* Every file in vulkan/shaders is a shader of its name; the build writes the list. */
typedef enum hs_vk_shader {
#define HS_VK_SHADER(name) HS_VK_SHADER_##name,
#include "vulkan_shaders.h"
#undef HS_VK_SHADER
    HS_VK_SHADER_COUNT
} hs_vk_shader;

/* A shader's SPIR-V, as the build compiled it. Of one whose extension the build's glslang did not know there is none.
 */
typedef struct hs_vk_code {
    const char *name;
    const uint32_t *words;
    size_t count;
} hs_vk_code;

extern const hs_vk_code hs_vk_shaders[HS_VK_SHADER_COUNT];

/* What a pipeline is made for: the shaders' constants in their order, those from 3 on for cooperative matrices alone.
 */
typedef struct hs_vk_variant {
    hs_vk_shader shader;
    uint32_t subgroup; /* invocations that each of its subgroups must have; 0: as the driver likes */
    uint32_t precision, types, options;
    uint32_t m, n, k, down, across; /* hs_vk_matrices */
} hs_vk_variant;

typedef struct hs_vk_pipeline {
    hs_vk_variant variant;
    VkPipeline handle;
} hs_vk_pipeline;

typedef struct hs_vk_pipelines {
    VkPipelineLayout layout; /* one for all: an address and a number */
    VkPipelineCache cache;
    size_t kept; /* bytes of the cache as it was found */
    hs_vk_pipeline *made;
    size_t count, room;
} hs_vk_pipelines;

hstep_status hs_vk_pipelines_open(hs_vk_device *device, hs_vk_pipelines *pipelines, hstep_error *error);
void hs_vk_pipelines_close(hs_vk_device *device, hs_vk_pipelines *pipelines);

hstep_status hs_vk_pipelines_get(hs_vk_device *device, hs_vk_pipelines *pipelines, const hs_vk_variant *variant,
                                 VkPipeline *pipeline, hstep_error *error);

#endif
