/* The exit statuses that users and scripts rely on. */
#ifndef HS_TRAINER_EXIT_H
#define HS_TRAINER_EXIT_H

enum {
    HS_EXIT_DONE = 0,
    HS_EXIT_NUMERICAL_STOP = 1, /* diverged, or too many skips in a row */
    HS_EXIT_USAGE = 2,
    HS_EXIT_INPUT = 3,       /* a bad input file */
    HS_EXIT_OUTPUT = 4,      /* something could not be written */
    HS_EXIT_UNAVAILABLE = 5, /* backend, device or memory */
    HS_EXIT_INTERRUPTED = 130
};

#endif
