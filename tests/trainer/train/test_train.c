/* `trainer train` from outside: records, determinism, outputs, bad input, stops. */
#include <dirent.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "support/program.h"

static const char LINE[] = "the quick brown fox jumps over the lazy dog. ";

static void enter(void) {
    hs_test_enter_folder();
    char text[20 * (sizeof LINE - 1) + 1] = "";
    for (int i = 0; i < 20; ++i)
        strcat(text, LINE);
    hs_test_write_file("text", text);
}

TestSuite(train, .init = enter, .fini = hs_test_leave_folder);

#define SMALL                                                                                                          \
    "--layers", "1", "--width", "8", "--heads", "2", "--feed-forward", "8", "--context", "8", "--batch-size", "2",     \
        "--quiet"
#define SMALL_TEXT "train", "--data", "text", SMALL, "--threads", "1"

static json_t *records_of(const hs_test_program *run, int status) {
    cr_assert_eq(run->status, status, "status %d: %s", run->status, run->err);
    return hs_test_parse_lines(run->out);
}

static const char *text_of(const json_t *record, const char *name) {
    const char *text = json_string_value(json_object_get(record, name));
    cr_assert_not_null(text, "%s", name);
    return text;
}

static double number_of(const json_t *record, const char *name) {
    const json_t *value = json_object_get(record, name);
    cr_assert(json_is_number(value), "%s", name);
    return json_number_value(value);
}

/* The records as text, without what may differ between two runs. */
static char *without_times(json_t *records) {
    for (size_t i = 0; i < json_array_size(records); ++i) {
        json_t *record = json_array_get(records, i);
        json_object_del(record, "seconds");
        json_object_del(record, "tokens_per_second");
        if (strcmp(json_string_value(json_object_get(record, "record")), "update") == 0)
            json_object_del(record, "threads");
        json_t *totals = json_object_get(record, "totals");
        if (totals != NULL)
            json_object_del(totals, "seconds");
    }
    return json_dumps(records, JSON_SORT_KEYS);
}

Test(train, leaves_a_record_of_everything) {
    hs_test_program run = HS_TEST_RUN(SMALL_TEXT, "--steps", "6", "--eval-every", "4", "--eval-batches", "1",
                                      "--sample-tokens", "5", "--prompt", "the ", "--records", "-");
    json_t *records = records_of(&run, 0);
    cr_assert_str_empty(run.err, "quiet is quiet: %s", run.err);
    cr_assert_eq(json_array_size(records), 1 + 6 + 2 + 1 + 1);
    cr_assert_str_eq(text_of(json_array_get(records, 0), "record"), "run");
    const json_t *data = json_array_get(json_object_get(hs_test_record(records, "run"), "data"), 0);
    cr_expect_eq(number_of(data, "tokens"), 900);
    cr_expect_eq(number_of(data, "training_tokens"), 810);
    cr_expect_eq(number_of(data, "evaluation_tokens"), 90);
    cr_expect_str_eq(text_of(data, "name"), "text");
    json_t *updates = hs_test_records_of(records, "update");
    cr_assert_eq(json_array_size(updates), 6);
    for (size_t i = 0; i < 6; ++i) {
        const json_t *update = json_array_get(updates, i);
        cr_expect_eq(number_of(update, "step"), (double)i + 1);
        cr_expect_eq(number_of(update, "tokens"), 16);
        cr_expect_str_eq(text_of(update, "outcome"), "applied");
    }
    json_t *evaluations = hs_test_records_of(records, "evaluation");
    cr_assert_eq(json_array_size(evaluations), 2);
    cr_expect_eq(number_of(json_array_get(evaluations, 0), "step"), 4);
    cr_expect_eq(number_of(json_array_get(evaluations, 0), "tokens"), 16, "one batch of two windows of eight");
    cr_expect_eq(number_of(json_array_get(evaluations, 1), "step"), 6);
    cr_expect_eq(number_of(json_array_get(evaluations, 1), "tokens"), 89, "the whole tail but its first token");
    cr_expect_str_eq(text_of(hs_test_record(records, "sample"), "prompt"), "the ");
    const json_t *end = json_array_get(records, json_array_size(records) - 1);
    cr_assert_str_eq(text_of(end, "record"), "end");
    cr_expect_str_eq(text_of(end, "outcome"), "finished");
    cr_expect(json_is_null(json_object_get(end, "success")), "a text has no questions");
    const json_t *totals = json_object_get(end, "totals");
    cr_expect_eq(number_of(totals, "steps"), 6);
    cr_expect_eq(number_of(totals, "tokens"), 96);
    json_decref(updates);
    json_decref(evaluations);
    json_decref(records);
    hs_test_program_free(&run);
}

