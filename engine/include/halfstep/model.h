/**
 * @file model.h
 * A model: a graph, its parameters on a backend, and what it computes without learning.
 */
#ifndef HALFSTEP_MODEL_H
#define HALFSTEP_MODEL_H

#include <stddef.h>

#include <halfstep/context.h>
#include <halfstep/graph.h>
#include <halfstep/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A graph with its parameters on a context's backend. */
typedef struct hstep_model hstep_model;

/** A pre-norm decoder: RMSNorm, rotary grouped-query attention, SwiGLU, tied head (as in Hugging Face's Llama). */
typedef struct hstep_decoder_config {
    size_t vocabulary;         /**< Tokens are 0 .. vocabulary - 1. */
    size_t width;              /**< Of the residual stream. */
    size_t layers;             /**< Blocks of attention and feed-forward. */
    size_t heads;              /**< Divides width; width / heads is even. */
    size_t kv_heads;           /**< Divides heads; 0 means heads. */
    size_t feed_forward;       /**< Width of the feed-forward layers. */
    double rotary_base;        /**< Default 10000. */
    double rms_epsilon;        /**< Default 1e-5. */
    hstep_precision precision; /**< Of all its products but those that `rules` fit. */
    /** Precision by place, the caller's: patterns of the names that hstep_decoder_products lists. NULL for none. */
    const hstep_precision_rule *rules;
    size_t rule_count; /**< How many there are in `rules`. */
} hstep_decoder_config;

/** Distributions that parameters are drawn from. */
typedef enum hstep_initialization {
    HSTEP_INIT_NORMAL = 0, /**< N(0, 0.02); residual projections divided by sqrt(2 layers); gains 1. */
    HSTEP_INIT_XAVIER = 1  /**< Uniform within sqrt(6 / (fan_in + fan_out)); gains 1: the fixture's. */
} hstep_initialization;

/** One further input of a batch, by the name the graph gave it; row-major, of the input's element type. */
typedef struct hstep_feed {
    const char *input; /**< Its name. */
    const void *data;  /**< `double` for HSTEP_DTYPE_F64, `int32_t` for HSTEP_DTYPE_I32. */
} hstep_feed;

/** One micro-batch. Row index = sequence * length + position. All pointers stay the caller's. */
typedef struct hstep_batch {
    size_t sequences;        /**< >= 1. Positions start at 0 in each. */
    size_t length;           /**< Positions of every sequence, >= 1. */
    const int32_t *tokens;   /**< The input named "tokens", [sequences][length], where the graph has one. */
    const int32_t *targets;  /**< The input named "targets", alike; -1 is left out of the loss. */
    const hstep_feed *feeds; /**< All other inputs. */
    size_t feed_count;       /**< How many there are in `feeds`. */
    /** What the loss is divided by. 0 stands for the number of targets of cross-entropy, and for 1 with other losses.
     */
    double weight;
} hstep_batch;

/** A learned tensor of a model. */
typedef struct hstep_parameter {
    const char *name;            /**< Lives as long as the model. */
    size_t rank;                 /**< Number of dimensions. */
    size_t dims[HSTEP_MAX_RANK]; /**< The first `rank` of them, row-major; the others are 0. */
    size_t elements;             /**< Product of the dimensions. */
    uint64_t revision;           /**< Rises with every change of the values. */
} hstep_parameter;

/** The fixture's rotary base and epsilon; the other fields 0, precision bf16. */
HSTEP_API hstep_decoder_config hstep_decoder_defaults(void);

/**
 * Builds a decoder whose parameters are zero until they are initialised or written. Inputs "tokens" and "targets";
 * parameters `token_embedding.weight`, per layer `blocks.i.attention_norm.gain`,
 * `blocks.i.attention.{query,key,value,output}.weight`, `blocks.i.feed_forward_norm.gain`,
 * `blocks.i.feed_forward.{gate,up,down}.weight`, and `final_norm.gain`. Linear weights are [out, in].
 * @return HSTEP_ERROR_ARGUMENT naming the field that contradicts another.
 */
HSTEP_API hstep_status hstep_model_create_decoder(hstep_context *context, const hstep_decoder_config *config,
                                                  hstep_model **model, hstep_error *error);

/** Takes over a graph that has its loss, so that the caller uses it no more. On failure it stays the caller's. */
HSTEP_API hstep_status hstep_model_create(hstep_context *context, hstep_graph *graph, hstep_model **model,
                                          hstep_error *error);

/**
 * The products of a decoder, with the precision that the configuration gives them: for each layer i
 * `blocks.i.attention.query`, `key` and `value`, `blocks.i.attention` (the scores and the mixing of values),
 * `blocks.i.attention.output`, `blocks.i.feed_forward.gate`, `up` and `down`, and last `head`. At most `room` of them
 * go to `products`, which may be NULL with room 0; `count` tells how many there are.
 * @return The errors of hstep_model_create_decoder.
 */
HSTEP_API hstep_status hstep_decoder_products(const hstep_decoder_config *config, hstep_product *products, size_t room,
                                              size_t *count, hstep_error *error);

/** The same of any model. */
HSTEP_API hstep_status hstep_model_products(const hstep_model *model, hstep_product *products, size_t room,
                                            size_t *count, hstep_error *error);

/** NULL is ignored. */
HSTEP_API void hstep_model_destroy(hstep_model *model);

