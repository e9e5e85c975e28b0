/* `trainer train` on the data that people have: shards, folders, patterns, files of their own to evaluate on. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "support/folder.h"
#include "support/program.h"
#include "support/shards.h"

enum { TOKENS = 400, VOCABULARY = 97 };

/* Three shards of tokens that follow each other by a rule, in a folder. */
static void enter(void) {
    hs_test_enter_folder();
    cr_assert_eq(mkdir("shards", 0700), 0);
    static const char *const names[] = {"shards/train_1.bin", "shards/train_2.bin", "shards/val.bin"};
    uint16_t tokens[TOKENS];
    for (size_t s = 0; s < 3; ++s) {
        for (size_t i = 0; i < TOKENS; ++i)
            tokens[i] = (uint16_t)((7 * i + s) % VOCABULARY);
        hs_test_write_shard(names[s], tokens, TOKENS);
    }
    hs_test_write_bytes("raw.bin", tokens, sizeof tokens);
}

TestSuite(train_data, .init = enter, .fini = hs_test_leave_folder);

#define SMALL                                                                                                          \
    "--layers", "1", "--width", "8", "--heads", "2", "--feed-forward", "8", "--context", "8", "--batch-size", "4",     \
        "--threads", "1", "--quiet"

static json_t *records_of(const hs_test_program *run) {
    cr_assert_eq(run->status, 0, "status %d: %s", run->status, run->err);
    return hs_test_parse_lines(run->out);
}

static double number_of(const json_t *record, const char *name) {
    const json_t *value = json_object_get(record, name);
    cr_assert(json_is_number(value), "%s", name);
    return json_number_value(value);
}

static const char *text_of(const json_t *record, const char *name) {
    const char *text = json_string_value(json_object_get(record, name));
    cr_assert_not_null(text, "%s", name);
    return text;
}

Test(train_data, shards_train_and_evaluate_on_their_own) {
    hs_test_program run =
        HS_TEST_RUN("train", SMALL, "--data", "shards/train_*.bin", "--eval-data", "shards/val.bin", "--vocabulary",
                    "97", "--steps", "150", "--learning-rate", "0.02", "--eval-every", "0", "--records", "-");
    json_t *records = records_of(&run);
    const json_t *start = hs_test_record(records, "run"), *data = json_array_get(json_object_get(start, "data"), 0);
    cr_expect_eq(number_of(data, "tokens"), 3 * TOKENS);
    cr_expect_eq(number_of(data, "training_tokens"), 2 * TOKENS);
    cr_expect_eq(number_of(data, "evaluation_tokens"), TOKENS);
    cr_expect_str_eq(text_of(data, "name"), "shards/train_*.bin");
    cr_expect_str_eq(text_of(json_object_get(start, "configuration"), "eval-data"), "shards/val.bin");
    cr_expect_eq(number_of(json_object_get(start, "model"), "vocabulary"), VOCABULARY);
    const json_t *evaluation = hs_test_record(records, "evaluation");
    cr_expect_eq(number_of(evaluation, "tokens"), TOKENS - 1);
    /* Frequencies are nearly even, log 97 = 4.57; the next token is a function of the one before it. */
    cr_expect_float_eq(number_of(data, "unigram_loss"), 4.57, 0.05);
    cr_expect_lt(number_of(evaluation, "loss"), 3.5);
    json_t *samples = hs_test_records_of(records, "sample");
    cr_expect_eq(json_array_size(samples), 0, "tokens are no text");
    json_decref(samples);
    json_decref(records);
    hs_test_program_free(&run);
}

Test(train_data, a_folder_a_pattern_and_a_list_are_the_same_data) {
    char checksums[3][32];
    static const char *const names[3][6] = {
        {"--data", "shards"},
        {"--data", "shards/*"},
        {"--data", "shards/train_1.bin", "--data=shards/train_2.bin", "--data", "shards/val.bin"}};
    for (size_t i = 0; i < 3; ++i) {
        const char *const *n = names[i];
        hs_test_program run = HS_TEST_RUN("train", SMALL, "--vocabulary", "97", "--steps", "2", "--records", "-", n[0],
                                          n[1], n[2], n[3], n[4]);
        json_t *records = records_of(&run);
        const json_t *data = json_array_get(json_object_get(hs_test_record(records, "run"), "data"), 0);
        cr_expect_eq(number_of(data, "evaluation_tokens"), 3 * TOKENS / 10);
        snprintf(checksums[i], sizeof checksums[i], "%s", text_of(hs_test_record(records, "end"), "weights_checksum"));
        json_decref(records);
        hs_test_program_free(&run);
    }
    cr_expect_str_eq(checksums[0], checksums[1]);
    cr_expect_str_eq(checksums[0], checksums[2]);
}