Test(train, the_same_seed_gives_the_same_records) {
    char *texts[3], checksums[3][32];
    static const char *const seeds[] = {"5", "5", "6"};
    for (size_t i = 0; i < 3; ++i) {
        hs_test_program run = HS_TEST_RUN(SMALL_TEXT, "--steps", "4", "--seed", seeds[i], "--sample-tokens", "8",
                                          "--precision", "fp16", "--levers", "exact", "--records", "-");
        json_t *records = records_of(&run, 0);
        snprintf(checksums[i], sizeof checksums[i], "%s", text_of(hs_test_record(records, "end"), "weights_checksum"));
        texts[i] = without_times(records);
        json_decref(records);
        hs_test_program_free(&run);
    }
    cr_assert_str_eq(texts[0], texts[1]);
    cr_assert_str_neq(checksums[0], checksums[2]);
    for (size_t i = 0; i < 3; ++i)
        free(texts[i]);
}

Test(train, threads_and_tiers_give_the_same_weights) {
    static const char *const ways[][2] = {{"cpu", "1"}, {"cpu", "2"}, {"cpu-reference", "1"}};
    char checksums[3][32];
    for (size_t i = 0; i < 3; ++i) {
        hs_test_program run = HS_TEST_RUN("train", SMALL, "--steps", "5", "--backend", ways[i][0], "--threads",
                                          ways[i][1], "--sample-tokens", "0", "--held-out", "0", "--micro-batches", "2",
                                          "--levers", "exact", "--records", "-");
        json_t *records = records_of(&run, 0);
        snprintf(checksums[i], sizeof checksums[i], "%s", text_of(hs_test_record(records, "end"), "weights_checksum"));
        cr_expect_str_eq(text_of(hs_test_record(records, "run"), "backend"), ways[i][0]);
        json_decref(records);
        hs_test_program_free(&run);
    }
    cr_assert_str_eq(checksums[0], checksums[1]);
    cr_assert_str_eq(checksums[0], checksums[2]);
}

Test(train, writes_into_a_folder_and_never_over_a_run) {
    hs_test_program run = HS_TEST_RUN(SMALL_TEXT, "--steps", "1", "--sample-tokens", "4", "--out", "a/b");
    cr_assert_eq(run.status, 0, "%s", run.err);
    cr_expect_eq(run.out_size, 0, "quiet: no sample");
    char *first = hs_test_read_file("a/b/records.jsonl");
    json_decref(hs_test_parse_lines(first));
    hs_test_program_free(&run);
    run = HS_TEST_RUN(SMALL_TEXT, "--steps", "1", "--out", "a/b");
    cr_expect_eq(run.status, 4);
    cr_expect_not_null(strstr(run.err, "a/b/records.jsonl"), "%s", run.err);
    char *second = hs_test_read_file("a/b/records.jsonl");
    cr_expect_str_eq(first, second);
    free(first);
    free(second);
    hs_test_program_free(&run);
}

Test(train, names_a_folder_under_runs_by_itself) {
    for (int i = 0; i < 2; ++i) {
        hs_test_program run = HS_TEST_RUN(SMALL_TEXT, "--steps", "1", "--sample-tokens", "0");
        cr_assert_eq(run.status, 0, "%s", run.err);
        hs_test_program_free(&run);
    }
    DIR *folder = opendir("runs");
    cr_assert_not_null(folder);
    size_t found = 0;
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (entry->d_name[0] == '.')
            continue;
        char path[600];
        snprintf(path, sizeof path, "runs/%s/records.jsonl", entry->d_name);
        cr_expect_eq(access(path, F_OK), 0, "%s", path);
        cr_expect_not_null(strstr(entry->d_name, "-bf16"));
        ++found;
    }
    closedir(folder);
    cr_assert_eq(found, 2, "two runs of one second have folders of their own");
}