/** Number of parameter tensors. */
HSTEP_API size_t hstep_model_parameter_count(const hstep_model *model);

/** Number of learned scalars: the elements of all parameters. */
HSTEP_API size_t hstep_model_scalar_count(const hstep_model *model);

/** Describes parameter `index`; HSTEP_ERROR_ARGUMENT when there is none. */
HSTEP_API hstep_status hstep_model_parameter(const hstep_model *model, size_t index, hstep_parameter *parameter,
                                             hstep_error *error);

/** Index of the parameter of that name, or SIZE_MAX. */
HSTEP_API size_t hstep_model_find_parameter(const hstep_model *model, const char *name);

/** Copies all elements of one parameter out, row-major; HSTEP_ERROR_ARGUMENT when there is no parameter `index`. */
HSTEP_API hstep_status hstep_model_read_parameter(hstep_model *model, size_t index, double *values, hstep_error *error);

/** Copies them in, which raises the parameter's revision; a recorded tape is stale then. The same errors. */
HSTEP_API hstep_status hstep_model_write_parameter(hstep_model *model, size_t index, const double *values,
                                                   hstep_error *error);

/**
 * Where the values of one parameter are in the memory of a CPU backend, row-major, as long as the model lives: to look
 * at them, or to change them, without copies. Whoever changes them says so with hstep_model_mark_parameter before the
 * next call with the model, or results may come of the old values. Not while another thread uses the context.
 * @return HSTEP_ERROR_UNSUPPORTED where the backend keeps them in memory that the program does not see; read and write
 *         them there.
 */
HSTEP_API hstep_status hstep_model_parameter_data(hstep_model *model, size_t index, double **values,
                                                  hstep_error *error);

/** Raises a parameter's revision, as writing it does. */
HSTEP_API hstep_status hstep_model_mark_parameter(hstep_model *model, size_t index, hstep_error *error);

/**
 * Draws every parameter from SplitMix64(seed), tensors in order, row-major. Gains of normalisations become 1 and other
 * vectors 0; neither draws a number. HSTEP_ERROR_ARGUMENT for an unknown scheme.
 */
HSTEP_API hstep_status hstep_model_initialize(hstep_model *model, hstep_initialization scheme, uint64_t seed,
                                              hstep_error *error);

/** XXH3 (64 bits) of all parameters' f64 values in parameter order. */
HSTEP_API hstep_status hstep_model_checksum(hstep_model *model, uint64_t *checksum, hstep_error *error);

/**
 * The loss's sum over the batch, and the weight (number of targets, or hstep_batch.weight) to divide it by, which is 0
 * where no target counts.
 * @return HSTEP_ERROR_SHAPE for a batch without rows, HSTEP_ERROR_ARGUMENT for an input that is missing or unknown,
 *         HSTEP_ERROR_TOKEN, HSTEP_ERROR_NONFINITE_FORWARD with the operation's name, HSTEP_ERROR_MEMORY. *sum and
 *         *weight are then untouched.
 */
HSTEP_API hstep_status hstep_model_loss(hstep_model *model, const hstep_batch *batch, double *sum, double *weight,
                                        hstep_error *error);

/**
 * Makes what hstep_model_loss of batches of this shape works with, so that the first one does not have to: memory that
 * is short is noticed here, and hstep_context_memory counts it. Plans of a few shapes are kept.
 */
HSTEP_API hstep_status hstep_model_prepare_loss(hstep_model *model, size_t sequences, size_t length,
                                                hstep_error *error);

/**
 * The graph's output for a batch, a decoder's logits [sequences * length][vocabulary]; targets are not needed.
 * @param output  hstep_model_output_size elements, row-major.
 * @return The errors of hstep_model_loss, and HSTEP_ERROR_ARGUMENT where the graph has no output.
 */
HSTEP_API hstep_status hstep_model_output(hstep_model *model, const hstep_batch *batch, double *output,
                                          hstep_error *error);

/** Elements that hstep_model_output writes for a batch of this shape; 0 where the graph has no output. */
HSTEP_API size_t hstep_model_output_size(const hstep_model *model, size_t sequences, size_t length);

/** What one operation of a forward pass computed. Everything lives until the function that sees it returns. */
typedef struct hstep_traced_value {
    const char *name;            /**< Of the operation, such as "blocks.0.attention.query". */
    size_t rank;                 /**< Number of dimensions. */
    size_t dims[HSTEP_MAX_RANK]; /**< The first `rank` of them. */
    size_t elements;             /**< Product of the dimensions. */
    hstep_dtype dtype;    /**< As the numbers stand in memory: of a half format where products alone read them. */
    const double *values; /**< Row-major, widened exactly. */
} hstep_traced_value;

/** Sees one value after the other; `data` is what hstep_model_trace was given. */
typedef void (*hstep_trace_function)(void *data, const hstep_traced_value *value);

/**
 * Computes a batch's loss operation by operation, and shows what each computed, in the order of the graph; the loss
 * itself is the sum over the batch, as hstep_model_loss gives it. The bits are those of a pass as a whole.
 * @param data  Handed to `see`, which must not use the model.
 * @return The errors of hstep_model_loss; of an operation whose value is not finite after it was shown.
 */
HSTEP_API hstep_status hstep_model_trace(hstep_model *model, const hstep_batch *batch, hstep_trace_function see,
                                         void *data, hstep_error *error);

#ifdef __cplusplus
}
#endif
#endif
