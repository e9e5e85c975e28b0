#include "vulkan/device/facts.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MOST_FAMILIES = 64, NEEDED_SHARED_MEMORY = 16384, NEEDED_INVOCATIONS = 256 };

VkPhysicalDeviceFeatures2 hs_vk_needed_features(VkPhysicalDeviceVulkan11Features *vulkan11,
                                                VkPhysicalDeviceVulkan12Features *vulkan12) {
    *vulkan11 = (VkPhysicalDeviceVulkan11Features){.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
                                                   .pNext = vulkan12,
                                                   .storageBuffer16BitAccess = VK_TRUE};
    *vulkan12 = (VkPhysicalDeviceVulkan12Features){.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                                                   .timelineSemaphore = VK_TRUE,
                                                   .bufferDeviceAddress = VK_TRUE};
    return (VkPhysicalDeviceFeatures2){.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                       .pNext = vulkan11,
                                       .features = {.shaderFloat64 = VK_TRUE, .shaderInt64 = VK_TRUE}};
}

/* What a device lacks, or NULL. */
static const char *find_refusal(const hs_vk_instance *instance, const VkPhysicalDeviceProperties *properties,
                                VkPhysicalDevice physical) {
    VkPhysicalDeviceVulkan11Features vulkan11;
    VkPhysicalDeviceVulkan12Features vulkan12;
    VkPhysicalDeviceFeatures2 features = hs_vk_needed_features(&vulkan11, &vulkan12);
    if (properties->apiVersion < VK_API_VERSION_1_2)
        return "its driver is older than Vulkan 1.2";
    instance->GetPhysicalDeviceFeatures2(physical, &features);
    if (!features.features.shaderFloat64)
        return "it has no 64-bit floating point, in which weights are kept";
    if (!features.features.shaderInt64)
        return "its shaders have no 64-bit integers";
    if (!vulkan11.storageBuffer16BitAccess)
        return "its shaders cannot store 16 bits";
    if (!vulkan12.timelineSemaphore)
        return "it has no timeline semaphores";
    if (!vulkan12.bufferDeviceAddress)
        return "it has no buffer addresses";
    if (properties->limits.maxComputeSharedMemorySize < NEEDED_SHARED_MEMORY ||
        properties->limits.maxComputeWorkGroupInvocations < NEEDED_INVOCATIONS)
        return "its work groups are too small";
    return NULL;
}

/* Queues that compute and draw nothing, where there are any: nobody's picture waits for them. */
static bool find_family(const hs_vk_instance *instance, VkPhysicalDevice physical, uint32_t *family) {
    VkQueueFamilyProperties families[MOST_FAMILIES];
    uint32_t count = MOST_FAMILIES;
    bool found = false;
    instance->GetPhysicalDeviceQueueFamilyProperties(physical, &count, families);
    for (uint32_t i = 0; i < count; i++) {
        if (!(families[i].queueFlags & VK_QUEUE_COMPUTE_BIT))
            continue;
        const bool alone = !(families[i].queueFlags & VK_QUEUE_GRAPHICS_BIT);
        if (!found || alone)
            *family = i;
        found = true;
        if (alone)
            break;
    }
    return found;
}

static hs_vk_facts read_facts(const hs_vk_instance *instance, VkPhysicalDevice physical) {
    VkPhysicalDeviceProperties plain;
    hs_vk_facts facts = {.physical = physical};
    instance->GetPhysicalDeviceProperties(physical, &plain);
    (void)snprintf(facts.name, sizeof facts.name, "%s", plain.deviceName);
    memcpy(facts.uuid, plain.pipelineCacheUUID, sizeof facts.uuid);
    facts.driver_version = plain.driverVersion;
    facts.type = plain.deviceType;
    facts.most_groups = plain.limits.maxComputeWorkGroupCount[0];
    facts.refusal = find_refusal(instance, &plain, physical);
    if (!facts.refusal && !find_family(instance, physical, &facts.family))
        facts.refusal = "it does not compute";
    if (plain.apiVersion < VK_API_VERSION_1_2)
        return facts;
    VkPhysicalDeviceMaintenance3Properties limits = {.sType =
                                                         VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES};
    VkPhysicalDeviceDriverProperties driver = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES,
                                               .pNext = &limits};
    facts.floats = (VkPhysicalDeviceFloatControlsProperties){
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES, .pNext = &driver};
    VkPhysicalDeviceProperties2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &facts.floats};
    instance->GetPhysicalDeviceProperties2(physical, &all);
    facts.floats.pNext = NULL;
    facts.most_memory = limits.maxMemoryAllocationSize;
    (void)snprintf(facts.driver, sizeof facts.driver, "%s %s", driver.driverName, driver.driverInfo);
    return facts;
}

