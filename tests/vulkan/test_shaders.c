/* Shaders as the build compiled them: valid, and with nothing in them whose bits a driver may choose. */
#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/folder.h"
#include "vulkan/program/pipelines.h"
#include "vulkan/program/spirv.h"

/* From the SPIR-V specification, and from that of GLSL.std.450. */
enum {
    HEADER_WORDS = 5,
    MAGIC = 0x07230203,
    VERSION_1_4 = 0x00010400,
    OP_EXT_INST = 12,
    OP_EXECUTION_MODE = 16,
    OP_CAPABILITY = 17,
    OP_DECORATE = 71,
    OP_F_CONVERT = 115,
    OP_F_ADD = 129,
    OP_F_SUB = 131,
    OP_F_MUL = 133,
    OP_F_DIV = 136,
    OP_F_REM = 140,
    OP_F_MOD = 141,
    OP_DOT = 148,
    DECORATION_NO_CONTRACTION = 42,
    CAPABILITY_FLOAT16 = 9,
    STD_SQRT = 31,
    STD_PACK_DOUBLE = 59,
    STD_UNPACK_DOUBLE = 65
};

static bool is_arithmetic(uint32_t op) { return op == OP_F_ADD || op == OP_F_SUB || op == OP_F_MUL || op == OP_F_DIV; }

/* What has bits of the driver's choosing, or NULL. */
static const char *forbidden(uint32_t op, const uint32_t *words) {
    if (op == OP_F_CONVERT)
        return "a conversion between f32 and f64, which some drivers delete";
    if (op == OP_F_REM || op == OP_F_MOD || op == OP_DOT)
        return "a remainder or a dot product";
    if (op == OP_CAPABILITY && words[1] == CAPABILITY_FLOAT16)
        return "arithmetic in 16 bits";
    if (op == OP_EXT_INST && words[4] != STD_SQRT && words[4] != STD_PACK_DOUBLE && words[4] != STD_UNPACK_DOUBLE)
        return "a built-in function";
    return NULL;
}

/* Shaders of gated levers, whose bits the gate judges. */
static bool is_gated(const hs_vk_code *code) {
    return strncmp(code->name, "cooperative_", 12) == 0 || strncmp(code->name, "fused_", 6) == 0;
}

static size_t check(const hs_vk_code *code) {
    cr_assert(code->count > HEADER_WORDS && code->words[0] == MAGIC && code->words[1] >= VERSION_1_4, "%s", code->name);
    bool *exact = calloc(code->words[3], sizeof *exact);
    size_t computed = 0;
    cr_assert_not_null(exact);
    for (size_t at = HEADER_WORDS; at < code->count; at += code->words[at] >> 16) {
        const uint32_t *words = code->words + at, op = words[0] & 0xffff;
        cr_assert_gt(words[0] >> 16, 0);
        const char *wrong = forbidden(op, words);
        cr_assert_null(wrong, "%s has %s", code->name, wrong);
        if (op == OP_DECORATE && words[2] == DECORATION_NO_CONTRACTION)
            exact[words[1]] = true;
        if (!is_arithmetic(op))
            continue;
        cr_assert(exact[words[2]], "%s: operation %%%u may be fused with another: declare its result precise",
                  code->name, words[2]);
        computed++;
    }
    free(exact);
    return computed;
}

Test(shaders, keep_every_rounding_to_itself) {
    size_t computed = 0;
    for (size_t i = 0; i < HS_VK_SHADER_COUNT; i++)
        if (!is_gated(&hs_vk_shaders[i]))
            computed += check(&hs_vk_shaders[i]);
    cr_assert_gt(computed, 100);
}

static size_t count_modes(const uint32_t *words, size_t count) {
    size_t found = 0;
    for (size_t at = HEADER_WORDS; at < count; at += words[at] >> 16)
        found += (words[at] & 0xffff) == OP_EXECUTION_MODE;
    return found;
}

/* Every control that a device may offer, in a module that must stay valid. */
Test(shaders, are_valid_with_and_without_float_controls) {
    if (strstr(HS_TEST_SPIRV_VAL, "NOTFOUND") != NULL)
        cr_skip_test("skipped: spirv-val is not installed");
    const VkPhysicalDeviceFloatControlsProperties none = {0};
    const VkPhysicalDeviceFloatControlsProperties all = {
        .denormBehaviorIndependence = VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL,
        .roundingModeIndependence = VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL,
        .shaderDenormPreserveFloat32 = VK_TRUE,
        .shaderDenormPreserveFloat64 = VK_TRUE,
        .shaderRoundingModeRTEFloat32 = VK_TRUE,
        .shaderRoundingModeRTEFloat64 = VK_TRUE,
        .shaderSignedZeroInfNanPreserveFloat32 = VK_TRUE,
        .shaderSignedZeroInfNanPreserveFloat64 = VK_TRUE};
    hs_test_enter_folder();
    for (size_t i = 0; i < HS_VK_SHADER_COUNT; i++) {
        const hs_vk_code *code = &hs_vk_shaders[i];
        if (code->count == 0)
            continue; /* for want of a newer glslang */
        uint32_t *words = calloc(code->count + HS_SPIRV_CONTROL_WORDS, sizeof *words);
        cr_assert_not_null(words);
        size_t count = hs_spirv_add_controls(code->words, code->count, &none, words);
        cr_assert_eq(count, code->count);
        cr_assert_eq(memcmp(words, code->words, count * sizeof *words), 0);
        count = hs_spirv_add_controls(code->words, code->count, &all, words);
        cr_assert_eq(count, code->count + HS_SPIRV_CONTROL_WORDS);
        cr_assert_eq(count_modes(words, count), count_modes(code->words, code->count) + 6);
        hs_test_write_bytes("shader.spv", words, count * sizeof *words);
        cr_assert_eq(system(HS_TEST_SPIRV_VAL " --target-env vulkan1.2 shader.spv"), 0, "%s is not valid", code->name);
        free(words);
    }
    hs_test_leave_folder();
}
