/* Records that a run goes on in. */
#ifndef HS_TRAINER_CONTINUED_H
#define HS_TRAINER_CONTINUED_H

#include "trainer/train/run.h"

/*
 * Where records go on: behind so many bytes, 0 for nowhere. The print tells them from those of another file: a checksum
 * of the last of these bytes, or empty where they could not be read back.
 */
typedef struct hs_records_place {
    uint64_t bytes;
    char print[17];
} hs_records_place;

/* The end of the run's records as they are. */
hs_records_place hs_records_here(const hs_run *run);

/*
 * Opens the run's records: behind `place` where they are there, else from their beginning. The checkpoint's own record,
 * where it stands there, is kept. `*nothing_left`: the run is finished and all its records are written; they are not
 * opened then.
 */
hstep_status hs_records_go_on(hs_run *run, const hs_records_place *place, bool *nothing_left, hstep_error *error);

#endif