Test(train, progress_goes_to_stderr_and_the_sample_to_stdout) {
    hs_test_program run = HS_TEST_RUN("train", "--data", "text", "--layers", "1", "--width", "8", "--heads", "2",
                                      "--feed-forward", "8", "--context", "8", "--batch-size", "2", "--steps", "2",
                                      "--prompt", "fox", "--sample-tokens", "4", "--records", "r");
    cr_assert_eq(run.status, 0, "%s", run.err);
    cr_expect_not_null(strstr(run.err, "2/2 loss "), "%s", run.err);
    cr_expect_not_null(strstr(run.err, "held-out loss"), "%s", run.err);
    cr_expect_not_null(strstr(run.err, "records: r\n"), "%s", run.err);
    cr_expect_null(strchr(run.err, '\r'), "no bar where there is no terminal");
    cr_expect_eq(strncmp(run.out, "fox", 3), 0, "%s", run.out);
    hs_test_program_free(&run);
}

/* The default prompt is a line end, and no part of what the model wrote. */
Test(train, a_sample_begins_with_no_empty_line) {
    hs_test_program run = HS_TEST_RUN("train", "--data", "text", "--layers", "1", "--width", "8", "--heads", "2",
                                      "--feed-forward", "8", "--context", "8", "--batch-size", "2", "--steps", "1",
                                      "--prompt", "\nfox", "--sample-tokens", "1", "--records", "r");
    cr_assert_eq(run.status, 0, "%s", run.err);
    cr_expect_eq(strncmp(run.out, "fox", 3), 0, "%s", run.out);
    char *records = hs_test_read_file("r");
    cr_expect_not_null(strstr(records, "\"prompt\":\"\\nfox\""), "records keep the prompt whole");
    free(records);
    hs_test_program_free(&run);
}

static void expect_bad_data(const char *const *arguments, const char *path, const char *word) {
    hs_test_program run = hs_test_run(arguments);
    cr_expect_eq(run.status, 3, "%s: %d: %s", path, run.status, run.err);
    cr_expect_not_null(strstr(run.err, word), "%s", run.err);
    cr_expect_not_null(strstr(run.err, path), "%s", run.err);
    cr_expect_eq(run.out_size, 0);
    cr_expect_neq(access("r", F_OK), 0, "nothing is written before the data is known to be good");
    hs_test_program_free(&run);
}

Test(train, bad_data_is_3) {
    hs_test_write_file("empty", "");
    mkdir("folder", 0700);
    static const char *const bad[][2] = {
        {"missing", "No such file"}, {"empty", "empty"}, {"folder", "directory"}, {"/proc/self/mem", "error"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
        const char *const arguments[] = {SMALL_TEXT, "--data", bad[i][0], "--records", "r", NULL};
        expect_bad_data(arguments, bad[i][0], bad[i][1]);
    }
}

Test(train, a_text_shorter_than_the_context_is_3) {
    hs_test_write_file("short", "12345678");
    static const char *const arguments[] = {"train", "--data", "short", SMALL, "--records", "r", NULL};
    expect_bad_data(arguments, "8 tokens", "a shorter context");
}

/* Root may read everything, a program that it starts without this right may not. */
static void give_up_reading_everything(void) {
    if (geteuid() == 0 && (prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE) || prctl(PR_CAPBSET_DROP, CAP_DAC_READ_SEARCH)))
        cr_skip_test("root may read everything, and gives up no right here");
}

Test(train, a_file_without_permission_is_3) {
    give_up_reading_everything();
    cr_assert_eq(chmod("text", 0), 0);
    hs_test_program run = HS_TEST_RUN(SMALL_TEXT, "--records", "-");
    cr_expect_eq(run.status, 3);
    cr_expect_not_null(strstr(run.err, "Permission denied"), "%s", run.err);
    hs_test_program_free(&run);
}

