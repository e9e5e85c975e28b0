#include "vulkan/probe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "precision/random.h"
#include "vulkan/program/record.h"

static const char *const names[HS_VK_PROBE_OPERATIONS] = {"add", "multiply", "divide", "square root",
                                                          "multiply then add"};

/* The mirror neither divides nor takes roots in f32. */
static const bool used_f32[HS_VK_PROBE_OPERATIONS] = {true, true, false, false, true};

/* A number with a random fraction; a quarter are subnormal or nearly, a quarter near 1, the rest anywhere. */
static double draw_f64(hs_random *random) {
    const uint64_t bits = hs_random_next(random), fraction = bits & 0xfffffffffffff, sign = bits >> 63 << 63;
    const uint64_t exponent = hs_random_next(random) % 2046;
    const uint64_t field = bits >> 60 & 3 ? (bits >> 60 & 3) == 1 ? exponent % 4 : exponent : 1020 + exponent % 8;
    const uint64_t word = sign | field << 52 | fraction;
    double value;
    memcpy(&value, &word, sizeof value);
    return value;
}

static float draw_f32(hs_random *random) {
    const uint32_t bits = (uint32_t)(hs_random_next(random) >> 32), fraction = bits & 0x7fffff, sign = bits >> 31 << 31;
    const uint32_t exponent = (uint32_t)(hs_random_next(random) % 254);
    const uint32_t kind = bits >> 28 & 3;
    const uint32_t word = sign | (kind ? kind == 1 ? exponent % 4 : exponent : 124 + exponent % 8) << 23 | fraction;
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

void hs_vk_probe_prepare(hs_vk_probe *probe) {
    hs_random random = {2024};
    for (size_t i = 0; i < HS_VK_PROBE_CASES; i++) {
        double *given = probe->given[i], *found = probe->found[i];
        float *given_f32 = probe->given_f32[i], *found_f32 = probe->found_f32[i];
        for (size_t j = 0; j < HS_VK_PROBE_OPERANDS; j++) {
            given[j] = draw_f64(&random);
            given_f32[j] = draw_f32(&random);
        }
        found[0] = given[0] + given[1];
        found[1] = given[0] * given[1];
        found[2] = given[0] / given[1];
        found[3] = sqrt(given[0]);
        found[4] = found[1] + given[2];
        found_f32[0] = given_f32[0] + given_f32[1];
        found_f32[1] = given_f32[0] * given_f32[1];
        found_f32[2] = given_f32[0] / given_f32[1];
        found_f32[3] = sqrtf(given_f32[0]);
        found_f32[4] = found_f32[1] + given_f32[2];
    }
}

/* How an operation fared. */
typedef struct tally {
    size_t wrong, wrong_subnormal;
} tally;

static bool same_f64(double a, double b) { return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b)); }
static bool same_f32(float a, float b) { return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b)); }

/* Whether a subnormal is read, made, or stands between. */
static bool subnormal_f64(const double *given, const double *found, size_t operation) {
    bool any = fpclassify(found[operation]) == FP_SUBNORMAL;
    for (size_t j = 0; j < HS_VK_PROBE_OPERANDS; j++)
        any = any || fpclassify(given[j]) == FP_SUBNORMAL;
    return any || (operation == 4 && fpclassify(found[1]) == FP_SUBNORMAL);
}

static bool subnormal_f32(const float *given, const float *found, size_t operation) {
    bool any = fpclassify(found[operation]) == FP_SUBNORMAL;
    for (size_t j = 0; j < HS_VK_PROBE_OPERANDS; j++)
        any = any || fpclassify(given[j]) == FP_SUBNORMAL;
    return any || (operation == 4 && fpclassify(found[1]) == FP_SUBNORMAL);
}

static void add(tally *t, bool subnormal) {
    t->wrong += !subnormal;
    t->wrong_subnormal += subnormal;
}

static void count(const hs_vk_probe *probe, const hs_vk_probe *processor, tally *f64, tally *f32) {
    for (size_t i = 0; i < HS_VK_PROBE_CASES; i++)
        for (size_t op = 0; op < HS_VK_PROBE_OPERATIONS; op++) {
            if (!same_f64(probe->found[i][op], processor->found[i][op]))
                add(&f64[op], subnormal_f64(processor->given[i], processor->found[i], op));
            if (used_f32[op] && !same_f32(probe->found_f32[i][op], processor->found_f32[i][op]))
                add(&f32[op], subnormal_f32(processor->given_f32[i], processor->found_f32[i], op));
        }
}

