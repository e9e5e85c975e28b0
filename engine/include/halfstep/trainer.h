/**
 * @file trainer.h
 * Updates as transactions: each either commits as a whole or leaves every byte of what is learned.
 *
 * Intended usage:
 *  1. Make a model, then hstep_trainer_create with hstep_trainer_defaults(precision) or settings of your own.
 *  2. hstep_trainer_update with a window of replicas * micro_batches batches. Read hstep_update.outcome:
 *     HSTEP_APPLIED, or HSTEP_SKIPPED with the operation that overflowed. After a skip, call again with the same data.
 *  3. An error (any status but HSTEP_OK) changed nothing; mend its cause and call again.
 *  4. Where a skip needs explaining: hstep_trainer_explain with the loss scale and the window of that attempt.
 * The steps of an update can also be taken one at a time: record, backward, read gradients, commit.
 */
#ifndef HALFSTEP_TRAINER_H
#define HALFSTEP_TRAINER_H

#include <stddef.h>

#include <halfstep/model.h>
#include <halfstep/optim.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A model's gradients, optimizer and loss scale. */
typedef struct hstep_trainer hstep_trainer;

/** What the backward pass computes again instead of keeping it. No bit of a result depends on it. */
typedef enum hstep_recompute {
    HSTEP_RECOMPUTE_NONE = 0,
    HSTEP_RECOMPUTE_BLOCKS = 1 /**< Inner values of blocks, a decoder's layers: less memory, about a third more time. */
} hstep_recompute;

/** The settings of a trainer; hstep_trainer_defaults gives some to change. */
typedef struct hstep_trainer_config {
    hstep_adamw adamw;         /**< The optimizer, and the clipping before it. */
    hstep_schedule schedule;   /**< The learning rate of every step. */
    hstep_scaler scaler;       /**< The loss scale. */
    size_t replicas;           /**< >= 1. A window holds replicas * micro_batches batches, replica by replica. */
    size_t micro_batches;      /**< >= 1. */
    hstep_recompute recompute; /**< Memory or time. */
    /**
     * A head whose logits only cross-entropy reads, and that is the loss, holds the logits of so many rows at a time;
     * so does hstep_model_loss as long as the trainer lives. 0: of as many rows as take 128 MiB, at 2 bytes a cell, or
     * 8 in f64 and where a backend has nothing in 16 bits. There are at most 1024 turns. Where a backend cannot do
     * that, all rows are there at once. With exact levers no bit of a result depends on it; of gated ones, those on AMX
     * tiles keep their sums by multiples of 32 rows.
     */
    size_t head_rows;
} hstep_trainer_config;

/** What became of an attempt. */
typedef enum hstep_outcome {
    HSTEP_APPLIED = 0, /**< The update was committed. */
    HSTEP_SKIPPED = 1  /**< A gradient overflowed, and nothing changed but the loss scale and the counts of it. */
} hstep_outcome;

/** The first nonfinite value of a skipped attempt, in the order of the reference. */
typedef struct hstep_overflow {
    char operation[96]; /**< Such as "blocks.0.attention.query", or "gradient_norm". */
    char tensor[96];    /**< Whose adjoint: a parameter's or value's name, or a part such as "scores". */
    const char *phase;  /**< "backward" or "norm". */
    const char *kind;   /**< "inf" or "nan". */
    uint64_t index;     /**< Lowest nonfinite element, row-major. */
} hstep_overflow;

/** What one attempt did. */
typedef struct hstep_update {
    hstep_outcome outcome;   /**< Applied or skipped. */
    uint64_t step;           /**< The scheduled step that was attempted, from 1. */
    uint64_t attempt;        /**< Attempts so far, this one included, from 1. */
    double loss;             /**< Mean over the window's targets. */
    double loss_scale;       /**< S of this attempt. */
    double next_loss_scale;  /**< S of the next. */
    uint64_t finite_updates; /**< Committed since S last changed. */
    double gradient_norm;    /**< Of the unscaled gradients, before clipping. NaN when a skip came before the norm. */
    int clipped;             /**< 1 where the norm was above the limit, and gradients were made smaller. */
    double learning_rate;    /**< Of the scheduled step. */
    uint64_t optimizer_step; /**< Committed updates, this one included. */
    uint64_t tokens;         /**< Rows of the window. */
    unsigned threads;        /**< That computed it. */
    int nonfinite_weights; /**< 1 when the commit itself left a weight or moment infinite or NaN: the run has diverged.
                            */
    hstep_overflow overflow; /**< Filled when skipped. */
} hstep_update;

/** AdamW, schedule and scaler defaults for the precision; one replica, one micro-batch. */
HSTEP_API hstep_trainer_config hstep_trainer_defaults(hstep_precision precision);

