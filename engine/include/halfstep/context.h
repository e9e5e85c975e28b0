/**
 * @file context.h
 * A context owns a backend and its threads. Two contexts share nothing and may be used by two threads at once;
 * one context, and all that was made from it, belongs to one thread at a time.
 */
#ifndef HALFSTEP_CONTEXT_H
#define HALFSTEP_CONTEXT_H

#include <stddef.h>

#include <halfstep/levers.h>
#include <halfstep/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A backend with its threads; what hstep_context_create makes. */
typedef struct hstep_context hstep_context;

/** What computes. */
typedef enum hstep_backend {
    HSTEP_BACKEND_AUTO = 0,          /**< VULKAN on a GPU that keeps the reference's bits, else CPU. */
    HSTEP_BACKEND_CPU = 1,           /**< Threaded kernels; with exact levers, the bits of the reference. */
    HSTEP_BACKEND_CPU_REFERENCE = 2, /**< Plain single-threaded loops: the oracle. */
    HSTEP_BACKEND_VULKAN = 3         /**< A Vulkan device (docs/vulkan.md), where this build and this system have it. */
} hstep_backend;

/** The inner dimension of products to come. */
typedef struct hstep_product_depth {
    hstep_precision precision; /**< Of the product. */
    size_t k;                  /**< Its inner dimension. */
} hstep_product_depth;

/** How much a message of the log matters. */
typedef enum hstep_log_level {
    HSTEP_LOG_NOTE = 0,   /**< All is as it should be; somebody may want to know it. */
    HSTEP_LOG_WARNING = 1 /**< Results are right, but something is slower or will be done again. */
} hstep_log_level;

/**
 * Gets what the library has no status for, because the call goes on: why AUTO takes no GPU, that a lever is rejected or
 * could not be judged, that kept verdicts cannot be read or written.
 * @param message  One sentence or two without a line end; lives until the function returns.
 */
typedef void hstep_log(hstep_log_level level, const char *message, void *user);

/**
 * Where the backends CPU and CPU_REFERENCE take the memory from that hstep_context_memory counts: weights, moments,
 * gradients, activations, caches of decoding, and what kernels work with. All else, which is small or lasts as long as
 * one call, comes from malloc, and a device's memory from its driver. Called by the thread that uses the context.
 */
typedef struct hstep_allocator {
    /** At least `bytes` bytes, never 0, at a multiple of `alignment`, a power of two up to 64; of any content. NULL
     *  where there are none: the call that needs them then fails with HSTEP_ERROR_MEMORY. */
    void *(*allocate)(size_t bytes, size_t alignment, void *user);
    void (*release)(void *memory, size_t bytes, void *user); /**< What `allocate` gave, with the same number. */
    void *user;                                              /**< Handed to both. */
} hstep_allocator;

/** How a context is made; hstep_context_defaults gives one to change. */
typedef struct hstep_context_options {
    hstep_backend backend; /**< An explicit choice is never replaced by another one. */
    unsigned threads;      /**< 0: as many as the process may run on. The reference always uses one. */

    /**
     * Which faster ways to compute may be used (levers.h). "exact", and NULL, takes none of the gated ones: the
     * bits are the reference's, and nothing is measured or written. "auto" takes those that pass and win here; the
     * first time on a machine that takes some seconds, and the verdict is kept in the user's cache directory. "none"
     * also leaves out what needs a certain processor. A list such as "+cpu.openblas,-cpu.avx512" changes "auto": with
     * + a lever is required, even where it is slower, with - it is left out. The text of hstep_context_lever_set takes
     * that very set.
     */
    const char *levers;

    /**
     * Products to come, if they are known: gated levers are then judged at these inner dimensions too, and those that
     * serve none of the precisions are left alone. NULL: unknown.
     */
    const hstep_product_depth *products;
    size_t product_count; /**< How many there are in `products`. */
    int judge_anew;       /**< Nonzero: verdicts that were kept do not count. */

    /**
     * Which device of the backend VULKAN: a number in the system's order, from 0, or a part of a device's name. NULL:
     * the one that promises most.
     */
    const char *device;

    hstep_log *log; /**< NULL: messages go nowhere. Called by the thread that made the call, from within it. */
    void *log_user; /**< Handed to `log`. */

    /**
     * NULL: the system's memory, in large pages where that is faster. What is pointed to is copied; the functions must
     * be there until the context is destroyed.
     */
    const hstep_allocator *allocator;
} hstep_context_options;

/** AUTO backend, all processors, exact levers. */
HSTEP_API hstep_context_options hstep_context_defaults(void);

/**
 * @param options  NULL for the defaults.
 * @return HSTEP_ERROR_BACKEND_UNAVAILABLE when the backend is not there (an explicit choice never falls back), or when
 *         the calling thread flushes subnormals or does not round to nearest, so that no bit could be promised;
 *         HSTEP_ERROR_BACKEND_UNAVAILABLE too for a required lever that is not there or was rejected;
 *         HSTEP_ERROR_ARGUMENT for an unknown backend or lever, or more than 1024 threads; HSTEP_ERROR_MEMORY, also for
 *         threads that the process cannot have. *context is then untouched.
 */
