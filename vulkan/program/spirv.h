/* Shaders as the compiler leaves them, and what a device is asked for beyond: to keep IEEE arithmetic. */
#ifndef HS_VULKAN_PROGRAM_SPIRV_H
#define HS_VULKAN_PROGRAM_SPIRV_H

#include <stddef.h>

#include "vulkan/device/loader.h"

/* Words that hs_spirv_add_controls adds at most. */
enum { HS_SPIRV_CONTROL_WORDS = 3 * 2 + 6 * 4 };

/*
 * Copies a module and has it ask for what the device offers of: subnormals kept, rounding to nearest even, infinities,
 * NaNs and signed zeros kept, in f32 and in f64. Returns the words of the copy.
 */
size_t hs_spirv_add_controls(const uint32_t *words, size_t count, const VkPhysicalDeviceFloatControlsProperties *floats,
                             uint32_t *copy);

#endif
