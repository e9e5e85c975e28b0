/* Where the records of a run go. */
#ifndef HS_TRAINER_OUTPUT_H
#define HS_TRAINER_OUTPUT_H

#include <halfstep/data.h>
#include <halfstep/records.h>

#include "trainer/options/options.h"

/*
 * Path of the records ("-" for standard output), from malloc; makes the folder. `dataset` says which files the run
 * reads. Fills *error when it returns NULL.
 */
char *hs_output_path(const hs_options *options, const hstep_dataset *dataset, hstep_error *error);

#endif
