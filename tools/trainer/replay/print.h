/* What `trainer replay` says. */
#ifndef HS_TRAINER_REPLAY_PRINT_H
#define HS_TRAINER_REPLAY_PRINT_H

#include <stdbool.h>
#include <stdio.h>

#include "trainer/replay/attempt.h"

/* Whether both name the same operation, tensor, phase, kind and index. */
bool hs_replay_agrees(const hs_attempt *attempt, const hstep_explanation *found);

void hs_replay_print(FILE *out, const hs_attempt *attempt, const hstep_explanation *found);

/* One JSON object. Returns HS_EXIT_DONE or reports. */
int hs_replay_print_json(FILE *out, const hs_attempt *attempt, const hstep_explanation *found);

#endif
