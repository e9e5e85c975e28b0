/* A Vulkan device behind the engine's door. */
#include "vulkan/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/check_call.h"
#include "vulkan/create.h"
#include "vulkan/device/facts.h"
#include "vulkan/probe.h"
#include "vulkan/program/program.h"

static const hs_vk_backend *as_vulkan(const hs_backend *backend) { return (const hs_vk_backend *)backend; }

static void destroy(hs_backend *base) {
    hs_vk_backend *backend = (hs_vk_backend *)base;
    if (backend->device.handle) {
        hs_vk_settle(&backend->device);
        hs_vk_pipelines_close(&backend->device, &backend->pipelines);
        hs_vk_transfer_close(&backend->device, &backend->transfer);
        hs_vk_heap_free(&backend->device, &backend->heap);
        hs_vk_device_close(&backend->device);
    }
    free(backend);
}

static const char *device(const hs_backend *backend) { return as_vulkan(backend)->name; }

static unsigned threads(const hs_backend *backend) {
    (void)backend;
    return 1;
}

static size_t levers(const hs_backend *backend, const hstep_lever **table) {
    *table = as_vulkan(backend)->levers;
    return HS_VK_LEVERS;
}

static bool supports(const hs_backend *backend, const hs_call *call) {
    (void)backend;
    return hs_vk_supports(call);
}

static void work(const hs_backend *backend, hstep_work *done) {
    const hs_vk_backend *vulkan = as_vulkan(backend);
    *done = (hstep_work){.bytes_up = vulkan->transfer.bytes_up,
                         .bytes_down = vulkan->transfer.bytes_down,
                         .submissions = vulkan->device.submitted,
                         .dispatches = vulkan->dispatches,
                         .barriers = vulkan->barriers};
}

static size_t held(const hs_backend *backend) { return as_vulkan(backend)->held; }

hstep_status hs_vk_take(hs_vk_backend *backend, size_t bytes, hs_vk_buffer *buffer, hstep_error *error) {
    HS_FORWARD(hs_vk_heap_take(&backend->device, &backend->heap, bytes, buffer, error));
    buffer->base.bytes = bytes;
    backend->held += bytes;
    const hstep_status status =
        hs_vk_clear(&backend->device, &backend->transfer, buffer, 0, (size_t)buffer->size, error);
    if (status != HSTEP_OK)
        hs_vk_drop(backend, buffer);
    return status;
}

void hs_vk_drop(hs_vk_backend *backend, hs_vk_buffer *buffer) {
    if (!buffer->block)
        return;
    hs_vk_settle(&backend->device);
    backend->held -= buffer->base.bytes;
    hs_vk_heap_give(&backend->device, &backend->heap, buffer);
}

static hstep_status buffer_create(hs_backend *base, size_t bytes, hs_buffer **buffer, hstep_error *error) {
    hs_vk_buffer *made = calloc(1, sizeof *made);
    if (!made)
        return hs_fail_memory(error, "a buffer");
    const hstep_status status = hs_vk_take((hs_vk_backend *)base, bytes, made, error);
    if (status != HSTEP_OK)
        free(made);
    else
        *buffer = &made->base;
    return status;
}

static void buffer_destroy(hs_backend *base, hs_buffer *buffer) {
    if (!buffer)
        return;
    hs_vk_drop((hs_vk_backend *)base, (hs_vk_buffer *)buffer);
    free(buffer);
}

static hstep_status buffer_write(hs_backend *base, hs_buffer *buffer, size_t offset, const void *data, size_t bytes,
                                 hstep_error *error) {
    hs_vk_backend *backend = (hs_vk_backend *)base;
    HS_FORWARD(hs_check_range(buffer, offset, bytes, error));
    return hs_vk_write(&backend->device, &backend->transfer, (hs_vk_buffer *)buffer, offset, data, bytes, error);
}

static hstep_status buffer_read(hs_backend *base, const hs_buffer *buffer, size_t offset, void *data, size_t bytes,
                                hstep_error *error) {
    hs_vk_backend *backend = (hs_vk_backend *)base;
    HS_FORWARD(hs_check_range(buffer, offset, bytes, error));
    return hs_vk_read(&backend->device, &backend->transfer, (const hs_vk_buffer *)buffer, offset, data, bytes, error);
}

static hstep_status buffer_clear(hs_backend *base, hs_buffer *buffer, size_t offset, size_t bytes, hstep_error *error) {
    hs_vk_backend *backend = (hs_vk_backend *)base;
    HS_FORWARD(hs_check_range(buffer, offset, bytes, error));
    return hs_vk_clear(&backend->device, &backend->transfer, (hs_vk_buffer *)buffer, offset, bytes, error);
}

