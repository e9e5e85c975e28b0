#include "support/device_product.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "precision/format.h"
#include "support/choosing.h"
#include "support/device.h"
#include "vulkan/backend.h"

hs_lever_findings hs_device_find(const hs_backend *backend, const char *name) {
    hs_lever_findings findings;
    backend->api->lever_find(backend, hs_test_lever_index(backend, name), &findings);
    return findings;
}

hs_backend *hs_device_with_matrices(void) {
    hs_backend *backend = hs_test_device();
    const hs_lever_findings found = hs_device_find(backend, "vulkan.cooperative-fp16");
    if (found.state != HSTEP_LEVER_ACTIVE) {
        backend->api->destroy(backend);
        cr_skip_test("%s", found.reason);
    }
    return backend;
}

hstep_status hs_device_choose(hs_backend *backend, const char *selection, bool anew, hs_lever_table *table,
                              hstep_error *error) {
    static const hstep_product_depth depth = {HSTEP_PRECISION_FP16, 128};
    const hs_lever_request request = {
        .selection = selection, .products = &depth, .product_count = 1, .judge_anew = anew};
    return hs_levers_choose(backend, &request, table, error);
}

void hs_device_use(hs_backend *backend, const char *name) {
    const hstep_lever *levers;
    const size_t count = backend->api->levers(backend, &levers), wanted = hs_test_lever_index(backend, name);
    for (size_t i = 0; i < count; i++)
        if (!levers[i].exact)
            backend->api->lever_set(backend, i, i == wanted ? HSTEP_LEVER_ACTIVE : HSTEP_LEVER_DISABLED, "for a test");
}

/* ---- Comparing ---- */

/* Operand bits with the steps of a line side by side: of the left operand's rows, of the right one's columns. */
static uint16_t *gather(const hs_test_operand *x, size_t lines, size_t steps, bool step_is_row) {
    uint16_t *bits = malloc((lines * steps + 1) * sizeof *bits);
    cr_assert_not_null(bits);
    for (size_t line = 0; line < lines; line++)
        for (size_t k = 0; k < steps; k++)
            bits[line * steps + k] = hs_encode(HSTEP_FP16, x->f64[step_is_row ? k * lines + line : line * steps + k]);
    return bits;
}

static float *emulate(const hs_test_call *t, hs_device_emulator *emulator) {
    const hs_test_description *d = &t->description;
    uint16_t *a = gather(&t->inputs[0], d->rows, d->inner, d->a_form == HSTEP_TRANSPOSE),
             *b = gather(&t->inputs[1], d->columns, d->inner, d->b_form != HSTEP_TRANSPOSE);
    float *sums = malloc((d->rows * d->columns + 1) * sizeof *sums);
    cr_assert_not_null(sums);
    for (size_t i = 0; i < d->rows * d->columns; i++)
        sums[i] = emulator(d->inner, a + i / d->columns * d->inner, b + i % d->columns * d->inner);
    free(a);
    free(b);
    return sums;
}

static void compare(const hs_test_call *t, hs_backend *backend, const float *sums, const char *fill) {
    const hs_test_description *d = &t->description;
    const bool raw = t->call.attributes.sums;
    hs_test_result *got = hs_test_call_run_well(t, backend);
    bool nonfinite = false;
    for (size_t i = 0; i < d->rows * d->columns; i++) {
        const double sum = (double)sums[i], rounded = hs_decode(HSTEP_FP16, hs_encode(HSTEP_FP16, sum));
        cr_assert(hs_test_same_value(got->outputs[0][i], raw ? sum : rounded),
                  "%s, %zu x %zu x %zu, forms %d %d, pitch %zu, compact %x%s: %a is not %a at %zu", fill, d->rows,
                  d->columns, d->inner, (int)d->a_form, (int)d->b_form, d->pitch, d->compact, raw ? ", sums" : "",
                  got->outputs[0][i], raw ? sum : rounded, i);
        nonfinite = nonfinite || !isfinite(rounded);
    }
    cr_assert(raw || got->flag == nonfinite, "%s: the flag", fill);
    hs_test_result_destroy(got);
}

/* The rounded result, then the sums. */
static void check(hs_test_call *t, hs_backend *backend, hs_device_emulator *emulator, const char *fill) {
    float *sums = emulate(t, emulator);
    compare(t, backend, sums, fill);
    hs_test_call raw = *t;
    raw.call.attributes.sums = true;
    raw.call.outputs[0].dtype = raw.outputs[0].view.dtype = HSTEP_DTYPE_F64;
    raw.outputs[0].compact = false;
    compare(&raw, backend, sums, fill);
    free(sums);
}

/* Numbers with products far below what fp16 has, and sums of them that are subnormal in it. */
static void fill_small(hs_test_call *t, uint64_t seed) {
    hs_test_call_fill(t, HS_TEST_UNIFORM, seed);
    for (uint32_t i = 0; i < 2; i++)
        for (size_t j = 0; j < t->inputs[i].elements; j++)
            t->inputs[i].f64[j] *= i == 0 ? 0x1p-15 : (j % 3 == 0 ? 0x1p-20 : 0x1p-3);
}

static void check_fills(hs_test_call *t, hs_backend *backend, hs_device_emulator *emulator, uint64_t seed) {
    static const hs_test_fill fills[] = {HS_TEST_UNIFORM, HS_TEST_WIDE, HS_TEST_SPECIAL};
    static const char *const names[] = {"uniform", "wide", "special"};
    for (size_t i = 0; i < 3; i++) {
        hs_test_call_fill(t, fills[i], seed);
        check(t, backend, emulator, names[i]);
    }
    fill_small(t, seed);
    check(t, backend, emulator, "small");
}

