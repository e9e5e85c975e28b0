/*
 * Places in memory. Values that share bytes (an operation in place of its operand) form one storage; a storage lives
 * from its first write to its last read. Gradients go to the buffers that the request names; all other storages share
 * one arena, largest first, each at the lowest offset where no storage alive at the same time stands.
 */
#include <stdlib.h>

#include "engine/error.h"
#include "engine/plan/plan.h"

/* Devices want offsets that are multiples of up to 256 bytes. */
enum { ALIGNMENT = 256 };

typedef struct storage {
    size_t bytes;
    size_t first, last; /* nodes */
    size_t offset;
    hs_buffer *kept; /* a gradient's buffer, else NULL */
    bool placed;
} storage;

typedef struct placement {
    hs_plan *plan;
    const hstep_graph *graph;
    storage *storages;
    size_t count;
    size_t *of_value;  /* storage of each value, SIZE_MAX for none */
    size_t *last_read; /* last node that reads each value; SIZE_MAX keeps it to the end */
    size_t *order;     /* storages by falling size */
} placement;

static void find_last_reads(placement *p) {
    for (size_t n = 0; n < p->graph->node_count; n++) {
        const hs_node *node = &p->graph->nodes[n];
        for (uint32_t i = 0; i < node->input_count && p->plan->needed[n]; i++)
            p->last_read[node->inputs[i] - 1] = n;
    }
    if (p->graph->output != 0 && p->plan->request.mode == HS_MODE_OUTPUT)
        p->last_read[p->graph->output - 1] = SIZE_MAX;
    if (p->graph->loss != 0)
        p->last_read[p->graph->loss - 1] = SIZE_MAX;
    for (size_t v = 0; v < p->graph->value_count; v++) {
        const hs_value_info *info = &p->graph->values[v];
        if (info->role == HS_ROLE_PARAMETER && info->adjoint != 0)
            p->last_read[info->adjoint - 1] = SIZE_MAX;
    }
}

/* The operand that the node's output may stand in the place of, or 0 (see HS_OPERATIONS). */
static hstep_value in_place_operand(const hs_node *node) {
    if (node->operation == HS_OP_ADD)
        return node->inputs[0];
    if (node->operation == HS_OP_GATHER_BACKWARD && node->input_count == 3)
        return node->inputs[2];
    if (node->operation == HS_OP_CROSS_ENTROPY_BACKWARD)
        return node->inputs[1];
    return 0;
}

static bool reads_once(const hs_node *node, hstep_value value) {
    unsigned reads = 0;
    for (uint32_t i = 0; i < node->input_count; i++)
        reads += node->inputs[i] == value;
    return reads == 1;
}

static void assign_storage(placement *p, size_t n) {
    const hs_node *node = &p->graph->nodes[n];
    for (uint32_t i = 0; i < node->output_count; i++) {
        const size_t v = node->outputs[i] - 1;
        if (p->graph->values[v].role == HS_ROLE_STATE)
            continue;
        if (p->of_value[v] != SIZE_MAX) { /* another part of a value that several nodes make */
            storage *begun = &p->storages[p->of_value[v]];
            begun->last = begun->last > n ? begun->last : n;
            continue;
        }
        const hstep_value operand = in_place_operand(node);
        const bool shared = operand != 0 && reads_once(node, operand) && p->last_read[operand - 1] == n &&
                            p->plan->views[operand - 1].dtype == p->plan->views[v].dtype;
        size_t s = shared ? p->of_value[operand - 1] : SIZE_MAX;
        if (s == SIZE_MAX) {
            s = p->count++;
            p->storages[s] = (storage){.bytes = hs_view_bytes(&p->plan->views[v]), .first = n};
        }
        p->of_value[v] = s;
        p->storages[s].last = p->last_read[v] > n ? p->last_read[v] : n;
    }
}

static void keep_gradients(placement *p) {
    size_t index = 0;
    for (size_t v = 0; v < p->graph->value_count; v++) {
        const hs_value_info *info = &p->graph->values[v];
        if (info->role != HS_ROLE_PARAMETER)
            continue;
        if (info->adjoint != 0 && p->of_value[info->adjoint - 1] != SIZE_MAX)
            p->storages[p->of_value[info->adjoint - 1]].kept = p->plan->request.gradients[index];
        index++;
    }
}

