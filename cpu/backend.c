/* The processor as a backend: host memory, and programs that run a tier's kernels one after another. */
#define _GNU_SOURCE /* sched_getaffinity */

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cpu/check_call.h"
#include "cpu/cpu.h"
#include "cpu/kernel.h"
#include "cpu/team.h"
#include "precision/environment.h"

enum { ALIGNMENT = 64, MOST_THREADS = 1024 };

typedef struct cpu_backend {
    hs_backend base;
    hs_backend_api api;
    const hs_cpu_tier *tier;
    hstep_lever levers[HS_CPU_MAX_LEVERS];
    unsigned threads;
    char device[128];
} cpu_backend;

struct hs_program {
    size_t count;
    hs_call *calls;
    hs_kernel **kernels;
    const hs_kit **kits; /* of each kernel, NULL for none */
    bool *nonfinite;     /* since the last finish */
    hs_fault *faults;    /* of the last run; only in tiers that locate */
    void *scratch;
};

static const cpu_backend *as_cpu(const hs_backend *backend) { return (const cpu_backend *)backend; }

static void destroy(hs_backend *backend) { free(backend); }

static const char *device(const hs_backend *backend) { return as_cpu(backend)->device; }

static unsigned threads(const hs_backend *backend) { return as_cpu(backend)->threads; }

static size_t levers(const hs_backend *backend, const hstep_lever **table) {
    *table = as_cpu(backend)->levers;
    return as_cpu(backend)->tier->lever_count;
}

static const hs_kernel_entry *find_kernel(const cpu_backend *cpu, hs_operation operation) {
    for (size_t i = 0; i < cpu->tier->entry_count; i++) {
        const hs_kernel_entry *entry = &cpu->tier->entries[i];
        if (entry->operation == operation && cpu->levers[entry->lever].state == HSTEP_LEVER_ACTIVE)
            return entry;
    }
    return NULL;
}

static bool serves(const cpu_backend *cpu, size_t lever) {
    for (int operation = 0; operation < HS_OP_COUNT; operation++) {
        const hs_kernel_entry *entry = find_kernel(cpu, (hs_operation)operation);
        if (entry && entry->lever == lever)
            return true;
    }
    return false;
}

/* Finds out which levers are there and which of them have work to do. `only`: see hs_cpu_create_with_lever, or NULL. */
static void set_levers(cpu_backend *cpu, const char *only) {
    const hs_cpu_tier *tier = cpu->tier;
    for (size_t i = 0; i < tier->lever_count; i++) {
        const hs_cpu_lever *lever = &tier->levers[i];
        const hstep_lever_state state = lever->detect ? lever->detect() : HSTEP_LEVER_ACTIVE;
        cpu->levers[i] = (hstep_lever){lever->name, lever->exact, state,
                                       state == HSTEP_LEVER_ACTIVE ? lever->active : lever->missing};
        if (state == HSTEP_LEVER_ACTIVE && lever->detect && only && strcmp(lever->name, only) != 0) {
            cpu->levers[i].state = HSTEP_LEVER_DISABLED;
            cpu->levers[i].reason = "left out on request";
        }
    }
    for (size_t i = 0; i < tier->lever_count; i++)
        if (cpu->levers[i].state == HSTEP_LEVER_ACTIVE && !serves(cpu, i)) {
            cpu->levers[i].state = HSTEP_LEVER_DISABLED;
            cpu->levers[i].reason = "a faster lever does all its work";
        }
}

static bool supports(const hs_backend *backend, hs_operation operation, hstep_precision precision) {
    return (unsigned)precision <= HSTEP_PRECISION_BF16 && find_kernel(as_cpu(backend), operation) != NULL;
}

/* Aligned, and never NULL because bytes is 0. */
static void *allocate_aligned(size_t bytes) {
    if (bytes > PTRDIFF_MAX - ALIGNMENT)
        return NULL;
    return aligned_alloc(ALIGNMENT, (bytes / ALIGNMENT + 1) * ALIGNMENT);
}

static hstep_status buffer_create(hs_backend *backend, size_t bytes, hs_buffer **buffer, hstep_error *error) {
    (void)backend;
    hs_buffer *made = malloc(sizeof *made);
    unsigned char *data = made ? allocate_aligned(bytes) : NULL;
    if (!data) {
        free(made);
        return hs_fail_memory(error, "a buffer");
    }
    memset(data, 0, bytes);
    *made = (hs_buffer){data, bytes};
    *buffer = made;
    return HSTEP_OK;
}

static void buffer_destroy(hs_backend *backend, hs_buffer *buffer) {
    (void)backend;
    if (!buffer)
        return;
    free(buffer->data);
    free(buffer);
}