/** The same for a model whose products differ in precision: that of fp16 where any of them is in fp16, else of bf16. */
HSTEP_API hstep_trainer_config hstep_trainer_defaults_for(const hstep_model *model);

/**
 * The model stays the caller's, must outlive the trainer, and has one trainer at a time.
 * @return HSTEP_ERROR_ARGUMENT naming the setting that was refused; HSTEP_ERROR_MISSING_GRADIENT naming a parameter
 *         that the loss does not depend on.
 */
HSTEP_API hstep_status hstep_trainer_create(hstep_model *model, const hstep_trainer_config *config,
                                            hstep_trainer **trainer, hstep_error *error);

/** NULL is ignored. */
HSTEP_API void hstep_trainer_destroy(hstep_trainer *trainer);

/**
 * Makes what updates with batches of this shape work with, so that the first one does not have to: memory that is short
 * is noticed here, and hstep_context_memory counts it. Plans of a few shapes are kept. A recorded forward pass is
 * dropped.
 * @return HSTEP_ERROR_SHAPE, HSTEP_ERROR_MEMORY, or HSTEP_ERROR_DIRTY_GRADIENT where gradients await their commit.
 */
HSTEP_API hstep_status hstep_trainer_prepare(hstep_trainer *trainer, size_t sequences, size_t length,
                                             hstep_error *error);

/**
 * One attempt at one update over a window of `count` = replicas * micro_batches batches.
 * @return HSTEP_OK with *update filled, also for a skip. HSTEP_ERROR_SHAPE, HSTEP_ERROR_TOKEN, HSTEP_ERROR_NO_TARGETS,
 *         HSTEP_ERROR_DIRTY_GRADIENT, HSTEP_ERROR_NONFINITE_FORWARD (with the operation's name) and
 *         HSTEP_ERROR_MEMORY change nothing, not even the scale.
 */
HSTEP_API hstep_status hstep_trainer_update(hstep_trainer *trainer, const hstep_batch *window, size_t count,
                                            hstep_update *update, hstep_error *error);

/**
 * Sees every attempt that came to its verdict, committed or skipped, before the function that made it returns. What it
 * does is its own: a skip, which leaves weights and optimizer as they were, takes nothing of it back.
 * @param update  As hstep_trainer_update or hstep_trainer_commit is about to give it; lives until the observer returns.
 */
typedef void hstep_observer(const hstep_update *update, void *user);

/**
 * Calls `observer` for every attempt from now on, in the place of an earlier one; NULL: no more. It may read from the
 * trainer and its model, but not change, train or destroy them.
 */
HSTEP_API hstep_status hstep_trainer_set_observer(hstep_trainer *trainer, hstep_observer *observer, void *user,
                                                  hstep_error *error);

/** Operands of one operation at most, inputs and outputs. */
enum { HSTEP_MAX_OPERANDS = 12 };

/**
 * What the numbers of one operand of an operation are like. Magnitudes, and the counts up to to_infinity, are those of
 * its finite numbers. Rounding is that of hstep_explanation.precision; in f64 nothing is rounded and these counts are
 * 0.
 */
typedef struct hstep_operand {
    char name[96];               /**< Of a parameter or value, or of the value whose adjoint it is. */
    int is_output;               /**< 1: the operation writes it; 0: it reads it. */
    int is_adjoint;              /**< 1: the numbers are the adjoint of what the name says. */
    hstep_dtype dtype;           /**< How the numbers stand in memory. */
    size_t rank;                 /**< Number of dimensions. */
    size_t dims[HSTEP_MAX_RANK]; /**< The first `rank` of them. */
    uint64_t elements;           /**< Product of the dimensions. */
    double smallest;             /**< Smallest magnitude above 0; 0 where there is none. */
    double largest;              /**< Largest magnitude. */
    double mean;                 /**< Of the magnitudes, zeros included. */
    uint64_t zeros;              /**< Numbers that are 0. */
    uint64_t to_subnormal;       /**< Rounded to the half format they are subnormal, ... */
    uint64_t to_zero;            /**< ... 0 though they are not, ... */
    uint64_t to_infinity;        /**< ... or infinite. */
    uint64_t infinities;         /**< Infinite numbers. */
    uint64_t nans;               /**< Those that are NaN. */
} hstep_operand;

/** Why an attempt overflows. */
typedef struct hstep_explanation {
    int overflowed;            /**< 0: it does not, and all else is 0. */
    hstep_overflow overflow;   /**< As hstep_trainer_update reports it. */
    size_t batch;              /**< Of the window, from 0; the window's number of batches where the norm overflows. */
    const char *operation;     /**< Its kind, such as "matmul", "attention_backward"; "square_sum" for the norm. */
    hstep_precision precision; /**< Of the operation's products; where it has none, that of
                                    hstep_trainer_defaults_for. */
    hstep_operand operands[HSTEP_MAX_OPERANDS]; /**< Inputs, then outputs. */
    size_t operand_count;                       /**< How many there are. */
} hstep_explanation;

