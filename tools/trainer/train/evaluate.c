#include "trainer/train/evaluate.h"

#include <stdio.h>
#include <unistd.h>

#include "trainer/train/watching/clock.h"
#include "trainer/train/watching/interrupt.h"

static const double SHOWN_SECONDS = 0.1;

/* Draws how far it is over the last line of a terminal, not more often than one can read. */
static void show(size_t done, size_t windows, double loss, double *last) {
    const double now = hs_now();
    if (now - *last < SHOWN_SECONDS)
        return;
    *last = now;
    fprintf(stderr, "\r\033[K%zu/%zu windows, loss %.4f", done, windows, loss);
}

hstep_status hs_evaluate(hstep_model *model, const hstep_dataset *dataset, size_t length, size_t limit,
                         size_t sequences, int32_t *tokens, int32_t *targets, bool shown, hs_evaluation *evaluation,
                         hstep_error *error) {
    const double start = hs_now();
    const size_t windows = hstep_dataset_evaluation_windows(dataset, length, limit);
    double sum = 0, weight = 0;
    const bool drawn = shown && isatty(STDERR_FILENO) == 1;
    double last = start;
    size_t first = 0;
    for (size_t count; first < windows && !hs_interrupted(); first += count) {
        count = windows - first < sequences ? windows - first : sequences;
        hstep_status status =
            hstep_dataset_evaluation_batch(dataset, length, limit, first, count, tokens, targets, error);
        const hstep_batch batch = {.sequences = count, .length = length, .tokens = tokens, .targets = targets};
        double part = 0, part_weight = 0;
        if (status == HSTEP_OK)
            status = hstep_model_loss(model, &batch, &part, &part_weight, error);
        if (status != HSTEP_OK)
            return status;
        sum += part;
        weight += part_weight;
        if (drawn)
            show(first + count, windows, sum / weight, &last);
    }
    if (drawn && last > start)
        fputs("\r\033[K", stderr);
    *evaluation = (hs_evaluation){
        .loss = sum / weight,
        .tokens = (uint64_t)weight,
        .seconds = hs_now() - start,
        .complete = first >= windows,
    };
    return HSTEP_OK;
}
