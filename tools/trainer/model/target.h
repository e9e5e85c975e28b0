/* The file that a command was asked to write. */
#ifndef HS_TRAINER_TARGET_H
#define HS_TRAINER_TARGET_H

#include <stdbool.h>

/*
 * What is there is written over on request alone, and what is read never: `source`, where it is not NULL. Returns
 * HS_EXIT_DONE or reports, in the name of `command`.
 */
int hs_target_check(const char *command, const char *source, const char *path, bool overwrite);

#endif
