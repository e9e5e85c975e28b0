/*
 * How the gradients of a window come together (policy, section 4): micro-batches add in f64, ascending, within a
 * replica, then replicas, ascending. The first is stored, the others are added. A replica may be computed elsewhere:
 * `reduce` is the one place where its sum meets the others', and another function can stand there.
 */
#ifndef HS_ENGINE_TRANSACTION_REDUCTION_H
#define HS_ENGINE_TRANSACTION_REDUCTION_H

#include "engine/model/model.h"

typedef struct hs_reduction hs_reduction;

/* Brings the finished sum of one replica into the window's gradients. */
typedef hstep_status hs_reduce(hs_reduction *reduction, size_t replica, hstep_error *error);

struct hs_reduction {
    const hstep_model *model;
    size_t replicas, micro_batches;
    hs_buffer **window;  /* the caller's: where the window's gradients end */
    hs_buffer **replica; /* the sum of one replica; the window's own buffers when there is one replica */
    hs_buffer **batch;   /* where a plan writes; the replica's own buffers when it has one micro-batch */
    hs_program *store_batch, *add_batch;     /* batch into replica */
    hs_program *store_replica, *add_replica; /* replica into window */
    hs_reduce *reduce;
};

/* Fills *reduction, whose window buffers stay the caller's. On failure it can be destroyed. */
hstep_status hs_reduction_create(hs_reduction *reduction, const hstep_model *model, size_t replicas,
                                 size_t micro_batches, hs_buffer **window, hstep_error *error);
void hs_reduction_destroy(hs_reduction *reduction);

/*
 * Takes in what a plan has written for one micro-batch and, after a replica's last, the replica. A sum that is not
 * finite shows in the gradient norm.
 */
hstep_status hs_reduction_take(hs_reduction *reduction, size_t replica, size_t micro_batch, hstep_error *error);

#endif
