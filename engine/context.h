/* The inside of a context. */
#ifndef HS_ENGINE_CONTEXT_H
#define HS_ENGINE_CONTEXT_H

#include "engine/backend.h"
#include "engine/levers/levers.h"

struct hstep_context {
    hs_backend *backend;
    hs_backend *reference; /* made when first needed; may be the backend itself */
    hs_lever_table levers;
    bool has_allocator;
    hstep_allocator allocator; /* for backends on the processor, the reference too */
    bool one_thread;           /* of those that the backend has */
};

/* For tests: a context on backends made elsewhere, which it then owns, with their levers as they are. reference may be
 * NULL. */
hstep_status hs_context_adopt(hs_backend *backend, hs_backend *reference, hstep_context **context, hstep_error *error);

/* Those that compute as it is set now. */
static inline unsigned hs_context_threads_now(const hstep_context *context) {
    return context->one_thread ? 1 : context->backend->api->threads(context->backend);
}

/* The backend that names overflows (policy, section 5). */
hstep_status hs_context_reference(hstep_context *context, hs_backend **reference, hstep_error *error);

#endif
