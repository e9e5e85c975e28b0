/* Skipped attempts that are kept, so that `trainer replay` can run them again. */
#ifndef HS_TRAINER_DUMP_H
#define HS_TRAINER_DUMP_H

#include "trainer/train/run.h"

/* The `schema` in the section "attempt"; beside it stand the window's tokens and targets, as little-endian int32. */
#define HS_ATTEMPT_SCHEMA "halfstep.attempt/1"
#define HS_SECTION_ATTEMPT "attempt"
#define HS_SECTION_TOKENS "attempt.tokens"
#define HS_SECTION_TARGETS "attempt.targets"

/*
 * Keeps a skipped attempt while this command has kept fewer than --dump-overflow, and writes a record of it. The state
 * is that after the skip, which is that before it but for the scaler and the number of attempts. Only records that
 * cannot be written are an error: a file that cannot be is a warning.
 */
hstep_status hs_run_dump(hs_run *run, const hstep_update *update, hstep_error *error);

#endif
