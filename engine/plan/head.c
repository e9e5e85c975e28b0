/*
 * Whether a head is divided (engine/graph/head.c), and into what. By itself where the logits of all rows would take
 * more than PART_BYTES: then into parts of about that size, so large that the sums of the weights' gradient, which
 * every part reads and writes, cost little. The size of parts knows nothing of the batch, so that a smaller one takes
 * no more memory than what was made ready for a larger one.
 */
#include "engine/error.h"
#include "engine/plan/plan.h"

#define PART_BYTES ((size_t)128 << 20)

/* Every part is five calls of a program. */
enum { MOST_PARTS = 1024 };

/* Parts that are chosen here have multiples of so many rows. Instructions that take up to so many steps of a chain at
 * once (cpu/gated) then give the weights' gradient the sums that one product over all rows has. */
enum { ROW_UNIT = 32 };

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

/* Bytes of a logit: those of the half format where the backend stores it so (engine/plan/compact.c). */
static size_t logit_bytes(const hs_backend *backend, const hs_node *product) {
    const hs_view view = {.dtype = hs_operand_dtype(product->precision)};
    const hs_call calls[] = {
        {.operation = HS_OP_MATMUL, .precision = product->precision, .output_count = 1, .outputs = {view}},
        {.operation = HS_OP_CROSS_ENTROPY, .input_count = 1, .inputs = {view}}};
    const bool compact = backend->api->supports(backend, &calls[0]) && backend->api->supports(backend, &calls[1]);
    return hs_dtype_size(compact ? view.dtype : HSTEP_DTYPE_F64);
}

static size_t rows_of_part_bytes(const hs_plan *plan, const hs_node *product) {
    const size_t columns = (size_t)hs_graph_value(plan->request.graph, product->outputs[0])->dims[1];
    const size_t rows = PART_BYTES / logit_bytes(plan->request.backend, product) / columns;
    return rows < ROW_UNIT ? rows : rows - rows % ROW_UNIT;
}

static size_t rows_at_a_time(const hs_plan *plan, const hs_node *product, size_t rows) {
    const size_t wanted = plan->request.head_rows != 0 ? plan->request.head_rows : rows_of_part_bytes(plan, product);
    return larger(wanted, (rows + MOST_PARTS - 1) / MOST_PARTS);
}

/* Whether the backend computes what a divided head needs. */
static bool is_supported(const hs_plan *plan, const hs_head *head) {
    const hs_backend *backend = plan->request.backend;
    const hs_node *weights = &plan->request.graph->nodes[head->weights];
    hs_call product = {.operation = HS_OP_MATMUL, .precision = weights->precision, .attributes = weights->attributes};
    const hs_call loss = {.operation = HS_OP_CROSS_ENTROPY, .attributes = {.unfinished = true}};
    product.attributes.continues = product.attributes.unfinished = true;
    return backend->api->supports(backend, &product) && backend->api->supports(backend, &loss);
}

hstep_status hs_plan_divide_head(hs_plan *plan, hstep_error *error) {
    const hstep_graph *graph = plan->request.graph;
    const size_t rows = plan->request.sequences * plan->request.length;
    hs_head head;
    if (plan->request.mode == HS_MODE_OUTPUT || !hs_graph_find_head(graph, &head))
        return HSTEP_OK;
    const size_t most = rows_at_a_time(plan, &graph->nodes[head.product], rows);
    if (most >= rows || !is_supported(plan, &head))
        return HSTEP_OK;
    HS_FORWARD(hs_graph_divide_head(graph, &head, rows, most, &plan->divided, error));
    plan->request.graph = plan->divided;
    return HSTEP_OK;
}
