/* One of several trainings that see the same batches. */
#ifndef HS_TRAINER_VERIFY_SIDE_H
#define HS_TRAINER_VERIFY_SIDE_H

#include "trainer/train/run.h"
#include "trainer/verify/judge.h"

enum { HS_VERIFY_TOKENS = 100 };

typedef struct hs_side {
    char name[64];
    hs_options options;  /* of this side; its texts and lists are the run's */
    bool exact;          /* must give the reference's bits */
    bool gated;          /* can be rejected */
    char rejection[256]; /* why it was not trained at all; empty for one that was */
    hstep_context *context;
    hstep_model *model;
    hstep_trainer *trainer;
    /* What became of it: */
    double *losses, *norms; /* of committed updates, [steps] */
    uint64_t steps, skipped;
    char stopped[256];    /* why it went no further; empty for one that finished */
    double held_out_loss; /* NaN where nothing is held out */
    uint64_t checksum;    /* of the final weights */
    int32_t *tokens;      /* HS_VERIFY_TOKENS that it generates, greedily */
    /* Beside the reference: */
    hs_curve_gap gap;
    double first_gradient_gap; /* norm of the difference of the gradients in step 1, relative */
    double first_norm_gap;     /* difference of their norms, relative */
    uint64_t first_difference; /* a step; 0: none */
    size_t equal_tokens;       /* before the first other one */
    bool passed;
} hs_side;

/* Model with its first values, trainer, and room, in side->context. */
hstep_status hs_side_begin(hs_side *side, size_t vocabulary, hstep_error *error);

void hs_side_end(hs_side *side);

/*
 * Trains all sides, step by step on the same windows. A side that overflows too often in a row, or diverges, stops; the
 * others go on, but for the reference, sides[0], without which there is nothing to be beside. An interrupt ends it
 * early: ask hs_interrupted.
 */
hstep_status hs_sides_train(hs_run *data, hs_side *sides, size_t count, hstep_error *error);

/* Held-out loss, tokens and checksum of a side that finished. */
hstep_status hs_side_conclude(hs_run *data, hs_side *side, hstep_error *error);

/* Whether a side that was judged passes with this limit: it finished, its curve stays within the limit, a gated lever's
 * first gradient is right, and an exact one's bits are all equal. */
bool hs_side_passes(const hs_side *side, double within);

/* Whether its first gradient is within the limits of a gated lever. */
bool hs_side_starts_right(const hs_side *side);

/* Beside a reference that finished. */
void hs_side_judge(hs_side *side, const hs_side *reference, double within);

#endif