static hstep_status check_range(const hs_buffer *buffer, size_t offset, size_t bytes, hstep_error *error) {
    HS_RETURN_IF(offset > buffer->bytes || bytes > buffer->bytes - offset, error, HSTEP_ERROR_ARGUMENT,
                 "bytes %zu to %zu + %zu lie outside a buffer of %zu", offset, offset, bytes, buffer->bytes);
    return HSTEP_OK;
}

static hstep_status buffer_write(hs_backend *backend, hs_buffer *buffer, size_t offset, const void *data, size_t bytes,
                                 hstep_error *error) {
    (void)backend;
    HS_FORWARD(check_range(buffer, offset, bytes, error));
    if (bytes > 0)
        memcpy(buffer->data + offset, data, bytes);
    return HSTEP_OK;
}

static hstep_status buffer_read(hs_backend *backend, const hs_buffer *buffer, size_t offset, void *data, size_t bytes,
                                hstep_error *error) {
    (void)backend;
    HS_FORWARD(check_range(buffer, offset, bytes, error));
    if (bytes > 0)
        memcpy(data, buffer->data + offset, bytes);
    return HSTEP_OK;
}

static hstep_status buffer_clear(hs_backend *backend, hs_buffer *buffer, size_t offset, size_t bytes,
                                 hstep_error *error) {
    (void)backend;
    HS_FORWARD(check_range(buffer, offset, bytes, error));
    memset(buffer->data + offset, 0, bytes);
    return HSTEP_OK;
}

static void program_destroy(hs_backend *backend, hs_program *program) {
    (void)backend;
    if (!program)
        return;
    free(program->calls);
    free(program->kernels);
    free(program->kits);
    free(program->nonfinite);
    free(program->faults);
    free(program->scratch);
    free(program);
}

/* Chooses the kernels and returns the largest scratch that one of them needs. */
static hstep_status resolve(const cpu_backend *cpu, hs_program *program, size_t *scratch, hstep_error *error) {
    *scratch = 0;
    for (size_t i = 0; i < program->count; i++) {
        const hs_call *call = &program->calls[i];
        HS_FORWARD(hs_check_call(call, error));
        const hs_kernel_entry *entry = find_kernel(cpu, call->operation);
        if (!entry) {
            const char *name = hs_operation_name(call->operation);
            return hs_fail_operation(error, HSTEP_ERROR_UNSUPPORTED, name, "the backend %s has no kernel for %s",
                                     cpu->tier->name, name);
        }
        program->kernels[i] = entry->kernel;
        program->kits[i] = entry->kits ? (*entry->kits)[call->precision] : NULL;
        const hs_kernel_run run = {.threads = cpu->threads, .kit = program->kits[i]};
        const size_t needed = entry->scratch ? entry->scratch(call, &run) : 0;
        if (needed > *scratch)
            *scratch = needed;
    }
    return HSTEP_OK;
}

static hs_program *allocate_program(const hs_cpu_tier *tier, size_t count) {
    hs_program *program = calloc(1, sizeof *program);
    if (!program)
        return NULL;
    const size_t room = count ? count : 1;
    program->count = count;
    program->calls = calloc(room, sizeof *program->calls);
    program->kernels = calloc(room, sizeof *program->kernels);
    program->kits = calloc(room, sizeof *program->kits);
    program->nonfinite = calloc(room, sizeof *program->nonfinite);
    program->faults = tier->locates ? calloc(room, sizeof *program->faults) : NULL;
    if (!program->calls || !program->kernels || !program->kits || !program->nonfinite ||
        (tier->locates && !program->faults)) {
        program_destroy(NULL, program);
        return NULL;
    }
    return program;
}

static hstep_status program_create(hs_backend *backend, const hs_call *calls, size_t count, hs_program **program,
                                   hstep_error *error) {
    const cpu_backend *cpu = as_cpu(backend);
    hs_program *made = allocate_program(cpu->tier, count);
    if (!made)
        return hs_fail_memory(error, "a program");
    if (count > 0)
        memcpy(made->calls, calls, count * sizeof *calls);
    size_t scratch;
    hstep_status status = resolve(cpu, made, &scratch, error);
    if (status == HSTEP_OK && scratch > 0) {
        made->scratch = allocate_aligned(scratch);
        if (!made->scratch)
            status = hs_fail_memory(error, "the scratch of a program");
    }
    if (status != HSTEP_OK) {
        program_destroy(backend, made);
        return status;
    }
    *program = made;
    return HSTEP_OK;
}

/* Notes the first nonfinite element of the outputs, in their order. */
static void scan_outputs(const hs_call *call, hs_fault *fault) {
    for (uint32_t i = 0; i < call->output_count && !fault->found; i++) {
        const hs_view *view = &call->outputs[i];
        const size_t rows = hs_rows(view), columns = hs_columns(view);
        const size_t pitch = view->rank >= 2 ? view->strides[view->rank - 2] : columns;
        const double *data = hs_out(call, i);
        for (size_t r = 0; r < rows && !fault->found; r++)
            for (size_t c = 0; c < columns && !fault->found; c++)
                if (!isfinite(data[r * pitch + c]))
                    *fault = (hs_fault){true, (int)i, NULL, r * columns + c, data[r * pitch + c]};
    }
}

