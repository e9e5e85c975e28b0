/*
 * The graph: values (tensors with symbolic shapes) and nodes (operations with their recorded precision), in the order
 * in which they were declared. Gradients are nodes of the same graph, written by hs_graph_differentiate.
 */
#ifndef HS_ENGINE_GRAPH_GRAPH_H
#define HS_ENGINE_GRAPH_GRAPH_H

#include <halfstep/graph.h>

#include "engine/backend.h"

typedef enum hs_role {
    HS_ROLE_INPUT,         /* a batch brings it */
    HS_ROLE_PARAMETER,     /* the model keeps it */
    HS_ROLE_POSITIONS,     /* i32 [ROWS]: row mod length, in decoding from the position on that is next */
    HS_ROLE_ROTARY_COSINE, /* [LENGTH or the cache's capacity, head_width / 2], made on the host */
    HS_ROLE_ROTARY_SINE,
    HS_ROLE_SEED,       /* [1], the adjoint that backward starts from */
    HS_ROLE_STATE,      /* rows that outlive a run: a cache. A node stores some of them */
    HS_ROLE_CACHE_ROWS, /* i32 [ROWS]: where the keys and values of a row stand in a cache */
    HS_ROLE_LAST_ROWS,  /* i32 [SEQUENCES]: the row of each sequence's last position */
    HS_ROLE_COMPUTED    /* a node's output */
} hs_role;

typedef struct hs_value_info {
    char *name; /* of an adjoint: the name of the value whose adjoint it is */
    hs_role role;
    hstep_dtype dtype;
    uint32_t rank;
    int64_t dims[HS_MAX_RANK];
    bool needs_gradient; /* a parameter is behind it */
    bool behind_loss;    /* the loss depends on it; known once the graph is marked */
    bool behind_output;  /* the output depends on it; alike */
    hstep_value adjoint; /* its own adjoint, once differentiated; 0 for none */
    hstep_value whole;   /* in a divided graph: the value of which this is some rows; else 0 */
    /* i32 inputs: entries must be in [index_minimum, index_limit); limit 0 where nothing constrains them. */
    int64_t index_minimum, index_limit;
    /* Rotary tables. */
    double rotary_base;
    size_t head_width;
    double init_divisor; /* parameters: what a normal initialisation is divided by; 0 for 1 */
} hs_value_info;

typedef enum hs_phase { HS_PHASE_FORWARD, HS_PHASE_BACKWARD } hs_phase;

/* Rows of some operands of a node, which sees no others of them. */
typedef struct hs_cut {
    size_t first, rows;
    uint32_t inputs, outputs; /* bit i: of operand i */
} hs_cut;

typedef struct hs_node {
    hs_operation operation;
    hs_phase phase;
    char *name; /* of an adjoint's node: the forward operation's name */
    hstep_precision precision;
    hs_attributes attributes; /* `sequences` is filled by the plan */
    size_t block;             /* of forward nodes: what they are recomputed with; 0 for none */
    size_t origin;            /* in a divided graph: the number from 1 of the node that it comes from; elsewhere 0 */
    hs_cut cut;
    uint32_t input_count, output_count;
    hstep_value inputs[HS_MAX_INPUTS];
    hstep_value outputs[HS_MAX_OUTPUTS];
} hs_node;

struct hstep_graph {
    hs_value_info *values; /* value v stands at values[v - 1] */
    size_t value_count, value_room;
    hs_node *nodes;
    size_t node_count, node_room;
    size_t forward_count; /* nodes before the first backward one, once differentiated */
    hstep_value seed, loss, output;
    size_t block, block_count; /* the block that is open, 0 for none; how many there were */
    /* Of a graph for decoding: keys and values of `cache_capacity` positions of each of `cache_sequences` sequences are
       kept, and attention looks at them; else 0. */
    size_t cache_sequences, cache_capacity;
};

static inline hs_value_info *hs_graph_value(const hstep_graph *graph, hstep_value value) {
    return &graph->values[value - 1];
}

/* Adjoints are the values that the loss brought into the graph. Values of other numbers are second lives, which a
 * rewritten copy of the graph appends. */
static inline bool hs_graph_is_adjoint(const hstep_graph *graph, hstep_value value) {
    return value >= graph->seed && (size_t)value <= graph->value_count;
}

/* The number behind a dimension for a batch of that shape. */
static inline size_t hs_resolve_dim(int64_t dim, size_t sequences, size_t length) {
    switch (dim) {
    case HSTEP_ROWS:
        return sequences * length;
    case HSTEP_SEQUENCES:
        return sequences;
    case HSTEP_LENGTH:
        return length;
    default:
        return (size_t)dim;
    }
}

