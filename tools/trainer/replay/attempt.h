/* An attempt that `trainer train --dump-overflow` kept, ready to be run again. */
#ifndef HS_TRAINER_ATTEMPT_H
#define HS_TRAINER_ATTEMPT_H

#include <halfstep/halfstep.h>

#include "trainer/options/options.h"

/* How it is to compute. */
typedef struct hs_attempt_choices {
    int backend;        /* hstep_backend; -1: as the run did */
    const char *device; /* NULL: where the run did, or any where the backend is another choice */
    uint64_t threads;   /* UINT64_MAX: as the run did */
    const char *levers; /* NULL: as the run did */
} hs_attempt_choices;

typedef struct hs_attempt {
    const char *path;
    hs_options options; /* of the run */
    json_t *told;       /* the section "attempt" */
    uint64_t step, attempt;
    double loss_scale;
    hstep_overflow overflow; /* as it was recorded; texts live in `told` */
    size_t window_count;
    int32_t *tokens, *targets;
    hstep_batch *window;
    hstep_context *context;
    hstep_model *model;
    hstep_trainer *trainer; /* in the state before the attempt, at its loss scale */
} hs_attempt;

/* Returns HS_EXIT_DONE or reports; hs_attempt_close in either case. */
int hs_attempt_open(const char *path, const hs_attempt_choices *choices, hs_attempt *attempt);

void hs_attempt_close(hs_attempt *attempt);

#endif
