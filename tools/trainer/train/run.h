/* Everything that a run is made of: data, context, model, trainer, records. */
#ifndef HS_TRAINER_RUN_H
#define HS_TRAINER_RUN_H

#include <halfstep/halfstep.h>
#include <halfstep/records.h>

#include "trainer/options/options.h"
#include "trainer/text/corpus.h"
#include "trainer/train/pace.h"
#include "trainer/train/records/tally.h"
#include "trainer/train/watching/progress.h"

typedef struct hs_run {
    const hs_options *options;
    hs_corpus corpus; /* without text when --data was given */
    hstep_dataset *dataset;
    double unigram_loss;
    hstep_context *context;
    hstep_decoder_config decoder;
    hstep_model *model;
    hstep_trainer *trainer;
    char *folder; /* of checkpoints; NULL for none */
    int lock;     /* on the folder; -1 for none */
    char *records_path;
    hstep_records *records;
    hstep_data_position position;       /* of the next window */
    bool finished;                      /* in an earlier part, and no step since: only the last record may be missing */
    bool continued;                     /* records go on behind those of an earlier part */
    char last_checkpoint[HS_PATH_ROOM]; /* the newest that is whole; empty for none */
    bool saved;                         /* the state after saved_attempts, at saved_step, is in a checkpoint */
    uint64_t saved_attempts, saved_step;
    double held_out_loss; /* of the weights as they are; NaN: not measured */
    /* One window: window_count batches, each of batch_tokens tokens and targets. */
    size_t window_count, batch_tokens;
    int32_t *tokens, *targets;
    hstep_batch *window;
    hs_tally tally;
    hs_progress progress;
    hs_pace pace;
    double start;
    bool warned;      /* of many skips */
    uint64_t dumps;   /* skipped attempts that this command was to keep so far */
    uint64_t correct; /* held-out sums answered right at the end */
} hs_run;

/* The first parts of hs_run_create: everything before the context; context, model without values, trainer. */
hstep_status hs_run_read_data(const hs_options *options, hs_run *run, hstep_error *error);
hstep_status hs_run_make(hs_run *run, hstep_error *error);

/* Sets a run up, in the order in which mistakes should be found; the output comes last. */
hstep_status hs_run_create(const hs_options *options, hs_run *run, hstep_error *error);

/* Writes the first record, or that the run goes on. */
hstep_status hs_run_write_start(hs_run *run, hstep_error *error);

/* Fills the window of the next step; the same one until hs_run_advance. */
hstep_status hs_run_fill_window(hs_run *run, hstep_error *error);

/* The window was learned. */
void hs_run_advance(hs_run *run);

/* Closes the records, whose last error counts, and frees all. */
hstep_status hs_run_destroy(hs_run *run, hstep_error *error);

#endif
