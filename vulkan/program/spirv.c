#include "vulkan/program/spirv.h"

#include <stdbool.h>
#include <string.h>

/* From the SPIR-V specification. Since version 1.4 float controls are part of it. */
enum {
    HEADER_WORDS = 5,
    OP_ENTRY_POINT = 15,
    OP_EXECUTION_MODE = 16,
    OP_CAPABILITY = 17,
    MODE_DENORM_PRESERVE = 4459,
    MODE_SIGNED_ZERO_INF_NAN_PRESERVE = 4461,
    MODE_ROUNDING_RTE = 4462,
    CAPABILITY_DENORM_PRESERVE = 4464,
    CAPABILITY_SIGNED_ZERO_INF_NAN_PRESERVE = 4466,
    CAPABILITY_ROUNDING_RTE = 4467
};

/* One control: what it is called, and for which widths the device offers it. */
typedef struct control {
    uint32_t capability, mode;
    bool f32, f64;
} control;

/* Where a device cannot tell widths apart, both or neither. */
static control make(uint32_t capability, uint32_t mode, VkBool32 f32, VkBool32 f64, bool apart) {
    return (control){capability, mode, f32 && (apart || f64), f64 && (apart || f32)};
}

static size_t add_capabilities(const control *controls, size_t count, uint32_t *at) {
    size_t words = 0;
    for (size_t i = 0; i < count; i++)
        if (controls[i].f32 || controls[i].f64) {
            at[words++] = 2U << 16 | OP_CAPABILITY;
            at[words++] = controls[i].capability;
        }
    return words;
}

static size_t add_modes(const control *controls, size_t count, uint32_t entry, uint32_t *at) {
    size_t words = 0;
    for (size_t i = 0; i < count; i++)
        for (uint32_t width = 32; width <= 64; width += 32)
            if (width == 32 ? controls[i].f32 : controls[i].f64) {
                at[words++] = 4U << 16 | OP_EXECUTION_MODE;
                at[words++] = entry;
                at[words++] = controls[i].mode;
                at[words++] = width;
            }
    return words;
}

size_t hs_spirv_add_controls(const uint32_t *words, size_t count, const VkPhysicalDeviceFloatControlsProperties *floats,
                             uint32_t *copy) {
    const bool denorms_apart = floats->denormBehaviorIndependence != VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE;
    const bool rounding_apart = floats->roundingModeIndependence != VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE;
    const control controls[] = {
        make(CAPABILITY_DENORM_PRESERVE, MODE_DENORM_PRESERVE, floats->shaderDenormPreserveFloat32,
             floats->shaderDenormPreserveFloat64, denorms_apart),
        make(CAPABILITY_SIGNED_ZERO_INF_NAN_PRESERVE, MODE_SIGNED_ZERO_INF_NAN_PRESERVE,
             floats->shaderSignedZeroInfNanPreserveFloat32, floats->shaderSignedZeroInfNanPreserveFloat64, true),
        make(CAPABILITY_ROUNDING_RTE, MODE_ROUNDING_RTE, floats->shaderRoundingModeRTEFloat32,
             floats->shaderRoundingModeRTEFloat64, rounding_apart),
    };
    const size_t control_count = sizeof controls / sizeof *controls;
    size_t written = HEADER_WORDS;
    memcpy(copy, words, HEADER_WORDS * sizeof *words);
    written += add_capabilities(controls, control_count, copy + written);
    for (size_t at = HEADER_WORDS; at < count; at += words[at] >> 16) {
        const size_t length = words[at] >> 16;
        memcpy(copy + written, words + at, length * sizeof *words);
        written += length;
        /* Execution modes follow the entry points, of which our shaders have one. */
        if ((words[at] & 0xffffU) == OP_ENTRY_POINT)
            written += add_modes(controls, control_count, words[at + 2], copy + written);
    }
    return written;
}
