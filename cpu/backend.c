/* The processor as a backend: host memory, and programs that run a tier's kernels one after another. */
#define _GNU_SOURCE /* sched_getaffinity */

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cpu/cpu.h"
#include "cpu/kernel.h"
#include "cpu/memory.h"
#include "cpu/team.h"
#include "engine/check_call.h"
#include "precision/environment.h"

enum { MOST_THREADS = 1024, REASON = 512 };

typedef struct cpu_backend {
    hs_backend base;
    hs_backend_api api;
    const hs_cpu_tier *tier;
    hstep_lever levers[HS_CPU_MAX_LEVERS];
    char reasons[HS_CPU_MAX_LEVERS][REASON]; /* of levers that were set from outside */
    bool left_out[HS_CPU_MAX_LEVERS];        /* exact levers */
    unsigned threads;
    size_t held;   /* bytes of buffers and scratch */
    void *scratch; /* for all programs: calls run one after another */
    size_t scratch_bytes;
    char device[128];
} cpu_backend;

/* What computes a call. */
typedef struct chosen {
    hs_kernel *kernel;
    const hs_kit *kit; /* NULL for none */
} chosen;

struct hs_program {
    size_t count;
    hs_call *calls;
    chosen *chosen, *exact; /* of each call; exact is NULL where they are the same */
    bool *nonfinite;        /* since the last finish */
    hs_fault *faults;       /* of the last run; only in tiers that locate */
};

static const cpu_backend *as_cpu(const hs_backend *backend) { return (const cpu_backend *)backend; }

static void destroy(hs_backend *backend) {
    cpu_backend *cpu = (cpu_backend *)backend;
    hs_memory_give(cpu->scratch, cpu->scratch_bytes);
    free(cpu);
}

static const char *device(const hs_backend *backend) { return as_cpu(backend)->device; }

static unsigned threads(const hs_backend *backend) { return as_cpu(backend)->threads; }

static size_t levers(const hs_backend *backend, const hstep_lever **table) {
    *table = as_cpu(backend)->levers;
    return as_cpu(backend)->tier->lever_count;
}

/* Whether an operand stands in 16 bits. */
static bool is_compact(const hs_call *call) {
    for (uint32_t i = 0; i < call->input_count; i++)
        if (hs_dtype_is_half(call->inputs[i].dtype))
            return true;
    for (uint32_t i = 0; i < call->output_count; i++)
        if (hs_dtype_is_half(call->outputs[i].dtype))
            return true;
    return false;
}

static bool takes_compact(const cpu_backend *cpu) {
    const size_t lever = cpu->tier->compact;
    return lever < cpu->tier->lever_count && cpu->levers[lever].state == HSTEP_LEVER_ACTIVE;
}

/* Training has no such products, so the gate judges none. */
static bool turns_both(const hs_call *call) {
    return call->attributes.a_form == HSTEP_TRANSPOSE && call->attributes.b_form == HSTEP_TRANSPOSE;
}

/* Whether a row of the table may compute a call. Only gated kernels store sums that are not rounded, and they get
 * nothing that is not judged. */
static bool may_serve(const cpu_backend *cpu, const hs_kernel_entry *entry, const hs_call *call, bool exact_only) {
    const hs_cpu_lever *lever = &cpu->tier->levers[entry->lever];
    if (entry->operation != call->operation || cpu->levers[entry->lever].state != HSTEP_LEVER_ACTIVE)
        return false;
    if ((entry->kits && !(*entry->kits)[call->precision]) || (lever->accepts && !lever->accepts(call)))
        return false;
    if (lever->exact)
        return !call->attributes.sums || call->precision == HSTEP_PRECISION_F64;
    return !exact_only && lever->precision == call->precision && !turns_both(call);
}

static const hs_kernel_entry *find_kernel(const cpu_backend *cpu, const hs_call *call, bool exact_only) {
    if (is_compact(call) && !takes_compact(cpu))
        return NULL;
    for (size_t i = 0; i < cpu->tier->entry_count; i++)
        if (may_serve(cpu, &cpu->tier->entries[i], call, exact_only))
            return &cpu->tier->entries[i];
    return NULL;
}

static bool does_work(const cpu_backend *cpu, size_t lever) {
    if (lever == cpu->tier->compact)
        return true;
    for (int operation = 0; operation < HS_OP_COUNT; operation++)
        for (int precision = 0; precision <= HSTEP_PRECISION_BF16; precision++) {
            const hs_call call = {.operation = (hs_operation)operation, .precision = (hstep_precision)precision};
            const hs_kernel_entry *entry = find_kernel(cpu, &call, true);
            if (entry && entry->lever == lever)
                return true;
        }
    return false;
}

