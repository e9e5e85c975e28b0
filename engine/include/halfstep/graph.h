/**
 * @file graph.h
 * Level two: a model of one's own, written as a graph of operations on tensors.
 *
 * Intended usage:
 *  1. hstep_graph_create.
 *  2. Declare inputs and parameters, then operations on them. Each returns a value. Names must be unique and are what
 *     records, errors and parameters carry.
 *  3. hstep_graph_set_loss with a value of one element; this also writes the gradients as nodes of the same graph.
 *     Optionally hstep_graph_set_output first, for hstep_model_output.
 *  4. hstep_model_create (model.h) takes the graph over.
 *
 * A dimension is a positive number or one of the symbols below, which a batch gives a value. A failing call leaves the
 * graph as it was. Every function returns HSTEP_ERROR_SHAPE when shapes or element types do not fit,
 * HSTEP_ERROR_ARGUMENT for an unknown value, a bad or repeated name, or a graph that already has its loss, and
 * HSTEP_ERROR_MEMORY.
 */
#ifndef HALFSTEP_GRAPH_H
#define HALFSTEP_GRAPH_H

#include <stddef.h>

#include <halfstep/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Operations on named tensors, until a model takes them over. */
typedef struct hstep_graph hstep_graph;

/** Names a tensor of the graph. 0 is no value. */
typedef uint32_t hstep_value;

/** Most dimensions a tensor may have. */
#define HSTEP_MAX_RANK 4

/** A matrix product of a graph, or attention, whose products share one precision; by the name it was given. */
typedef struct hstep_product {
    char name[96];             /**< Of the operation. */
    hstep_precision precision; /**< Of the product and of its adjoints. */
} hstep_product;

/**
 * Precision by place: products whose names fit the pattern have this precision. In a pattern `*` stands for any
 * characters, dots among them, also for none: "head", "blocks.0.*", "*.attention". Of rules that fit one product the
 * last counts; a rule that fits none is an error.
 */
typedef struct hstep_precision_rule {
    char pattern[96];          /**< A name, or several with `*`. */
    hstep_precision precision; /**< Of products that fit. */
} hstep_precision_rule;

/** Symbolic dimension: sequences * length of the batch. */
#define HSTEP_ROWS (-1)
/** Symbolic dimension: sequences of the batch. */
#define HSTEP_SEQUENCES (-2)
/** Symbolic dimension: length of the batch. */
#define HSTEP_LENGTH (-3)

/** Makes an empty graph, the caller's until a model takes it over. HSTEP_ERROR_MEMORY. */
HSTEP_API hstep_status hstep_graph_create(hstep_graph **graph, hstep_error *error);

/** For a graph that no model took over. NULL is ignored. */
HSTEP_API void hstep_graph_destroy(hstep_graph *graph);

/** Data that each batch brings, HSTEP_DTYPE_F64 or HSTEP_DTYPE_I32. */
HSTEP_API hstep_status hstep_graph_input(hstep_graph *graph, const char *name, hstep_dtype dtype, size_t rank,
                                         const int64_t *dims, hstep_value *value, hstep_error *error);

/** A learned f64 tensor; its dimensions are numbers. Parameters keep the order in which they are declared. */
HSTEP_API hstep_status hstep_graph_parameter(hstep_graph *graph, const char *name, size_t rank, const int64_t *dims,
                                             hstep_value *value, hstep_error *error);

/** What a value is: element type, and dimensions with their symbols. Each pointer but `graph` may be NULL. */
HSTEP_API hstep_status hstep_graph_describe(const hstep_graph *graph, hstep_value value, hstep_dtype *dtype,
                                            size_t *rank, int64_t dims[HSTEP_MAX_RANK], hstep_error *error);

/** y = op(a) op(b) for matrices, under the precision recorded here; adjoints are products under the same one. */
HSTEP_API hstep_status hstep_graph_matmul(hstep_graph *graph, const char *name, hstep_precision precision,
                                          hstep_value a, hstep_transpose a_form, hstep_value b, hstep_transpose b_form,
                                          hstep_value *y, hstep_error *error);

/** y[r, :] = table[indices[r], :]; table [v, d], indices i32 [r]. An index outside [0, v) is HSTEP_ERROR_TOKEN. */
HSTEP_API hstep_status hstep_graph_gather(hstep_graph *graph, const char *name, hstep_value table, hstep_value indices,
                                          hstep_value *y, hstep_error *error);

/** y = x / sqrt(mean(x^2) + epsilon) * gain along the last dimension (Zhang and Sennrich, 2019); x [r, d], gain [d]. */
HSTEP_API hstep_status hstep_graph_rmsnorm(hstep_graph *graph, const char *name, hstep_value x, hstep_value gain,
                                           double epsilon, hstep_value *y, hstep_error *error);

/**
 * Rotary position embedding (Su et al., 2021) in the half-split convention: in every head of even width w the pair
 * (i, i + w/2) turns by position * base^(-2i/w). x [ROWS, heads * w]; positions count from 0 in every sequence.
 */
