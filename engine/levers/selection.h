/*
 * The words for a selection of levers: "auto", "exact", "none", a list such as "+cpu.openblas,-cpu.avx512", or the text
 * of a pinned set (pin.h).
 */
#ifndef HS_ENGINE_LEVERS_SELECTION_H
#define HS_ENGINE_LEVERS_SELECTION_H

#include "engine/levers/levers.h"

typedef enum hs_wish {
    HS_WISH_AUTO,     /* if it is there, passes and wins */
    HS_WISH_REQUIRED, /* even where it is slower; without it nothing runs */
    HS_WISH_LEFT_OUT
} hs_wish;

/* One for each of a backend's levers. */
typedef struct hs_wishes {
    hs_wish wish[HS_MAX_LEVERS];
    bool pinned;                                       /* the set must be that of an earlier run, ... */
    char identities[HS_MAX_LEVERS][HS_LEVER_IDENTITY]; /* ... and the same things stand behind its gated levers */
} hs_wishes;

hstep_status hs_selection_parse(const char *text, const hs_backend *backend, hs_wishes *wishes, hstep_error *error);

/* Whether it is what serves when nothing else does. `lever` may lie beyond the backend's. */
bool hs_lever_is_fallback(const hs_backend *backend, size_t lever);

#endif