Test(train, records_that_cannot_be_written_are_4) {
    mkdir("folder", 0700);
    static const struct {
        const char *option, *path, *word;
    } bad[] = {{"--records", "/dev/full", "No space left"},
               {"--records", "folder", "directory"},
               {"--records", "missing/r", "No such file"},
               {"--out", "text", "text"},
               {"--out", "text/below", "Not a directory"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
        hs_test_program run = HS_TEST_RUN(SMALL_TEXT, "--steps", "1", bad[i].option, bad[i].path);
        cr_expect_eq(run.status, 4, "%s: %d: %s", bad[i].path, run.status, run.err);
        cr_expect_not_null(strstr(run.err, bad[i].path), "%s", run.err);
        cr_expect_not_null(strstr(run.err, bad[i].word), "%s", run.err);
        hs_test_program_free(&run);
    }
}

Test(train, a_reader_that_goes_away_is_4) {
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    close(ends[0]);
    char path[32];
    snprintf(path, sizeof path, "/dev/fd/%d", ends[1]);
    hs_test_program run = HS_TEST_RUN(SMALL_TEXT, "--steps", "1", "--records", path);
    cr_expect_eq(run.status, 4, "%d: %s", run.status, run.err);
    hs_test_program_free(&run);
    close(ends[1]);
}

Test(train, thirty_two_skips_in_a_row_are_1) {
    hs_test_program run =
        HS_TEST_RUN(SMALL_TEXT, "--precision", "fp16", "--loss-scale", "1073741824", "--min-loss-scale", "1073741824",
                    "--max-loss-scale", "1073741824", "--steps", "3", "--records", "-");
    json_t *records = records_of(&run, 1);
    json_t *updates = hs_test_records_of(records, "update");
    cr_assert_eq(json_array_size(updates), 32);
    for (size_t i = 0; i < 32; ++i) {
        const json_t *update = json_array_get(updates, i);
        cr_expect_str_eq(text_of(update, "outcome"), "skipped");
        cr_expect_eq(number_of(update, "step"), 1);
        cr_expect_eq(number_of(update, "attempt"), (double)i + 1);
    }
    const json_t *overflow = json_object_get(json_array_get(updates, 31), "overflow");
    const char *operation = text_of(overflow, "operation");
    const json_t *warning = hs_test_record(records, "warning");
    cr_expect_eq(number_of(warning, "skipped"), 32);
    const json_t *count = json_array_get(json_object_get(warning, "overflows"), 0);
    cr_expect_str_eq(text_of(count, "operation"), operation);
    cr_expect_eq(number_of(count, "count"), 32);
    const json_t *end = hs_test_record(records, "end");
    cr_expect_str_eq(text_of(end, "outcome"), "too-many-skips");
    cr_expect_not_null(strstr(run.err, "32 skips in a row"), "%s", run.err);
    cr_expect_not_null(strstr(run.err, operation), "%s", run.err);
    cr_expect_not_null(strstr(run.err, "loss scale 1073741824:"), "%s", run.err);
    json_decref(updates);
    json_decref(records);
    hs_test_program_free(&run);
}

/* Advice names only what can help this run: options that it has, at values that leave room. */
Test(train, advice_on_skips_fits_the_run) {
    static const struct {
        const char *precision, *scale, *minimum, *words[2], *absent;
    } runs[] = {{"fp16", "1073741824", "1073741824", {"--min-loss-scale", "--precision bf16"}, "start from"},
                {"bf16", "0x1p1000", "0x1p1000", {"--min-loss-scale", "--learning-rate"}, "--precision"},
                {"bf16", "0x1p1000", "1", {"start from a lower --loss-scale", "--learning-rate"}, "--precision"}};
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; ++i) {
        char scale[64], minimum[64];
        snprintf(scale, sizeof scale, "%.17g", strtod(runs[i].scale, NULL));
        snprintf(minimum, sizeof minimum, "%.17g", strtod(runs[i].minimum, NULL));
        hs_test_program run =
            HS_TEST_RUN(SMALL_TEXT, "--precision", runs[i].precision, "--loss-scale", scale, "--max-loss-scale", scale,
                        "--min-loss-scale", minimum, "--steps", "3", "--records", "-");
        json_t *records = records_of(&run, 1);
        const char *message = text_of(hs_test_record(records, "end"), "message");
        const char *warning = text_of(hs_test_record(records, "warning"), "message");
        for (size_t j = 0; j < 2; ++j) {
            cr_expect_not_null(strstr(message, runs[i].words[j]), "no '%s' in: %s", runs[i].words[j], message);
            cr_expect_not_null(strstr(warning, runs[i].words[j]), "no '%s' in: %s", runs[i].words[j], warning);
        }
        cr_expect_null(strstr(message, runs[i].absent), "%s", message);
        cr_expect_null(strstr(warning, runs[i].absent), "%s", warning);
        json_decref(records);
        hs_test_program_free(&run);
    }
}

