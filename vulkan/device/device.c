#include "vulkan/device/device.h"

#include <stdlib.h>

#include "vulkan/device/facts.h"

/* Words for the results that people meet. */
static const char *explain(VkResult result) {
    switch (result) {
    case VK_ERROR_DEVICE_LOST:
        return "the device was lost (a driver's fault, a reset, or work that took too long)";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
        return "the device has no memory left";
    case VK_ERROR_OUT_OF_HOST_MEMORY:
        return "the driver has no memory left";
    default:
        return "the driver refused";
    }
}

hstep_status hs_vk_check(hs_vk_device *device, VkResult result, const char *what, hstep_error *error) {
    if (result == VK_SUCCESS)
        return HSTEP_OK;
    if (result == VK_ERROR_DEVICE_LOST)
        device->lost = true;
    const bool memory = result == VK_ERROR_OUT_OF_DEVICE_MEMORY || result == VK_ERROR_OUT_OF_HOST_MEMORY;
    return hs_fail(error, memory ? HSTEP_ERROR_MEMORY : HSTEP_ERROR_BACKEND_UNAVAILABLE, "Vulkan, %s: %s (VkResult %d)",
                   what, explain(result), (int)result);
}

static hstep_status create_device(hs_vk_device *device, hstep_error *error) {
    VkPhysicalDeviceVulkan11Features vulkan11;
    VkPhysicalDeviceVulkan12Features vulkan12;
    hs_vk_extra_features extra;
    const VkPhysicalDeviceFeatures2 features = hs_vk_needed_features(&vulkan11, &vulkan12);
    hs_vk_extras_enable(&device->extras, &vulkan12, &extra);
    const float priority = 1.0F;
    const VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                           .queueFamilyIndex = device->facts.family,
                                           .queueCount = 1,
                                           .pQueuePriorities = &priority};
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                     .pNext = &features,
                                     .queueCreateInfoCount = 1,
                                     .pQueueCreateInfos = &queue,
                                     .enabledExtensionCount = extra.extension_count,
                                     .ppEnabledExtensionNames = extra.extensions};
    HS_FORWARD(hs_vk_check(device, device->instance.CreateDevice(device->facts.physical, &info, NULL, &device->handle),
                           "starting the device", error));
    HS_FORWARD(hs_vk_functions_load(&device->instance, device->handle, &device->vk, error));
    device->vk.GetDeviceQueue(device->handle, device->facts.family, 0, &device->queue);
    return HSTEP_OK;
}

static hstep_status create_timeline(hs_vk_device *device, hstep_error *error) {
    const VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                            .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    const VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
    const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                          .queueFamilyIndex = device->facts.family};
    HS_FORWARD(hs_vk_check(device, device->vk.CreateSemaphore(device->handle, &info, NULL, &device->timeline),
                           "making a timeline", error));
    return hs_vk_check(device, device->vk.CreateCommandPool(device->handle, &pool, NULL, &device->pool),
                       "making a command pool", error);
}

static hstep_status choose(hs_vk_device *device, const hs_vulkan_choice *choice, hstep_error *error) {
    hs_vk_facts *list;
    size_t count, chosen = 0;
    HS_FORWARD(hs_vk_facts_list(&device->instance, &list, &count, error));
    const hstep_status status = hs_vk_facts_choose(list, count, choice, &chosen, error);
    if (status == HSTEP_OK) {
        device->facts = list[chosen];
        device->instance.GetPhysicalDeviceMemoryProperties(device->facts.physical, &device->memory);
        hs_vk_extras_find(&device->instance, device->facts.physical, &device->extras);
    }
    free(list);
    return status;
}

hstep_status hs_vk_device_open(hs_vk_device *device, const hs_vulkan_choice *choice, hstep_error *error) {
    *device = (hs_vk_device){0};
    HS_FORWARD(hs_vk_instance_open(&device->instance, error));
    hstep_status status = choose(device, choice, error);
    if (status == HSTEP_OK)
        status = create_device(device, error);
    if (status == HSTEP_OK)
        status = create_timeline(device, error);
    if (status != HSTEP_OK)
        hs_vk_device_close(device);
    return status;
}

