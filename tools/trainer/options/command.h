/* Commands besides `trainer train`: options by a table of their own, and words between them. */
#ifndef HS_TRAINER_COMMAND_H
#define HS_TRAINER_COMMAND_H

#include "trainer/options/options.h"

typedef struct hs_command {
    const char *name;       /* "sample" */
    const char *head, *end; /* of --help: what stands before the options, and after them */
    const char *word;       /* what the one word of the command is, such as "a checkpoint"; NULL: it takes none */
    const hs_option *table; /* offsets are into the settings of the command; one row is "help" */
    size_t count;
} hs_command;

/*
 * Sets defaults, reads arguments 1.. into `settings`, and the word into *word. At --help it prints the help, sets
 * the option, and *word is NULL. Texts stay those of argv. Returns HS_EXIT_DONE or reports.
 */
int hs_command_parse(const hs_command *command, int argc, char **argv, void *settings, const char **word);

#endif
