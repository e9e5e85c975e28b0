/* Messages to people, on stderr. */
#ifndef HS_TRAINER_REPORT_H
#define HS_TRAINER_REPORT_H

#include <halfstep/types.h>

/* "trainer: ..." and a newline. */
void hs_report(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A usage error with a pointer to `trainer COMMAND --help`, or to `trainer --help` when command is NULL.
   Returns HS_EXIT_USAGE. */
int hs_report_usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Memory that ran out before there was anything to be freed. Returns HS_EXIT_UNAVAILABLE. */
int hs_report_no_memory(void);

/* What the library says. Returns the exit status that belongs to it. */
int hs_report_error(const hstep_error *error);

#endif
