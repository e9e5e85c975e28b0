/*
 * The head and the loss for some rows at a time. Over a large vocabulary the logits of all rows are the largest tensor
 * of a step. Their rows know nothing of each other, and the scale that backward starts from is known beforehand: so the
 * rows' losses, their adjoints and what is made of those follow each other before the next rows come.
 */
#include "engine/error.h"
#include "engine/graph/graph.h"

enum { NONE = -1 };

/* The input of a node that is that value, if it is one alone, else NONE. */
static int input_that_is(const hs_node *node, hstep_value value) {
    int found = NONE;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] != value)
            continue;
        if (found != NONE)
            return NONE;
        found = (int)i;
    }
    return found;
}

static size_t count_readers(const hstep_graph *graph, hstep_value value) {
    size_t count = 0;
    for (size_t n = 0; n < graph->node_count; n++)
        for (uint32_t i = 0; i < graph->nodes[n].input_count; i++)
            count += graph->nodes[n].inputs[i] == value;
    return count;
}

/* The first node of that operation with `value` among its outputs or inputs; graph->node_count for none. */
static size_t find_node(const hstep_graph *graph, hs_operation operation, hstep_value value, bool makes) {
    size_t n = 0;
    for (; n < graph->node_count; n++) {
        const hs_node *node = &graph->nodes[n];
        if (node->operation == operation && (makes ? node->outputs[0] == value : input_that_is(node, value) != NONE))
            break;
    }
    return n;
}

/* Whether a node is the product that gives the adjoint of the head's rows. */
static bool gives_rows(const hs_node *node, const hs_node *product, hstep_value adjoint) {
    return node->operation == HS_OP_MATMUL && node->inputs[0] == adjoint && node->inputs[1] == product->inputs[1] &&
           node->attributes.a_form == HSTEP_NO_TRANSPOSE;
}

/* Whether it is the one whose chains run along the rows: the adjoint of the head's weights. */
static bool sums_rows(const hs_node *node, const hs_node *product, hstep_value adjoint) {
    const int i = input_that_is(node, adjoint);
    return node->operation == HS_OP_MATMUL && i != NONE && node->inputs[1 - i] == product->inputs[0] &&
           node->attributes.a_form == HSTEP_TRANSPOSE && node->attributes.b_form == HSTEP_NO_TRANSPOSE;
}

/* The two nodes that read the logits' adjoint must be the adjoints of the product. */
static bool find_products(const hstep_graph *graph, hs_head *head) {
    const hs_node *product = &graph->nodes[head->product];
    const hstep_value adjoint = graph->nodes[head->adjoint].outputs[0];
    head->weights = head->input = graph->node_count;
    for (size_t n = 0; n < graph->node_count; n++) {
        if (sums_rows(&graph->nodes[n], product, adjoint))
            head->weights = n;
        else if (gives_rows(&graph->nodes[n], product, adjoint))
            head->input = n;
    }
    return head->weights < graph->node_count && head->input < graph->node_count && count_readers(graph, adjoint) == 2;
}

bool hs_graph_find_head(const hstep_graph *graph, hs_head *head) {
    const size_t none = graph->node_count;
    head->loss = graph->loss != 0 ? find_node(graph, HS_OP_CROSS_ENTROPY, graph->loss, true) : none;
    if (head->loss == none)
        return false;
    const hstep_value logits = graph->nodes[head->loss].inputs[0];
    head->product = find_node(graph, HS_OP_MATMUL, logits, true);
    head->adjoint = find_node(graph, HS_OP_CROSS_ENTROPY_BACKWARD, logits, false);
    if (head->product == none || head->adjoint == none || count_readers(graph, logits) != 2)
        return false;
    const hs_node *product = &graph->nodes[head->product];
    return product->phase == HS_PHASE_FORWARD && product->attributes.a_form == HSTEP_NO_TRANSPOSE &&
           product->inputs[0] != product->inputs[1] && hs_graph_value(graph, logits)->dims[0] == HSTEP_ROWS &&
           graph->nodes[head->adjoint].inputs[0] == graph->seed && find_products(graph, head);
}

/* ---- Dividing ---- */

typedef struct division {
    const hstep_graph *from;
    hstep_graph *to;
    const hs_head *head;
    size_t first, rows; /* of the part at hand */
    bool last;
    hstep_value losses, logits, adjoint;
    hstep_error *error;
} division;

static hstep_status append(division *d, size_t origin, hs_node node) {
    node.origin = origin + 1;
    return hs_graph_add_node(d->to, d->from->nodes[origin].name, &node, d->error);
}