hstep_status hs_vk_facts_list(const hs_vk_instance *instance, hs_vk_facts **list, size_t *count, hstep_error *error) {
    uint32_t found = 0;
    VkResult result = instance->EnumeratePhysicalDevices(instance->handle, &found, NULL);
    VkPhysicalDevice *devices = calloc(found ? found : 1, sizeof *devices);
    *list = calloc(found ? found : 1, sizeof **list);
    if (!devices || !*list) {
        free(devices);
        free(*list);
        return hs_fail_memory(error, "the list of Vulkan devices");
    }
    if (result == VK_SUCCESS)
        result = instance->EnumeratePhysicalDevices(instance->handle, &found, devices);
    *count = result == VK_SUCCESS ? found : 0;
    for (size_t i = 0; i < *count; i++)
        (*list)[i] = read_facts(instance, devices[i]);
    free(devices);
    return HSTEP_OK;
}

bool hs_vk_is_software(const hs_vk_facts *facts) { return facts->type == VK_PHYSICAL_DEVICE_TYPE_CPU; }

/* Higher is better. */
static int rank(const hs_vk_facts *facts) {
    switch (facts->type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
        return 4;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
        return 3;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
        return 2;
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
        return 0;
    default:
        return 1;
    }
}

/* Whether `text` stands in `name`, whatever the case of the letters. */
static bool occurs(const char *name, const char *text) {
    const size_t length = strlen(text);
    for (; strlen(name) >= length; name++)
        if (strncasecmp(name, text, length) == 0)
            return true;
    return false;
}

/* A whole number, or false. */
static bool parse_number(const char *text, size_t *number) {
    char *end;
    if (!isdigit((unsigned char)*text))
        return false;
    errno = 0;
    const unsigned long value = strtoul(text, &end, 10);
    *number = (size_t)value;
    return *end == '\0' && errno == 0;
}

/* The device that was named. */
static hstep_status choose_named(const hs_vk_facts *list, size_t count, const char *device, size_t *chosen,
                                 hstep_error *error) {
    size_t number;
    bool found = parse_number(device, &number) && number < count;
    if (found)
        *chosen = number;
    for (size_t i = 0; i < count && !found; i++)
        if (occurs(list[i].name, device)) {
            *chosen = i;
            found = true;
        }
    HS_RETURN_IF(!found, error, HSTEP_ERROR_BACKEND_UNAVAILABLE,
                 "there is no Vulkan device \"%s\" among the %zu of this system; give a number from 0 or a part of a "
                 "name that `trainer levers` lists",
                 device, count);
    HS_RETURN_IF(list[*chosen].refusal, error, HSTEP_ERROR_BACKEND_UNAVAILABLE, "the Vulkan device %s cannot serve: %s",
                 list[*chosen].name, list[*chosen].refusal);
    return HSTEP_OK;
}

hstep_status hs_vk_facts_choose(const hs_vk_facts *list, size_t count, const hs_vulkan_choice *choice, size_t *chosen,
                                hstep_error *error) {
    HS_RETURN_IF(count == 0, error, HSTEP_ERROR_BACKEND_UNAVAILABLE,
                 "this system has no Vulkan device; choose another backend");
    if (choice->device)
        return choose_named(list, count, choice->device, chosen, error);
    int best = -1;
    const hs_vk_facts *refused = NULL;
    for (size_t i = 0; i < count; i++) {
        if (choice->automatic && hs_vk_is_software(&list[i]))
            continue;
        if (list[i].refusal) {
            refused = &list[i];
        } else if (rank(&list[i]) > best) {
            best = rank(&list[i]);
            *chosen = i;
        }
    }
    HS_RETURN_IF(best < 0 && refused, error, HSTEP_ERROR_BACKEND_UNAVAILABLE, "the Vulkan device %s cannot serve: %s",
                 refused->name, refused->refusal);
    HS_RETURN_IF(best < 0, error, HSTEP_ERROR_BACKEND_UNAVAILABLE,
                 "the only Vulkan drivers here compute on the processor");
    return HSTEP_OK;
}
