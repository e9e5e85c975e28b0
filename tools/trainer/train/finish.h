/* What a run does besides updates: evaluations, the sample, the warning, the last record. */
#ifndef HS_TRAINER_FINISH_H
#define HS_TRAINER_FINISH_H

#include "trainer/train/run.h"

/* On `batches` batches of the held-out tail, all with 0. Nothing where nothing is held out. */
hstep_status hs_run_evaluate(hs_run *run, uint64_t batches, hstep_error *error);

/* One warning in a run, when more than 5% of its attempts were skipped. */
hstep_status hs_run_warn_of_skips(hs_run *run, hstep_error *error);

/* The evaluation over the whole tail, the right answers and the sample, as far as no interrupt comes. */
hstep_status hs_run_conclude(hs_run *run, hstep_error *error);

/* The last record. `message`: why it ended early, or NULL. */
hstep_status hs_run_write_end(hs_run *run, hstep_run_outcome outcome, const char *message, hstep_error *error);

#endif
