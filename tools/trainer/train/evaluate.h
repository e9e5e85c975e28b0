/* The mean loss on the held-out tail. */
#ifndef HS_TRAINER_EVALUATE_H
#define HS_TRAINER_EVALUATE_H

#include <stdbool.h>

#include <halfstep/halfstep.h>

typedef struct hs_evaluation {
    double loss;
    uint64_t tokens;
    double seconds;
    bool complete; /* false: an interrupt came first */
} hs_evaluation;

/*
 * Over `limit` evenly spaced windows of `length` tokens, or all with limit 0, `sequences` at a time. `tokens` and
 * `targets` are room for so many. With `shown` a terminal at stderr sees how far it is.
 */
hstep_status hs_evaluate(hstep_model *model, const hstep_dataset *dataset, size_t length, size_t limit,
                         size_t sequences, int32_t *tokens, int32_t *targets, bool shown, hs_evaluation *evaluation,
                         hstep_error *error);

#endif
