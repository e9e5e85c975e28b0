/* The processor as a backend: host memory, the processor's threads, and the table of functions. */
#define _GNU_SOURCE /* sched_getaffinity */

#include "cpu/backend.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cpu/cpu.h"
#include "cpu/memory.h"
#include "cpu/team.h"
#include "engine/check_call.h"

enum { MOST_THREADS = 1024 };

static void destroy(hs_backend *backend) {
    hs_cpu_backend *cpu = (hs_cpu_backend *)backend;
    hs_memory_give(cpu->allocator, cpu->scratch, cpu->scratch_bytes);
    free(cpu);
}

static const char *device(const hs_backend *backend) { return hs_cpu_of(backend)->device; }

static unsigned threads(const hs_backend *backend) { return hs_cpu_of(backend)->threads; }

static void use_one_thread(hs_backend *backend, bool one) { ((hs_cpu_backend *)backend)->one_thread = one; }

static size_t held(const hs_backend *backend) { return hs_cpu_of(backend)->held; }

static hstep_status buffer_create(hs_backend *backend, size_t bytes, hs_buffer **buffer, hstep_error *error) {
    hs_buffer *made = malloc(sizeof *made);
    unsigned char *data = made ? hs_memory_take(hs_cpu_of(backend)->allocator, bytes) : NULL;
    if (!data) {
        free(made);
        return hs_fail_memory(error, "a buffer");
    }
    *made = (hs_buffer){data, bytes};
    ((hs_cpu_backend *)backend)->held += bytes;
    *buffer = made;
    return HSTEP_OK;
}

static void buffer_destroy(hs_backend *backend, hs_buffer *buffer) {
    if (!buffer)
        return;
    ((hs_cpu_backend *)backend)->held -= buffer->bytes;
    hs_memory_give(hs_cpu_of(backend)->allocator, buffer->data, buffer->bytes);
    free(buffer);
}

static hstep_status buffer_write(hs_backend *backend, hs_buffer *buffer, size_t offset, const void *data, size_t bytes,
                                 hstep_error *error) {
    (void)backend;
    HS_FORWARD(hs_check_range(buffer, offset, bytes, error));
    if (bytes > 0)
        memcpy(buffer->data + offset, data, bytes);
    return HSTEP_OK;
}

static hstep_status buffer_read(hs_backend *backend, const hs_buffer *buffer, size_t offset, void *data, size_t bytes,
                                hstep_error *error) {
    (void)backend;
    HS_FORWARD(hs_check_range(buffer, offset, bytes, error));
    if (bytes > 0)
        memcpy(data, buffer->data + offset, bytes);
    return HSTEP_OK;
}

static hstep_status buffer_clear(hs_backend *backend, hs_buffer *buffer, size_t offset, size_t bytes,
                                 hstep_error *error) {
    (void)backend;
    HS_FORWARD(hs_check_range(buffer, offset, bytes, error));
    memset(buffer->data + offset, 0, bytes);
    return HSTEP_OK;
}

/* The processor's own name, where the system tells it. */
static void read_device_name(char *name, size_t size) {
    (void)snprintf(name, size, "unknown processor");
    FILE *file = fopen("/proc/cpuinfo", "r");
    if (!file)
        return;
    char line[256];
    while (fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", strlen("model name")) != 0 || !colon)
            continue;
        const char *value = colon + 1 + strspn(colon + 1, " \t");
        (void)snprintf(name, size, "%.*s", (int)strcspn(value, "\n"), value);
        break;
    }
    (void)fclose(file);
}

/* Processors that this process may run on. */
static unsigned available_processors(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return (unsigned)CPU_COUNT(&set);
    /* More processors than the set has room for. */
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : 1;
}

hstep_status hs_cpu_create_tier(const hs_cpu_tier *tier, unsigned thread_count, hs_backend **backend,
                                hstep_error *error) {
    const unsigned count = thread_count ? thread_count : available_processors();
    HS_RETURN_IF(count > MOST_THREADS, error, HSTEP_ERROR_ARGUMENT, "%u threads; give at most %d", count, MOST_THREADS);
    HS_FORWARD(hs_team_start(count, error));
    hs_cpu_backend *cpu = calloc(1, sizeof *cpu);
    if (!cpu)
        return hs_fail_memory(error, "a backend");
    cpu->api = (hs_backend_api){.name = tier->name,
                                .destroy = destroy,
                                .device = device,
                                .threads = threads,
                                .use_one_thread = use_one_thread,
                                .held = held,
                                .buffer_create = buffer_create,
                                .buffer_destroy = buffer_destroy,
                                .write = buffer_write,
                                .read = buffer_read,
                                .clear = buffer_clear};
    hs_cpu_set_lever_functions(&cpu->api);
    hs_cpu_set_program_functions(&cpu->api, tier->locates);
    cpu->base.api = &cpu->api;
    cpu->tier = tier;
    cpu->threads = count;
    hs_cpu_start_levers(cpu);
    read_device_name(cpu->device, sizeof cpu->device);
    *backend = &cpu->base;
    return HSTEP_OK;
}

hstep_status hs_cpu_reference_create(hs_backend **backend, hstep_error *error) {
    return hs_cpu_create_tier(&hs_cpu_reference_tier, 1, backend, error);
}

hstep_status hs_cpu_create(unsigned thread_count, hs_backend **backend, hstep_error *error) {
    return hs_cpu_create_tier(&hs_cpu_exact_tier, thread_count, backend, error);
}

void hs_cpu_use_allocator(hs_backend *backend, const hstep_allocator *allocator) {
    hs_cpu_backend *cpu = (hs_cpu_backend *)backend;
    cpu->own_allocator = *allocator;
    cpu->allocator = &cpu->own_allocator;
}