/* A node of the head for the rows at hand. */
static hs_node part_of(const division *d, size_t n, uint32_t inputs, uint32_t outputs) {
    hs_node node = d->from->nodes[n];
    node.cut = (hs_cut){d->first, d->rows, inputs, outputs};
    return node;
}

/* Some rows of the logits, or of their adjoint, as a value by itself. */
static hstep_status add_rows(division *d, hstep_value whole, hstep_value *rows) {
    hs_value_info info = hs_value_like(hs_graph_value(d->from, whole));
    info.dims[0] = (int64_t)d->rows;
    info.whole = whole;
    return hs_graph_add_value(d->to, hs_graph_value(d->from, whole)->name, &info, rows, d->error);
}

static hstep_status append_forward(division *d) {
    const hs_head *head = d->head;
    hs_node product = part_of(d, head->product, 1, 0), loss = part_of(d, head->loss, 2, 1);
    HS_FORWARD(add_rows(d, product.outputs[0], &d->logits));
    product.outputs[0] = loss.inputs[0] = d->logits;
    loss.outputs[0] = d->losses;
    loss.attributes.unfinished = true;
    HS_FORWARD(append(d, head->product, product));
    HS_FORWARD(append(d, head->loss, loss));
    if (!d->last)
        return HSTEP_OK;
    return append(d, head->loss,
                  (hs_node){.operation = HS_OP_SUM,
                            .phase = HS_PHASE_FORWARD,
                            .input_count = 1,
                            .inputs = {d->losses},
                            .output_count = 1,
                            .outputs = {d->from->loss}});
}

static hstep_status append_backward(division *d) {
    const hs_head *head = d->head;
    hs_node adjoint = part_of(d, head->adjoint, 4, 0);
    const hstep_value whole = adjoint.outputs[0];
    HS_FORWARD(add_rows(d, whole, &d->adjoint));
    adjoint.inputs[1] = d->logits;
    adjoint.outputs[0] = d->adjoint;
    HS_FORWARD(append(d, head->adjoint, adjoint));
    const int of_weights = input_that_is(&d->from->nodes[head->weights], whole);
    hs_node weights = part_of(d, head->weights, 1U << (1 - of_weights), 0), input = part_of(d, head->input, 0, 1);
    weights.inputs[of_weights] = input.inputs[0] = d->adjoint;
    weights.attributes.continues = d->first > 0;
    weights.attributes.unfinished = !d->last;
    const bool weights_first = head->weights < head->input;
    HS_FORWARD(append(d, weights_first ? head->weights : head->input, weights_first ? weights : input));
    return append(d, weights_first ? head->input : head->weights, weights_first ? input : weights);
}

static hstep_status append_parts(division *d, size_t rows, size_t most) {
    const hs_value_info losses = {.role = HS_ROLE_COMPUTED, .dtype = HSTEP_DTYPE_F64, .rank = 1, .dims = {HSTEP_ROWS}};
    const char *name = d->from->nodes[d->head->loss].name;
    HS_FORWARD(hs_graph_add_value(d->to, name, &losses, &d->losses, d->error));
    for (d->first = 0; d->first < rows; d->first += d->rows) {
        d->rows = rows - d->first < most ? rows - d->first : most;
        d->last = d->first + d->rows == rows;
        HS_FORWARD(append_forward(d));
        HS_FORWARD(append_backward(d));
    }
    return HSTEP_OK;
}

static hstep_status divide(division *d, size_t rows, size_t most) {
    const hs_head *head = d->head;
    HS_FORWARD(hs_graph_copy_values(d->from, d->to, d->error));
    for (size_t n = 0; n < d->from->node_count; n++) {
        if (n == head->loss)
            HS_FORWARD(append_parts(d, rows, most));
        else if (n != head->product && n != head->adjoint && n != head->weights && n != head->input)
            HS_FORWARD(append(d, n, d->from->nodes[n]));
    }
    return HSTEP_OK;
}

hstep_status hs_graph_divide_head(const hstep_graph *graph, const hs_head *head, size_t rows, size_t most,
                                  hstep_graph **result, hstep_error *error) {
    division d = {.from = graph, .head = head, .error = error};
    HS_FORWARD(hstep_graph_create(&d.to, error));
    const hstep_status status = divide(&d, rows, most);
    if (status != HSTEP_OK) {
        hstep_graph_destroy(d.to);
        return status;
    }
    *result = d.to;
    return HSTEP_OK;
}
