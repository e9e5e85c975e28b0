#include "engine/graph/graph.h"

#include <stdlib.h>
#include <string.h>

#include "engine/error.h"

hstep_status hstep_graph_create(hstep_graph **graph, hstep_error *error) {
    HS_RETURN_IF(graph == NULL, error, HSTEP_ERROR_ARGUMENT, "hstep_graph_create: no place for the graph");
    hstep_graph *made = calloc(1, sizeof *made);
    if (made == NULL)
        return hs_fail_memory(error, "a graph");
    *graph = made;
    return HSTEP_OK;
}

hs_graph_mark hs_graph_mark_here(const hstep_graph *graph) {
    return (hs_graph_mark){.values = graph->value_count, .nodes = graph->node_count};
}

void hs_graph_rewind(hstep_graph *graph, hs_graph_mark mark) {
    while (graph->value_count > mark.values)
        free(graph->values[--graph->value_count].name);
    while (graph->node_count > mark.nodes)
        free(graph->nodes[--graph->node_count].name);
    if (graph->seed > mark.values)
        graph->seed = 0;
}

void hstep_graph_destroy(hstep_graph *graph) {
    if (graph == NULL)
        return;
    hs_graph_rewind(graph, (hs_graph_mark){0});
    free(graph->values);
    free(graph->nodes);
    free(graph);
}

/* Makes room for one more element of an array that doubles. */
static bool make_room(void **array, size_t count, size_t *room, size_t element) {
    if (count < *room)
        return true;
    const size_t wanted = *room == 0 ? 32 : 2 * *room;
    void *moved = realloc(*array, wanted * element);
    if (moved == NULL)
        return false;
    *array = moved;
    *room = wanted;
    return true;
}

static char *copy_name(const char *name) {
    const size_t bytes = strlen(name) + 1;
    char *copy = malloc(bytes);
    if (copy != NULL)
        memcpy(copy, name, bytes);
    return copy;
}

hstep_status hs_graph_add_value(hstep_graph *graph, const char *name, const hs_value_info *info, hstep_value *value,
                                hstep_error *error) {
    char *copy = copy_name(name);
    if (copy == NULL ||
        !make_room((void **)&graph->values, graph->value_count, &graph->value_room, sizeof *graph->values)) {
        free(copy);
        return hs_fail_memory(error, "a graph");
    }
    hs_value_info *stored = &graph->values[graph->value_count++];
    *stored = *info;
    stored->name = copy;
    *value = (hstep_value)graph->value_count;
    return HSTEP_OK;
}

hstep_status hs_graph_add_node(hstep_graph *graph, const char *name, const hs_node *node, hstep_error *error) {
    char *copy = copy_name(name);
    if (copy == NULL ||
        !make_room((void **)&graph->nodes, graph->node_count, &graph->node_room, sizeof *graph->nodes)) {
        free(copy);
        return hs_fail_memory(error, "a graph");
    }
    hs_node *stored = &graph->nodes[graph->node_count++];
    *stored = *node;
    stored->name = copy;
    return HSTEP_OK;
}

hs_value_info hs_value_like(const hs_value_info *like) {
    hs_value_info info = {.role = HS_ROLE_COMPUTED, .dtype = HSTEP_DTYPE_F64, .rank = like->rank};
    memcpy(info.dims, like->dims, sizeof info.dims);
    return info;
}

hstep_status hs_graph_copy_values(const hstep_graph *from, hstep_graph *to, hstep_error *error) {
    for (size_t v = 0; v < from->value_count; v++) {
        hstep_value copy = 0;
        HS_FORWARD(hs_graph_add_value(to, from->values[v].name, &from->values[v], &copy, error));
    }
    to->forward_count = from->forward_count;
    to->seed = from->seed;
    to->loss = from->loss;
    to->output = from->output;
    return HSTEP_OK;
}

