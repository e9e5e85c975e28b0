/*
 * How many threads a run computes on where nobody said: all, or one where all are not worth it. In the many short
 * operations of a small model threads wait for each other, and where other programs keep the processors busy, they wait
 * long. What is faster is measured on the run's own updates.
 */
#ifndef HS_TRAINER_PACE_H
#define HS_TRAINER_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include <halfstep/context.h>

enum { HS_PACE_PAIRS = 3 };

typedef struct hs_pace {
    hstep_context *context; /* NULL: nothing is to be chosen */
    bool warm;              /* an update was made, and with it all that only the first one makes */
    bool one_thread;        /* what the next update runs on */
    bool measuring;         /* one thread and all in turns */
    unsigned measured;      /* updates of this time */
    double one[HS_PACE_PAIRS], all[HS_PACE_PAIRS]; /* their seconds */
    double one_seconds;                            /* of an update on one thread, as last measured */
    uint64_t pause, left; /* updates on one thread until it is measured again, and how many of them are to come */
    unsigned slow;        /* updates in a row on all threads that took longer than one thread would */
} hs_pace;

/* `operations` is the size of an update. With threads of the user's own choice, do not call it: all zeros is no pace.
 */
void hs_pace_start(hs_pace *pace, hstep_context *context, double operations);

/* After every applied update. */
void hs_pace_note(hs_pace *pace, double seconds);

#endif