HSTEP_API hstep_status hstep_graph_rotary(hstep_graph *graph, const char *name, hstep_value x, size_t head_width,
                                          double base, hstep_value *y, hstep_error *error);

/**
 * Causal attention with grouped key and value heads. query [ROWS, heads * w], key and value [ROWS, kv_heads * w],
 * y [ROWS, heads * w]; query head h reads key head h / (heads / kv_heads); scores are multiplied by 1/sqrt(w).
 */
HSTEP_API hstep_status hstep_graph_attention(hstep_graph *graph, const char *name, hstep_precision precision,
                                             hstep_value query, hstep_value key, hstep_value value, size_t heads,
                                             size_t kv_heads, hstep_value *y, hstep_error *error);

/** y = silu(gate) * up (Shazeer, 2020), equal shapes. */
HSTEP_API hstep_status hstep_graph_swiglu(hstep_graph *graph, const char *name, hstep_value gate, hstep_value up,
                                          hstep_value *y, hstep_error *error);

/** y = a + b, equal shapes. */
HSTEP_API hstep_status hstep_graph_add(hstep_graph *graph, const char *name, hstep_value a, hstep_value b,
                                       hstep_value *y, hstep_error *error);

/** y[r, :] = x[r, :] + bias; x [r, d], bias [d]. */
HSTEP_API hstep_status hstep_graph_add_bias(hstep_graph *graph, const char *name, hstep_value x, hstep_value bias,
                                            hstep_value *y, hstep_error *error);

/** y = a * b element by element, equal shapes. */
HSTEP_API hstep_status hstep_graph_multiply(hstep_graph *graph, const char *name, hstep_value a, hstep_value b,
                                            hstep_value *y, hstep_error *error);

/** y = factor * x for a finite constant. */
HSTEP_API hstep_status hstep_graph_scale(hstep_graph *graph, const char *name, hstep_value x, double factor,
                                         hstep_value *y, hstep_error *error);

/** y [1] = the sum of all elements. */
HSTEP_API hstep_status hstep_graph_sum(hstep_graph *graph, const char *name, hstep_value x, hstep_value *y,
                                       hstep_error *error);

/** y [n, m] = x [m, n] turned over. */
HSTEP_API hstep_status hstep_graph_transpose(hstep_graph *graph, const char *name, hstep_value x, hstep_value *y,
                                             hstep_error *error);

/** Softmax along the last dimension of x [r, d]. */
HSTEP_API hstep_status hstep_graph_softmax(hstep_graph *graph, const char *name, hstep_value x, hstep_value *y,
                                           hstep_error *error);

/** Natural logarithm, element by element. */
HSTEP_API hstep_status hstep_graph_log(hstep_graph *graph, const char *name, hstep_value x, hstep_value *y,
                                       hstep_error *error);

/** y = x / (1 + exp(-x)), element by element. */
HSTEP_API hstep_status hstep_graph_silu(hstep_graph *graph, const char *name, hstep_value x, hstep_value *y,
                                        hstep_error *error);

/**
 * loss [1] = sum over the rows of log(sum(exp(logits))) - logits[target]; logits [r, v], targets i32 [r] in [-1, v),
 * where -1 leaves the row out. As a graph's loss it is divided by N, the number of other targets in the window.
 */
HSTEP_API hstep_status hstep_graph_cross_entropy(hstep_graph *graph, const char *name, hstep_value logits,
                                                 hstep_value targets, hstep_value *loss, hstep_error *error);

/**
 * Operations declared between these two form a block, such as a layer. A trainer may recompute the inner values of
 * blocks for the backward pass (hstep_trainer_config.recompute): only what is read outside its block is then kept.
 * @return HSTEP_ERROR_ARGUMENT where a block is open already, or none is.
 */
HSTEP_API hstep_status hstep_graph_begin_block(hstep_graph *graph, hstep_error *error);

/** Ends the block that hstep_graph_begin_block began. */
HSTEP_API hstep_status hstep_graph_end_block(hstep_graph *graph, hstep_error *error);

/**
 * Gives every product declared so far whose name fits the pattern of hstep_precision_rule this precision in place of
 * the one it was declared with. Before hstep_graph_set_loss, so that adjoints follow.
 * @return HSTEP_ERROR_ARGUMENT, with the names there are, where none fits.
 */
HSTEP_API hstep_status hstep_graph_set_precision(hstep_graph *graph, const char *pattern, hstep_precision precision,
                                                 hstep_error *error);

/**
 * The products in their order: at most `room` of them go to `products`, which may be NULL with room 0, and *count tells
 * how many there are.
 */
HSTEP_API hstep_status hstep_graph_products(const hstep_graph *graph, hstep_product *products, size_t room,
                                            size_t *count, hstep_error *error);

/** The value that hstep_model_output returns. */
HSTEP_API hstep_status hstep_graph_set_output(hstep_graph *graph, hstep_value value, hstep_error *error);

/** Ends the graph: the loss, a value of one element, and with it the gradient of every parameter it depends on. */
HSTEP_API hstep_status hstep_graph_set_loss(hstep_graph *graph, hstep_value loss, hstep_error *error);

#ifdef __cplusplus
}
#endif
#endif
