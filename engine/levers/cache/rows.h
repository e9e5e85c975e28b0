/* A verdict as JSON and back. */
#ifndef HS_ENGINE_LEVERS_CACHE_ROWS_H
#define HS_ENGINE_LEVERS_CACHE_ROWS_H

#include <jansson.h>

#include "engine/levers/levers.h"

/* A new object, or NULL for want of memory. */
json_t *hs_cache_pack(const hs_verdict *verdict);

/* Whether an object is a whole verdict that does not contradict itself. The worst case and the speed are found again
 * from its rows. */
bool hs_cache_unpack(const json_t *object, hs_verdict *verdict);

#endif
