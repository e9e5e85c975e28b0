/* The configuration of a run as a checkpoint keeps it: a JSON object like that of --config. */
#ifndef HS_TRAINER_STORED_H
#define HS_TRAINER_STORED_H

#include <jansson.h>

#include "trainer/options/options.h"

/* A path may hold bytes that are no UTF-8, which JSON has no text for: {"bytes": "hexadecimal digits"}. */
json_t *hs_text_as_json(const char *text);

/* The options that are set, by name; NULL without memory. */
json_t *hs_stored_configuration(const hs_options *options);

/*
 * --resume: looks for the newest checkpoint in --out, and takes what its run was configured with for everything that
 * this command does not say. An option that is said, decides numbers, and differs, is refused with all its like unless
 * --allow-changes stands beside it. Fills options->resumed. Returns HS_EXIT_DONE or reports.
 */
int hs_stored_read(hs_options *options);

/* Takes over all that the checkpoint at `path` was configured with, and its levers. Returns HS_EXIT_DONE or reports. */
int hs_stored_load(const char *path, hs_options *options);

/*
 * What an option has to be stored as, NULL where nothing is stored of it; and the options that a configuration stands
 * for, which hs_options_free frees: those that it lacks are 0.
 */
json_t *hs_stored_value(const hs_option *option, const hs_options *options);
int hs_stored_unpack(const json_t *configuration, const char *path, hs_options *options);

/* Frees what the functions above left in the options. */
void hs_stored_free(hs_options *options);

#endif
