/**
 * @file trace.h
 * Statistics of an attempt: how large weights, gradients and updates are, and what the half format makes of the numbers
 * that products read. Taking them changes no bit of what is learned; it takes time and memory (docs/records.md).
 *
 * Intended usage:
 *  1. hstep_trainer_set_trace(trainer, 1, ...) before an attempt that is to be looked at; 0 before one that is not.
 *  2. hstep_trainer_update, or the steps of an update one at a time.
 *  3. hstep_trainer_trace, and read the rows, before the next attempt.
 */
#ifndef HALFSTEP_TRACE_H
#define HALFSTEP_TRACE_H

#include <stddef.h>

#include <halfstep/trainer.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One parameter. Norms are square roots of sums of squares; `largest` is the largest magnitude of what is finite. */
typedef struct hstep_tensor_trace {
    const char *name;        /**< Of the parameter; lives as long as the model. */
    double weight_norm;      /**< Of the weights that the attempt began with. */
    double weight_largest;   /**< Alike. */
    double gradient_norm;    /**< Of the window's gradient, unscaled, before clipping. */
    double gradient_largest; /**< Alike. */
    double update_norm;      /**< Of what the commit added to the weights, decay included. */
    double update_largest;   /**< Alike. */
    double update_ratio;     /**< update_norm / weight_norm; NaN where the weights were all 0. */
} hstep_tensor_trace;

/**
 * What the products of one operation read as one of their operands, each number counted once for each batch of the
 * window; of weights, which are the same for all batches, once. Counts are of the moment of rounding to the operation's
 * format, whether the products themselves round or an operation before them that stores 16 bits. Operands of attention
 * are its queries, keys and values and the adjoint of its result; probabilities and scores inside it, which no memory
 * holds whole, are not counted.
 */
typedef struct hstep_operand_trace {
    const char *operation;     /**< Such as "blocks.0.attention.query". Rows of one operation follow each other. */
    const char *tensor;        /**< A parameter's or value's name, or that of the value whose adjoint it is. */
    int is_adjoint;            /**< 1 for an adjoint. */
    hstep_precision precision; /**< Of the operation's products. */
    uint64_t elements;         /**< 0 where no pass came to the operation. */
    double largest;            /**< Largest magnitude of the finite numbers. */
    uint64_t to_zero;          /**< Finite numbers that became 0 and were not, ... */
    uint64_t to_subnormal;     /**< ... that became subnormal, ... */
    uint64_t to_infinity;      /**< ... or infinite. */
    uint64_t nonfinite;        /**< Infinities and NaNs before rounding. */
} hstep_operand_trace;

/** The statistics of one attempt. The rows belong to the trainer and stay until its next attempt. */
typedef struct hstep_trace {
    const hstep_tensor_trace *tensors;   /**< In the order of the parameters. */
    size_t tensor_count;                 /**< As many as the model has parameters. */
    const hstep_operand_trace *operands; /**< Of operations in fp16 and bf16: f64 rounds nothing. */
    size_t operand_count;                /**< The same for all attempts of a model. */
    int has_gradients;                   /**< 0 where a skip came before the norm: gradient fields are 0. */
    int has_updates;                     /**< 0 for a skip: update fields are 0. */
} hstep_trace;

/**
 * From the next attempt on statistics are taken, or with 0 no more. The first time makes what that takes: memory for a
 * copy of the largest parameter. Plans for such attempts keep what products read in f64 and are made with the first
 * batch of a shape, or by hstep_trainer_prepare. A recorded forward pass is dropped.
 * @return HSTEP_ERROR_MEMORY, or HSTEP_ERROR_DIRTY_GRADIENT where gradients await their commit; nothing changed then.
 */
HSTEP_API hstep_status hstep_trainer_set_trace(hstep_trainer *trainer, int on, hstep_error *error);

/**
 * The statistics of the last attempt. Of a skip they are those of the passes that ran: forward for every batch,
 * backward up to the batch that overflowed.
 * @return HSTEP_ERROR_ARGUMENT where that attempt was not traced, or did not come to its end.
 */
HSTEP_API hstep_status hstep_trainer_trace(const hstep_trainer *trainer, hstep_trace *trace, hstep_error *error);

#ifdef __cplusplus
}
#endif
#endif
