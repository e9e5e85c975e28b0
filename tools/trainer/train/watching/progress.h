/*
 * What a person sees of a run, on stderr: a bar that is drawn over itself on a terminal, a plain line every few seconds
 * elsewhere, nothing when quiet.
 */
#ifndef HS_TRAINER_PROGRESS_H
#define HS_TRAINER_PROGRESS_H

#include <stdbool.h>

#include <halfstep/halfstep.h>

#include "trainer/options/options.h"

typedef struct hs_progress {
    bool quiet, terminal, drawn;
    uint64_t before;     /* steps of earlier parts of the run */
    uint64_t steps;      /* of the whole run */
    char computer[96];   /* backend and active levers */
    double start, shown; /* when the run began and when a line was last drawn */
    uint64_t tokens;     /* since `shown`, skipped attempts too */
    double speed;        /* tokens per second, as last drawn */
    double paused;       /* seconds that were no training */
} hs_progress;

void hs_progress_start(hs_progress *progress, const hstep_context *context, const bool in_use[HS_PRECISIONS],
                       uint64_t done, uint64_t steps, bool quiet);

/* After every attempt. */
void hs_progress_update(hs_progress *progress, const hstep_update *update, uint64_t skipped);

/* Seconds that evaluation took, so that they count for no speed and no time left. */
void hs_progress_pause(hs_progress *progress, double seconds);

/* A line that stays. */
void hs_progress_say(hs_progress *progress, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Takes the bar away. */
void hs_progress_clear(hs_progress *progress);

#endif
