#include "trainer/train/train.h"

#include <inttypes.h>
#include <string.h>

#include "trainer/exit.h"
#include "trainer/options/options.h"
#include "trainer/report.h"
#include "trainer/train/advice.h"
#include "trainer/train/clock.h"
#include "trainer/train/dry_run.h"
#include "trainer/train/finish.h"
#include "trainer/train/interrupt.h"
#include "trainer/train/run.h"

/* A caller decides how often to retry (policy, section 5): this one gives up here. */
enum { SKIPS_IN_A_ROW = 32 };

/* Before so many attempts a share of skips says little: a scale that starts high comes down by skips. */
enum { ATTEMPTS_BEFORE_WARNING = 100 };

/* One attempt at the window that is filled, with its record. */
static hstep_status attempt(hs_run *run, hstep_update *update, hstep_error *error) {
    const double start = hs_now();
    hstep_status status = hstep_trainer_update(run->trainer, run->window, run->window_count, update, error);
    if (status != HSTEP_OK)
        return status;
    hs_tally_add(&run->tally, update);
    status = hstep_records_write_update(run->records, update, hs_now() - start, error);
    if (status != HSTEP_OK)
        return status;
    hs_progress_update(&run->progress, update, run->tally.skipped);
    return run->tally.attempts >= ATTEMPTS_BEFORE_WARNING ? hs_run_warn_of_skips(run, error) : HSTEP_OK;
}

/* Attempts at one scheduled step until one is applied. A skip is retried with the same data. */
static hstep_status take_step(hs_run *run, uint64_t step, hstep_run_outcome *outcome, char *message, size_t size,
                              hstep_error *error) {
    hstep_status status = hs_run_fill_window(run, step, error);
    while (status == HSTEP_OK) {
        hstep_update update;
        status = attempt(run, &update, error);
        if (status == HSTEP_OK && update.nonfinite_weights) {
            *outcome = HSTEP_RUN_DIVERGED;
            snprintf(message, size,
                     "step %" PRIu64 " left weights that are not finite at learning rate %s: lower --learning-rate",
                     step, hs_digits_of(update.learning_rate).text);
        }
        if (status != HSTEP_OK || update.outcome == HSTEP_APPLIED)
            break;
        if (run->tally.skipped_in_row == SKIPS_IN_A_ROW) {
            *outcome = HSTEP_RUN_TOO_MANY_SKIPS;
            char advice[160];
            hs_advise_on_overflow(run->options, update.loss_scale, advice, sizeof advice);
            snprintf(message, size,
                     "step %" PRIu64 ": %d skips in a row, the last in operation %s at loss scale %s: %s", step,
                     SKIPS_IN_A_ROW, update.overflow.operation, hs_digits_of(update.loss_scale).text, advice);
            break;
        }
        if (hs_interrupted())
            break;
    }
    return status;
}

static hstep_status train(hs_run *run, hstep_run_outcome *outcome, char *message, size_t size, hstep_error *error) {
    const hs_options *o = run->options;
    hstep_status status = HSTEP_OK;
    for (uint64_t step = 1; step <= o->steps && !hs_interrupted(); ++step) {
        status = take_step(run, step, outcome, message, size, error);
        if (status == HSTEP_OK && *outcome == HSTEP_RUN_FINISHED && o->eval_every != 0 && step % o->eval_every == 0 &&
            step != o->steps && !hs_interrupted())
            status = hs_run_evaluate(run, o->eval_batches, error);
        if (status != HSTEP_OK || *outcome != HSTEP_RUN_FINISHED)
            return status;
    }
    if (!hs_interrupted())
        status = hs_run_conclude(run, error);
    if (status == HSTEP_OK && hs_interrupted()) {
        *outcome = HSTEP_RUN_INTERRUPTED;
        snprintf(message, size, "interrupted after step %" PRIu64, run->tally.steps);
    }
    return status;
}

static int exit_status(hstep_run_outcome outcome) {
    switch (outcome) {
    case HSTEP_RUN_FINISHED:
        return HS_EXIT_DONE;
    case HSTEP_RUN_INTERRUPTED:
        return HS_EXIT_INTERRUPTED;
    case HSTEP_RUN_DIVERGED:
    case HSTEP_RUN_TOO_MANY_SKIPS:
    case HSTEP_RUN_FAILED:
        break;
    }
    return HS_EXIT_NUMERICAL_STOP;
}

/* The run proper, from the first record to the last. */
static int perform(hs_run *run) {
    hstep_error error = {0}, end_error = {0};
    char message[512] = "";
    hstep_run_outcome outcome = HSTEP_RUN_FINISHED;
    hstep_status status = hs_run_write_start(run, &error);
    if (status == HSTEP_OK)
        status = train(run, &outcome, message, sizeof message, &error);
    hs_progress_clear(&run->progress);
    int result = exit_status(outcome);
    if (status != HSTEP_OK) {
        outcome = status == HSTEP_ERROR_NONFINITE_FORWARD ? HSTEP_RUN_DIVERGED : HSTEP_RUN_FAILED;
        snprintf(message, sizeof message, "%s", error.message);
        result = hs_report_error(&error);
    } else if (outcome != HSTEP_RUN_FINISHED) {
        hs_report("%s", message);
    }
    if (status == HSTEP_ERROR_OUTPUT_FILE)
        return result;
    status = hs_run_warn_of_skips(run, &end_error);
    if (status == HSTEP_OK)
        status = hs_run_write_end(run, outcome, outcome == HSTEP_RUN_FINISHED ? NULL : message, &end_error);
    if (status != HSTEP_OK)
        return hs_report_error(&end_error);
    if (strcmp(run->records_path, "-") != 0)
        hs_progress_say(&run->progress, "records: %s", run->records_path);
    return result;
}

static int run_with(const hs_options *options) {
    hs_run run;
    hstep_error error = {0};
    hs_interrupt_watch();
    int result = HS_EXIT_DONE;
    if (hs_run_create(options, &run, &error) == HSTEP_OK) {
        result = perform(&run);
    } else if (hs_interrupted()) {
        /* Reading from, or opening, a pipe was cut short: that is no fault of the file. */
        hs_report("interrupted before the first step");
        result = HS_EXIT_INTERRUPTED;
    } else {
        result = hs_report_error(&error);
    }
    if (hs_run_destroy(&run, &error) != HSTEP_OK && result == HS_EXIT_DONE)
        result = hs_report_error(&error);
    return result;
}

int hs_train(int argc, char **argv) {
    hs_options options;
    int result = hs_options_parse(argc, argv, &options);
    if (result == HS_EXIT_DONE && options.help)
        hs_options_help(stdout);
    else if (result == HS_EXIT_DONE)
        result = options.dry_run ? hs_dry_run(&options) : run_with(&options);
    hs_options_free(&options);
    return result;
}
