/* What a device may offer beyond the needs of the mirror, for gated levers: switched on where it is there. */
#ifndef HS_VULKAN_DEVICE_EXTRAS_H
#define HS_VULKAN_DEVICE_EXTRAS_H

#include <stdbool.h>

#include "vulkan/device/khr.h"
#include "vulkan/device/loader.h"

/* Cooperative matrices of one type of operands, with f32 sums. */
typedef struct hs_vk_matrices {
    const char *refusal;   /* why they cannot be used, or NULL */
    uint32_t m, n, k;      /* of one multiplication */
    uint32_t down, across; /* matrices of sums that a subgroup keeps: the shaders' constants 3 to 7 */
} hs_vk_matrices;

/* A tile of the shaders (vulkan/shaders/cooperative/cooperative.glsl): its cells, its steps of k, its invocations. */
enum { HS_VK_TILE = 64, HS_VK_TILE_DEPTH = 32, HS_VK_TILE_GROUP = 128 };

typedef struct hs_vk_extras {
    bool float16;          /* f16 arithmetic in shaders */
    bool cooperative;      /* the extension, and what it needs */
    bool bfloat16;         /* cooperative matrices of bf16 */
    uint32_t subgroup;     /* invocations of a subgroup */
    bool chooses_subgroup; /* pipelines may ask for subgroups of that size, all of them full */
    hs_vk_matrices fp16, bf16;
} hs_vk_extras;

/* Of a device with Vulkan 1.2. */
void hs_vk_extras_find(const hs_vk_instance *instance, VkPhysicalDevice physical, hs_vk_extras *extras);

/*
 * The best shape among those that a device lists, largest first; `component` is the type of its operands. Sets the
 * refusal where none fits the shaders.
 */
void hs_vk_matrices_choose(const VkCooperativeMatrixPropertiesKHR *list, uint32_t count, VkComponentTypeKHR component,
                           uint32_t subgroup, hs_vk_matrices *matrices);

/* What has to be switched on when the device is made. */
typedef struct hs_vk_extra_features {
    const char *extensions[3];
    uint32_t extension_count;
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR cooperative;
    VkPhysicalDeviceShaderBfloat16FeaturesKHR bfloat16;
    VkPhysicalDeviceSubgroupSizeControlFeatures subgroups;
} hs_vk_extra_features;

/* Fills *features, and adds them to the needed ones (hs_vk_needed_features). */
void hs_vk_extras_enable(const hs_vk_extras *extras, VkPhysicalDeviceVulkan12Features *vulkan12,
                         hs_vk_extra_features *features);

#endif