static hstep_lever_state detect(const hs_cpu_lever *lever) {
    return lever->detect ? lever->detect() : HSTEP_LEVER_ACTIVE;
}

/* Finds out which exact levers are there and which of them have work to do. */
static void set_exact_levers(cpu_backend *cpu) {
    const hs_cpu_tier *tier = cpu->tier;
    for (size_t i = 0; i < tier->lever_count; i++) {
        const hs_cpu_lever *lever = &tier->levers[i];
        if (!lever->exact || cpu->left_out[i])
            continue;
        cpu->levers[i].state = detect(lever);
        cpu->levers[i].reason = cpu->levers[i].state == HSTEP_LEVER_ACTIVE ? lever->active : lever->missing;
    }
    for (size_t i = 0; i < tier->lever_count; i++)
        if (tier->levers[i].exact && cpu->levers[i].state == HSTEP_LEVER_ACTIVE && !does_work(cpu, i)) {
            cpu->levers[i].state = HSTEP_LEVER_DISABLED;
            cpu->levers[i].reason = "a faster lever does all its work";
        }
}

static void lever_facts(const hs_backend *backend, size_t lever, hs_lever_facts *facts) {
    const hs_cpu_lever *row = &as_cpu(backend)->tier->levers[lever];
    *facts = (hs_lever_facts){.fallback = row->exact && !row->detect,
                              .precision = row->precision,
                              .flushes_subnormals = row->flushes_subnormals};
}

static void lever_find(const hs_backend *backend, size_t lever, hs_lever_findings *findings) {
    const hs_cpu_lever *row = &as_cpu(backend)->tier->levers[lever];
    const char *refusal = row->refusal ? row->refusal(as_cpu(backend)->threads) : NULL;
    *findings = (hs_lever_findings){.state = refusal ? HSTEP_LEVER_ABSENT : detect(row)};
    const bool there = findings->state == HSTEP_LEVER_ACTIVE;
    (void)snprintf(findings->reason, sizeof findings->reason, "%s",
                   refusal ? refusal : (there ? row->active : row->missing));
    if (there && row->describe)
        row->describe(findings);
}

static void lever_set(hs_backend *backend, size_t lever, hstep_lever_state state, const char *reason) {
    cpu_backend *cpu = (cpu_backend *)backend;
    (void)snprintf(cpu->reasons[lever], REASON, "%s", reason);
    cpu->levers[lever].state = state;
    cpu->levers[lever].reason = cpu->reasons[lever];
    cpu->left_out[lever] = state != HSTEP_LEVER_ACTIVE;
    if (cpu->tier->levers[lever].exact)
        set_exact_levers(cpu);
}

static bool supports(const hs_backend *backend, const hs_call *call) {
    return hs_check_types(call) && find_kernel(as_cpu(backend), call, true) != NULL;
}

static size_t held(const hs_backend *backend) { return as_cpu(backend)->held; }

static hstep_status buffer_create(hs_backend *backend, size_t bytes, hs_buffer **buffer, hstep_error *error) {
    hs_buffer *made = malloc(sizeof *made);
    unsigned char *data = made ? hs_memory_take(bytes) : NULL;
    if (!data) {
        free(made);
        return hs_fail_memory(error, "a buffer");
    }
    *made = (hs_buffer){data, bytes};
    ((cpu_backend *)backend)->held += bytes;
    *buffer = made;
    return HSTEP_OK;
}

static void buffer_destroy(hs_backend *backend, hs_buffer *buffer) {
    if (!buffer)
        return;
    ((cpu_backend *)backend)->held -= buffer->bytes;
    hs_memory_give(buffer->data, buffer->bytes);
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
    free(program->chosen);
    free(program->exact);
    free(program->nonfinite);
    free(program->faults);
    free(program);
}

/* Chooses the kernel of a call and widens *scratch to what it needs. */
static hstep_status choose(const cpu_backend *cpu, const hs_call *call, bool exact_only, chosen *result,
                           size_t *scratch, hstep_error *error) {
    const hs_kernel_entry *entry = find_kernel(cpu, call, exact_only);
    if (!entry) {
        const char *name = hs_operation_name(call->operation);
        return hs_fail_operation(error, HSTEP_ERROR_UNSUPPORTED, name, "the backend %s has no kernel for %s",
                                 cpu->tier->name, name);
    }
    *result = (chosen){entry->kernel, entry->kits ? (*entry->kits)[call->precision] : NULL};
    const hs_kernel_run run = {.threads = cpu->threads, .kit = result->kit};
    const size_t needed = entry->scratch ? entry->scratch(call, &run) : 0;
    *scratch = needed > *scratch ? needed : *scratch;
    return HSTEP_OK;
}

