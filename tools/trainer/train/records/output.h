/* Where the records of a run go. */
#ifndef HS_TRAINER_OUTPUT_H
#define HS_TRAINER_OUTPUT_H

#include <halfstep/data.h>
#include <halfstep/records.h>

#include "trainer/options/options.h"

/*
 * The folder of the run, which is made, and the path of its records ("-" for standard output), both from malloc. The
 * folder is NULL where --records is given and --out is not: there are no checkpoints then. `dataset` says which files
 * the run reads. The folder is locked until hs_folder_unlock, so that two runs never write in it at once; where the
 * file system has no locks, or there is no folder, *lock is -1.
 */
hstep_status hs_output_choose(const hs_options *options, const hstep_dataset *dataset, char **folder, int *lock,
                              char **records, hstep_error *error);

#endif