static hstep_status program_run(hs_backend *backend, hs_program *program, size_t first, size_t count,
                                hstep_error *error) {
    const cpu_backend *cpu = as_cpu(backend);
    HS_RETURN_IF(first > program->count || count > program->count - first, error, HSTEP_ERROR_ARGUMENT,
                 "calls %zu to %zu + %zu lie outside a program of %zu", first, first, count, program->count);
    const char *refusal = hs_environment_refusal();
    HS_RETURN_IF(refusal, error, HSTEP_ERROR_BACKEND_UNAVAILABLE, "%s computing", refusal);
    for (size_t i = first; i < first + count; i++) {
        hs_fault *fault = cpu->tier->locates ? &program->faults[i] : NULL;
        hs_kernel_run run = {
            .threads = cpu->threads, .kit = program->kits[i], .scratch = program->scratch, .fault = fault};
        if (fault)
            *fault = (hs_fault){0};
        program->kernels[i](&program->calls[i], &run);
        if (fault) {
            if (!fault->found)
                scan_outputs(&program->calls[i], fault);
            run.nonfinite = fault->found;
        }
        program->nonfinite[i] |= run.nonfinite;
    }
    return HSTEP_OK;
}

static hstep_status program_finish(hs_backend *backend, hs_program *program, uint32_t *flags, hstep_error *error) {
    (void)backend;
    (void)error;
    for (size_t i = 0; i < program->count; i++) {
        if (flags)
            flags[i] = program->nonfinite[i] ? 1 : 0;
        program->nonfinite[i] = false;
    }
    return HSTEP_OK;
}

static hs_fault locate(const hs_backend *backend, const hs_program *program, size_t call) {
    (void)backend;
    return call < program->count ? program->faults[call] : (hs_fault){0};
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

static hstep_status create(const hs_cpu_tier *tier, unsigned thread_count, const char *lever, hs_backend **backend,
                           hstep_error *error) {
    HS_RETURN_IF(thread_count > MOST_THREADS, error, HSTEP_ERROR_ARGUMENT, "%u threads; give at most %d", thread_count,
                 MOST_THREADS);
    HS_FORWARD(hs_team_start(thread_count, error));
    cpu_backend *cpu = calloc(1, sizeof *cpu);
    if (!cpu)
        return hs_fail_memory(error, "a backend");
    cpu->api = (hs_backend_api){.name = tier->name,
                                .destroy = destroy,
                                .device = device,
                                .threads = threads,
                                .levers = levers,
                                .supports = supports,
                                .buffer_create = buffer_create,
                                .buffer_destroy = buffer_destroy,
                                .write = buffer_write,
                                .read = buffer_read,
                                .clear = buffer_clear,
                                .program_create = program_create,
                                .program_destroy = program_destroy,
                                .program_run = program_run,
                                .program_finish = program_finish,
                                .locate = tier->locates ? locate : NULL};
    cpu->base.api = &cpu->api;
    cpu->tier = tier;
    cpu->threads = thread_count;
    set_levers(cpu, lever);
    read_device_name(cpu->device, sizeof cpu->device);
    *backend = &cpu->base;
    return HSTEP_OK;
}

hstep_status hs_cpu_reference_create(hs_backend **backend, hstep_error *error) {
    return create(&hs_cpu_reference_tier, 1, NULL, backend, error);
}

hstep_status hs_cpu_create(unsigned thread_count, hs_backend **backend, hstep_error *error) {
    return create(&hs_cpu_exact_tier, thread_count ? thread_count : available_processors(), NULL, backend, error);
}

hstep_status hs_cpu_create_with_lever(unsigned thread_count, const char *lever, hs_backend **backend,
                                      hstep_error *error) {
    const hs_cpu_tier *tier = &hs_cpu_exact_tier;
    size_t i = 0;
    while (i < tier->lever_count && strcmp(tier->levers[i].name, lever) != 0)
        i++;
    HS_RETURN_IF(i == tier->lever_count, error, HSTEP_ERROR_ARGUMENT, "there is no lever %s", lever);
    HS_RETURN_IF(tier->levers[i].detect && tier->levers[i].detect() != HSTEP_LEVER_ACTIVE, error,
                 HSTEP_ERROR_BACKEND_UNAVAILABLE, "the lever %s is not there: %s", lever, tier->levers[i].missing);
    return create(tier, thread_count ? thread_count : available_processors(), lever, backend, error);
}