static bool gates_anything(const cpu_backend *cpu) {
    for (size_t i = 0; i < cpu->tier->lever_count; i++)
        if (!cpu->tier->levers[i].exact && cpu->levers[i].state == HSTEP_LEVER_ACTIVE)
            return true;
    return false;
}

/* Chooses the kernels and returns the largest scratch that one of them needs. */
static hstep_status resolve(const cpu_backend *cpu, hs_program *program, size_t *scratch, hstep_error *error) {
    *scratch = 0;
    for (size_t i = 0; i < program->count; i++) {
        const hs_call *call = &program->calls[i];
        HS_FORWARD(hs_check_call(call, error));
        HS_FORWARD(choose(cpu, call, false, &program->chosen[i], scratch, error));
        /* Sums that no exact kernel stores are for the gate alone, which runs them as they are. */
        if (program->exact && choose(cpu, call, true, &program->exact[i], scratch, NULL) != HSTEP_OK)
            program->exact[i] = program->chosen[i];
    }
    return HSTEP_OK;
}

static hs_program *allocate_program(cpu_backend *cpu, size_t count) {
    hs_program *program = calloc(1, sizeof *program);
    if (!program)
        return NULL;
    const size_t room = count ? count : 1;
    const bool gated = gates_anything(cpu), locates = cpu->tier->locates;
    program->count = count;
    program->calls = calloc(room, sizeof *program->calls);
    program->chosen = calloc(room, sizeof *program->chosen);
    program->exact = gated ? calloc(room, sizeof *program->exact) : NULL;
    program->nonfinite = calloc(room, sizeof *program->nonfinite);
    program->faults = locates ? calloc(room, sizeof *program->faults) : NULL;
    if (!program->calls || !program->chosen || (gated && !program->exact) || !program->nonfinite ||
        (locates && !program->faults)) {
        program_destroy(&cpu->base, program);
        return NULL;
    }
    return program;
}

/* What is there stays where there is no memory for more. */
static hstep_status reserve_scratch(cpu_backend *cpu, size_t bytes, hstep_error *error) {
    if (bytes <= cpu->scratch_bytes)
        return HSTEP_OK;
    void *const scratch = hs_memory_take(bytes);
    if (!scratch)
        return hs_fail_memory(error, "what kernels work with");
    hs_memory_give(cpu->scratch, cpu->scratch_bytes);
    cpu->held += bytes - cpu->scratch_bytes;
    cpu->scratch = scratch;
    cpu->scratch_bytes = bytes;
    return HSTEP_OK;
}

static hstep_status program_create(hs_backend *backend, const hs_call *calls, size_t count, hs_program **program,
                                   hstep_error *error) {
    cpu_backend *cpu = (cpu_backend *)backend;
    hs_program *made = allocate_program(cpu, count);
    if (!made)
        return hs_fail_memory(error, "a program");
    if (count > 0)
        memcpy(made->calls, calls, count * sizeof *calls);
    size_t scratch;
    hstep_status status = resolve(cpu, made, &scratch, error);
    if (status == HSTEP_OK)
        status = reserve_scratch(cpu, scratch, error);
    if (status != HSTEP_OK) {
        program_destroy(backend, made);
        return status;
    }
    *program = made;
    return HSTEP_OK;
}

/* Whether a call stored row `row` of its outputs: store_rows alone leaves some as they were. */
static bool stores_row(const hs_call *call, size_t row) {
    bool stored = call->operation != HS_OP_STORE_ROWS;
    for (size_t r = 0; !stored && r < hs_view_elements(&call->inputs[1]); r++)
        stored = (size_t)hs_in_i32(call, 1)[r] == row;
    return stored;
}

/* Notes the first nonfinite element of the outputs, in their order. */
static void scan_outputs(const hs_call *call, hs_fault *fault) {
    for (uint32_t i = 0; i < call->output_count && !fault->found; i++) {
        const hs_view *view = &call->outputs[i];
        const size_t rows = hs_rows(view), columns = hs_columns(view);
        const size_t pitch = view->rank >= 2 ? view->strides[view->rank - 2] : columns;
        const double *data = hs_out(call, i); /* tiers that locate compute in f64 alone */
        for (size_t r = 0; r < rows && !fault->found; r++)
            for (size_t c = 0; c < columns && !fault->found; c++)
                if (!isfinite(data[r * pitch + c]) && stores_row(call, r))
                    *fault = (hs_fault){true, (int)i, NULL, r * columns + c, data[r * pitch + c]};
    }
}