HSTEP_API hstep_status hstep_context_create(const hstep_context_options *options, hstep_context **context,
                                            hstep_error *error);

/** Models and trainers made from the context must be destroyed first. NULL is ignored. */
HSTEP_API void hstep_context_destroy(hstep_context *context);

/** "cpu", "cpu-reference" or "vulkan"; lives as long as the context. */
HSTEP_API const char *hstep_context_backend_name(const hstep_context *context);

/** The processor's or device's own name; lives as long as the context. */
HSTEP_API const char *hstep_context_device_name(const hstep_context *context);

/** Threads that compute: the number asked for, or that of the processors; 1 on the reference. */
HSTEP_API unsigned hstep_context_threads(const hstep_context *context);

/**
 * From the next computation on, one of the context's threads computes alone, or all again where `one` is 0. A small
 * model on processors that have other work runs faster so. No bit depends on it unless a gated lever is active.
 */
HSTEP_API void hstep_context_use_one_thread(hstep_context *context, int one);

/**
 * Bytes that the context's models and trainers hold on its backend: weights, moments, gradients, activations and
 * working memory. What is held but was never written may not take memory yet.
 */
HSTEP_API size_t hstep_context_memory(const hstep_context *context);

/** What a device was asked to do, since its context was made. */
typedef struct hstep_work {
    uint64_t bytes_up;    /**< From the host to the device. */
    uint64_t bytes_down;  /**< From the device to the host. */
    uint64_t submissions; /**< Lists of commands handed to the device. */
    uint64_t dispatches;  /**< Kernels in them. */
    uint64_t barriers;    /**< Places where a kernel waits for those before. */
} hstep_work;

/**
 * The difference of two looks is what was done between. Backends on the host's own processor count nothing.
 * @return 1 with *work filled, or 0 where nothing is counted, and *work is as it was.
 */
HSTEP_API int hstep_context_work(const hstep_context *context, hstep_work *work);

/** A device of the backend VULKAN. */
typedef struct hstep_device {
    char name[256];    /**< The device's own name. */
    char driver[256];  /**< Name and version of its driver. */
    int software;      /**< 1 where the driver computes on the processor; AUTO never takes it. */
    char refusal[128]; /**< Why it cannot serve; empty where it can. */
} hstep_device;

/**
 * The devices in the system's order: their places are the numbers that hstep_context_options.device takes.
 *
 * @param devices  Gets an array, to be freed with hstep_devices_free.
 * @param count    Gets how many there are.
 * @return HSTEP_ERROR_BACKEND_UNAVAILABLE, with the reason, where this build or this system has no Vulkan;
 *         HSTEP_ERROR_MEMORY. *devices and *count are then untouched.
 */
HSTEP_API hstep_status hstep_devices_list(hstep_device **devices, size_t *count, hstep_error *error);

/** NULL is ignored. */
HSTEP_API void hstep_devices_free(hstep_device *devices);

/** Every lever known to the backend; returns how many, and their table, which lives as long as the context. */
HSTEP_API size_t hstep_context_levers(const hstep_context *context, const hstep_lever **levers);

/**
 * The levers in use, as one line of JSON that lives as long as the context. As hstep_context_options.levers it makes a
 * context with exactly that set, so that a run which is resumed computes as it did before; where a lever of it is
 * absent, rejected, unknown, or where something else stands behind it than before, hstep_context_create fails with
 * HSTEP_ERROR_BACKEND_UNAVAILABLE and the reason. Verdicts that were kept still count.
 */
HSTEP_API const char *hstep_context_lever_set(const hstep_context *context);

/**
 * Keeps, in the user's cache directory, that long runs have shown a gated lever to be wrong on this machine: contexts
 * that are made from now on find it rejected, whatever the gate says, until hstep_context_clear_rejection. This context
 * goes on as it is.
 * @param reason  A sentence, of which 190 bytes are kept.
 * @return HSTEP_ERROR_ARGUMENT for a lever that is unknown or exact; HSTEP_ERROR_OUTPUT_FILE when it could not be kept.
 */
HSTEP_API hstep_status hstep_context_reject_lever(hstep_context *context, const char *lever, const char *reason,
                                                  hstep_error *error);

/**
 * Takes hstep_context_reject_lever back.
 * @param cleared  Becomes 1, or 0 where there was nothing to take back.
 * @return The errors of hstep_context_reject_lever.
 */
HSTEP_API hstep_status hstep_context_clear_rejection(hstep_context *context, const char *lever, int *cleared,
                                                     hstep_error *error);

#ifdef __cplusplus
}
#endif
#endif
