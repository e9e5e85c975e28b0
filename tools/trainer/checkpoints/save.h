/* What a run puts into a checkpoint, and takes from it. */
#ifndef HS_TRAINER_SAVE_H
#define HS_TRAINER_SAVE_H

#include "trainer/checkpoints/continued.h"

/*
 * Writes a checkpoint and its record, and removes old checkpoints; does nothing where the run has no folder, or where
 * this state is saved. `finished`: nothing is left to do but the last record.
 */
hstep_status hs_run_save(hs_run *run, bool finished, hstep_error *error);

/* Puts the run where the checkpoint of options->resumed left it. *place: where its records go on. */
hstep_status hs_run_restore(hs_run *run, hs_records_place *place, hstep_error *error);

#endif
