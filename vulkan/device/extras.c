#include "vulkan/device/extras.h"

#include <stdlib.h>
#include <string.h>

/* ---- Extensions and features ---- */

static bool has_extension(const VkExtensionProperties *list, uint32_t count, const char *name) {
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(list[i].extensionName, name) == 0)
            return true;
    return false;
}

/* Which of the extensions there are; a device whose list cannot be had has none. */
static void find_extensions(const hs_vk_instance *instance, VkPhysicalDevice physical, hs_vk_extras *extras) {
    uint32_t count = 0;
    if (instance->EnumerateDeviceExtensionProperties(physical, NULL, &count, NULL) != VK_SUCCESS)
        return;
    VkExtensionProperties *list = calloc(count + 1, sizeof *list);
    if (list && instance->EnumerateDeviceExtensionProperties(physical, NULL, &count, list) == VK_SUCCESS) {
        extras->cooperative = has_extension(list, count, VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME);
        extras->bfloat16 = has_extension(list, count, VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME);
        extras->chooses_subgroup = has_extension(list, count, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
    }
    free(list);
}

static void find_features(const hs_vk_instance *instance, VkPhysicalDevice physical, hs_vk_extras *extras) {
    VkPhysicalDeviceVulkan12Features vulkan12 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    VkPhysicalDeviceFeatures2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &vulkan12};
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR cooperative = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR};
    VkPhysicalDeviceShaderBfloat16FeaturesKHR bfloat16 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR};
    VkPhysicalDeviceSubgroupSizeControlFeatures subgroups = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES};
    void **end = &vulkan12.pNext;
    if (extras->cooperative) {
        *end = &cooperative;
        end = &cooperative.pNext;
    }
    if (extras->bfloat16) {
        *end = &bfloat16;
        end = &bfloat16.pNext;
    }
    if (extras->chooses_subgroup)
        *end = &subgroups;
    instance->GetPhysicalDeviceFeatures2(physical, &all);
    extras->float16 = vulkan12.shaderFloat16;
    extras->cooperative =
        cooperative.cooperativeMatrix && vulkan12.vulkanMemoryModel && vulkan12.vulkanMemoryModelDeviceScope;
    extras->bfloat16 = extras->cooperative && bfloat16.shaderBFloat16Type && bfloat16.shaderBFloat16CooperativeMatrix;
    extras->chooses_subgroup = subgroups.subgroupSizeControl && subgroups.computeFullSubgroups;
}

/* The size of subgroups, and whether compute shaders may ask for it. */
static void find_subgroups(const hs_vk_instance *instance, VkPhysicalDevice physical, hs_vk_extras *extras) {
    VkPhysicalDeviceSubgroupSizeControlProperties sizes = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES};
    VkPhysicalDeviceSubgroupProperties subgroups = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES,
                                                    .pNext = extras->chooses_subgroup ? &sizes : NULL};
    VkPhysicalDeviceProperties2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &subgroups};
    instance->GetPhysicalDeviceProperties2(physical, &all);
    extras->subgroup = subgroups.subgroupSize;
    extras->chooses_subgroup =
        extras->chooses_subgroup && (sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
}

/* ---- Shapes of matrices ---- */

/* Splits a tile among subgroups, each of which gets a block of matrices about as high as wide: what it loads serves
 * most. False where that does not come out even. */
static bool split_tile(hs_vk_matrices *matrices, uint32_t subgroup) {
    const uint32_t high = HS_VK_TILE / matrices->m, wide = HS_VK_TILE / matrices->n;
    if (subgroup == 0 || HS_VK_TILE_GROUP % subgroup != 0 || high * wide % (HS_VK_TILE_GROUP / subgroup) != 0)
        return false;
    const uint32_t each = high * wide / (HS_VK_TILE_GROUP / subgroup);
    uint32_t best = UINT32_MAX;
    for (uint32_t down = 1; down <= high; down++) {
        const uint32_t across = each / down, loads = down * matrices->m + across * matrices->n;
        if (high % down != 0 || each % down != 0 || across > wide || wide % across != 0 || loads >= best)
            continue;
        best = loads;
        matrices->down = down;
        matrices->across = across;
    }
    return best != UINT32_MAX;
}

static bool divides(uint32_t part, uint32_t whole) { return part >= 8 && whole % part == 0; }

