/* The levers of the processor, and which kernel serves a call while some of them are active. */
#include <stdio.h>
#include <string.h>

#include "cpu/backend.h"
#include "cpu/cpu.h"
#include "engine/check_call.h"

static size_t levers(const hs_backend *backend, const hstep_lever **table) {
    *table = hs_cpu_of(backend)->levers;
    return hs_cpu_of(backend)->tier->lever_count;
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

static bool takes_compact(const hs_cpu_backend *cpu) {
    const size_t lever = cpu->tier->compact;
    return lever < cpu->tier->lever_count && cpu->levers[lever].state == HSTEP_LEVER_ACTIVE;
}

/* Training has no such products, so the gate judges none. */
static bool turns_both(const hs_call *call) {
    return call->attributes.a_form == HSTEP_TRANSPOSE && call->attributes.b_form == HSTEP_TRANSPOSE;
}

/* Whether a row of the table may compute a call. Only gated kernels store sums that are not rounded, and they get
 * nothing that is not judged. */
static bool may_serve(const hs_cpu_backend *cpu, const hs_kernel_entry *entry, const hs_call *call, bool exact_only) {
    const hs_cpu_lever *lever = &cpu->tier->levers[entry->lever];
    if (entry->operation != call->operation || cpu->levers[entry->lever].state != HSTEP_LEVER_ACTIVE)
        return false;
    if ((entry->kits && !(*entry->kits)[call->precision]) || (lever->accepts && !lever->accepts(call)))
        return false;
    if (lever->exact)
        return !call->attributes.sums || call->precision == HSTEP_PRECISION_F64;
    return !exact_only && lever->precision == call->precision && !turns_both(call);
}

const hs_kernel_entry *hs_cpu_find_kernel(const hs_cpu_backend *cpu, const hs_call *call, bool exact_only) {
    if (is_compact(call) && !takes_compact(cpu))
        return NULL;
    for (size_t i = 0; i < cpu->tier->entry_count; i++)
        if (may_serve(cpu, &cpu->tier->entries[i], call, exact_only))
            return &cpu->tier->entries[i];
    return NULL;
}

static bool does_work(const hs_cpu_backend *cpu, size_t lever) {
    if (lever == cpu->tier->compact)
        return true;
    for (int operation = 0; operation < HS_OP_COUNT; operation++)
        for (int precision = 0; precision <= HSTEP_PRECISION_BF16; precision++) {
            const hs_call call = {.operation = (hs_operation)operation, .precision = (hstep_precision)precision};
            const hs_kernel_entry *entry = hs_cpu_find_kernel(cpu, &call, true);
            if (entry && entry->lever == lever)
                return true;
        }
    return false;
}

static hstep_lever_state detect(const hs_cpu_lever *lever) {
    return lever->detect ? lever->detect() : HSTEP_LEVER_ACTIVE;
}

/* Finds out which exact levers are there and which of them have work to do. */
static void set_exact_levers(hs_cpu_backend *cpu) {
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
    const hs_cpu_lever *row = &hs_cpu_of(backend)->tier->levers[lever];
    *facts = (hs_lever_facts){.fallback = row->exact && !row->detect,
                              .precision = row->precision,
                              .flushes_subnormals = row->flushes_subnormals};
}

static void lever_find(const hs_backend *backend, size_t lever, hs_lever_findings *findings) {
    const hs_cpu_lever *row = &hs_cpu_of(backend)->tier->levers[lever];
    const char *refusal = row->refusal ? row->refusal(hs_cpu_of(backend)->threads) : NULL;
    *findings = (hs_lever_findings){.state = refusal ? HSTEP_LEVER_ABSENT : detect(row)};
    const bool there = findings->state == HSTEP_LEVER_ACTIVE;
    (void)snprintf(findings->reason, sizeof findings->reason, "%s",
                   refusal ? refusal : (there ? row->active : row->missing));
    if (there && row->describe)
        row->describe(findings);
}

static void lever_set(hs_backend *backend, size_t lever, hstep_lever_state state, const char *reason) {
    hs_cpu_backend *cpu = (hs_cpu_backend *)backend;
    (void)snprintf(cpu->reasons[lever], HS_CPU_REASON, "%s", reason);
    cpu->levers[lever].state = state;
    cpu->levers[lever].reason = cpu->reasons[lever];
    cpu->left_out[lever] = state != HSTEP_LEVER_ACTIVE;
    if (cpu->tier->levers[lever].exact)
        set_exact_levers(cpu);
}

static bool supports(const hs_backend *backend, const hs_call *call) {
    return hs_check_types(call) && hs_cpu_find_kernel(hs_cpu_of(backend), call, true) != NULL;
}

bool hs_cpu_gates_anything(const hs_cpu_backend *cpu) {
    for (size_t i = 0; i < cpu->tier->lever_count; i++)
        if (!cpu->tier->levers[i].exact && cpu->levers[i].state == HSTEP_LEVER_ACTIVE)
            return true;
    return false;
}

void hs_cpu_start_levers(hs_cpu_backend *cpu) {
    for (size_t i = 0; i < cpu->tier->lever_count; i++)
        cpu->levers[i] = (hstep_lever){.name = cpu->tier->levers[i].name,
                                       .exact = cpu->tier->levers[i].exact,
                                       .state = HSTEP_LEVER_DISABLED,
                                       .reason = "not asked for"};
    set_exact_levers(cpu);
}

void hs_cpu_set_lever_functions(hs_backend_api *api) {
    api->levers = levers;
    api->lever_facts = lever_facts;
    api->lever_find = lever_find;
    api->lever_set = lever_set;
    api->supports = supports;
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