Test(train_data, raw_tokens_are_trained_on_as_told) {
    hs_test_write_file("run.json", "{\"data\": \"raw.bin\", \"token-type\": \"uint16\", \"vocabulary\": 97}");
    hs_test_program run = HS_TEST_RUN("train", SMALL, "--config", "run.json", "--steps", "2", "--records", "-");
    json_t *records = records_of(&run);
    const json_t *start = hs_test_record(records, "run");
    cr_expect_eq(number_of(json_array_get(json_object_get(start, "data"), 0), "tokens"), TOKENS);
    cr_expect_str_eq(text_of(json_object_get(start, "configuration"), "token-type"), "uint16");
    json_decref(records);
    hs_test_program_free(&run);
    run = HS_TEST_RUN("train", SMALL, "--data", "raw.bin", "--token-type", "bytes", "--steps", "2", "--records", "-");
    records = records_of(&run);
    cr_expect_eq(number_of(json_object_get(hs_test_record(records, "run"), "model"), "vocabulary"), 258);
    json_decref(records);
    hs_test_program_free(&run);
}

Test(train_data, messages_count_token_frequencies) {
    hs_test_program run =
        HS_TEST_RUN("train", "--layers", "1", "--width", "8", "--heads", "2", "--feed-forward", "8", "--context", "8",
                    "--threads", "1", "--data", "shards", "--vocabulary", "97", "--steps", "1", "--records", "r");
    cr_assert_eq(run.status, 0, "%s", run.err);
    cr_expect_not_null(strstr(run.err, "(token frequencies alone: 4."), "%s", run.err);
    cr_expect_eq(run.out_size, 0, "there is no sample");
    hs_test_program_free(&run);
}

Test(train_data, mistakes_end_before_anything_is_written) {
    static const uint16_t beyond[] = {1, 2, 97, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    hs_test_write_shard("beyond.bin", beyond, 16);
    hs_test_write_bytes("cut.bin", "\x88\xd8\x34\x01", 4);
    cr_assert_eq(mkdir("empty", 0700), 0);
    static const struct {
        const char *arguments[6];
        int status;
        const char *words[2];
    } bad[] = {
        {{"--data", "beyond.bin", "--vocabulary", "97"}, 3, {"beyond.bin", "token 97 at byte offset 1028"}},
        {{"--data", "cut.bin"}, 3, {"cut.bin", "truncated at byte offset 4"}},
        {{"--data", "raw.bin"}, 3, {"raw.bin", "token type"}},
        {{"--data", "raw.bin", "--token-type", "uint16"}, 3, {"raw.bin", "vocabulary"}},
        {{"--data", "raw.bin", "--token-type", "uint32", "--vocabulary", "97"}, 3, {"raw.bin", "byte offset 0"}},
        {{"--data", "empty"}, 3, {"empty", "directory without files"}},
        {{"--data", "nothing/*"}, 3, {"nothing/*", "no file matches"}},
        {{"--data", "/dev/zero"}, 3, {"/dev/zero", "device"}},
        {{"--data", "shards/val.bin", "--eval-data", "shards"}, 3, {"shards/val.bin", "evaluated on"}},
        {{"--data", "shards", "--eval-data", "nothing"}, 3, {"nothing", "No such file"}},
        {{"--data", "shards", "--context", "400"}, 3, {"401 in one file", "shorter context"}},
        {{"--data", "shards", "--token-type", "fp8"}, 2, {"--token-type", "auto, bytes, uint16, uint32"}},
        {{"--data", "shards", "--held-out", "0.1", "--eval-data", "raw.bin"}, 2, {"--held-out", "--eval-data"}},
        {{"--eval-data", "shards"}, 2, {"--eval-data", "--data"}},
        {{"--token-type", "uint16"}, 2, {"--token-type", "--data"}},
        {{"--vocabulary", "97"}, 2, {"--vocabulary", "--data"}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
        const char *const *a = bad[i].arguments;
        hs_test_program run =
            HS_TEST_RUN("train", SMALL, "--steps", "1", "--records", "r", a[0], a[1], a[2], a[3], a[4], a[5]);
        cr_expect_eq(run.status, bad[i].status, "case %zu: %d: %s", i, run.status, run.err);
        for (size_t j = 0; j < 2; ++j)
            cr_expect_not_null(strstr(run.err, bad[i].words[j]), "no %s in: %s", bad[i].words[j], run.err);
        cr_expect_eq(run.out_size, 0);
        cr_expect_neq(access("r", F_OK), 0);
        hs_test_program_free(&run);
    }
}

/* Whatever name leads to it. */
Test(train_data, records_never_go_over_a_shard) {
    static const char *const ways[][4] = {{"--data", "shards"},
                                          {"--data", "shards/t*"},
                                          {"--data", "shards/train_1.bin"},
                                          {"--data", "shards/val.bin", "--eval-data", "shards/t*"}};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; ++i) {
        hs_test_program run = HS_TEST_RUN("train", SMALL, "--records", "shards/../shards/train_1.bin", ways[i][0],
                                          ways[i][1], ways[i][2], ways[i][3]);
        cr_expect_eq(run.status, 2, "%s: %d: %s", ways[i][1], run.status, run.err);
        cr_expect_not_null(strstr(run.err, "written over 'shards/train_1.bin'"), "%s", run.err);
        hs_test_program_free(&run);
    }
}
