/* Decoding: rows of keys and values that stay from one run to the next. */
#include "engine/error.h"
#include "engine/graph/graph.h"

static hstep_status append_cache(hstep_graph *graph, const char *name, hstep_value rows, hstep_value *cache,
                                 hstep_error *error) {
    hstep_value places = 0;
    HS_FORWARD(hs_graph_system_value(graph, HS_ROLE_CACHE_ROWS, 0, 0, &places, error));
    hs_value_info info = hs_value_like(hs_graph_value(graph, rows));
    info.role = HS_ROLE_STATE;
    info.dims[0] = (int64_t)(graph->cache_sequences * graph->cache_capacity);
    HS_FORWARD(hs_graph_add_value(graph, name, &info, cache, error));
    const hs_node node = {.operation = HS_OP_STORE_ROWS,
                          .phase = HS_PHASE_FORWARD,
                          .input_count = 2,
                          .output_count = 1,
                          .inputs = {rows, places},
                          .outputs = {*cache}};
    return hs_graph_add_node(graph, name, &node, error);
}

hstep_status hs_graph_keep_rows(hstep_graph *graph, const char *name, hstep_value rows, hstep_value *cache,
                                hstep_error *error) {
    const hs_graph_mark mark = hs_graph_mark_here(graph);
    const hstep_status status = append_cache(graph, name, rows, cache, error);
    if (status != HSTEP_OK)
        hs_graph_rewind(graph, mark);
    return status;
}

static hstep_status append_last_rows(hstep_graph *graph, const char *name, hstep_value x, hstep_value *y,
                                     hstep_error *error) {
    hstep_value last = 0;
    HS_FORWARD(hs_graph_system_value(graph, HS_ROLE_LAST_ROWS, 0, 0, &last, error));
    hs_value_info info = hs_value_like(hs_graph_value(graph, x));
    info.dims[0] = HSTEP_SEQUENCES;
    HS_FORWARD(hs_graph_add_value(graph, name, &info, y, error));
    const hs_node node = {.operation = HS_OP_GATHER,
                          .phase = HS_PHASE_FORWARD,
                          .input_count = 2,
                          .output_count = 1,
                          .inputs = {x, last},
                          .outputs = {*y}};
    return hs_graph_add_node(graph, name, &node, error);
}

hstep_status hs_graph_last_rows(hstep_graph *graph, const char *name, hstep_value x, hstep_value *y,
                                hstep_error *error) {
    const hs_graph_mark mark = hs_graph_mark_here(graph);
    const hstep_status status = append_last_rows(graph, name, x, y, error);
    if (status != HSTEP_OK)
        hs_graph_rewind(graph, mark);
    return status;
}
