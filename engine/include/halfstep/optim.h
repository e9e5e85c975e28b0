/**
 * @file optim.h
 * The settings of an update: AdamW, the learning-rate schedule and the loss scaler.
 */
#ifndef HALFSTEP_OPTIM_H
#define HALFSTEP_OPTIM_H

#include <stdint.h>

#include <halfstep/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** AdamW with decoupled weight decay (Loshchilov and Hutter, 2019), and clipping of the global gradient norm. */
typedef struct hstep_adamw {
    double beta1;        /**< In [0, 1). Default 0.9. */
    double beta2;        /**< In [0, 1). Default 0.999. */
    double epsilon;      /**< > 0. Default 1e-8. */
    double weight_decay; /**< >= 0, applied to tensors of two or more dimensions. Default 0.01. */
    double grad_clip;    /**< Largest global norm of the unscaled gradients, > 0. Default 1. */
    int decay_vectors;   /**< Nonzero: decay tensors of one dimension too. Default 0. */
} hstep_adamw;

/** How the learning rate goes on after the warm-up. */
typedef enum hstep_schedule_kind {
    HSTEP_SCHEDULE_CONSTANT = 0, /**< Linear warm-up, then the rate as it is. */
    HSTEP_SCHEDULE_COSINE = 1    /**< Linear warm-up, then half a cosine down to the minimum at the last step. */
} hstep_schedule_kind;

/** The learning rate as a function of the scheduled step, which counts committed updates from 1. */
typedef struct hstep_schedule {
    hstep_schedule_kind kind; /**< Default constant. */
    double learning_rate;     /**< Peak, finite and >= 0. */
    double min_learning_rate; /**< End of the cosine, between 0 and the peak. */
    uint64_t warmup_steps;    /**< At step s <= warmup_steps the rate is peak * s / warmup_steps. */
    uint64_t steps;           /**< Length of the schedule, for the cosine; later steps stay at the minimum. */
} hstep_schedule;

/**
 * Dynamic loss scaling (Micikevicius et al., 2018). Scales are finite powers of two, 1 <= minimum <= initial <=
 * maximum. A skip halves the scale, down to the minimum; it doubles, up to the maximum, after `growth_interval`
 * committed updates.
 */
typedef struct hstep_scaler {
    double initial;           /**< Scale of the first attempt. */
    double minimum;           /**< No skip takes the scale below it. */
    double maximum;           /**< No growth takes the scale above it. */
    uint64_t growth_interval; /**< Committed updates between doublings, >= 1. */
} hstep_scaler;

/** AdamW with the defaults that its fields name. */
HSTEP_API hstep_adamw hstep_adamw_defaults(void);

/** Constant at 1e-3, no warm-up. */
HSTEP_API hstep_schedule hstep_schedule_defaults(void);

/** fp16: 65536, 1, 2^24, 2000. bf16 and f64: 1, 1, 1, 2000. */
HSTEP_API hstep_scaler hstep_scaler_defaults(hstep_precision precision);

#ifdef __cplusplus
}
#endif
#endif
