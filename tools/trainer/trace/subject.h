/* A model and a batch, as the options say. */
#ifndef HS_TRAINER_SUBJECT_H
#define HS_TRAINER_SUBJECT_H

#include <halfstep/halfstep.h>

#include "trainer/options/options.h"
#include "trainer/trace/settings.h"

typedef struct hs_subject {
    hs_options options;      /* the settings', with the model's own sizes */
    char file[HS_PATH_ROOM]; /* of the weights; empty where they are integers' */
    hstep_context *context;
    hstep_model *model;
    int32_t *tokens, *targets;
    hstep_batch batch;
} hs_subject;

/* Finds the weights' file and all sizes. Returns HS_EXIT_DONE or reports; hs_subject_close in either case. */
int hs_subject_open(const hs_trace_settings *settings, hs_subject *subject);

/* Makes the model and the batch. Reports alike. */
int hs_subject_make(const hs_trace_settings *settings, hs_subject *subject);

void hs_subject_close(hs_subject *subject);

#endif
