/**
 * @file context.h
 * A context owns a backend and its threads. Two contexts share nothing and may be used by two threads at once;
 * one context, and all that was made from it, belongs to one thread at a time.
 */
#ifndef HALFSTEP_CONTEXT_H
#define HALFSTEP_CONTEXT_H

#include <stddef.h>

#include <halfstep/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hstep_context hstep_context;

typedef enum hstep_backend {
    HSTEP_BACKEND_AUTO = 0,
    HSTEP_BACKEND_CPU = 1,           /**< Threaded kernels with the bits of the reference. */
    HSTEP_BACKEND_CPU_REFERENCE = 2, /**< Plain single-threaded loops: the oracle. */
    HSTEP_BACKEND_VULKAN = 3         /**< Not built yet: asking for it is HSTEP_ERROR_BACKEND_UNAVAILABLE. */
} hstep_backend;

typedef struct hstep_context_options {
    hstep_backend backend;
    unsigned threads; /**< 0: as many as the process may run on. The reference always uses one. */
} hstep_context_options;

/** What became of a faster way to compute something on this machine. */
typedef enum hstep_lever_state {
    HSTEP_LEVER_ABSENT = 0,
    HSTEP_LEVER_NOT_BUILT = 1,
    HSTEP_LEVER_FAILED_TO_BUILD = 2,
    HSTEP_LEVER_REJECTED = 3,
    HSTEP_LEVER_SLOWER = 4,
    HSTEP_LEVER_DISABLED = 5,
    HSTEP_LEVER_ACTIVE = 6
} hstep_lever_state;

typedef struct hstep_lever {
    const char *name; /**< Such as "cpu.portable". */
    int exact;        /**< Nonzero: gives the reference's bits. Zero: judged by the gate. */
    hstep_lever_state state;
    const char *reason; /**< Why it is in that state. */
} hstep_lever;

/** AUTO backend, all processors. */
HSTEP_API hstep_context_options hstep_context_defaults(void);

/**
 * @param options  NULL for the defaults.
 * @return HSTEP_ERROR_BACKEND_UNAVAILABLE when the backend is not there (an explicit choice never falls back), or when
 *         the calling thread flushes subnormals or does not round to nearest, so that no bit could be promised;
 *         HSTEP_ERROR_ARGUMENT for an unknown backend or more than 1024 threads.
 */
HSTEP_API hstep_status hstep_context_create(const hstep_context_options *options, hstep_context **context,
                                            hstep_error *error);

/** Models and trainers made from the context must be destroyed first. NULL is ignored. */
HSTEP_API void hstep_context_destroy(hstep_context *context);

/** "cpu" or "cpu-reference"; lives as long as the context. */
HSTEP_API const char *hstep_context_backend_name(const hstep_context *context);

/** The processor's or device's own name. */
HSTEP_API const char *hstep_context_device_name(const hstep_context *context);

HSTEP_API unsigned hstep_context_threads(const hstep_context *context);

/** Every lever known to the backend; returns how many, and their table, which lives as long as the context. */
HSTEP_API size_t hstep_context_levers(const hstep_context *context, const hstep_lever **levers);

/** "absent", "not built", "failed to build", "rejected", "slower", "disabled" or "active". */
HSTEP_API const char *hstep_lever_state_name(hstep_lever_state state);

#ifdef __cplusplus
}
#endif
#endif
