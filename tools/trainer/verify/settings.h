/* What `trainer verify` was asked for. */
#ifndef HS_TRAINER_VERIFY_SETTINGS_H
#define HS_TRAINER_VERIFY_SETTINGS_H

#include "trainer/options/options.h"

typedef enum hs_verify_reference { HS_VERIFY_EXACT, HS_VERIFY_CPU_REFERENCE } hs_verify_reference;

typedef struct hs_verify_settings {
    hs_texts levers;
    int against;   /* -1, or a hstep_precision */
    int reference; /* hs_verify_reference */
    const char *within_text, *clear;
    double within;
    bool json, help;
    hs_options options; /* those of `trainer train` */
} hs_verify_settings;

/* Reads arguments 1.. of the command. Returns HS_EXIT_DONE or reports; hs_verify_settings_free in either case. */
int hs_verify_settings_parse(int argc, char **argv, hs_verify_settings *settings);

void hs_verify_settings_free(hs_verify_settings *settings);

#endif