Test(train, a_skip_retries_the_same_data) {
    /* From a scale that overflows, the loss of every attempt at step 1 is the same: same weights, same data. */
    hs_test_program run = HS_TEST_RUN(SMALL_TEXT, "--precision", "fp16", "--loss-scale", "1073741824",
                                      "--max-loss-scale", "1073741824", "--steps", "2", "--records", "-");
    json_t *records = records_of(&run, 0);
    json_t *updates = hs_test_records_of(records, "update");
    const size_t count = json_array_size(updates);
    cr_assert_gt(count, 2, "something was skipped");
    for (size_t i = 1; i + 1 < count; ++i) {
        cr_expect_eq(number_of(json_array_get(updates, i), "loss"), number_of(json_array_get(updates, 0), "loss"));
        cr_expect_eq(number_of(json_array_get(updates, i), "step"), 1);
        cr_expect_eq(number_of(json_array_get(updates, i), "loss_scale"),
                     number_of(json_array_get(updates, i - 1), "loss_scale") / 2);
    }
    cr_expect_neq(number_of(json_array_get(updates, count - 1), "loss"), number_of(json_array_get(updates, 0), "loss"));
    cr_expect_eq(number_of(hs_test_record(records, "warning"), "skipped"), (double)count - 2);
    json_decref(updates);
    json_decref(records);
    hs_test_program_free(&run);
}

Test(train, divergence_is_1_and_names_the_operation) {
    hs_test_program run = HS_TEST_RUN(SMALL_TEXT, "--precision", "fp16", "--learning-rate", "1e6", "--warmup-steps",
                                      "0", "--schedule", "constant", "--steps", "50", "--records", "-");
    json_t *records = records_of(&run, 1);
    const json_t *end = hs_test_record(records, "end");
    cr_expect_str_eq(text_of(end, "outcome"), "diverged");
    const char *name = strstr(run.err, "operation \"");
    cr_assert_not_null(name, "%s", run.err);
    cr_expect_null(strstr(name + 1, "operation"), "named twice: %s", run.err);
    cr_expect_not_null(strstr(run.err, text_of(end, "message")), "%s", run.err);
    json_decref(records);
    hs_test_program_free(&run);
}

Test(train, built_in_corpus_beats_byte_frequencies_and_counts_its_answers) {
    hs_test_program run =
        HS_TEST_RUN("train", "--layers", "1", "--width", "32", "--feed-forward", "64", "--context", "32",
                    "--batch-size", "8", "--learning-rate", "0.02", "--steps", "120", "--eval-every", "0", "--threads",
                    "1", "--held-out", "0.03", "--sample-tokens", "0", "--quiet", "--records", "-");
    json_t *records = records_of(&run, 0);
    const json_t *data = json_array_get(json_object_get(hs_test_record(records, "run"), "data"), 0);
    /* In a line of nine, two thirds are digits, nearly uniform, and three signs stand once each: 2.54 nats if uniform.
     */
    const double yardstick = number_of(data, "unigram_loss");
    cr_expect(yardstick > 2.4 && yardstick < 2.6, "%g nats", yardstick);
    const json_t *evaluation = hs_test_record(records, "evaluation");
    cr_expect_lt(number_of(evaluation, "loss"), yardstick - 0.4);
    const json_t *success = json_object_get(hs_test_record(records, "end"), "success");
    cr_expect(number_of(success, "questions") > 50, "three in a hundred of 3240");
    cr_expect(number_of(success, "correct") <= number_of(success, "questions"));
    json_decref(records);
    hs_test_program_free(&run);
}