static hs_value_info system_value(const hstep_graph *graph, hs_role role, double rotary_base, size_t head_width) {
    hs_value_info info = {.role = role, .dtype = HSTEP_DTYPE_F64, .rank = 1, .dims = {1}};
    if (role == HS_ROLE_POSITIONS || role == HS_ROLE_CACHE_ROWS || role == HS_ROLE_LAST_ROWS) {
        info.dtype = HSTEP_DTYPE_I32;
        info.dims[0] = role == HS_ROLE_LAST_ROWS ? HSTEP_SEQUENCES : HSTEP_ROWS;
    } else if (role != HS_ROLE_SEED) {
        info.rank = 2;
        info.dims[0] = graph->cache_capacity != 0 ? (int64_t)graph->cache_capacity : HSTEP_LENGTH;
        info.dims[1] = (int64_t)(head_width / 2);
        info.rotary_base = rotary_base;
        info.head_width = head_width;
    }
    return info;
}

hstep_status hs_graph_system_value(hstep_graph *graph, hs_role role, double rotary_base, size_t head_width,
                                   hstep_value *value, hstep_error *error) {
    for (size_t i = 0; i < graph->value_count; i++) {
        const hs_value_info *info = &graph->values[i];
        if (info->role == role && info->head_width == head_width && !(info->rotary_base < rotary_base) &&
            !(info->rotary_base > rotary_base)) {
            *value = (hstep_value)(i + 1);
            return HSTEP_OK;
        }
    }
    static const char *const names[] = {
        [HS_ROLE_POSITIONS] = "(positions)",     [HS_ROLE_ROTARY_COSINE] = "(rotary cosine)",
        [HS_ROLE_ROTARY_SINE] = "(rotary sine)", [HS_ROLE_SEED] = "(seed)",
        [HS_ROLE_CACHE_ROWS] = "(cache rows)",   [HS_ROLE_LAST_ROWS] = "(last rows)",
    };
    const hs_value_info info = system_value(graph, role, rotary_base, head_width);
    HS_FORWARD(hs_graph_add_value(graph, names[role], &info, value, error));
    if (role == HS_ROLE_SEED)
        graph->seed = *value;
    return HSTEP_OK;
}

void hs_graph_mark_uses(hstep_graph *graph) {
    if (graph->loss != 0)
        hs_graph_value(graph, graph->loss)->behind_loss = true;
    if (graph->output != 0)
        hs_graph_value(graph, graph->output)->behind_output = true;
    for (size_t n = graph->loss != 0 ? graph->forward_count : graph->node_count; n-- > 0;) {
        const hs_node *node = &graph->nodes[n];
        const hs_value_info *result = hs_graph_value(graph, node->outputs[0]);
        for (uint32_t i = 0; i < node->input_count; i++) {
            hs_value_info *operand = hs_graph_value(graph, node->inputs[i]);
            operand->behind_loss |= result->behind_loss;
            operand->behind_output |= result->behind_output;
        }
    }
}

size_t hs_graph_parameter_count(const hstep_graph *graph) {
    size_t count = 0;
    for (size_t i = 0; i < graph->value_count; i++)
        count += graph->values[i].role == HS_ROLE_PARAMETER;
    return count;
}

size_t hs_graph_parameter_index(const hstep_graph *graph, hstep_value parameter) {
    size_t index = 0;
    for (size_t i = 0; i + 1 < parameter; i++)
        index += graph->values[i].role == HS_ROLE_PARAMETER;
    return index;
}

hstep_value hs_graph_parameter_value(const hstep_graph *graph, size_t index) {
    for (size_t i = 0; i < graph->value_count; i++) {
        if (graph->values[i].role == HS_ROLE_PARAMETER && index-- == 0)
            return (hstep_value)(i + 1);
    }
    return 0;
}

hstep_status hstep_graph_describe(const hstep_graph *graph, hstep_value value, hstep_dtype *dtype, size_t *rank,
                                  int64_t dims[HSTEP_MAX_RANK], hstep_error *error) {
    HS_RETURN_IF(graph == NULL, error, HSTEP_ERROR_ARGUMENT, "no graph was given");
    HS_RETURN_IF(value == 0 || value > graph->value_count, error, HSTEP_ERROR_ARGUMENT,
                 "the graph has no value %u; it has %zu", (unsigned)value, graph->value_count);
    const hs_value_info *info = hs_graph_value(graph, value);
    if (dtype != NULL)
        *dtype = info->dtype;
    if (rank != NULL)
        *rank = info->rank;
    for (uint32_t i = 0; i < HSTEP_MAX_RANK && dims != NULL; i++)
        dims[i] = i < info->rank ? info->dims[i] : 0;
    return HSTEP_OK;
}
