#ifndef HS_TRAINER_CLOCK_H
#define HS_TRAINER_CLOCK_H

#include <time.h>

/* Seconds of a clock that only goes forward. */
static inline double hs_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

#endif
