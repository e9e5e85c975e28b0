#include "vulkan/levers.h"

#include <stdio.h>

#include "vulkan/backend.h"
#include "vulkan/program/operations.h"

/* What is known of a gated lever. Where two serve one precision, the first that is active does. */
typedef struct gated {
    const char *name;
    hstep_precision precision;
    hs_vk_shader shader;
    const char *extension; /* that glslang may not know; NULL: all do */
    bool cooperative;
} gated;

static const gated rows[HS_VK_LEVERS] = {
    [HS_VK_COOPERATIVE_FP16] = {"vulkan.cooperative-fp16", HSTEP_PRECISION_FP16, HS_VK_SHADER_cooperative_fp16,
                                "GL_KHR_cooperative_matrix", true},
    [HS_VK_COOPERATIVE_BF16] = {"vulkan.cooperative-bf16", HSTEP_PRECISION_BF16, HS_VK_SHADER_cooperative_bf16,
                                "GL_EXT_bfloat16", true},
    [HS_VK_FUSED_FP16] = {"vulkan.fused-fp16", HSTEP_PRECISION_FP16, HS_VK_SHADER_fused_fp16, NULL, false},
};

static const hs_vk_backend *as_vulkan(const hs_backend *backend) { return (const hs_vk_backend *)backend; }

static void set(hs_vk_backend *backend, size_t lever, hstep_lever_state state, const char *reason) {
    (void)snprintf(backend->reasons[lever], HS_VK_REASON, "%s", reason);
    backend->levers[lever].state = state;
    backend->levers[lever].reason = backend->reasons[lever];
}

void hs_vk_levers_start(hs_vk_backend *backend, const char *reason) {
    backend->levers[HS_VK_MIRROR_LEVER] = (hstep_lever){.name = "vulkan.mirror", .exact = 1};
    set(backend, HS_VK_MIRROR_LEVER, HSTEP_LEVER_ACTIVE, reason);
    for (size_t i = HS_VK_MIRROR_LEVER + 1; i < HS_VK_LEVERS; i++) {
        backend->levers[i] = (hstep_lever){.name = rows[i].name};
        set(backend, i, HSTEP_LEVER_DISABLED, "not asked for");
    }
}

/* In bf16 a device that flushes subnormals of f32 does so with operands: they have the same exponents. Those of fp16
 * are far from them. */
void hs_vk_lever_facts(const hs_backend *backend, size_t lever, hs_lever_facts *facts) {
    *facts = (hs_lever_facts){.fallback = lever == HS_VK_MIRROR_LEVER,
                              .precision = rows[lever].precision,
                              .flushes_subnormals = lever == HS_VK_COOPERATIVE_BF16 && as_vulkan(backend)->flushes};
}

static const hs_vk_matrices *matrices_of(const hs_vk_backend *backend, size_t lever) {
    return lever == HS_VK_COOPERATIVE_FP16 ? &backend->device.extras.fp16 : &backend->device.extras.bf16;
}

static void describe(const hs_vk_backend *backend, size_t lever, char *text, size_t size) {
    const hs_vk_matrices *matrices = matrices_of(backend, lever);
    if (rows[lever].cooperative)
        (void)snprintf(text, size, "cooperative matrices of %u x %u x %u, subgroups of %u", matrices->m, matrices->n,
                       matrices->k, backend->device.extras.subgroup);
    else
        (void)snprintf(text, size, "fused steps, operands widened by the device");
}

/* Everything that could change the bits: what serves, and which driver it is of. */
static void identify(const hs_vk_backend *backend, size_t lever, hs_lever_findings *findings) {
    const hs_vk_facts *facts = &backend->device.facts;
    char uuid[2 * VK_UUID_SIZE + 1] = "";
    for (size_t i = 0; i < VK_UUID_SIZE; i++)
        (void)snprintf(uuid + 2 * i, 3, "%02x", facts->uuid[i]);
    describe(backend, lever, findings->reason, sizeof findings->reason);
    (void)snprintf(findings->identity, sizeof findings->identity, "%s; driver %08x, %s", findings->reason,
                   facts->driver_version, uuid);
}

void hs_vk_lever_find(const hs_backend *base, size_t lever, hs_lever_findings *findings) {
    const hs_vk_backend *backend = as_vulkan(base);
    *findings = (hs_lever_findings){.state = HSTEP_LEVER_ACTIVE};
    if (lever == HS_VK_MIRROR_LEVER) {
        (void)snprintf(findings->reason, sizeof findings->reason, "%.*s", (int)sizeof findings->reason - 1,
                       backend->reasons[lever]);
        return;
    }
    const char *refusal = rows[lever].cooperative ? matrices_of(backend, lever)->refusal : NULL;
    if (hs_vk_shaders[rows[lever].shader].count == 0) {
        findings->state = HSTEP_LEVER_NOT_BUILT;
        (void)snprintf(findings->reason, sizeof findings->reason,
                       "the glslang that built this version does not know %s", rows[lever].extension);
    } else if (refusal) {
        findings->state = HSTEP_LEVER_ABSENT;
        (void)snprintf(findings->reason, sizeof findings->reason, "the device does not offer it: %s", refusal);
    } else {
        identify(backend, lever, findings);
    }
}

void hs_vk_lever_set(hs_backend *backend, size_t lever, hstep_lever_state state, const char *reason) {
    set((hs_vk_backend *)backend, lever, state, reason);
}

/* Whether it is a product such as the gate judges: whole chains, one operand transposed at most. */
static bool is_judged(const hs_call *call) {
    const hs_attributes *a = &call->attributes;
    return call->operation == HS_OP_MATMUL && !a->continues && !a->unfinished &&
           !(a->a_form == HSTEP_TRANSPOSE && a->b_form == HSTEP_TRANSPOSE);
}

static void set_shape(const hs_vk_extras *extras, const hs_vk_matrices *matrices, hs_vk_variant *variant) {
    variant->subgroup = extras->chooses_subgroup ? extras->subgroup : 0;
    variant->m = matrices->m;
    variant->n = matrices->n;
    variant->k = matrices->k;
    variant->down = matrices->down;
    variant->across = matrices->across;
}

bool hs_vk_levers_serve(const hs_vk_backend *backend, const hs_call *call, hs_vk_variant *variant) {
    size_t lever = HS_VK_MIRROR_LEVER + 1;
    while (lever < HS_VK_LEVERS &&
           (backend->levers[lever].state != HSTEP_LEVER_ACTIVE || rows[lever].precision != call->precision))
        lever++;
    if (lever == HS_VK_LEVERS || !is_judged(call))
        return false;
    *variant = hs_vk_variant_of(call, rows[lever].shader);
    variant->options |= call->attributes.sums ? HS_VK_SUMS : 0U;
    if (rows[lever].cooperative)
        set_shape(&backend->device.extras, matrices_of(backend, lever), variant);
    return true;
}
