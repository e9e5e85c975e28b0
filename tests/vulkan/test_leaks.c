/*
 * Everything that is made of a device is destroyed before it, counted at the functions that make and destroy, whether
 * a run ends well or loses its device on the way. The validation layer's tracker of objects sees the same from below.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "engine/context.h"
#include "support/device.h"
#include "support/models.h"
#include "vulkan/backend.h"

enum { MEMORY, BUFFERS, MODULES, PIPELINES, COMMANDS, SEMAPHORES, POOLS, LAYOUTS, CACHES, KINDS };

typedef struct counts {
    size_t of[KINDS];
} counts;

/* Each test is a process of its own. */
static hs_vk_functions real;
static counts made, destroyed;
static size_t submissions_left;

#define COUNT(kind, create, make, info_type, destroy, drop, handle_type)                                               \
    static VKAPI_ATTR VkResult VKAPI_CALL make(VkDevice device, const info_type *info,                                 \
                                               const VkAllocationCallbacks *callbacks, handle_type *handle) {          \
        const VkResult result = real.create(device, info, callbacks, handle);                                          \
        made.of[kind] += result == VK_SUCCESS;                                                                         \
        return result;                                                                                                 \
    }                                                                                                                  \
    static VKAPI_ATTR void VKAPI_CALL drop(VkDevice device, handle_type handle,                                        \
                                           const VkAllocationCallbacks *callbacks) {                                   \
        destroyed.of[kind] += handle != VK_NULL_HANDLE;                                                                \
        real.destroy(device, handle, callbacks);                                                                       \
    }

COUNT(MEMORY, AllocateMemory, make_memory, VkMemoryAllocateInfo, FreeMemory, drop_memory, VkDeviceMemory)
COUNT(BUFFERS, CreateBuffer, make_buffer, VkBufferCreateInfo, DestroyBuffer, drop_buffer, VkBuffer)
COUNT(MODULES, CreateShaderModule, make_module, VkShaderModuleCreateInfo, DestroyShaderModule, drop_module,
      VkShaderModule)
COUNT(SEMAPHORES, CreateSemaphore, make_semaphore, VkSemaphoreCreateInfo, DestroySemaphore, drop_semaphore, VkSemaphore)
COUNT(POOLS, CreateCommandPool, make_pool, VkCommandPoolCreateInfo, DestroyCommandPool, drop_pool, VkCommandPool)
COUNT(LAYOUTS, CreatePipelineLayout, make_layout, VkPipelineLayoutCreateInfo, DestroyPipelineLayout, drop_layout,
      VkPipelineLayout)
COUNT(CACHES, CreatePipelineCache, make_cache, VkPipelineCacheCreateInfo, DestroyPipelineCache, drop_cache,
      VkPipelineCache)

static VKAPI_ATTR VkResult VKAPI_CALL make_pipelines(VkDevice device, VkPipelineCache cache, uint32_t count,
                                                     const VkComputePipelineCreateInfo *infos,
                                                     const VkAllocationCallbacks *callbacks, VkPipeline *pipelines) {
    const VkResult result = real.CreateComputePipelines(device, cache, count, infos, callbacks, pipelines);
    made.of[PIPELINES] += result == VK_SUCCESS ? count : 0;
    return result;
}

static VKAPI_ATTR void VKAPI_CALL drop_pipeline(VkDevice device, VkPipeline pipeline,
                                                const VkAllocationCallbacks *callbacks) {
    destroyed.of[PIPELINES] += pipeline != VK_NULL_HANDLE;
    real.DestroyPipeline(device, pipeline, callbacks);
}

static VKAPI_ATTR VkResult VKAPI_CALL make_commands(VkDevice device, const VkCommandBufferAllocateInfo *info,
                                                    VkCommandBuffer *commands) {
    const VkResult result = real.AllocateCommandBuffers(device, info, commands);
    made.of[COMMANDS] += result == VK_SUCCESS ? info->commandBufferCount : 0;
    return result;
}

static VKAPI_ATTR void VKAPI_CALL drop_commands(VkDevice device, VkCommandPool pool, uint32_t count,
                                                const VkCommandBuffer *commands) {
    destroyed.of[COMMANDS] += count;
    real.FreeCommandBuffers(device, pool, count, commands);
}

