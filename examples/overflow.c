/*
 * Watching for overflow: a decoder in fp16 starts with a loss scale that is far too high. The program asks why the
 * first attempt will overflow, shows every attempt, and sees that skips leave the weights alone while the scale comes
 * down.
 *
 * cc overflow.c $(pkg-config --cflags --libs halfstep) -o overflow
 * (docs/embedding.md has the line for an installation in a folder of one's own.)
 */
#include <halfstep/halfstep.h>
#include <stdio.h>
#include <stdlib.h>

enum { LENGTH = 6, UPDATES = 5, MOST_ATTEMPTS = 40 };

static hstep_error error;

static void require(hstep_status status) {
    if (status == HSTEP_OK)
        return;
    fprintf(stderr, "overflow: %s: %s\n", hstep_status_name(status), error.message);
    exit(EXIT_FAILURE);
}

static uint64_t weights_of(hstep_model *model) {
    uint64_t checksum;
    require(hstep_model_checksum(model, &checksum, &error));
    return checksum;
}

/* What the operation that overflows reads and writes. This runs the attempt again and decides nothing. */
static void explain(hstep_trainer *trainer, const hstep_batch *batch) {
    static hstep_explanation why; /* some kilobytes */
    require(hstep_trainer_explain(trainer, batch, 1, &why, &error));
    if (!why.overflowed)
        return;
    printf("  why: %s of %s is %s at element %llu, in a %s\n", why.overflow.operation, why.overflow.tensor,
           why.overflow.kind, (unsigned long long)why.overflow.index, why.operation);
    for (size_t i = 0; i < why.operand_count; i++) {
        const hstep_operand *operand = &why.operands[i];
        printf("       %s %s%s: largest finite %.4g, %llu of %llu not finite\n",
               operand->is_output ? "writes" : "reads", operand->is_adjoint ? "the adjoint of " : "", operand->name,
               operand->largest, (unsigned long long)(operand->infinities + operand->nans),
               (unsigned long long)operand->elements);
    }
}

typedef struct tally {
    int applied, skipped;
} tally;

/* An observer sees every attempt, also where the loop that trains is somebody else's. What it counts or prints is its
 * own: a skip leaves the weights as they were, and takes nothing of this back. */
static void watch(const hstep_update *update, void *user) {
    tally *counts = user;
    const int skip = update->outcome == HSTEP_SKIPPED;
    counts->skipped += skip;
    counts->applied += !skip;
    printf("attempt %2d  step %d  scale %8.0f -> %8.0f  ", (int)update->attempt, (int)update->step, update->loss_scale,
           update->next_loss_scale);
    if (skip)
        printf("skipped: %s, %s", update->overflow.operation, update->overflow.kind);
    else
        printf("applied: loss %.4f, gradient norm %.3f\n", update->loss, update->gradient_norm);
}

int main(void) {
    /* Token i is followed by token i + 1. */
    const int32_t tokens[LENGTH] = {0, 1, 2, 3, 4, 5}, targets[LENGTH] = {1, 2, 3, 4, 5, 6};
    const hstep_batch batch = {.sequences = 1, .length = LENGTH, .tokens = tokens, .targets = targets};
    hstep_context *context;
    hstep_model *model;
    hstep_trainer *trainer;
    require(hstep_context_create(NULL, &context, &error));

    hstep_decoder_config decoder = hstep_decoder_defaults();
    decoder.vocabulary = 16;
    decoder.width = 16;
    decoder.layers = 2;
    decoder.heads = 2;
    decoder.feed_forward = 32;
    decoder.precision = HSTEP_PRECISION_FP16;
    require(hstep_model_create_decoder(context, &decoder, &model, &error));
    require(hstep_model_initialize(model, HSTEP_INIT_NORMAL, 1, &error));

    hstep_trainer_config config = hstep_trainer_defaults(HSTEP_PRECISION_FP16);
    config.scaler.initial = config.scaler.maximum; /* 2^24, where 2^16 is the default */
    config.scaler.growth_interval = 2;             /* soon tries whether a higher scale fits; the default is 2000 */
    require(hstep_trainer_create(model, &config, &trainer, &error));

    explain(trainer, &batch);
    tally counts = {0, 0};
    require(hstep_trainer_set_observer(trainer, watch, &counts, &error));
    while (counts.applied < UPDATES && counts.applied + counts.skipped < MOST_ATTEMPTS) {
        hstep_update update;
        const uint64_t before = weights_of(model);
        /* A skip is no error: the status is HSTEP_OK, and `outcome` tells. The caller decides how often to try. */
        require(hstep_trainer_update(trainer, &batch, 1, &update, &error));
        if (update.outcome == HSTEP_SKIPPED)
            printf("; weights %s\n", weights_of(model) == before ? "unchanged" : "CHANGED");
    }
    printf("%d applied, %d skipped\n", counts.applied, counts.skipped);

    hstep_trainer_destroy(trainer);
    hstep_model_destroy(model);
    hstep_context_destroy(context);
    return counts.applied == UPDATES ? EXIT_SUCCESS : EXIT_FAILURE;
}