void hs_vk_device_close(hs_vk_device *device) {
    /* The queue is there once all functions are. */
    if (device->queue) {
        (void)device->vk.DeviceWaitIdle(device->handle);
        device->vk.DestroyCommandPool(device->handle, device->pool, NULL);
        device->vk.DestroySemaphore(device->handle, device->timeline, NULL);
    }
    if (device->handle && device->vk.DestroyDevice)
        device->vk.DestroyDevice(device->handle, NULL);
    hs_vk_instance_close(&device->instance);
    *device = (hs_vk_device){0};
}

hstep_status hs_vk_commands_make(hs_vk_device *device, VkCommandBuffer *commands, hstep_error *error) {
    const VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                              .commandPool = device->pool,
                                              .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                              .commandBufferCount = 1};
    return hs_vk_check(device, device->vk.AllocateCommandBuffers(device->handle, &info, commands),
                       "making a command buffer", error);
}

void hs_vk_commands_free(hs_vk_device *device, VkCommandBuffer commands) {
    if (commands)
        device->vk.FreeCommandBuffers(device->handle, device->pool, 1, &commands);
}

enum { WORK = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT };

void hs_vk_barrier(const hs_vk_device *device, VkCommandBuffer commands) {
    const VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                     .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
                                     .dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
                                                      VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT};
    device->vk.CmdPipelineBarrier(commands, WORK, WORK, 0, 1, &barrier, 0, NULL, 0, NULL);
}

void hs_vk_barrier_to_host(const hs_vk_device *device, VkCommandBuffer commands) {
    const VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                     .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
                                     .dstAccessMask = VK_ACCESS_HOST_READ_BIT};
    device->vk.CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier,
                                  0, NULL, 0, NULL);
}

hstep_status hs_vk_commands_begin(hs_vk_device *device, VkCommandBuffer commands, bool many, hstep_error *error) {
    const VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                           .flags = many ? VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT : 0U};
    HS_FORWARD(
        hs_vk_check(device, device->vk.BeginCommandBuffer(commands, &info), "recording a command buffer", error));
    hs_vk_barrier(device, commands);
    return HSTEP_OK;
}

hstep_status hs_vk_commands_end(hs_vk_device *device, VkCommandBuffer commands, hstep_error *error) {
    return hs_vk_check(device, device->vk.EndCommandBuffer(commands), "recording a command buffer", error);
}

hstep_status hs_vk_submit(hs_vk_device *device, VkCommandBuffer commands, hstep_error *error) {
    if (device->lost)
        return hs_vk_check(device, VK_ERROR_DEVICE_LOST, "submitting work", error);
    const uint64_t number = device->submitted + 1;
    const VkTimelineSemaphoreSubmitInfo timeline = {.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                                    .signalSemaphoreValueCount = 1,
                                                    .pSignalSemaphoreValues = &number};
    const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                               .pNext = &timeline,
                               .commandBufferCount = 1,
                               .pCommandBuffers = &commands,
                               .signalSemaphoreCount = 1,
                               .pSignalSemaphores = &device->timeline};
    HS_FORWARD(
        hs_vk_check(device, device->vk.QueueSubmit(device->queue, 1, &info, VK_NULL_HANDLE), "submitting work", error));
    device->submitted = number;
    return HSTEP_OK;
}

hstep_status hs_vk_wait(hs_vk_device *device, uint64_t number, hstep_error *error) {
    if (number <= device->completed)
        return HSTEP_OK;
    if (device->lost)
        return hs_vk_check(device, VK_ERROR_DEVICE_LOST, "waiting for work", error);
    const VkSemaphoreWaitInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                      .semaphoreCount = 1,
                                      .pSemaphores = &device->timeline,
                                      .pValues = &number};
    HS_FORWARD(
        hs_vk_check(device, device->vk.WaitSemaphores(device->handle, &info, UINT64_MAX), "waiting for work", error));
    device->completed = number;
    return HSTEP_OK;
}

void hs_vk_settle(hs_vk_device *device) {
    if (hs_vk_wait(device, device->submitted, NULL) == HSTEP_OK)
        return;
    /* On a lost device this returns at once; nothing may be destroyed before, since work may still be on its way. */
    (void)device->vk.DeviceWaitIdle(device->handle);
}
