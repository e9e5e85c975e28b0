/* The demonstration record: the engine's numerical claims, computed and printed (docs/demonstration.md). */
#ifndef HS_TRAINER_DEMONSTRATION_H
#define HS_TRAINER_DEMONSTRATION_H

#include <stdio.h>

#include <halfstep/types.h>

/*
 * Writes one JSON object for `precision` to `out`. Returns the program's exit status: 0, 1 when the engine refused
 * something that the demonstration needs, 4 when `out` could not be written; a message then went to stderr.
 */
int demonstration_run(hstep_precision precision, FILE *out);

#endif