/* How many values and nodes there are: what hs_graph_rewind goes back to when a later step fails. */
typedef struct hs_graph_mark {
    size_t values, nodes;
} hs_graph_mark;

hs_graph_mark hs_graph_mark_here(const hstep_graph *graph);
void hs_graph_rewind(hstep_graph *graph, hs_graph_mark mark);

/* Appends a value; the name is copied. */
hstep_status hs_graph_add_value(hstep_graph *graph, const char *name, const hs_value_info *info, hstep_value *value,
                                hstep_error *error);

/* Appends a copy of *node under that name. On failure the graph is as it was. */
hstep_status hs_graph_add_node(hstep_graph *graph, const char *name, const hs_node *node, hstep_error *error);

/* An f64 value that a node computes, with the shape of `like`. */
hs_value_info hs_value_like(const hs_value_info *like);

/* Gives an empty graph the values and the ends of another one, under the same numbers. */
hstep_status hs_graph_copy_values(const hstep_graph *from, hstep_graph *to, hstep_error *error);

/* Finds a value of that role (and, for rotary tables, base and width) or appends it. */
hstep_status hs_graph_system_value(hstep_graph *graph, hs_role role, double rotary_base, size_t head_width,
                                   hstep_value *value, hstep_error *error);

/* engine/graph/cache.c, for graphs with a cache. */

/* Appends a cache of rows like `rows`, and the node that stores them there. */
hstep_status hs_graph_keep_rows(hstep_graph *graph, const char *name, hstep_value rows, hstep_value *cache,
                                hstep_error *error);

/* Appends a node that takes the row of each sequence's last position out of x[ROWS, d]. */
hstep_status hs_graph_last_rows(hstep_graph *graph, const char *name, hstep_value x, hstep_value *y,
                                hstep_error *error);

/* Writes the adjoint nodes for the loss; on failure the graph is as it was. */
hstep_status hs_graph_differentiate(hstep_graph *graph, hstep_value loss, hstep_error *error);

/* engine/graph/recompute.c: a graph with the same values and gradients that computes the inner values of blocks again
 * for the backward pass. `graph` has its loss; values keep their numbers. */
hstep_status hs_graph_recompute(const hstep_graph *graph, hstep_graph **result, hstep_error *error);

/* engine/graph/precision.c */

/* Refuses a number that is no precision, in the name of an operation. */
hstep_status hs_check_precision(const char *name, hstep_precision precision, hstep_error *error);

/* hstep_graph_set_precision for each rule, in their order. */
hstep_status hs_graph_apply_rules(hstep_graph *graph, const hstep_precision_rule *rules, size_t count,
                                  hstep_error *error);

/* Fills products[room] and sets *count, which may be more. */
void hs_graph_list_products(const hstep_graph *graph, hstep_product *products, size_t room, size_t *count);

/* The precision whose defaults of loss scaling serve: fp16 where any product is in it, else bf16, else f64. */
hstep_precision hs_graph_scaled_precision(const hstep_graph *graph);

/*
 * engine/graph/head.c: a head is a product with weights whose result, the logits, cross-entropy alone reads, and that
 * is the graph's loss.
 */
typedef struct hs_head {
    size_t product, loss, adjoint, weights, input; /* nodes: logits; loss; their adjoint; and what is made of that */
} hs_head;

/* False where the graph has no head that can be divided. */
bool hs_graph_find_head(const hstep_graph *graph, hs_head *head);

/*
 * The same graph for batches of `rows` rows, with the head's nodes for `most` rows at a time (policy, section 2), loss
 * and adjoints of some rows before the next ones: no more logits than that are ever there. The weights' gradient keeps
 * its sums between them. Values keep their numbers; nodes tell where they come from.
 */
hstep_status hs_graph_divide_head(const hstep_graph *graph, const hs_head *head, size_t rows, size_t most,
                                  hstep_graph **result, hstep_error *error);

/* Marks what stands behind the loss and the output; done once for a graph that is complete. */
void hs_graph_mark_uses(hstep_graph *graph);

/* Parameters in order: their number, value number `index` among them, and back. */
size_t hs_graph_parameter_count(const hstep_graph *graph);
hstep_value hs_graph_parameter_value(const hstep_graph *graph, size_t index);
size_t hs_graph_parameter_index(const hstep_graph *graph, hstep_value parameter);

#endif
