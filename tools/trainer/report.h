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

/* Fills *error for a want of memory. */
hstep_status hs_no_memory(hstep_error *error);

/* The fewest digits that read back as the same number: what a message shows can be typed in again. */
typedef struct hs_digits {
    char text[32];
} hs_digits;

hs_digits hs_digits_of(double number);

/* The quotation mark that a word needs around it to be seen as one, or "". */
const char *hs_report_mark(const char *word);

/* What the library says. Returns the exit status that belongs to it. */
int hs_report_error(const hstep_error *error);

#endif
