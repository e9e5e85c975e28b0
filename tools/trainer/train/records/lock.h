/* The lock on the folder of a run, which goes with the process, however that ends. */
#ifndef HS_TRAINER_LOCK_H
#define HS_TRAINER_LOCK_H

#include <halfstep/types.h>

/*
 * Refused where another run has it. *lock is to be given to hs_folder_unlock; it is -1 where the folder is not there or
 * its file system has no locks, which is no error.
 */
hstep_status hs_folder_lock(const char *folder, int *lock, hstep_error *error);

/* The same error where a run that still lives has it: what would be read there may be gone a moment later. */
hstep_status hs_folder_check_unused(const char *folder, hstep_error *error);

/* -1 is ignored. */
void hs_folder_unlock(int lock);

#endif
