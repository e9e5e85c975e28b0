/*
 * Trading time for memory: a graph whose backward pass computes a block's inner values again, just before it reads
 * them, so that nothing but what passes from block to block lives from the forward pass on (Chen et al., 2016). The
 * same operations on the same operands give the same bits.
 */
#include <stdlib.h>

#include "engine/error.h"
#include "engine/graph/graph.h"

typedef struct recomputation {
    const hstep_graph *from;
    hstep_graph *to;
    const hs_node **producer; /* by value - 1: the forward node, or NULL */
    bool *lives;              /* by value - 1: kept from the forward pass on */
    hstep_value *again;       /* by value - 1: its second life in the new graph, 0 for none yet */
    bool *wanted;             /* by value - 1: to be computed again along with others of its block */
    hstep_error *error;
} recomputation;

static size_t block_of(const recomputation *r, hstep_value value) {
    const hs_node *node = r->producer[value - 1];
    return node != NULL ? node->block : 0;
}

/* What leaves its block in the forward pass lives on, and so does what no block holds. */
static void find_lives(recomputation *r) {
    const hstep_graph *graph = r->from;
    for (size_t n = 0; n < graph->forward_count; n++)
        for (uint32_t i = 0; i < graph->nodes[n].output_count; i++)
            r->producer[graph->nodes[n].outputs[i] - 1] = &graph->nodes[n];
    for (size_t v = 0; v < graph->value_count; v++)
        r->lives[v] = block_of(r, (hstep_value)(v + 1)) == 0;
    for (size_t n = 0; n < graph->forward_count; n++) {
        const hs_node *node = &graph->nodes[n];
        for (uint32_t i = 0; i < node->input_count; i++)
            if (block_of(r, node->inputs[i]) != node->block)
                r->lives[node->inputs[i] - 1] = true;
    }
    if (graph->output != 0)
        r->lives[graph->output - 1] = true;
    r->lives[graph->loss - 1] = true;
}

/* Appends a copy of a node that reads the second lives of what has one. */
static hstep_status copy_node(recomputation *r, const hs_node *node) {
    hs_node copy = *node;
    for (uint32_t i = 0; i < copy.input_count && copy.phase == HS_PHASE_BACKWARD; i++)
        if (r->again[copy.inputs[i] - 1] != 0)
            copy.inputs[i] = r->again[copy.inputs[i] - 1];
    return hs_graph_add_node(r->to, node->name, &copy, r->error);
}

/* A forward node once more, with outputs of its own. It belongs to the backward pass now. */
static hstep_status repeat_node(recomputation *r, const hs_node *node) {
    hs_node copy = *node;
    copy.phase = HS_PHASE_BACKWARD;
    for (uint32_t i = 0; i < node->output_count; i++) {
        const hs_value_info *info = hs_graph_value(r->from, node->outputs[i]);
        hs_value_info second = hs_value_like(info);
        HS_FORWARD(hs_graph_add_value(r->to, info->name, &second, &copy.outputs[i], r->error));
    }
    HS_FORWARD(copy_node(r, &copy));
    for (uint32_t i = 0; i < node->output_count; i++)
        r->again[node->outputs[i] - 1] = copy.outputs[i];
    return HSTEP_OK;
}

static bool is_missing(const recomputation *r, hstep_value value) {
    return !r->lives[value - 1] && r->again[value - 1] == 0;
}

/* Everything of one block that backward nodes read, and what that is made of. */
static void want_block(recomputation *r, size_t block) {
    const hstep_graph *graph = r->from;
    for (size_t n = graph->node_count; n-- > 0;) {
        const hs_node *node = &graph->nodes[n];
        bool reads = node->phase == HS_PHASE_BACKWARD;
        for (uint32_t i = 0; i < node->output_count; i++)
            reads = reads || r->wanted[node->outputs[i] - 1];
        for (uint32_t i = 0; i < node->input_count && reads; i++)
            if (block_of(r, node->inputs[i]) == block && is_missing(r, node->inputs[i]))
                r->wanted[node->inputs[i] - 1] = true;
    }
}

static hstep_status repeat_block(recomputation *r, size_t block) {
    want_block(r, block);
    for (size_t n = 0; n < r->from->forward_count; n++) {
        const hs_node *node = &r->from->nodes[n];
        bool wanted = false;
        for (uint32_t i = 0; i < node->output_count; i++)
            wanted = wanted || (node->block == block && r->wanted[node->outputs[i] - 1]);
        if (wanted)
            HS_FORWARD(repeat_node(r, node));
    }
    return HSTEP_OK;
}

static hstep_status transform(recomputation *r) {
    find_lives(r);
    HS_FORWARD(hs_graph_copy_values(r->from, r->to, r->error));
    for (size_t n = 0; n < r->from->node_count; n++) {
        const hs_node *node = &r->from->nodes[n];
        for (uint32_t i = 0; i < node->input_count && node->phase == HS_PHASE_BACKWARD; i++)
            if (is_missing(r, node->inputs[i]) && block_of(r, node->inputs[i]) != 0)
                HS_FORWARD(repeat_block(r, block_of(r, node->inputs[i])));
        HS_FORWARD(copy_node(r, node));
    }
    return HSTEP_OK;
}

hstep_status hs_graph_recompute(const hstep_graph *graph, hstep_graph **result, hstep_error *error) {
    const size_t count = graph->value_count + 1;
    recomputation r = {.from = graph,
                       .producer = calloc(count, sizeof *r.producer),
                       .lives = calloc(count, sizeof *r.lives),
                       .again = calloc(count, sizeof *r.again),
                       .wanted = calloc(count, sizeof *r.wanted),
                       .error = error};
    hstep_status status = hstep_graph_create(&r.to, error);
    if (status == HSTEP_OK && (r.producer == NULL || r.lives == NULL || r.again == NULL || r.wanted == NULL))
        status = hs_fail_memory(error, "a graph");
    if (status == HSTEP_OK)
        status = transform(&r);
    free(r.producer);
    free(r.lives);
    free(r.again);
    free(r.wanted);
    if (status != HSTEP_OK) {
        hstep_graph_destroy(r.to);
        return status;
    }
    *result = r.to;
    return HSTEP_OK;
}
