/* The inside of a context. */
#ifndef HS_ENGINE_CONTEXT_H
#define HS_ENGINE_CONTEXT_H

#include "engine/backend.h"

struct hstep_context {
    hs_backend *backend;
    hs_backend *reference; /* made when first needed; may be the backend itself */
};

/* For tests: a context on backends made elsewhere, which it then owns. reference may be NULL. */
hstep_status hs_context_adopt(hs_backend *backend, hs_backend *reference, hstep_context **context, hstep_error *error);

/* The backend that names overflows (policy, section 5). */
hstep_status hs_context_reference(hstep_context *context, hs_backend **reference, hstep_error *error);

#endif
