/*
 * Verdicts kept between processes, in $XDG_CACHE_HOME/halfstep/levers.json or ~/.cache/halfstep/levers.json. A verdict
 * is found by its key alone, which says everything that could change it. Nothing here fails: a file that cannot be read
 * or trusted holds nothing, and one that cannot be written costs the next process a few seconds.
 */
#ifndef HS_ENGINE_LEVERS_CACHE_CACHE_H
#define HS_ENGINE_LEVERS_CACHE_CACHE_H

#include "engine/levers/levers.h"

/* Room for a key, a reason, and what is wrong with the file. */
enum { HS_CACHE_KEY = 1280, HS_CACHE_REASON = 192, HS_CACHE_TROUBLE = 512 };

/* Whether there is a verdict, which is then the caller's. */
bool hs_cache_read(const char *lever, const char *key, hs_verdict *verdict);

/* Whether there is a file that cannot be read or trusted, and what is wrong with it. */
bool hs_cache_trouble(char trouble[HS_CACHE_TROUBLE]);

/* Keeps it in the place of an older one with that lever and key; false where it could not be written. */
bool hs_cache_write(const char *lever, const char *key, const hs_verdict *verdict);

/*
 * Whether long runs have shown a lever to be wrong on this machine (a processor or driver, and what stands behind the
 * lever): such a rejection holds, whatever the gate says, until somebody removes it from the file.
 */
bool hs_cache_is_rejected(const char *lever, const char *machine, char reason[HS_CACHE_REASON]);

/* Keeps such a rejection in the place of an older one; false where it could not be written. */
bool hs_cache_reject(const char *lever, const char *machine, const char *reason);

/* Removes it; false where the file could not be written. *found tells whether there was one. */
bool hs_cache_clear_rejection(const char *lever, const char *machine, bool *found);

#endif
