/* `trainer train --dry-run`: everything is made, nothing is trained. */
#ifndef HS_TRAINER_DRY_RUN_H
#define HS_TRAINER_DRY_RUN_H

#include "trainer/options/options.h"

/* Prints what the run will take as one JSON object on stdout. Returns the exit status. */
int hs_dry_run(const hs_options *options);

#endif