/* Falling size, then order of birth: insertion keeps it stable. */
static void sort_storages(placement *p) {
    for (size_t s = 0; s < p->count; s++) {
        size_t at = s;
        for (; at > 0 && p->storages[p->order[at - 1]].bytes < p->storages[s].bytes; at--)
            p->order[at] = p->order[at - 1];
        p->order[at] = s;
    }
}

static bool alive_together(const storage *a, const storage *b) { return a->first <= b->last && b->first <= a->last; }

/* The lowest offset at which `s` overlaps no placed storage of its lifetime. */
static size_t lowest_offset(const placement *p, const storage *s) {
    size_t offset = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t i = 0; i < p->count; i++) {
            const storage *other = &p->storages[i];
            if (other->placed && alive_together(s, other) && offset < other->offset + other->bytes &&
                other->offset < offset + s->bytes) {
                offset = (other->offset + other->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
                moved = true;
            }
        }
    }
    return offset;
}

void hs_arena_destroy(hs_arena *arena) {
    if (arena->buffer != NULL)
        arena->backend->api->buffer_destroy(arena->backend, arena->buffer);
    *arena = (hs_arena){.generation = arena->generation + 1};
}

/* The arena with room for `bytes`. Its contents are of no use to anyone, so the old one goes first. */
static hstep_status grow(hs_backend *backend, hs_arena *arena, size_t bytes, hstep_error *error) {
    if (arena->buffer != NULL && bytes <= arena->bytes)
        return HSTEP_OK;
    hs_arena_destroy(arena);
    HS_FORWARD(backend->api->buffer_create(backend, bytes, &arena->buffer, error));
    arena->backend = backend;
    arena->bytes = bytes;
    return HSTEP_OK;
}

static hstep_status place_all(placement *p, hstep_error *error) {
    hs_plan *plan = p->plan;
    find_last_reads(p);
    for (size_t v = 0; v < p->graph->value_count; v++)
        p->of_value[v] = SIZE_MAX;
    for (size_t n = 0; n < p->graph->node_count; n++) {
        if (plan->needed[n])
            assign_storage(p, n);
    }
    if (plan->request.mode == HS_MODE_TRAIN)
        keep_gradients(p);
    sort_storages(p);
    size_t arena_bytes = 0;
    for (size_t i = 0; i < p->count; i++) {
        storage *s = &p->storages[p->order[i]];
        if (s->kept != NULL || s->bytes == 0)
            continue;
        s->offset = lowest_offset(p, s);
        s->placed = true;
        if (s->offset + s->bytes > arena_bytes)
            arena_bytes = s->offset + s->bytes;
    }
    hs_arena *arena = plan->request.arena;
    HS_FORWARD(grow(plan->request.backend, arena, arena_bytes, error));
    plan->arena_generation = arena->generation;
    for (size_t v = 0; v < p->graph->value_count; v++) {
        if (p->of_value[v] == SIZE_MAX)
            continue;
        const storage *s = &p->storages[p->of_value[v]];
        plan->views[v].buffer = s->kept != NULL ? s->kept : arena->buffer;
        plan->views[v].offset = s->offset;
    }
    return HSTEP_OK;
}

hstep_status hs_plan_place(hs_plan *plan, hstep_error *error) {
    const size_t values = plan->request.graph->value_count;
    placement p = {.plan = plan,
                   .graph = plan->request.graph,
                   .storages = calloc(values + 1, sizeof(storage)),
                   .of_value = calloc(values + 1, sizeof(size_t)),
                   .last_read = calloc(values + 1, sizeof(size_t)),
                   .order = calloc(values + 1, sizeof(size_t))};
    hstep_status status = HSTEP_OK;
    if (p.storages == NULL || p.of_value == NULL || p.last_read == NULL || p.order == NULL)
        status = hs_fail_memory(error, "a plan");
    else
        status = place_all(&p, error);
    free(p.storages);
    free(p.of_value);
    free(p.last_read);
    free(p.order);
    return status;
}
