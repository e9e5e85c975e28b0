/* Where the records of a run go. */
#ifndef HS_TRAINER_OUTPUT_H
#define HS_TRAINER_OUTPUT_H

#include <halfstep/records.h>

#include "trainer/options/options.h"

/* Path of the records ("-" for standard output), from malloc; makes the folder. Fills *error when it returns NULL. */
char *hs_output_path(const hs_options *options, hstep_error *error);

#endif
