/* Programs: calls with the kernels that were chosen for them, run one after another. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/backend.h"
#include "cpu/memory.h"
#include "engine/check_call.h"
#include "precision/environment.h"

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
static hstep_status choose(const hs_cpu_backend *cpu, const hs_call *call, bool exact_only, chosen *result,
                           size_t *scratch, hstep_error *error) {
    const hs_kernel_entry *entry = hs_cpu_find_kernel(cpu, call, exact_only);
    if (!entry) {
        const char *name = hs_operation_name(call->operation);
        return hs_fail_operation(error, HSTEP_ERROR_UNSUPPORTED, name, "the backend %s has no kernel for %s",
                                 cpu->tier->name, name);
    }
    *result = (chosen){entry->kernel, entry->kits ? (*entry->kits)[call->precision] : NULL};
    /* One thread alone may cut its work into larger pieces than several do. */
    for (unsigned threads = 1; entry->scratch; threads = cpu->threads) {
        const hs_kernel_run run = {.threads = threads, .kit = result->kit};
        const size_t needed = entry->scratch(call, &run);
        *scratch = needed > *scratch ? needed : *scratch;
        if (threads == cpu->threads)
            break;
    }
    return HSTEP_OK;
}

/* Chooses the kernels and returns the largest scratch that one of them needs. */
static hstep_status resolve(const hs_cpu_backend *cpu, hs_program *program, size_t *scratch, hstep_error *error) {
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

static hs_program *allocate_program(hs_cpu_backend *cpu, size_t count) {
    hs_program *program = calloc(1, sizeof *program);
    if (!program)
        return NULL;
    const size_t room = count ? count : 1;
    const bool gated = hs_cpu_gates_anything(cpu), locates = cpu->tier->locates;
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
static hstep_status reserve_scratch(hs_cpu_backend *cpu, size_t bytes, hstep_error *error) {
    if (bytes <= cpu->scratch_bytes)
        return HSTEP_OK;
    void *const scratch = hs_memory_take(cpu->allocator, bytes);
    if (!scratch)
        return hs_fail_memory(error, "what kernels work with");
    hs_memory_give(cpu->allocator, cpu->scratch, cpu->scratch_bytes);
    cpu->held += bytes - cpu->scratch_bytes;
    cpu->scratch = scratch;
    cpu->scratch_bytes = bytes;
    return HSTEP_OK;
}

static hstep_status program_create(hs_backend *backend, const hs_call *calls, size_t count, hs_program **program,
                                   hstep_error *error) {
    hs_cpu_backend *cpu = (hs_cpu_backend *)backend;
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

static hstep_status run_chosen(const hs_cpu_backend *cpu, hs_program *program, const chosen *kernels, size_t first,
                               size_t count, hstep_error *error) {
    HS_FORWARD(hs_check_calls(program->count, first, count, error));
    const char *refusal = hs_environment_refusal();
    HS_RETURN_IF(refusal, error, HSTEP_ERROR_BACKEND_UNAVAILABLE, "%s computing", refusal);
    for (size_t i = first; i < first + count; i++) {
        hs_fault *fault = cpu->tier->locates ? &program->faults[i] : NULL;
        hs_kernel_run run = {.threads = cpu->one_thread ? 1 : cpu->threads,
                             .kit = kernels[i].kit,
                             .scratch = cpu->scratch,
                             .fault = fault};
        if (fault)
            *fault = (hs_fault){0};
        kernels[i].kernel(&program->calls[i], &run);
        if (fault) {
            if (!fault->found && !program->calls[i].attributes.unfinished)
                scan_outputs(&program->calls[i], fault);
            run.nonfinite = fault->found;
        }
        program->nonfinite[i] |= run.nonfinite;
    }
    return HSTEP_OK;
}

static hstep_status program_run(hs_backend *backend, hs_program *program, size_t first, size_t count,
                                hstep_error *error) {
    return run_chosen(hs_cpu_of(backend), program, program->chosen, first, count, error);
}

static hstep_status program_run_exact(hs_backend *backend, hs_program *program, size_t first, size_t count,
                                      hstep_error *error) {
    const chosen *kernels = program->exact ? program->exact : program->chosen;
    return run_chosen(hs_cpu_of(backend), program, kernels, first, count, error);
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

void hs_cpu_set_program_functions(hs_backend_api *api, bool locates) {
    api->program_create = program_create;
    api->program_destroy = program_destroy;
    api->program_run = program_run;
    api->program_run_exact = program_run_exact;
    api->program_finish = program_finish;
    api->locate = locates ? locate : NULL;
}
