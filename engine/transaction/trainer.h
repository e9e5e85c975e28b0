/* The inside of a trainer. */
#ifndef HS_ENGINE_TRANSACTION_TRAINER_H
#define HS_ENGINE_TRANSACTION_TRAINER_H

#include <halfstep/trainer.h>

#include "engine/model/model.h"
#include "engine/transaction/reduction.h"
#include "engine/transaction/trace/trace.h"
#include "optim/adamw.h"
#include "optim/scaler.h"

/* Whether a backward pass has left gradients that no commit has consumed. */
typedef enum hs_gradient_state { HS_GRADIENTS_CLEAR, HS_GRADIENTS_PRESENT } hs_gradient_state;

/* A step-by-step attempt between record and commit. */
typedef struct hs_tape {
    hs_plan *plan; /* NULL for no tape */
    uint64_t revision;
    double weight, loss;
    bool overflowed;
    hstep_overflow overflow;
} hs_tape;

struct hstep_trainer {
    hstep_model *model;
    hstep_trainer_config config;
    hstep_graph *recomputing; /* the model's graph with blocks computed again; NULL where nothing is */

    hs_buffer **gradients; /* the window's; +0 whenever they are clear */
    hs_buffer **first_moments, **second_moments;
    hs_reduction reduction;

    hs_buffer *unscale;                /* [1]: 1 / S */
    hs_buffer *square_sums;            /* by parameter */
    hs_buffer *square_total, *no_rows; /* [1]: all of them; i32 zeros, by parameter */
    hs_buffer *scalars;                /* enum hs_adamw_scalar */
    hs_program *norm;                  /* square sums, then their total */
    hs_program *commit;

    hs_scaler scaler;
    hs_adamw_state adamw;
    uint64_t attempts;
    hs_gradient_state gradient_state;
    hs_tape tape;
    hs_plan_cache plans;
    hs_trace trace;
    hstep_observer *observer; /* NULL for none */
    void *observer_user;
    bool half_loaded; /* loading broke off: moments may be of two files, weights too */
};

/* What the forward and backward passes of an attempt found, for the verdict. */
typedef struct hs_attempt {
    double loss; /* sum over the window, then its mean */
    double weight;
    uint64_t tokens;
    bool overflowed;
    hstep_overflow overflow;
} hs_attempt;

/* engine/transaction/verdict.c: the norm, then commit or skip; fills *update. */
hstep_status hs_trainer_decide(hstep_trainer *trainer, const hs_attempt *attempt, hstep_update *update,
                               hstep_error *error);

/* The gradient norm alone; one that is not finite is an overflow. */
hstep_status hs_trainer_norm(hstep_trainer *trainer, double unscale, double *norm, bool *overflowed,
                             hstep_overflow *overflow, hstep_error *error);

/* The ADAMW call of a parameter's commit. */
hs_call hs_trainer_commit_call(const hstep_trainer *trainer, size_t parameter);

/* engine/transaction/update.c, also for explain.c */

/* Refuses a trainer that is half loaded, or whose gradients await their commit. */
hstep_status hs_trainer_check_state(const hstep_trainer *trainer, hstep_error *error);

/* Everything that can be refused before anything runs; adds up weight and rows. */
hstep_status hs_trainer_check_window(hstep_trainer *trainer, const hstep_batch *window, size_t count,
                                     hs_attempt *attempt, hstep_error *error);

/* Submits the passes of one micro-batch. *plan is then what computes them. */
hstep_status hs_trainer_submit(hstep_trainer *trainer, const hstep_batch *batch, double seed, bool backward,
                               hs_plan **plan, hstep_error *error);

/* HSTEP_ERROR_NONFINITE_FORWARD for a call of the forward pass that was flagged. */
hstep_status hs_trainer_forward_failure(hstep_trainer *trainer, hs_plan *plan, size_t call, hstep_error *error);

/* Refuses a trainer that is half loaded. */
hstep_status hs_trainer_check_whole(const hstep_trainer *trainer, hstep_error *error);

/* Zeroes the window's gradients and drops the tape. */
hstep_status hs_trainer_clear_gradients(hstep_trainer *trainer, hstep_error *error);

/* A plan for a training batch of that shape whose gradients go to `gradients`. */
hstep_status hs_trainer_plan(hstep_trainer *trainer, size_t sequences, size_t length, hs_plan **plan,
                             hstep_error *error);

#endif