hs_vk_verdict hs_vk_probe_judge(const hs_vk_probe *probe, const hs_vk_probe *processor, char *text, size_t size) {
    tally tallies[2][HS_VK_PROBE_OPERATIONS] = {0}; /* f64, f32 */
    size_t subnormal = 0;
    count(probe, processor, tallies[0], tallies[1]);
    for (size_t width = 0; width < 2; width++)
        for (size_t op = 0; op < HS_VK_PROBE_OPERATIONS; op++) {
            subnormal += tallies[width][op].wrong_subnormal;
            if (tallies[width][op].wrong == 0)
                continue;
            (void)snprintf(text, size, "%s in %s has other bits than the processor's in %zu of %d cases", names[op],
                           width == 0 ? "f64" : "f32", tallies[width][op].wrong, HS_VK_PROBE_CASES);
            return HS_VK_MIRROR_OFF;
        }
    if (subnormal > 0)
        (void)snprintf(text, size, "the reference's bits, but where subnormals occur: this driver flushes them");
    else
        (void)snprintf(text, size, "the reference's bits: add, multiply, divide and square root keep the processor's");
    return subnormal > 0 ? HS_VK_MIRROR_WITHOUT_SUBNORMALS : HS_VK_MIRROR;
}

static hs_vk_operand operand(uint64_t address, size_t pitch, uint32_t columns) {
    return (hs_vk_operand){address, pitch, HS_VK_PROBE_CASES, columns};
}

/* One dispatch over all cases, which stand in *buffer as they do in the struct, the record behind them. */
static hstep_status dispatch(hs_vk_backend *backend, const hs_vk_buffer *buffer, VkCommandBuffer commands,
                             hstep_error *error) {
    hs_vk_device *device = &backend->device;
    const hs_vk_variant variant = {.shader = HS_VK_SHADER_probe};
    const hs_vk_probe *shape = NULL;
    hs_vk_record record = {0};
    VkPipeline pipeline;
    record.operands[0] =
        operand(buffer->address + offsetof(hs_vk_probe, given), sizeof shape->given[0], HS_VK_PROBE_OPERANDS);
    record.operands[1] =
        operand(buffer->address + offsetof(hs_vk_probe, given_f32), sizeof shape->given_f32[0], HS_VK_PROBE_OPERANDS);
    record.operands[HS_VK_INPUTS] =
        operand(buffer->address + offsetof(hs_vk_probe, found), sizeof shape->found[0], HS_VK_PROBE_OPERATIONS);
    record.operands[HS_VK_INPUTS + 1] =
        operand(buffer->address + offsetof(hs_vk_probe, found_f32), sizeof shape->found_f32[0], HS_VK_PROBE_OPERATIONS);
    HS_FORWARD(hs_vk_write(device, &backend->transfer, buffer, sizeof(hs_vk_probe), &record, sizeof record, error));
    HS_FORWARD(hs_vk_pipelines_get(device, &backend->pipelines, &variant, &pipeline, error));
    const hs_vk_push push = {.record = buffer->address + sizeof(hs_vk_probe)};
    HS_FORWARD(hs_vk_commands_begin(device, commands, false, error));
    device->vk.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    device->vk.CmdPushConstants(commands, backend->pipelines.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, HS_VK_PUSH_BYTES,
                                &push);
    device->vk.CmdDispatch(commands, HS_VK_PROBE_CASES / 256, 1, 1);
    HS_FORWARD(hs_vk_commands_end(device, commands, error));
    return hs_vk_submit(device, commands, error);
}

static hstep_status try(hs_vk_backend *backend, hs_vk_probe *probe, hstep_error *error) {
    hs_vk_buffer buffer = {0};
    VkCommandBuffer commands = NULL;
    HS_FORWARD(hs_vk_take(backend, sizeof *probe + sizeof(hs_vk_record), &buffer, error));
    hstep_status status =
        hs_vk_write(&backend->device, &backend->transfer, &buffer, 0, probe, offsetof(hs_vk_probe, found), error);
    if (status == HSTEP_OK)
        status = hs_vk_commands_make(&backend->device, &commands, error);
    if (status == HSTEP_OK)
        status = dispatch(backend, &buffer, commands, error);
    if (status == HSTEP_OK)
        status = hs_vk_read(&backend->device, &backend->transfer, &buffer, 0, probe, sizeof *probe, error);
    hs_vk_drop(backend, &buffer);
    hs_vk_commands_free(&backend->device, commands);
    return status;
}

hstep_status hs_vk_probe_run(hs_vk_backend *backend, hs_vk_verdict *verdict, char *text, size_t size,
                             hstep_error *error) {
    hs_vk_probe *probes = calloc(2, sizeof *probes);
    if (!probes)
        return hs_fail_memory(error, "trying the device");
    hs_vk_probe_prepare(&probes[0]);
    probes[1] = probes[0];
    memset(probes[1].found, 0, sizeof probes[1].found);
    memset(probes[1].found_f32, 0, sizeof probes[1].found_f32);
    const hstep_status status = try(backend, &probes[1], error);
    if (status == HSTEP_OK)
        *verdict = hs_vk_probe_judge(&probes[1], &probes[0], text, size);
    free(probes);
    return status;
}
