#include "vulkan/program/pipelines.h"

#include <stdlib.h>
#include <string.h>

#include "vulkan/program/cache.h"
#include "vulkan/program/record.h"
#include "vulkan/program/spirv.h"

static hstep_status create_cache(hs_vk_device *device, hs_vk_pipelines *pipelines, hstep_error *error) {
    void *kept = hs_vk_cache_load(device->facts.uuid, &pipelines->kept);
    const VkPipelineCacheCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
                                            .initialDataSize = pipelines->kept,
                                            .pInitialData = kept};
    const hstep_status status =
        hs_vk_check(device, device->vk.CreatePipelineCache(device->handle, &info, NULL, &pipelines->cache),
                    "making a pipeline cache", error);
    free(kept);
    return status;
}

hstep_status hs_vk_pipelines_open(hs_vk_device *device, hs_vk_pipelines *pipelines, hstep_error *error) {
    const VkPushConstantRange push = {VK_SHADER_STAGE_COMPUTE_BIT, 0, HS_VK_PUSH_BYTES};
    const VkPipelineLayoutCreateInfo layout = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                               .pushConstantRangeCount = 1,
                                               .pPushConstantRanges = &push};
    *pipelines = (hs_vk_pipelines){0};
    HS_FORWARD(hs_vk_check(device, device->vk.CreatePipelineLayout(device->handle, &layout, NULL, &pipelines->layout),
                           "making a pipeline layout", error));
    return create_cache(device, pipelines, error);
}

/* Keeps the cache for the next time, where it has grown or shrunk. */
static void keep(hs_vk_device *device, const hs_vk_pipelines *pipelines) {
    size_t size = 0;
    if (!pipelines->cache || device->lost ||
        device->vk.GetPipelineCacheData(device->handle, pipelines->cache, &size, NULL) != VK_SUCCESS ||
        size == pipelines->kept)
        return;
    void *data = malloc(size);
    if (data && device->vk.GetPipelineCacheData(device->handle, pipelines->cache, &size, data) == VK_SUCCESS)
        hs_vk_cache_save(device->facts.uuid, data, size);
    free(data);
}

void hs_vk_pipelines_close(hs_vk_device *device, hs_vk_pipelines *pipelines) {
    keep(device, pipelines);
    for (size_t i = 0; i < pipelines->count; i++)
        device->vk.DestroyPipeline(device->handle, pipelines->made[i].handle, NULL);
    free(pipelines->made);
    device->vk.DestroyPipelineCache(device->handle, pipelines->cache, NULL);
    device->vk.DestroyPipelineLayout(device->handle, pipelines->layout, NULL);
    *pipelines = (hs_vk_pipelines){0};
}

static hstep_status create_module(hs_vk_device *device, const hs_vk_code *code, VkShaderModule *module,
                                  hstep_error *error) {
    uint32_t *words = malloc((code->count + HS_SPIRV_CONTROL_WORDS) * sizeof *words);
    if (!words)
        return hs_fail_memory(error, "a shader");
    const size_t count = hs_spirv_add_controls(code->words, code->count, &device->facts.floats, words);
    const VkShaderModuleCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = count * sizeof *words, .pCode = words};
    const hstep_status status =
        hs_vk_check(device, device->vk.CreateShaderModule(device->handle, &info, NULL, module), code->name, error);
    free(words);
    return status;
}

enum { FULL_SUBGROUPS = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT };

static hstep_status create_pipeline(hs_vk_device *device, hs_vk_pipelines *pipelines, const hs_vk_variant *variant,
                                    VkShaderModule module, VkPipeline *pipeline, hstep_error *error) {
    enum { CONSTANTS = 8 };
    const uint32_t constants[CONSTANTS] = {variant->precision, variant->types, variant->options, variant->m,
                                           variant->n,         variant->k,     variant->down,    variant->across};
    VkSpecializationMapEntry entries[CONSTANTS];
    for (uint32_t i = 0; i < CONSTANTS; i++)
        entries[i] = (VkSpecializationMapEntry){i, i * sizeof *constants, sizeof *constants};
    const VkSpecializationInfo specialization = {CONSTANTS, entries, sizeof constants, constants};
    const VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroup = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO,
        .requiredSubgroupSize = variant->subgroup};
    const VkComputePipelineCreateInfo info = {.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
                                              .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                                                        .pNext = variant->subgroup ? &subgroup : NULL,
                                                        .flags = variant->subgroup ? FULL_SUBGROUPS : 0U,
                                                        .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                                                        .module = module,
                                                        .pName = "main",
                                                        .pSpecializationInfo = &specialization},
                                              .layout = pipelines->layout};
    return hs_vk_check(device,
                       device->vk.CreateComputePipelines(device->handle, pipelines->cache, 1, &info, NULL, pipeline),
                       hs_vk_shaders[variant->shader].name, error);
}

static bool reserve(hs_vk_pipelines *pipelines) {
    if (pipelines->count < pipelines->room)
        return true;
    const size_t room = 2 * pipelines->room + 32;
    hs_vk_pipeline *made = realloc(pipelines->made, room * sizeof *made);
    if (!made)
        return false;
    pipelines->made = made;
    pipelines->room = room;
    return true;
}

hstep_status hs_vk_pipelines_get(hs_vk_device *device, hs_vk_pipelines *pipelines, const hs_vk_variant *variant,
                                 VkPipeline *pipeline, hstep_error *error) {
    for (size_t i = 0; i < pipelines->count; i++)
        if (memcmp(&pipelines->made[i].variant, variant, sizeof *variant) == 0) {
            *pipeline = pipelines->made[i].handle;
            return HSTEP_OK;
        }
    if (!reserve(pipelines))
        return hs_fail_memory(error, "a pipeline");
    VkShaderModule module;
    HS_FORWARD(create_module(device, &hs_vk_shaders[variant->shader], &module, error));
    const hstep_status status = create_pipeline(device, pipelines, variant, module, pipeline, error);
    device->vk.DestroyShaderModule(device->handle, module, NULL);
    if (status == HSTEP_OK)
        pipelines->made[pipelines->count++] = (hs_vk_pipeline){*variant, *pipeline};
    return status;
}
