#ifndef HS_ENGINE_LEVERS_CLOCK_H
#define HS_ENGINE_LEVERS_CLOCK_H

#include <time.h>

/* Seconds of a clock that never jumps. */
static inline double hs_clock(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
