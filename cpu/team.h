/* The threads of a backend, made and looked at before any kernel needs them. */
#ifndef HS_CPU_TEAM_H
#define HS_CPU_TEAM_H

#include "engine/backend.h"

/*
 * Whether this process can have so many threads, and whether each of them computes as the policy needs it. OpenMP ends
 * the process when it cannot start a thread, so that is tried by other means first. The threads stay with OpenMP.
 */
hstep_status hs_team_start(unsigned threads, hstep_error *error);

#endif
