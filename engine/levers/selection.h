/* The words for a selection of levers: "auto", "exact", "none", or a list such as "+cpu.openblas,-cpu.avx512". */
#ifndef HS_ENGINE_LEVERS_SELECTION_H
#define HS_ENGINE_LEVERS_SELECTION_H

#include "engine/levers/levers.h"

typedef enum hs_wish {
    HS_WISH_AUTO,     /* if it is there, passes and wins */
    HS_WISH_REQUIRED, /* even where it is slower; without it nothing runs */
    HS_WISH_LEFT_OUT
} hs_wish;

/* One wish for each of the backend's levers. */
hstep_status hs_selection_parse(const char *text, const hs_backend *backend, hs_wish wishes[HS_MAX_LEVERS],
                                hstep_error *error);

#endif