static hstep_status run_chosen(const cpu_backend *cpu, hs_program *program, const chosen *kernels, size_t first,
                               size_t count, hstep_error *error) {
    HS_RETURN_IF(first > program->count || count > program->count - first, error, HSTEP_ERROR_ARGUMENT,
                 "calls %zu to %zu + %zu lie outside a program of %zu", first, first, count, program->count);
    const char *refusal = hs_environment_refusal();
    HS_RETURN_IF(refusal, error, HSTEP_ERROR_BACKEND_UNAVAILABLE, "%s computing", refusal);
    for (size_t i = first; i < first + count; i++) {
        hs_fault *fault = cpu->tier->locates ? &program->faults[i] : NULL;
        hs_kernel_run run = {.threads = cpu->threads, .kit = kernels[i].kit, .scratch = cpu->scratch, .fault = fault};
        if (fault)
            *fault = (hs_fault){0};
        kernels[i].kernel(&program->calls[i], &run);
        if (fault) {
            if (!fault->found)
                scan_outputs(&program->calls[i], fault);
            run.nonfinite = fault->found;
        }
        program->nonfinite[i] |= run.nonfinite;
    }
    return HSTEP_OK;
}

static hstep_status program_run(hs_backend *backend, hs_program *program, size_t first, size_t count,
                                hstep_error *error) {
    return run_chosen(as_cpu(backend), program, program->chosen, first, count, error);
}

static hstep_status program_run_exact(hs_backend *backend, hs_program *program, size_t first, size_t count,
                                      hstep_error *error) {
    const chosen *kernels = program->exact ? program->exact : program->chosen;
    return run_chosen(as_cpu(backend), program, kernels, first, count, error);
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

static void start_levers(cpu_backend *cpu) {
    for (size_t i = 0; i < cpu->tier->lever_count; i++)
        cpu->levers[i] = (hstep_lever){.name = cpu->tier->levers[i].name,
                                       .exact = cpu->tier->levers[i].exact,
                                       .state = HSTEP_LEVER_DISABLED,
                                       .reason = "not asked for"};
    set_exact_levers(cpu);
}

hstep_status hs_cpu_create_tier(const hs_cpu_tier *tier, unsigned thread_count, hs_backend **backend,
                                hstep_error *error) {
    const unsigned count = thread_count ? thread_count : available_processors();
    HS_RETURN_IF(count > MOST_THREADS, error, HSTEP_ERROR_ARGUMENT, "%u threads; give at most %d", count, MOST_THREADS);
    HS_FORWARD(hs_team_start(count, error));
    cpu_backend *cpu = calloc(1, sizeof *cpu);
    if (!cpu)
        return hs_fail_memory(error, "a backend");
    cpu->api = (hs_backend_api){.name = tier->name,
                                .destroy = destroy,
                                .device = device,
                                .threads = threads,
                                .levers = levers,
                                .lever_facts = lever_facts,
                                .lever_find = lever_find,
                                .lever_set = lever_set,
                                .supports = supports,
                                .held = held,
                                .buffer_create = buffer_create,
                                .buffer_destroy = buffer_destroy,
                                .write = buffer_write,
                                .read = buffer_read,
                                .clear = buffer_clear,
                                .program_create = program_create,
                                .program_destroy = program_destroy,
                                .program_run = program_run,
                                .program_run_exact = program_run_exact,
                                .program_finish = program_finish,
                                .locate = tier->locates ? locate : NULL};
    cpu->base.api = &cpu->api;
    cpu->tier = tier;
    cpu->threads = count;
    start_levers(cpu);
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

hstep_status hs_cpu_create_with_lever(unsigned thread_count, const char *lever, hs_backend **backend,
                                      hstep_error *error) {
    const hs_cpu_tier *tier = &hs_cpu_exact_tier;
    size_t chosen_lever = 0;
    while (chosen_lever < tier->lever_count && strcmp(tier->levers[chosen_lever].name, lever) != 0)
        chosen_lever++;
    HS_RETURN_IF(chosen_lever == tier->lever_count, error, HSTEP_ERROR_ARGUMENT, "there is no lever %s", lever);
    HS_RETURN_IF(detect(&tier->levers[chosen_lever]) != HSTEP_LEVER_ACTIVE, error, HSTEP_ERROR_BACKEND_UNAVAILABLE,
                 "the lever %s is not there: %s", lever, tier->levers[chosen_lever].missing);
    HS_FORWARD(hs_cpu_create(thread_count, backend, error));
    for (size_t i = 0; i < tier->lever_count; i++)
        if (i != chosen_lever && i != tier->compact && tier->levers[i].exact &&
            detect(&tier->levers[i]) == HSTEP_LEVER_ACTIVE && tier->levers[i].detect)
            lever_set(*backend, i, HSTEP_LEVER_DISABLED, "left out on request");
    if (!tier->levers[chosen_lever].exact)
        lever_set(*backend, chosen_lever, HSTEP_LEVER_ACTIVE, "asked for");
    return HSTEP_OK;
}
