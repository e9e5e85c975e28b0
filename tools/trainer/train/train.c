#include "trainer/train/train.h"

#include <inttypes.h>
#include <string.h>

#include "trainer/checkpoints/dump.h"
#include "trainer/checkpoints/save.h"
#include "trainer/exit.h"
#include "trainer/options/options.h"
#include "trainer/report.h"
#include "trainer/train/advice.h"
#include "trainer/train/dry_run.h"
#include "trainer/train/finish.h"
#include "trainer/train/run.h"
#include "trainer/train/watching/clock.h"
#include "trainer/train/watching/interrupt.h"

/* A caller decides how often to retry (policy, section 5): this one gives up here. */
enum { SKIPS_IN_A_ROW = 32 };

/* Before so many attempts a share of skips says little: a scale that starts high comes down by skips. */
enum { ATTEMPTS_BEFORE_WARNING = 100 };

/* Whether the record of the step to come tells of its numbers. */
static bool is_traced(const hs_run *run) {
    return run->options->trace != 0 && (run->tally.steps + 1) % run->options->trace == 0;
}

/* What was done between two looks. */
static hstep_work difference(const hstep_work *before, const hstep_work *after) {
    return (hstep_work){.bytes_up = after->bytes_up - before->bytes_up,
                        .bytes_down = after->bytes_down - before->bytes_down,
                        .submissions = after->submissions - before->submissions,
                        .dispatches = after->dispatches - before->dispatches,
                        .barriers = after->barriers - before->barriers};
}

/* One attempt at the window that is filled, and what is told of it. */
static hstep_status attempt_and_record(hs_run *run, hstep_update *update, hstep_error *error) {
    const double start = hs_now();
    const bool watched = run->options->trace != 0, traced = watched && is_traced(run);
    hstep_trace trace;
    hstep_work before = {0}, after = {0};
    const bool counted = watched && hstep_context_work(run->context, &before) != 0;
    hstep_status status = watched ? hstep_trainer_set_trace(run->trainer, traced, error) : HSTEP_OK;
    if (status == HSTEP_OK)
        status = hstep_trainer_update(run->trainer, run->window, run->window_count, update, error);
    if (status != HSTEP_OK)
        return status;
    /* The attempt is made, and has its record, even where its statistics could not be read back. */
    const bool has_trace = traced && hstep_trainer_trace(run->trainer, &trace, NULL) == HSTEP_OK;
    const double seconds = hs_now() - start;
    (void)hstep_context_work(run->context, &after);
    const hstep_work work = difference(&before, &after);
    if (update->outcome == HSTEP_APPLIED && !traced)
        hs_pace_note(&run->pace, seconds);
    hs_tally_add(&run->tally, update);
    const hstep_update_record record = {
        .update = update, .seconds = seconds, .trace = has_trace ? &trace : NULL, .work = counted ? &work : NULL};
    return hstep_records_write_update(run->records, &record, error);
}

static hstep_status attempt(hs_run *run, hstep_update *update, hstep_error *error) {
    hstep_status status = attempt_and_record(run, update, error);
    if (status != HSTEP_OK)
        return status;
    hs_progress_update(&run->progress, update, run->tally.skipped);
    status = hs_run_dump(run, update, error);
    if (status != HSTEP_OK)
        return status;
    return run->tally.attempts >= ATTEMPTS_BEFORE_WARNING ? hs_run_warn_of_skips(run, error) : HSTEP_OK;
}

/* How a run ends, and why where that is before its time. */
typedef struct ending {
    hstep_run_outcome outcome;
    char message[512];
    bool lost; /* the weights are of no use */
} ending;

static void end_by_skips(const hs_run *run, const hstep_update *update, ending *end) {
    end->outcome = HSTEP_RUN_TOO_MANY_SKIPS;
    char advice[160];
    hs_advise_on_overflow(run->options, update->loss_scale, advice, sizeof advice);
    snprintf(end->message, sizeof end->message,
             "step %" PRIu64 ": %d skips in a row, the last in operation %s at loss scale %s: %s", update->step,
             SKIPS_IN_A_ROW, update->overflow.operation, hs_digits_of(update->loss_scale).text, advice);
}

static void end_by_weights(const hstep_update *update, ending *end) {
    end->outcome = HSTEP_RUN_DIVERGED;
    end->lost = true;
    snprintf(end->message, sizeof end->message,
             "step %" PRIu64 " left weights that are not finite at learning rate %s: lower --learning-rate",
             update->step, hs_digits_of(update->learning_rate).text);
}

/* Attempts at one scheduled step until one is applied. A skip is retried with the same data. */
static hstep_status take_step(hs_run *run, ending *end, hstep_error *error) {
    hstep_status status = hs_run_fill_window(run, error);
    while (status == HSTEP_OK) {
        hstep_update update;
        status = attempt(run, &update, error);
        if (status == HSTEP_OK && update.outcome == HSTEP_APPLIED)
            hs_run_advance(run);
        if (status == HSTEP_OK && update.nonfinite_weights)
            end_by_weights(&update, end);
        if (status != HSTEP_OK || update.outcome == HSTEP_APPLIED)
            break;
        if (run->tally.skipped_in_row == SKIPS_IN_A_ROW) {
            end_by_skips(run, &update, end);
            break;
        }
        if (hs_interrupted())
            break;
    }
    return status;
}

