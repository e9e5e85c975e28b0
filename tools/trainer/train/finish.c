#include "trainer/train/finish.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/report.h"
#include "trainer/text/sample.h"
#include "trainer/train/advice.h"
#include "trainer/train/evaluate.h"
#include "trainer/train/watching/clock.h"
#include "trainer/train/watching/interrupt.h"

/* Tokens of a shard are nothing that this program could print. */
static bool is_text(const hs_run *run) { return hstep_dataset_token_type(run->dataset) == HSTEP_TOKENS_BYTES; }

hstep_status hs_run_evaluate(hs_run *run, uint64_t batches, hstep_error *error) {
    const hs_options *o = run->options;
    if (hstep_dataset_evaluation_windows(run->dataset, o->context, 0) == 0)
        return HSTEP_OK;
    const size_t limit = batches > SIZE_MAX / o->batch_size ? 0 : batches * o->batch_size;
    hs_evaluation result;
    const hstep_status status = hs_evaluate(run->model, run->dataset, o->context, limit, o->batch_size, run->tokens,
                                            run->targets, false, &result, error);
    if (status != HSTEP_OK || !result.complete)
        return status;
    run->held_out_loss = result.loss;
    hs_progress_pause(&run->progress, result.seconds);
    hs_progress_say(&run->progress, "step %" PRIu64 ": held-out loss %.4f nats per token (%s frequencies alone: %.4f)",
                    run->tally.steps, result.loss, is_text(run) ? "byte" : "token", run->unigram_loss);
    const hstep_evaluation_record record = {
        .step = run->tally.steps, .loss = result.loss, .tokens = result.tokens, .seconds = result.seconds};
    return hstep_records_write_evaluation(run->records, &record, error);
}

hstep_status hs_run_warn_of_skips(hs_run *run, hstep_error *error) {
    if (run->warned || !hs_tally_many_skips(&run->tally))
        return HSTEP_OK;
    run->warned = true;
    char advice[160], message[256];
    hs_advise_on_overflow(run->options, run->options->scaler.initial, advice, sizeof advice);
    snprintf(message, sizeof message, "%" PRIu64 " of %" PRIu64 " attempts were skipped: %s", run->tally.skipped,
             run->tally.attempts, advice);
    hs_progress_say(&run->progress, "trainer: warning: %s", message);
    const hstep_warning_record record = {
        .step = run->tally.steps,
        .kind = "skips",
        .message = message,
        .attempts = run->tally.attempts,
        .skipped = run->tally.skipped,
        .overflows = run->tally.overflows,
        .overflow_count = run->tally.overflow_count,
    };
    return hstep_records_write_warning(run->records, &record, error);
}

static hstep_status write_sample(hs_run *run, const int32_t *row, size_t prompt, size_t more, hstep_error *error) {
    char *text = malloc(prompt + more + 1);
    if (text == NULL)
        return hs_no_memory(error);
    const size_t size = hs_bytes_from_tokens(row, prompt + more, text);
    /* Standard output holds the records alone where they go there. */
    if (!run->options->quiet && strcmp(run->records_path, "-") != 0) {
        /* A prompt that is a line end would look like a stray empty line. */
        const size_t skipped = size > 0 && text[0] == '\n' ? 1 : 0;
        hs_progress_say(&run->progress, "sample:");
        fwrite(text + skipped, 1, size - skipped, stdout);
        putchar('\n');
        fflush(stdout);
    }
    const hstep_sample_record record = {
        .step = run->tally.steps,
        .prompt = text,
        .prompt_size = prompt,
        .text = text + prompt,
        .text_size = size - prompt,
    };
    const hstep_status status = hstep_records_write_sample(run->records, &record, error);
    free(text);
    return status;
}

static hstep_status sample(hs_run *run, hstep_error *error) {
    const hs_options *o = run->options;
    const size_t prompt = strlen(o->prompt), more = o->sample_tokens;
    if (more == 0 || !is_text(run))
        return HSTEP_OK;
    int32_t *row = calloc(prompt + more, sizeof *row);
    if (row == NULL)
        return hs_no_memory(error);
    hs_tokens_from_bytes(o->prompt, prompt, row);
    const hs_generation generation = {
        .model = run->model,
        .context = o->context,
        .temperature = o->temperature,
        .seed = o->seed,
    };
    hstep_status status = hs_generate(&generation, row, 1, prompt, more, error);
    if (status == HSTEP_OK && !hs_interrupted())
        status = write_sample(run, row, prompt, more, error);
    free(row);
    return status;
}

static hstep_status ask_questions(hs_run *run, hstep_error *error) {
    const size_t questions = run->corpus.question_count;
    if (questions == 0)
        return HSTEP_OK;
    const hstep_status status = hs_count_correct(run->model, &run->corpus, &run->correct, error);
    if (status == HSTEP_OK && !hs_interrupted())
        hs_progress_say(&run->progress, "held-out sums answered right: %" PRIu64 " of %zu (%.1f%%)", run->correct,
                        questions, 100 * (double)run->correct / (double)questions);
    return status;
}

hstep_status hs_run_conclude(hs_run *run, hstep_error *error) {
    hstep_status status = hs_run_evaluate(run, 0, error);
    if (status == HSTEP_OK && !hs_interrupted())
        status = ask_questions(run, error);
    if (status == HSTEP_OK && !hs_interrupted())
        status = sample(run, error);
    return status;
}

hstep_status hs_run_write_end(hs_run *run, hstep_run_outcome outcome, const char *message, hstep_error *error) {
    hstep_end_record record = {
        .outcome = outcome,
        .message = message,
        .steps = run->tally.steps,
        .attempts = run->tally.attempts,
        .skipped = run->tally.skipped,
        .tokens = run->tally.tokens,
        .seconds = hs_now() - run->start,
    };
    if (outcome == HSTEP_RUN_FINISHED) {
        record.correct = run->correct;
        record.questions = run->corpus.question_count;
    }
    const hstep_status status = hstep_model_checksum(run->model, &record.weights_checksum, error);
    if (status != HSTEP_OK && outcome != HSTEP_RUN_FAILED)
        return status;
    record.weights_lost = status != HSTEP_OK;
    return hstep_records_write_end(run->records, &record, error);
}
