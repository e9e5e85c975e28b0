/* What there is to measure in a graph: every operand of every product in a half format, once for each operation. */
#include <stdlib.h>
#include <string.h>

#include "engine/error.h"
#include "engine/transaction/trace/trace.h"

static bool is_rounding(const hs_node *node) {
    return hs_has_products(node->operation) && node->precision != HSTEP_PRECISION_F64;
}

static bool is_operand(const hstep_graph *graph, const hs_node *node, uint32_t input) {
    return is_rounding(node) && hs_graph_value(graph, node->inputs[input])->dtype == HSTEP_DTYPE_F64;
}

static size_t most_operands(const hstep_graph *graph) {
    size_t count = 0;
    for (size_t n = 0; n < graph->node_count; n++)
        for (uint32_t i = 0; i < graph->nodes[n].input_count; i++)
            count += is_operand(graph, &graph->nodes[n], i);
    return count;
}

/* ---- What is measured ---- */

static void add_weights(const hstep_model *model, size_t parameter, hs_trace_rows *rows) {
    const hstep_graph *graph = model->graph;
    bool seen[HSTEP_PRECISION_BF16 + 1] = {false};
    for (size_t n = 0; n < graph->node_count; n++)
        for (uint32_t i = 0; i < graph->nodes[n].input_count; i++)
            if (graph->nodes[n].inputs[i] == model->parameter_values[parameter] &&
                is_operand(graph, &graph->nodes[n], i))
                seen[graph->nodes[n].precision] = true;
    seen[HSTEP_PRECISION_F64] = !seen[HSTEP_PRECISION_FP16] && !seen[HSTEP_PRECISION_BF16];
    for (hstep_precision p = HSTEP_PRECISION_F64; p <= HSTEP_PRECISION_BF16; p++)
        if (seen[p])
            rows->weights[rows->weight_count++] = (hs_traced_weight){parameter, p};
}

static size_t find_weight(const hs_trace_rows *rows, size_t parameter, hstep_precision precision) {
    size_t i = 0;
    while (rows->weights[i].parameter != parameter || rows->weights[i].precision != precision)
        i++;
    return i;
}

static size_t find_or_add_measured(hs_trace_rows *rows, hstep_value value, hstep_precision precision) {
    size_t i = 0;
    while (i < rows->measured_count && (rows->measured[i].value != value || rows->measured[i].precision != precision))
        i++;
    if (i == rows->measured_count)
        rows->measured[rows->measured_count++] = (hs_measured){value, precision};
    return i;
}

/* ---- Rows ---- */

/* Behind the last row of the operation; of a new one, at the end. SIZE_MAX where the operand has its row. */
static size_t place_of_row(const hs_trace_rows *rows, const hs_node *node, hs_trace_source source) {
    size_t place = rows->operand_count;
    for (size_t i = 0; i < rows->operand_count; i++)
        if (strcmp(rows->operands[i].operation, node->name) == 0) {
            if (rows->sources[i].is_weight == source.is_weight && rows->sources[i].place == source.place)
                return SIZE_MAX;
            place = i + 1;
        }
    return place;
}

static void insert_row(hs_trace_rows *rows, size_t place, const hstep_operand_trace *row, hs_trace_source source) {
    const size_t behind = rows->operand_count++ - place;
    memmove(&rows->operands[place + 1], &rows->operands[place], behind * sizeof *row);
    memmove(&rows->sources[place + 1], &rows->sources[place], behind * sizeof source);
    rows->operands[place] = *row;
    rows->sources[place] = source;
}

static void add_row(const hstep_model *model, const hs_node *node, hstep_value value, hs_trace_rows *rows) {
    const hs_value_info *info = hs_graph_value(model->graph, value);
    const hstep_operand_trace row = {.operation = node->name,
                                     .tensor = info->name,
                                     .is_adjoint = hs_graph_is_adjoint(model->graph, value),
                                     .precision = node->precision};
    hs_trace_source source = {.is_weight = info->role == HS_ROLE_PARAMETER};
    source.place = source.is_weight ? find_weight(rows, hs_graph_parameter_index(model->graph, value), node->precision)
                                    : find_or_add_measured(rows, value, node->precision);
    const size_t place = place_of_row(rows, node, source);
    if (place != SIZE_MAX)
        insert_row(rows, place, &row, source);
}

static void fill(const hstep_model *model, hs_trace_rows *rows) {
    const hstep_graph *graph = model->graph;
    for (size_t i = 0; i < model->parameter_count; i++) {
        rows->tensors[i].name = hs_graph_value(graph, model->parameter_values[i])->name;
        add_weights(model, i, rows);
    }
    for (size_t n = 0; n < graph->node_count; n++)
        for (uint32_t i = 0; i < graph->nodes[n].input_count; i++)
            if (is_operand(graph, &graph->nodes[n], i))
                add_row(model, &graph->nodes[n], graph->nodes[n].inputs[i], rows);
}

hstep_status hs_trace_rows_make(const hstep_model *model, hs_trace_rows *rows, hstep_error *error) {
    const size_t most = most_operands(model->graph) + 1;
    *rows = (hs_trace_rows){.weights = calloc(model->parameter_count * HSTEP_PRECISION_BF16 + 1, sizeof *rows->weights),
                            .measured = calloc(most, sizeof *rows->measured),
                            .operands = calloc(most, sizeof *rows->operands),
                            .sources = calloc(most, sizeof *rows->sources),
                            .tensors = calloc(model->parameter_count + 1, sizeof *rows->tensors)};
    if (rows->weights == NULL || rows->measured == NULL || rows->operands == NULL || rows->sources == NULL ||
        rows->tensors == NULL) {
        hs_trace_rows_free(rows);
        return hs_fail_memory(error, "statistics");
    }
    fill(model, rows);
    return HSTEP_OK;
}

void hs_trace_rows_free(hs_trace_rows *rows) {
    free(rows->weights);
    free(rows->measured);
    free(rows->operands);
    free(rows->sources);
    free(rows->tensors);
    *rows = (hs_trace_rows){0};
}