size_t hs_device_check_products(hs_backend *backend, hs_device_emulator *emulator) {
    /* Edges of tiles, of blocks and of pieces of eight; what lies on whole pieces, and what is empty. */
    static const size_t shapes[][3] = {{1, 1, 1},     {16, 64, 32}, {65, 63, 33}, {5, 70, 129}, {7, 9, 8},
                                       {64, 128, 40}, {0, 3, 5},    {3, 5, 0},    {72, 8, 104}, {33, 130, 31}};
    static const unsigned compact[] = {0, HS_TEST_INPUT(0), HS_TEST_INPUT(1) | HS_TEST_OUTPUT(0),
                                       HS_TEST_INPUT(0) | HS_TEST_INPUT(1) | HS_TEST_OUTPUT(0)};
    static const hstep_transpose forms[][2] = {{HSTEP_NO_TRANSPOSE, HSTEP_NO_TRANSPOSE},
                                               {HSTEP_NO_TRANSPOSE, HSTEP_TRANSPOSE},
                                               {HSTEP_TRANSPOSE, HSTEP_NO_TRANSPOSE}};
    size_t cells = 0;
    unsigned turn = 0;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (size_t form = 0; form < 3; form++, turn++) {
            hs_test_description d =
                hs_test_describe_matmul(HSTEP_PRECISION_FP16, shapes[i][0], shapes[i][1], shapes[i][2]);
            d.a_form = forms[form][0];
            d.b_form = forms[form][1];
            d.compact = i % 2 == 0 ? compact[turn % 4] : compact[3];
            d.pitch = turn % 3 == 2 ? 3 : 0;
            hs_test_call *t = hs_test_call_create(&d);
            check_fills(t, backend, emulator, 11 + turn);
            hs_test_call_destroy(t);
            cells += d.rows * d.columns;
        }
    return cells;
}

/* ---- A driver that makes something else ---- */

static hs_device_fault planted;
static PFN_vkCreateShaderModule create_module;
static PFN_vkCreateComputePipelines create_pipelines;
static VkShaderModule last_module; /* of a gated lever; a pipeline is made of it at once */

/* Whether a module is one of the library's, which may have got float controls at its front: it ends alike. */
static bool is_made_of(const VkShaderModuleCreateInfo *info, const hs_vk_code *code) {
    const size_t tail = code->count / 2, words = info->codeSize / sizeof(uint32_t);
    return tail > 0 && words >= code->count &&
           memcmp(info->pCode + words - tail, code->words + code->count - tail, tail * sizeof(uint32_t)) == 0;
}

static VKAPI_ATTR VkResult VKAPI_CALL note_module(VkDevice device, const VkShaderModuleCreateInfo *info,
                                                  const VkAllocationCallbacks *callbacks, VkShaderModule *module) {
    const VkResult result = create_module(device, info, callbacks, module);
    if (is_made_of(info, &hs_vk_shaders[HS_VK_SHADER_fused_fp16]) ||
        is_made_of(info, &hs_vk_shaders[HS_VK_SHADER_cooperative_fp16]))
        last_module = *module;
    return result;
}

static VKAPI_ATTR VkResult VKAPI_CALL make_another(VkDevice device, VkPipelineCache cache, uint32_t count,
                                                   const VkComputePipelineCreateInfo *infos,
                                                   const VkAllocationCallbacks *callbacks, VkPipeline *pipelines) {
    VkComputePipelineCreateInfo info = infos[0];
    VkSpecializationInfo specialization = *info.stage.pSpecializationInfo;
    uint32_t constants[16] = {0};
    cr_assert(count == 1 && specialization.dataSize <= sizeof constants);
    memcpy(constants, specialization.pData, specialization.dataSize);
    if (info.stage.module == last_module && planted == HS_DEVICE_CROSSED)
        constants[2] ^= 1U;
    if (info.stage.module == last_module && planted == HS_DEVICE_MISROUNDED)
        constants[0] = HSTEP_PRECISION_BF16;
    specialization.pData = constants;
    info.stage.pSpecializationInfo = &specialization;
    last_module = VK_NULL_HANDLE;
    return create_pipelines(device, cache, count, &info, callbacks, pipelines);
}

void hs_device_plant(hs_backend *backend, hs_device_fault fault) {
    hs_vk_functions *vk = &((hs_vk_backend *)backend)->device.vk;
    planted = fault;
    create_module = vk->CreateShaderModule;
    create_pipelines = vk->CreateComputePipelines;
    vk->CreateShaderModule = note_module;
    vk->CreateComputePipelines = make_another;
}

hs_lever_table hs_device_reject(hs_backend *backend, const char *selection, const char *name, hs_device_fault fault) {
    hs_lever_table table;
    hstep_error error = {0};
    hs_device_plant(backend, fault);
    cr_assert_eq(hs_device_choose(backend, selection, true, &table, &error), HSTEP_OK, "%s", error.message);
    const hstep_lever *lever = &table.levers[hs_test_lever_index(backend, name)];
    cr_assert_eq(lever->state, HSTEP_LEVER_REJECTED, "%s", lever->reason);
    cr_expect_not_null(strstr(lever->reason, "uniform"), "%s", lever->reason);
    cr_expect(!lever->gate->worst.passed && lever->gate->speed == 0 &&
              lever->gate->worst.cells_beyond + lever->gate->worst.cells_wrong > 0);
    return table;
}
