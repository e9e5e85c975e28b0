/**
 * @file halfstep.h
 * halfstep: mixed-precision training with updates as transactions. This header includes all the others.
 *
 * Intended usage, from the simple to the advanced (docs/embedding.md has whole programs):
 *  1. Numbers alone: hstep_encode, hstep_decode and hstep_matmul (number.h) need nothing else.
 *  2. hstep_context_create (context.h): a backend with its threads. All that follows hangs on a context.
 *  3. A model (model.h): hstep_model_create_decoder and hstep_model_initialize.
 *  4. Learning (trainer.h): hstep_trainer_create, then hstep_trainer_update once for every step. Read what became of it
 *     in hstep_update; after a skip call again with the same batch.
 *  5. Text as tokens (data.h), text that a model writes (decoding.h).
 *  6. Runs that last: checkpoint.h keeps and restores them, records.h says what happened.
 *  7. Models and losses of one's own (graph.h); the steps of an update one at a time, and why one was skipped
 *     (trainer.h).
 *  8. What an attempt did to its numbers: norms, largest values, what the half formats lose (trace.h).
 *  9. Faster ways to compute (levers.h); files of tensors (tensor_file.h) beside those of other frameworks (compare.h).
 *
 * What holds everywhere:
 *  - The library never prints, exits or aborts. A function that can fail returns hstep_status and describes the failure
 *    in an hstep_error that the caller owns, or NULL. A call that fails leaves what it was given as it was: handles,
 *    arrays and places for results, unless the function's own text says otherwise.
 *  - Handles are opaque, and belong to who made them: destroy them in the reverse order. Destroying NULL does nothing;
 *    functions that return no status need a handle that is there.
 *  - Matrices and tensors are dense and row-major, numbers f64 unless a type says otherwise, losses in nats, times in
 *    seconds, memory in bytes. Texts are UTF-8 and end with a zero. The formulas, each with its order of operations,
 * are those of docs/policy.md.
 *  - Two contexts may be used by two threads; one context, with all that was made from it, by one thread at a time.
 */
#ifndef HALFSTEP_HALFSTEP_H
#define HALFSTEP_HALFSTEP_H

#include <halfstep/checkpoint.h>
#include <halfstep/compare.h>
#include <halfstep/context.h>
#include <halfstep/data.h>
#include <halfstep/decoding.h>
#include <halfstep/graph.h>
#include <halfstep/levers.h>
#include <halfstep/model.h>
#include <halfstep/number.h>
#include <halfstep/optim.h>
#include <halfstep/records.h>
#include <halfstep/tensor_file.h>
#include <halfstep/trace.h>
#include <halfstep/trainer.h>
#include <halfstep/types.h>

/** Before 1.0.0 every minor version may change the interface; the shared library's name carries both numbers. */
#define HSTEP_VERSION_MAJOR 0
/** Second number of the version. */
#define HSTEP_VERSION_MINOR 1
/** Third number of the version. */
#define HSTEP_VERSION_PATCH 0
/** The version as text. */
#define HSTEP_VERSION "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif

/** The version of the library that runs, as opposed to the header's HSTEP_VERSION. */
HSTEP_API const char *hstep_version(void);

#ifdef __cplusplus
}
#endif
#endif