static bool is_due(uint64_t every, const hs_run *run) { return every != 0 && run->tally.steps % every == 0; }

/* What stands between two steps. */
static hstep_status after_step(hs_run *run, hstep_error *error) {
    const hs_options *o = run->options;
    hstep_status status = HSTEP_OK;
    if (hs_interrupted() || run->tally.steps == o->steps)
        return status;
    if (is_due(o->eval_every, run))
        status = hs_run_evaluate(run, o->eval_batches, error);
    return status == HSTEP_OK && is_due(o->checkpoint_every, run) ? hs_run_save(run, false, error) : status;
}

static bool is_late(const hs_run *run) {
    return run->options->max_time > 0 && hs_now() - run->start >= run->options->max_time;
}

static hstep_status train(hs_run *run, ending *end, hstep_error *error) {
    const hs_options *o = run->options;
    hstep_status status = HSTEP_OK;
    while (run->tally.steps < o->steps && status == HSTEP_OK && !hs_interrupted() && !is_late(run)) {
        status = take_step(run, end, error);
        if (end->outcome != HSTEP_RUN_FINISHED)
            return status;
        if (status == HSTEP_OK)
            status = after_step(run, error);
    }
    if (status == HSTEP_OK && !hs_interrupted() && run->tally.steps == o->steps && !run->finished)
        status = hs_run_conclude(run, error);
    if (status == HSTEP_OK && hs_interrupted()) {
        end->outcome = HSTEP_RUN_INTERRUPTED;
        snprintf(end->message, sizeof end->message, "interrupted after step %" PRIu64, run->tally.steps);
    } else if (status == HSTEP_OK && run->tally.steps < o->steps) {
        end->outcome = HSTEP_RUN_TIME_LIMIT;
        snprintf(end->message, sizeof end->message, "stopped after step %" PRIu64 " for --max-time %s",
                 run->tally.steps, hs_digits_of(o->max_time).text);
    }
    return status;
}

static int exit_status(hstep_run_outcome outcome) {
    switch (outcome) {
    case HSTEP_RUN_FINISHED:
    case HSTEP_RUN_TIME_LIMIT:
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

/* An error of the library as an ending. Returns the exit status. */
static int end_by_error(const hstep_error *error, hstep_status status, ending *end) {
    end->outcome = status == HSTEP_ERROR_NONFINITE_FORWARD ? HSTEP_RUN_DIVERGED : HSTEP_RUN_FAILED;
    snprintf(end->message, sizeof end->message, "%s", error->message);
    return hs_report_error(error);
}

/* After a fault. */
static void say_how_to_go_on(const hs_run *run) {
    if (run->folder != NULL && run->saved)
        hs_report("the last checkpoint is of step %" PRIu64 ": go on from there with --out '%s' --resume",
                  run->saved_step, run->folder);
}

/* The run proper, from the first record to the last. */
static int perform(hs_run *run) {
    hstep_error error = {0}, end_error = {0};
    ending end = {.outcome = HSTEP_RUN_FINISHED};
    hstep_status status = hs_run_write_start(run, &error);
    if (status == HSTEP_OK)
        status = train(run, &end, &error);
    hs_progress_clear(&run->progress);
    int result = exit_status(end.outcome);
    if (status != HSTEP_OK)
        result = end_by_error(&error, status, &end);
    else if (end.outcome != HSTEP_RUN_FINISHED)
        hs_report("%s", end.message);
    /* However a run ends, it can go on, unless there is nothing to go on with. */
    const hstep_status saved = end.lost ? HSTEP_OK : hs_run_save(run, end.outcome == HSTEP_RUN_FINISHED, &end_error);
    if (saved != HSTEP_OK && status == HSTEP_OK)
        result = end_by_error(&end_error, saved, &end);
    /* Where a checkpoint found no room, the last record may. Where records found none, that was said already. */
    const bool said = status == HSTEP_ERROR_OUTPUT_FILE;
    status = hs_run_warn_of_skips(run, &end_error);
    if (status == HSTEP_OK)
        status = hs_run_write_end(run, end.outcome, end.outcome == HSTEP_RUN_FINISHED ? NULL : end.message, &end_error);
    if (status != HSTEP_OK && !said)
        result = hs_report_error(&end_error);
    if (status != HSTEP_OK || end.outcome == HSTEP_RUN_FAILED)
        say_how_to_go_on(run);
    if (status == HSTEP_OK && strcmp(run->records_path, "-") != 0)
        hs_progress_say(&run->progress, "records: %s", run->records_path);
    if (run->last_checkpoint[0] != '\0')
        hs_progress_say(&run->progress, "checkpoint: %s", run->last_checkpoint);
    return result;
}

static int run_with(const hs_options *options) {
    hs_run run;
    hstep_error error = {0};
    hs_interrupt_watch();
    int result = HS_EXIT_DONE;
    if (hs_run_create(options, &run, &error) == HSTEP_OK) {
        result = run.records != NULL ? perform(&run) : HS_EXIT_DONE;
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
