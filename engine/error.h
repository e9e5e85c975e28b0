/* Statuses and their words. Private to the engine and to backends. */
#ifndef HS_ENGINE_ERROR_H
#define HS_ENGINE_ERROR_H

#include <halfstep/types.h>

/* Fills *error, where there is one, and returns `status`, so that a failure is one return statement. */
hstep_status hs_fail(hstep_error *error, hstep_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same, naming the operation to blame. */
hstep_status hs_fail_operation(hstep_error *error, hstep_status status, const char *operation, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

hstep_status hs_fail_memory(hstep_error *error, const char *what);

#define HS_RETURN_IF(condition, error, status, ...)                                                                    \
    do {                                                                                                               \
        if (condition)                                                                                                 \
            return hs_fail((error), (status), __VA_ARGS__);                                                            \
    } while (0)

/* The same, naming the operation to blame. */
#define HS_BLAME_IF(condition, error, status, operation, ...)                                                          \
    do {                                                                                                               \
        if (condition)                                                                                                 \
            return hs_fail_operation((error), (status), (operation), __VA_ARGS__);                                     \
    } while (0)

#define HS_FORWARD(expression)                                                                                         \
    do {                                                                                                               \
        const hstep_status hs_status_ = (expression);                                                                  \
        if (hs_status_ != HSTEP_OK)                                                                                    \
            return hs_status_;                                                                                         \
    } while (0)

#endif
