#include "trainer/train/run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/checkpoints/continued.h"
#include "trainer/checkpoints/save.h"
#include "trainer/model/build.h"
#include "trainer/report.h"
#include "trainer/text/sample.h"
#include "trainer/train/records/lock.h"
#include "trainer/train/records/output.h"
#include "trainer/train/watching/clock.h"

#define FORWARD(expression)                                                                                            \
    do {                                                                                                               \
        const hstep_status forward_status = (expression);                                                              \
        if (forward_status != HSTEP_OK)                                                                                \
            return forward_status;                                                                                     \
    } while (0)

static hstep_status load_data(hs_run *run, hstep_error *error) {
    const hs_options *o = run->options;
    if (o->data.count > 0) {
        const hstep_dataset_options options = {.token_type = (hstep_token_type)o->token_type,
                                               .vocabulary = o->vocabulary,
                                               .evaluation_paths = o->eval_data.items,
                                               .evaluation_count = o->eval_data.count};
        FORWARD(hstep_dataset_load(o->data.items, o->data.count, &options, &run->dataset, error));
        if (o->eval_data.count == 0)
            FORWARD(hstep_dataset_hold_out(run->dataset, o->held_out, error));
    } else {
        if (!hs_corpus_create(o->seed, o->held_out, &run->corpus))
            return hs_no_memory(error);
        FORWARD(hstep_dataset_from_bytes(run->corpus.text, run->corpus.size, &run->dataset, error));
        FORWARD(hstep_dataset_split_at(run->dataset, run->corpus.training_size, error));
    }
    FORWARD(hstep_dataset_check(run->dataset, o->context, error));
    return hstep_dataset_unigram_loss(run->dataset, &run->unigram_loss, error);
}

/* Unless this command says which. */
static bool goes_on_with_levers(const hs_options *o) {
    size_t rows;
    return o->resumed.lever_set != NULL &&
           o->sources[hs_option_find("levers") - hs_option_table(&rows)] <= HS_SOURCE_CHECKPOINT;
}

static hstep_status make_model(hs_run *run, hstep_error *error) {
    const hs_options *o = run->options;
    const size_t vocabulary = hstep_dataset_vocabulary(run->dataset);
    FORWARD(hs_context_of(o, goes_on_with_levers(o) ? o->resumed.lever_set : o->levers, vocabulary,
                          o->batch_size * o->context, &run->context, error));
    run->decoder = hs_decoder_of(o, vocabulary);
    return hstep_model_create_decoder(run->context, &run->decoder, &run->model, error);
}

static hstep_status make_trainer(hs_run *run, hstep_error *error) {
    const hstep_trainer_config config = hs_trainer_config_of(run->options);
    return hstep_trainer_create(run->model, &config, &run->trainer, error);
}

static hstep_status make_window(hs_run *run, hstep_error *error) {
    const hs_options *o = run->options;
    run->window_count = o->replicas * o->micro_batches;
    run->batch_tokens = o->batch_size * o->context;
    const size_t count = run->window_count * run->batch_tokens;
    /* Each factor is at most 2^20. */
    if (count / run->batch_tokens != run->window_count)
        return hs_no_memory(error);
    run->tokens = calloc(count, sizeof *run->tokens);
    run->targets = calloc(count, sizeof *run->targets);
    run->window = calloc(run->window_count, sizeof *run->window);
    if (run->tokens == NULL || run->targets == NULL || run->window == NULL)
        return hs_no_memory(error);
    for (size_t i = 0; i < run->window_count; ++i)
        run->window[i] = (hstep_batch){
            .sequences = o->batch_size,
            .length = o->context,
            .tokens = run->tokens + i * run->batch_tokens,
            .targets = run->targets + i * run->batch_tokens,
        };
    return HSTEP_OK;
}

hstep_status hs_run_read_data(const hs_options *options, hs_run *run, hstep_error *error) {
    *run = (hs_run){.options = options,
                    .lock = -1,
                    .position = {.seed = options->seed, .length = options->context},
                    .held_out_loss = NAN};
    FORWARD(load_data(run, error));
    return make_window(run, error);
}

hstep_status hs_run_make(hs_run *run, hstep_error *error) {
    FORWARD(make_model(run, error));
    return make_trainer(run, error);
}

hstep_status hs_run_create(const hs_options *options, hs_run *run, hstep_error *error) {
    FORWARD(hs_run_read_data(options, run, error));
    FORWARD(hs_run_make(run, error));
    hs_records_place place = {0};
    bool nothing_left = false;
    if (options->resumed.found)
        FORWARD(hs_run_restore(run, &place, error));
    else
        FORWARD(hstep_model_initialize(run->model, (hstep_initialization)options->init, options->seed, error));
    FORWARD(hs_output_choose(options, run->dataset, &run->folder, &run->lock, &run->records_path, error));
    FORWARD(hs_records_go_on(run, &place, &nothing_left, error));
    if (nothing_left) {
        hs_report("the run in '%s' is finished after step %" PRIu64 ": nothing is left to do", options->out,
                  run->tally.steps);
        return HSTEP_OK;
    }
    /* A product of rows and weights forward, two backward. */
    if (options->threads == 0)
        hs_pace_start(&run->pace, run->context,
                      6.0 * (double)hstep_model_scalar_count(run->model) *
                          (double)(run->window_count * run->batch_tokens));
    run->start = hs_now();
    hs_progress_start(&run->progress, run->context, options->in_use, run->tally.steps, options->steps, options->quiet);
    return HSTEP_OK;
}

hstep_status hs_run_fill_window(hs_run *run, hstep_error *error) {
    const hstep_data_position *p = &run->position;
    return hstep_dataset_batch(run->dataset, p->seed, p->windows, run->window_count * run->options->batch_size,
                               p->length, run->tokens, run->targets, error);
}

void hs_run_advance(hs_run *run) {
    run->position.windows += run->window_count * run->options->batch_size;
    run->held_out_loss = NAN;
    run->finished = false;
}

hstep_status hs_run_destroy(hs_run *run, hstep_error *error) {
    const hstep_status status = run->records != NULL ? hstep_records_close(run->records, error) : HSTEP_OK;
    hs_folder_unlock(run->lock);
    free(run->folder);
    free(run->records_path);
    free(run->window);
    free(run->targets);
    free(run->tokens);
    hstep_trainer_destroy(run->trainer);
    hstep_model_destroy(run->model);
    hstep_context_destroy(run->context);
    hstep_dataset_destroy(run->dataset);
    hs_corpus_free(&run->corpus);
    return status;
}