/* Whether the shaders can be made for it. Rows of 8 elements are what they load at once. */
static bool fits(const VkCooperativeMatrixPropertiesKHR *p, VkComponentTypeKHR component) {
    return p->AType == component && p->BType == component && p->CType == VK_COMPONENT_TYPE_FLOAT32_KHR &&
           p->ResultType == VK_COMPONENT_TYPE_FLOAT32_KHR && !p->saturatingAccumulation &&
           p->scope == VK_SCOPE_SUBGROUP_KHR && divides(p->MSize, HS_VK_TILE) && divides(p->NSize, HS_VK_TILE) &&
           divides(p->KSize, HS_VK_TILE_DEPTH);
}

void hs_vk_matrices_choose(const VkCooperativeMatrixPropertiesKHR *list, uint32_t count, VkComponentTypeKHR component,
                           uint32_t subgroup, hs_vk_matrices *matrices) {
    *matrices = (hs_vk_matrices){.refusal = "none of the shapes that it lists fits: operands of that type, f32 sums, "
                                            "subgroups, sizes that divide 64 x 64 x 32"};
    for (uint32_t i = 0; i < count; i++) {
        hs_vk_matrices one = {.m = list[i].MSize, .n = list[i].NSize, .k = list[i].KSize};
        if (fits(&list[i], component) && split_tile(&one, subgroup) &&
            one.m * one.n * one.k > matrices->m * matrices->n * matrices->k)
            *matrices = one;
    }
}

static void find_matrices(const hs_vk_instance *instance, VkPhysicalDevice physical, hs_vk_extras *extras) {
    const PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR get =
        (PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR)instance->find(
            instance->handle, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
    uint32_t count = 0;
    if (!get || get(physical, &count, NULL) != VK_SUCCESS)
        count = 0;
    VkCooperativeMatrixPropertiesKHR *list = calloc(count + 1, sizeof *list);
    for (uint32_t i = 0; list && i < count; i++)
        list[i].sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR;
    if (!list || (count > 0 && get(physical, &count, list) != VK_SUCCESS))
        count = 0;
    hs_vk_matrices_choose(list, count, VK_COMPONENT_TYPE_FLOAT16_KHR, extras->subgroup, &extras->fp16);
    hs_vk_matrices_choose(list, count, VK_COMPONENT_TYPE_BFLOAT16_KHR, extras->subgroup, &extras->bf16);
    free(list);
}

void hs_vk_extras_find(const hs_vk_instance *instance, VkPhysicalDevice physical, hs_vk_extras *extras) {
    *extras = (hs_vk_extras){0};
    find_extensions(instance, physical, extras);
    find_features(instance, physical, extras);
    find_subgroups(instance, physical, extras);
    if (extras->cooperative)
        find_matrices(instance, physical, extras);
    else
        extras->fp16.refusal = extras->bf16.refusal =
            "its driver has no cooperative matrices (" VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME ")";
    if (!extras->float16 && !extras->fp16.refusal)
        extras->fp16.refusal = "its shaders do not compute in f16";
    if (!extras->bfloat16 && extras->cooperative)
        extras->bf16.refusal =
            "its driver has no cooperative matrices of bf16 (" VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME ")";
}

void hs_vk_extras_enable(const hs_vk_extras *extras, VkPhysicalDeviceVulkan12Features *vulkan12,
                         hs_vk_extra_features *features) {
    *features = (hs_vk_extra_features){
        .cooperative = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR,
                        .cooperativeMatrix = VK_TRUE},
        .bfloat16 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR,
                     .shaderBFloat16Type = VK_TRUE,
                     .shaderBFloat16CooperativeMatrix = VK_TRUE},
        .subgroups = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES,
                      .subgroupSizeControl = VK_TRUE,
                      .computeFullSubgroups = VK_TRUE}};
    void **end = &vulkan12->pNext;
    vulkan12->shaderFloat16 = extras->float16;
    if (extras->cooperative) {
        /* With the model, flags that are raised for the whole device have to be asked for. */
        vulkan12->vulkanMemoryModel = vulkan12->vulkanMemoryModelDeviceScope = VK_TRUE;
        features->extensions[features->extension_count++] = VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME;
        *end = &features->cooperative;
        end = &features->cooperative.pNext;
    }
    if (extras->bfloat16) {
        features->extensions[features->extension_count++] = VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME;
        *end = &features->bfloat16;
        end = &features->bfloat16.pNext;
    }
    if (extras->chooses_subgroup) {
        features->extensions[features->extension_count++] = VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME;
        *end = &features->subgroups;
    }
}