/**
 * Runs an attempt as hstep_trainer_update would, up to its first nonfinite adjoint, and says what that operation read
 * and wrote. Nothing is decided: whether it overflows or not, weights, moments, loss scale and counts keep every bit. A
 * recorded forward pass is dropped. To look at a skip of the past, set its loss scale with hstep_trainer_set_scaler.
 * @return The errors of hstep_trainer_update.
 */
HSTEP_API hstep_status hstep_trainer_explain(hstep_trainer *trainer, const hstep_batch *window, size_t count,
                                             hstep_explanation *explanation, hstep_error *error);

/**
 * Step by step, for a window of one batch: computes the forward pass and its mean loss, and keeps the tape. Once the
 * batch has passed its checks an earlier tape is gone, also where the forward pass then fails.
 * @return The errors of hstep_trainer_update. *loss, which may be NULL, is then untouched.
 */
HSTEP_API hstep_status hstep_trainer_record(hstep_trainer *trainer, const hstep_batch *batch, double *loss,
                                            hstep_error *error);

/** Computes scaled gradients from the tape. HSTEP_ERROR_STALE_TAPE when there is none or parameters changed since. */
HSTEP_API hstep_status hstep_trainer_backward(hstep_trainer *trainer, hstep_error *error);

/** Judges the gradients, then commits or skips. HSTEP_ERROR_MISSING_GRADIENT without a backward pass before. */
HSTEP_API hstep_status hstep_trainer_commit(hstep_trainer *trainer, hstep_update *update, hstep_error *error);

/** Drops tape and gradients of a step-by-step attempt; gradients are zero again. */
HSTEP_API hstep_status hstep_trainer_clear(hstep_trainer *trainer, hstep_error *error);

/**
 * Copies the gradient of one parameter out, row-major, still multiplied by the loss scale; zero when clear.
 * HSTEP_ERROR_ARGUMENT when there is no such parameter.
 */
HSTEP_API hstep_status hstep_trainer_read_gradient(hstep_trainer *trainer, size_t parameter, double *values,
                                                   hstep_error *error);

/** Copies the two AdamW moments of one parameter out, row-major; either pointer may be NULL. The same errors. */
HSTEP_API hstep_status hstep_trainer_read_moments(hstep_trainer *trainer, size_t parameter, double *first,
                                                  double *second, hstep_error *error);

/**
 * Where the gradient of one parameter is in the memory of a CPU backend, row-major, as long as the trainer lives: to be
 * read without copies. HSTEP_ERROR_UNSUPPORTED as with hstep_model_parameter_data.
 */
HSTEP_API hstep_status hstep_trainer_gradient_data(hstep_trainer *trainer, size_t parameter, const double **values,
                                                   hstep_error *error);

/** Where the two AdamW moments are, in the same way; either pointer to them may be NULL. */
HSTEP_API hstep_status hstep_trainer_moments_data(hstep_trainer *trainer, size_t parameter, const double **first,
                                                  const double **second, hstep_error *error);

/** The scale that the next attempt starts from. */
HSTEP_API double hstep_trainer_loss_scale(const hstep_trainer *trainer);

/** Number of committed updates. */
HSTEP_API uint64_t hstep_trainer_optimizer_step(const hstep_trainer *trainer);

/** Number of attempts, committed or skipped. */
HSTEP_API uint64_t hstep_trainer_attempts(const hstep_trainer *trainer);

/** Replaces the scaler and its count, as a run that changes its scale would. A refused setting changes nothing. */
HSTEP_API hstep_status hstep_trainer_set_scaler(hstep_trainer *trainer, const hstep_scaler *scaler, hstep_error *error);

/** Committed updates since the scale last changed. */
HSTEP_API uint64_t hstep_trainer_finite_updates(const hstep_trainer *trainer);

/**
 * The bytes of the state that a skip must keep: every parameter's values, gradient, moments and revision, the beta
 * powers and the number of committed updates (which also fixes the schedule's step and the training data's position).
 * The loss scale and its count, which a skip does change, are not in it. With buffer NULL only *size is set; otherwise
 * *size says how much room there is. Two snapshots are equal exactly when the states are.
 */
HSTEP_API hstep_status hstep_trainer_snapshot(hstep_trainer *trainer, void *buffer, size_t *size, hstep_error *error);

#ifdef __cplusplus
}
#endif
#endif
