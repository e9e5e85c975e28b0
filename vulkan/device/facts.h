/* What the devices of an instance are and offer, and which of them to take. */
#ifndef HS_VULKAN_DEVICE_FACTS_H
#define HS_VULKAN_DEVICE_FACTS_H

#include "vulkan/device/device.h"

/* The devices in the system's order, to be freed by the caller. */
hstep_status hs_vk_facts_list(const hs_vk_instance *instance, hs_vk_facts **list, size_t *count, hstep_error *error);

/* Whether the driver computes on the processor. */
bool hs_vk_is_software(const hs_vk_facts *facts);

/* The one to use, which serves. */
hstep_status hs_vk_facts_choose(const hs_vk_facts *list, size_t count, const hs_vulkan_choice *choice, size_t *chosen,
                                hstep_error *error);

/* What the shaders need, to be switched on; pNext is set. The chain lives in *vulkan11 and *vulkan12. */
VkPhysicalDeviceFeatures2 hs_vk_needed_features(VkPhysicalDeviceVulkan11Features *vulkan11,
                                                VkPhysicalDeviceVulkan12Features *vulkan12);

#endif
