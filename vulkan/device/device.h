/*
 * One device, its queue, and one timeline: every submission gets the next number, and to wait is to wait for a number.
 * Submissions begin with a barrier against everything before them, so that they take effect in order.
 */
#ifndef HS_VULKAN_DEVICE_DEVICE_H
#define HS_VULKAN_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

#include "vulkan/create.h"
#include "vulkan/device/extras.h"
#include "vulkan/device/loader.h"

/* What is known of a device before it is used. */
typedef struct hs_vk_facts {
    VkPhysicalDevice physical;
    char name[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE];
    char driver[VK_MAX_DRIVER_NAME_SIZE + VK_MAX_DRIVER_INFO_SIZE + 1];
    uint8_t uuid[VK_UUID_SIZE]; /* of the pipeline cache: driver and device */
    uint32_t driver_version;
    VkPhysicalDeviceType type;
    uint32_t family; /* of queues that compute */
    uint32_t most_groups;
    VkDeviceSize most_memory; /* one allocation, one buffer */
    VkPhysicalDeviceFloatControlsProperties floats;
    const char *refusal; /* why it cannot serve, or NULL */
} hs_vk_facts;

typedef struct hs_vk_device {
    hs_vk_instance instance;
    hs_vk_facts facts;
    hs_vk_extras extras;
    VkPhysicalDeviceMemoryProperties memory;
    VkDevice handle;
    hs_vk_functions vk;
    VkQueue queue;
    VkCommandPool pool;
    VkSemaphore timeline;
    uint64_t submitted, completed; /* numbers on the timeline */
    bool lost;                     /* nothing more can be expected of it */
} hs_vk_device;

hstep_status hs_vk_device_open(hs_vk_device *device, const hs_vulkan_choice *choice, hstep_error *error);

/* Waits for what is submitted. Everything made of the device must be destroyed before. */
void hs_vk_device_close(hs_vk_device *device);

/* Turns a VkResult into a status; `what` was tried. Losing the device is remembered. */
hstep_status hs_vk_check(hs_vk_device *device, VkResult result, const char *what, hstep_error *error);

/* Command buffers, to be recorded more than once (reset by begin) and freed by hs_vk_commands_free or with the pool. */
hstep_status hs_vk_commands_make(hs_vk_device *device, VkCommandBuffer *commands, hstep_error *error);
void hs_vk_commands_free(hs_vk_device *device, VkCommandBuffer commands);

/* Begins to record; the first command is the barrier against everything before. `many`: it may be submitted again
 * before it has ended. */
hstep_status hs_vk_commands_begin(hs_vk_device *device, VkCommandBuffer commands, bool many, hstep_error *error);
hstep_status hs_vk_commands_end(hs_vk_device *device, VkCommandBuffer commands, hstep_error *error);

/* What shaders and copies wrote becomes visible to shaders and copies that follow. */
void hs_vk_barrier(const hs_vk_device *device, VkCommandBuffer commands);

/* What copies wrote becomes visible to the host once the submission has ended. */
void hs_vk_barrier_to_host(const hs_vk_device *device, VkCommandBuffer commands);

/* The submission's number is device->submitted afterwards. */
hstep_status hs_vk_submit(hs_vk_device *device, VkCommandBuffer commands, hstep_error *error);
hstep_status hs_vk_wait(hs_vk_device *device, uint64_t number, hstep_error *error);

/* Waits for everything, lost or not, so that what it used can be destroyed. */
void hs_vk_settle(hs_vk_device *device);

#endif