static const hs_backend_api api = {.name = "vulkan",
                                   .destroy = destroy,
                                   .device = device,
                                   .threads = threads,
                                   .levers = levers,
                                   .lever_facts = hs_vk_lever_facts,
                                   .lever_find = hs_vk_lever_find,
                                   .lever_set = hs_vk_lever_set,
                                   .supports = supports,
                                   .work = work,
                                   .held = held,
                                   .buffer_create = buffer_create,
                                   .buffer_destroy = buffer_destroy,
                                   .write = buffer_write,
                                   .read = buffer_read,
                                   .clear = buffer_clear,
                                   .program_create = hs_vk_program_create,
                                   .program_destroy = hs_vk_program_destroy,
                                   .program_run = hs_vk_program_run,
                                   .program_run_exact = hs_vk_program_run_exact,
                                   .program_finish = hs_vk_program_finish};

static hstep_status open_parts(hs_vk_backend *backend, const hs_vulkan_choice *choice, hstep_error *error) {
    HS_FORWARD(hs_vk_device_open(&backend->device, choice, error));
    HS_FORWARD(hs_vk_transfer_open(&backend->device, &backend->transfer, error));
    return hs_vk_pipelines_open(&backend->device, &backend->pipelines, error);
}

/* The device must keep the processor's arithmetic, or it computes something else. */
static hstep_status probe(hs_vk_backend *backend, const hs_vulkan_choice *choice, hstep_error *error) {
    hs_vk_verdict verdict;
    char reason[192];
    HS_FORWARD(hs_vk_probe_run(backend, &verdict, reason, sizeof reason, error));
    HS_RETURN_IF(verdict == HS_VK_MIRROR_OFF, error, HSTEP_ERROR_BACKEND_UNAVAILABLE,
                 "the Vulkan device %s does not keep IEEE arithmetic: %s", backend->device.facts.name, reason);
    HS_RETURN_IF(choice->automatic && verdict != HS_VK_MIRROR, error, HSTEP_ERROR_BACKEND_UNAVAILABLE,
                 "the Vulkan device %s does not keep all of the reference's bits", backend->device.facts.name);
    backend->flushes = verdict == HS_VK_MIRROR_WITHOUT_SUBNORMALS;
    hs_vk_levers_start(backend, reason);
    return HSTEP_OK;
}

/* Where the kernel knows no GPU there is none, and no time is lost by starting drivers. */
static bool may_have_gpu(void) {
    return access("/dev/dri", F_OK) == 0 || access("/dev/nvidiactl", F_OK) == 0 || access("/dev/dxg", F_OK) == 0;
}

hstep_status hs_vulkan_create(const hs_vulkan_choice *choice, hs_backend **backend, hstep_error *error) {
    HS_RETURN_IF(choice->automatic && !may_have_gpu(), error, HSTEP_ERROR_BACKEND_UNAVAILABLE,
                 "this system has no GPU");
    hs_vk_backend *made = calloc(1, sizeof *made);
    if (!made)
        return hs_fail_memory(error, "a backend");
    made->base.api = &api;
    hstep_status status = open_parts(made, choice, error);
    if (status == HSTEP_OK)
        status = probe(made, choice, error);
    if (status != HSTEP_OK) {
        destroy(&made->base);
        return status;
    }
    (void)snprintf(made->name, sizeof made->name, "%s, %s", made->device.facts.name, made->device.facts.driver);
    *backend = &made->base;
    return HSTEP_OK;
}

static hstep_device describe(const hs_vk_facts *facts) {
    hstep_device device = {.software = hs_vk_is_software(facts)};
    (void)snprintf(device.name, sizeof device.name, "%s", facts->name);
    (void)snprintf(device.driver, sizeof device.driver, "%.*s", (int)sizeof device.driver - 1, facts->driver);
    (void)snprintf(device.refusal, sizeof device.refusal, "%s", facts->refusal ? facts->refusal : "");
    return device;
}

hstep_status hs_vulkan_list(hstep_device **devices, size_t *count, hstep_error *error) {
    hs_vk_instance instance;
    hs_vk_facts *facts = NULL;
    HS_FORWARD(hs_vk_instance_open(&instance, error));
    hstep_status status = hs_vk_facts_list(&instance, &facts, count, error);
    hs_vk_instance_close(&instance);
    HS_FORWARD(status);
    *devices = calloc(*count ? *count : 1, sizeof **devices);
    for (size_t i = 0; *devices && i < *count; i++)
        (*devices)[i] = describe(&facts[i]);
    free(facts);
    return *devices ? HSTEP_OK : hs_fail_memory(error, "the list of Vulkan devices");
}
