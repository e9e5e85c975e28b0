/*
 * The chosen set as text, for checkpoints: which levers are in use and, of the gated ones, what
 * stands behind them. The
 * text is a selection too (selection.h): it makes a context with exactly that set, or none.
 */
#ifndef HS_ENGINE_LEVERS_PIN_H
#define HS_ENGINE_LEVERS_PIN_H

#include "engine/levers/selection.h"

/* JSON on one line, which the caller frees; NULL for want of memory. */
char *hs_pin_write(const char *backend, const hs_lever_table *table);

/* Whether a selection is such a text. */
bool hs_pin_is(const char *selection);

/*
 * One wish for each of the backend's levers. Fails with HSTEP_ERROR_ARGUMENT where the text is none of hs_pin_write's,
 * and with HSTEP_ERROR_BACKEND_UNAVAILABLE where it names another backend, or a lever that this build has not.
 */
hstep_status hs_pin_parse(const char *text, const hs_backend *backend, hs_wishes *wishes, hstep_error *error);

#endif
