#ifndef HS_ENGINE_LEVERS_GATE_CLOCK_H
#define HS_ENGINE_LEVERS_GATE_CLOCK_H

#include <time.h>

static inline double hs_read_clock(clockid_t clock) {
    struct timespec t;
    (void)clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds of a clock that never jumps. */
static inline double hs_clock(void) { return hs_read_clock(CLOCK_MONOTONIC); }

/* Seconds that all threads of the process have computed. */
static inline double hs_processor_clock(void) { return hs_read_clock(CLOCK_PROCESS_CPUTIME_ID); }

#endif
