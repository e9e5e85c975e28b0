/*
 * Vulkan's functions, found at run time. Every context has tables of its own: a library with one set of global pointers
 * would share them between contexts, and in a static library they would bear the names of Vulkan's own functions.
 */
#ifndef HS_VULKAN_DEVICE_LOADER_H
#define HS_VULKAN_DEVICE_LOADER_H

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include "engine/error.h"

#define HS_VK_INSTANCE_FUNCTIONS(X)                                                                                    \
    X(DestroyInstance)                                                                                                 \
    X(EnumeratePhysicalDevices)                                                                                        \
    X(EnumerateDeviceExtensionProperties)                                                                              \
    X(GetPhysicalDeviceProperties)                                                                                     \
    X(GetPhysicalDeviceProperties2)                                                                                    \
    X(GetPhysicalDeviceFeatures2)                                                                                      \
    X(GetPhysicalDeviceMemoryProperties)                                                                               \
    X(GetPhysicalDeviceQueueFamilyProperties)                                                                          \
    X(CreateDevice)                                                                                                    \
    X(GetDeviceProcAddr)

#define HS_VK_DEVICE_FUNCTIONS(X)                                                                                      \
    X(DestroyDevice)                                                                                                   \
    X(DeviceWaitIdle)                                                                                                  \
    X(GetDeviceQueue)                                                                                                  \
    X(QueueSubmit)                                                                                                     \
    X(CreateSemaphore)                                                                                                 \
    X(DestroySemaphore)                                                                                                \
    X(WaitSemaphores)                                                                                                  \
    X(GetSemaphoreCounterValue)                                                                                        \
    X(AllocateMemory)                                                                                                  \
    X(FreeMemory)                                                                                                      \
    X(MapMemory)                                                                                                       \
    X(CreateBuffer)                                                                                                    \
    X(DestroyBuffer)                                                                                                   \
    X(GetBufferMemoryRequirements)                                                                                     \
    X(BindBufferMemory)                                                                                                \
    X(GetBufferDeviceAddress)                                                                                          \
    X(CreateCommandPool)                                                                                               \
    X(DestroyCommandPool)                                                                                              \
    X(AllocateCommandBuffers)                                                                                          \
    X(FreeCommandBuffers)                                                                                              \
    X(BeginCommandBuffer)                                                                                              \
    X(EndCommandBuffer)                                                                                                \
    X(CmdPipelineBarrier)                                                                                              \
    X(CmdCopyBuffer)                                                                                                   \
    X(CmdFillBuffer)                                                                                                   \
    X(CmdBindPipeline)                                                                                                 \
    X(CmdPushConstants)                                                                                                \
    X(CmdDispatch)                                                                                                     \
    X(CreatePipelineLayout)                                                                                            \
    X(DestroyPipelineLayout)                                                                                           \
    X(CreatePipelineCache)                                                                                             \
    X(DestroyPipelineCache)                                                                                            \
    X(GetPipelineCacheData)                                                                                            \
    X(CreateShaderModule)                                                                                              \
    X(DestroyShaderModule)                                                                                             \
    X(CreateComputePipelines)                                                                                          \
    X(DestroyPipeline)

#define HS_VK_DECLARE(name) PFN_vk##name name;

/* The library and an instance of it. */
typedef struct hs_vk_instance {
    void *library;
    VkInstance handle;
    PFN_vkGetInstanceProcAddr find; /* functions that not every system has */
    HS_VK_INSTANCE_FUNCTIONS(HS_VK_DECLARE)
} hs_vk_instance;

typedef struct hs_vk_functions {
    HS_VK_DEVICE_FUNCTIONS(HS_VK_DECLARE)
} hs_vk_functions;

#undef HS_VK_DECLARE

/* HSTEP_ERROR_BACKEND_UNAVAILABLE where the system has no Vulkan of version 1.2. Nothing to close after a failure. */
hstep_status hs_vk_instance_open(hs_vk_instance *instance, hstep_error *error);
void hs_vk_instance_close(hs_vk_instance *instance);

hstep_status hs_vk_functions_load(const hs_vk_instance *instance, VkDevice device, hs_vk_functions *functions,
                                  hstep_error *error);

#endif
