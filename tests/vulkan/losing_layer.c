/*
 * A Vulkan layer that loses the device: after as many submissions as HALFSTEP_TEST_SUBMISSIONS says, every further one
 * and every wait fails as with a driver whose device was lost. At the end it says how many there were.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

/* Of the one instance and the one device that a program has at a time. */
static PFN_vkGetInstanceProcAddr next_of_instance;
static PFN_vkGetDeviceProcAddr next_of_device;
static PFN_vkDestroyDevice destroy_device;
static PFN_vkQueueSubmit submit;
static PFN_vkWaitSemaphores wait_semaphores;
static unsigned long submissions, most;

static VKAPI_ATTR VkResult VKAPI_CALL losing_submit(VkQueue queue, uint32_t count, const VkSubmitInfo *infos,
                                                    VkFence fence) {
    submissions++;
    return submissions > most ? VK_ERROR_DEVICE_LOST : submit(queue, count, infos, fence);
}

static VKAPI_ATTR VkResult VKAPI_CALL losing_wait(VkDevice device, const VkSemaphoreWaitInfo *info, uint64_t timeout) {
    return submissions > most ? VK_ERROR_DEVICE_LOST : wait_semaphores(device, info, timeout);
}

static VKAPI_ATTR void VKAPI_CALL report(VkDevice device, const VkAllocationCallbacks *callbacks) {
    fprintf(stderr, "submissions: %lu\n", submissions);
    destroy_device(device, callbacks);
}

/* The link that the loader made for this layer, which is then taken out of the chain. */
static VkLayerInstanceLink take_instance_link(const VkInstanceCreateInfo *info) {
    VkLayerInstanceCreateInfo *chain = (VkLayerInstanceCreateInfo *)(uintptr_t)info->pNext;
    while (chain->sType != VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO || chain->function != VK_LAYER_LINK_INFO)
        chain = (VkLayerInstanceCreateInfo *)(uintptr_t)chain->pNext;
    const VkLayerInstanceLink link = *chain->u.pLayerInfo;
    chain->u.pLayerInfo = link.pNext;
    return link;
}

static VkLayerDeviceLink take_device_link(const VkDeviceCreateInfo *info) {
    VkLayerDeviceCreateInfo *chain = (VkLayerDeviceCreateInfo *)(uintptr_t)info->pNext;
    while (chain->sType != VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO || chain->function != VK_LAYER_LINK_INFO)
        chain = (VkLayerDeviceCreateInfo *)(uintptr_t)chain->pNext;
    const VkLayerDeviceLink link = *chain->u.pLayerInfo;
    chain->u.pLayerInfo = link.pNext;
    return link;
}

static VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo *info,
                                                      const VkAllocationCallbacks *callbacks, VkInstance *instance) {
    next_of_instance = take_instance_link(info).pfnNextGetInstanceProcAddr;
    const PFN_vkCreateInstance create = (PFN_vkCreateInstance)next_of_instance(NULL, "vkCreateInstance");
    return create(info, callbacks, instance);
}

static VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo *info,
                                                    const VkAllocationCallbacks *callbacks, VkDevice *device) {
    const VkLayerDeviceLink link = take_device_link(info);
    const PFN_vkCreateDevice create =
        (PFN_vkCreateDevice)link.pfnNextGetInstanceProcAddr(VK_NULL_HANDLE, "vkCreateDevice");
    const VkResult result = create(physical, info, callbacks, device);
    if (result != VK_SUCCESS)
        return result;
    const char *const text = getenv("HALFSTEP_TEST_SUBMISSIONS");
    most = text ? strtoul(text, NULL, 10) : 0;
    submissions = 0;
    next_of_device = link.pfnNextGetDeviceProcAddr;
    submit = (PFN_vkQueueSubmit)next_of_device(*device, "vkQueueSubmit");
    wait_semaphores = (PFN_vkWaitSemaphores)next_of_device(*device, "vkWaitSemaphores");
    destroy_device = (PFN_vkDestroyDevice)next_of_device(*device, "vkDestroyDevice");
    return VK_SUCCESS;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL find_of_device(VkDevice device, const char *name) {
    if (strcmp(name, "vkQueueSubmit") == 0)
        return (PFN_vkVoidFunction)losing_submit;
    if (strcmp(name, "vkWaitSemaphores") == 0)
        return (PFN_vkVoidFunction)losing_wait;
    if (strcmp(name, "vkDestroyDevice") == 0)
        return (PFN_vkVoidFunction)report;
    if (strcmp(name, "vkGetDeviceProcAddr") == 0)
        return (PFN_vkVoidFunction)find_of_device;
    return next_of_device(device, name);
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL find_of_instance(VkInstance instance, const char *name) {
    if (strcmp(name, "vkCreateInstance") == 0)
        return (PFN_vkVoidFunction)create_instance;
    if (strcmp(name, "vkCreateDevice") == 0)
        return (PFN_vkVoidFunction)create_device;
    if (strcmp(name, "vkGetDeviceProcAddr") == 0)
        return (PFN_vkVoidFunction)find_of_device;
    if (strcmp(name, "vkGetInstanceProcAddr") == 0)
        return (PFN_vkVoidFunction)find_of_instance;
    return next_of_instance(instance, name);
}

/* Newer headers declare it no more, and have no word for what a layer exports. */
__attribute__((visibility("default"))) VkResult VKAPI_CALL
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface *interface);

VkResult VKAPI_CALL vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface *interface) {
    interface->loaderLayerInterfaceVersion = 2;
    interface->pfnGetInstanceProcAddr = find_of_instance;
    interface->pfnGetDeviceProcAddr = find_of_device;
    interface->pfnGetPhysicalDeviceProcAddr = NULL;
    return VK_SUCCESS;
}