static VKAPI_ATTR VkResult VKAPI_CALL losing_submit(VkQueue queue, uint32_t count, const VkSubmitInfo *infos,
                                                    VkFence fence) {
    if (submissions_left == 0)
        return VK_ERROR_DEVICE_LOST;
    submissions_left--;
    return real.QueueSubmit(queue, count, infos, fence);
}

/* A device whose functions are counted from here on. */
static hs_backend *open_counted(size_t submissions) {
    hs_backend *backend = hs_test_device();
    hs_vk_functions *vk = &((hs_vk_backend *)backend)->device.vk;
    real = *vk;
    submissions_left = submissions;
    made = destroyed = (counts){{0}};
    vk->AllocateMemory = make_memory, vk->FreeMemory = drop_memory;
    vk->CreateBuffer = make_buffer, vk->DestroyBuffer = drop_buffer;
    vk->CreateShaderModule = make_module, vk->DestroyShaderModule = drop_module;
    vk->CreateSemaphore = make_semaphore, vk->DestroySemaphore = drop_semaphore;
    vk->CreateCommandPool = make_pool, vk->DestroyCommandPool = drop_pool;
    vk->CreatePipelineLayout = make_layout, vk->DestroyPipelineLayout = drop_layout;
    vk->CreatePipelineCache = make_cache, vk->DestroyPipelineCache = drop_cache;
    vk->CreateComputePipelines = make_pipelines, vk->DestroyPipeline = drop_pipeline;
    vk->AllocateCommandBuffers = make_commands, vk->FreeCommandBuffers = drop_commands;
    vk->QueueSubmit = losing_submit;
    return backend;
}

/* What a device is made of that has computed nothing but the probe: made before anybody counted, and destroyed. */
static counts count_of_opening(void) {
    hs_backend *backend = open_counted(SIZE_MAX);
    const hs_vk_backend *vulkan = (const hs_vk_backend *)backend;
    const counts there = {.of = {[MEMORY] = 1 + vulkan->heap.count, /* staging, and blocks */
                                 [BUFFERS] = 1 + vulkan->heap.count,
                                 [PIPELINES] = vulkan->pipelines.count,
                                 [COMMANDS] = HS_VK_STAGING_SLOTS,
                                 [SEMAPHORES] = 1,
                                 [POOLS] = 1,
                                 [LAYOUTS] = 1,
                                 [CACHES] = 1}};
    cr_assert_gt(there.of[PIPELINES], 0);
    backend->api->destroy(backend);
    for (size_t i = 0; i < KINDS; i++)
        cr_assert_eq(destroyed.of[i], there.of[i], "kind %zu: %zu destroyed of %zu", i, destroyed.of[i], there.of[i]);
    return there;
}

static void expect_all_destroyed(const counts *opening) {
    for (size_t i = 0; i < KINDS; i++)
        cr_assert_eq(destroyed.of[i], opening->of[i] + made.of[i], "kind %zu: %zu destroyed of %zu + %zu", i,
                     destroyed.of[i], opening->of[i], made.of[i]);
}

/* Two updates, as far as they come. */
static void train(size_t submissions) {
    hstep_context *context = NULL;
    hstep_error error = {0};
    hs_test_expect_ok(hs_context_adopt(open_counted(submissions), NULL, &context, &error), &error);
    hs_test_run run = hs_test_general_run_create_in(context);
    const hstep_batch batch = hs_test_general_batch();
    hstep_update update;
    for (int i = 0; i < 2; i++)
        if (hstep_trainer_update(run.trainer, &batch, 1, &update, &error) != HSTEP_OK)
            break;
    hs_test_run_destroy(&run);
}

Test(leaks, are_none_where_all_goes_well, .timeout = 120) {
    const counts opening = count_of_opening();
    train(SIZE_MAX);
    for (size_t i = MEMORY; i <= COMMANDS; i++)
        cr_assert_gt(made.of[i], 0, "nothing of kind %zu was made", i);
    expect_all_destroyed(&opening);
}

Test(leaks, are_none_where_the_device_is_lost, .timeout = 120) {
    const counts opening = count_of_opening();
    train(SIZE_MAX);
    const size_t all = SIZE_MAX - submissions_left;
    for (size_t before_end = 1; before_end <= 10; before_end += 3) {
        train(all - before_end);
        cr_assert_eq(submissions_left, 0, "the device was not lost");
        expect_all_destroyed(&opening);
    }
}
