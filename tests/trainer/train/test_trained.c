/* What a trained model is asked for: `trainer sample` and `trainer eval`, on models that have learned what follows. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <criterion/criterion.h>

#include <halfstep/checkpoint.h>

#include "support/program.h"
#include "support/shards.h"

enum { PERIODS = 200, CYCLE = 5, SHARD = 1000 };

#define SMALL                                                                                                          \
    "--layers", "1", "--width", "16", "--heads", "2", "--feed-forward", "16", "--context", "16", "--batch-size", "4",  \
        "--threads", "1", "--steps", "120", "--learning-rate", "0.02", "--init", "xavier", "--sample-tokens", "0",     \
        "--quiet"

static void expect_done(hs_test_program run) {
    cr_assert_eq(run.status, 0, "%s", run.err);
    hs_test_program_free(&run);
}

/* A text that goes abcabc..., and evaluation on another piece of it. */
static void train_text(void) {
    char text[3 * PERIODS + 1];
    for (size_t i = 0; i < 3 * PERIODS; ++i)
        text[i] = "abc"[i % 3];
    text[3 * PERIODS] = '\0';
    hs_test_write_file("text", text);
    hs_test_write_file("other", "cabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabc");
    expect_done(HS_TEST_RUN("train", "--data", "text", "--eval-data", "other", "--out", "run", SMALL));
}

static void enter(void) {
    hs_test_enter_folder();
    train_text();
}

TestSuite(trained, .init = enter, .fini = hs_test_leave_folder, .timeout = 60);

static void expect_text(hs_test_program run, const char *text) {
    cr_assert_eq(run.status, 0, "%s", run.err);
    cr_expect_str_eq(run.out, text);
    hs_test_program_free(&run);
}

Test(trained, a_text_goes_on_from_its_prompt) {
    expect_text(HS_TEST_RUN("sample", "run", "--prompt", "ab", "--tokens", "10", "--temperature", "0"),
                "abcabcabcabc\n");
    expect_text(HS_TEST_RUN("sample", "--tokens=7", "--temperature=0", "--prompt-tokens", "100,101", "--",
                            "run/checkpoint-00000120.safetensors"),
                "bcabcabca\n");
    /* Past the context of 16, and with one of 4. */
    expect_text(HS_TEST_RUN("sample", "run", "--prompt", "a", "--tokens", "29", "--temperature", "0"),
                "abcabcabcabcabcabcabcabcabcabc\n");
    expect_text(
        HS_TEST_RUN("sample", "run", "--prompt", "abcabcab", "--tokens", "10", "--temperature", "0", "--context", "4"),
        "abcabcabcabcabcabc\n");
}

Test(trained, a_text_ends_at_a_stop_text) {
    expect_text(HS_TEST_RUN("sample", "run", "--prompt", "ab", "--temperature", "0", "--stop", "bca"), "abca\n");
    expect_text(HS_TEST_RUN("sample", "run", "--prompt", "abc", "--tokens", "4", "--temperature", "0", "--stop", "zz",
                            "--stop", "abcd"),
                "abcabca\n");
}

static bool same_output(const hs_test_program *a, const hs_test_program *b) {
    return a->out_size == b->out_size && memcmp(a->out, b->out, a->out_size) == 0;
}

/* Where one token has all the weight, what cuts the others off changes nothing. */
Test(trained, tokens_are_chosen_as_asked) {
    expect_text(HS_TEST_RUN("sample", "run", "--prompt", "ab", "--tokens", "10", "--temperature", "5", "--top-k", "1"),
                "abcabcabcabc\n");
    expect_text(HS_TEST_RUN("sample", "run", "--prompt", "ab", "--tokens", "10", "--top-p", "0.01"), "abcabcabcabc\n");
    hs_test_program warm[4];
    const char *const seeds[] = {"4", "4", "5", "4"};
    for (size_t i = 0; i < 4; ++i)
        warm[i] = HS_TEST_RUN("sample", "run", "--prompt", "ab", "--tokens", "40", "--temperature", "8", "--seed",
                              seeds[i], "--repetition-penalty", i == 3 ? "3" : "1");
    cr_expect(same_output(&warm[0], &warm[1]));
    cr_expect_not(same_output(&warm[0], &warm[2]), "another seed");
    cr_expect_not(same_output(&warm[0], &warm[3]), "another penalty");
    for (size_t i = 0; i < 4; ++i)
        hs_test_program_free(&warm[i]);
}

/* In any precision, on either backend, on any threads: the same likeliest tokens, and with one precision the bits. */
Test(trained, a_model_may_compute_another_way) {
    expect_text(HS_TEST_RUN("sample", "run", "--prompt", "ab", "--tokens", "4", "--temperature", "0", "--precision",
                            "f64", "--threads", "2"),
                "abcabc\n");
    expect_text(HS_TEST_RUN("sample", "run", "--prompt", "ab", "--tokens", "4", "--temperature", "0", "--backend",
                            "cpu-reference", "--quiet"),
                "abcabc\n");
    /* Without a driver, whatever the machine has. */
    cr_assert_eq(setenv("VK_ICD_FILENAMES", "/nowhere", 1), 0);
    hs_test_program run = HS_TEST_RUN("sample", "run", "--backend", "vulkan");
    cr_expect_eq(run.status, 5, "%s", run.err);
    hs_test_program_free(&run);
}

static json_t *evaluate(hs_test_program run) {
    cr_assert_eq(run.status, 0, "%s", run.err);
    json_t *found = json_loads(run.out, 0, NULL);
    cr_assert_not_null(found, "%s", run.out);
    hs_test_program_free(&run);
    return found;
}

static double member(const json_t *object, const char *name) {
    cr_assert(json_is_number(json_object_get(object, name)), "%s", name);
    return json_number_value(json_object_get(object, name));
}

/* The same numbers as the evaluation at the end of the training. */
Test(trained, a_loss_is_that_of_the_training) {
    char *text = hs_test_read_file("run/records.jsonl");
    json_t *records = hs_test_parse_lines(text), *evaluations = hs_test_records_of(records, "evaluation");
    const json_t *last = json_array_get(evaluations, json_array_size(evaluations) - 1);
    json_t *found = evaluate(HS_TEST_RUN("eval", "run", "--data", "other", "--batch-size", "4", "--json"));
    cr_expect_eq(member(found, "loss"), member(last, "loss"));
    cr_expect_eq(member(found, "tokens"), 51, "of 52 bytes the first is not predicted");
    cr_expect_float_eq(member(found, "perplexity"), exp(member(found, "loss")), 1e-12);
    cr_expect_lt(member(found, "loss"), 0.5);
    json_t *twice = evaluate(HS_TEST_RUN("eval", "run", "--data", "other", "--data", "text", "--json"));
    cr_expect_eq(member(twice, "tokens"), 51 + 600);
    json_t *wide = evaluate(HS_TEST_RUN("eval", "run", "--data", "other", "--json", "--context", "51"));
    cr_expect_neq(member(wide, "loss"), member(found, "loss"), "other windows");
    json_decref(found);
    json_decref(twice);
    json_decref(wide);
    json_decref(evaluations);
    json_decref(records);
    free(text);
    hs_test_program run = HS_TEST_RUN("eval", "--data", "other", "run");
    cr_expect_eq(run.status, 0);
    cr_expect_not_null(strstr(run.out, "perplexity"), "%s", run.out);
    hs_test_program_free(&run);
}

static void expect_refused(hs_test_program run, int status, const char *words) {
    cr_expect_eq(run.status, status, "%s", run.err);
    cr_expect_eq(run.out_size, 0);
    cr_expect_not_null(strstr(run.err, words), "no '%s' in: %s", words, run.err);
    hs_test_program_free(&run);
}

/* Tokens 300 to 304 in turn: no text, so numbers come in and out. */
Test(trained, token_shards_give_numbers) {
    uint16_t tokens[SHARD];
    for (size_t i = 0; i < SHARD; ++i)
        tokens[i] = (uint16_t)(300 + i % CYCLE);
    hs_test_write_bytes("shard", tokens, sizeof tokens);
    expect_done(HS_TEST_RUN("train", "--data", "shard", "--token-type", "uint16", "--vocabulary", "310", "--out",
                            "numbers", SMALL));
    expect_text(HS_TEST_RUN("sample", "numbers", "--prompt-tokens", "303,304", "--tokens", "6", "--temperature", "0"),
                "303 304 300 301 302 303 304 300\n");
    json_t *found = evaluate(HS_TEST_RUN("eval", "numbers", "--data", "shard", "--token-type", "uint16", "--json"));
    cr_expect_eq(member(found, "tokens"), SHARD - 1);
    cr_expect_lt(member(found, "loss"), 0.5);
    json_decref(found);
    expect_refused(HS_TEST_RUN("sample", "numbers", "--prompt", "ab"), 2, "--prompt-tokens");
    expect_refused(HS_TEST_RUN("sample", "numbers", "--prompt-tokens", "1", "--stop", "x"), 2, "--stop");
    expect_refused(HS_TEST_RUN("sample", "numbers", "--prompt-tokens", "1,310"), 2, "310 is none");
    expect_refused(HS_TEST_RUN("eval", "numbers", "--data", "text"), 3, "give token shards");
    expect_refused(HS_TEST_RUN("eval", "run", "--data", "shard", "--token-type", "uint16"), 3, "vocabulary");
}

Test(trained, what_is_wrong_is_said) {
    const char *const bad_lists[] = {"", "1,", "1;2", "-1", "a", "99999999999", " "};
    for (size_t i = 0; i < sizeof bad_lists / sizeof bad_lists[0]; ++i)
        expect_refused(HS_TEST_RUN("sample", "run", "--prompt-tokens", bad_lists[i]), 2, "--prompt-tokens");
    expect_refused(HS_TEST_RUN("sample", "run", "--prompt", ""), 2, "--prompt ''");
    expect_refused(HS_TEST_RUN("eval", "run", "--data", "nothing"), 3, "nothing");
    hs_test_write_file("one", "a");
    expect_refused(HS_TEST_RUN("eval", "run", "--data", "one"), 3, "2 that stand together");
    expect_refused(HS_TEST_RUN("sample", "text"), 3, "text");
    cr_assert_eq(mkdir("empty", 0700), 0);
    expect_refused(HS_TEST_RUN("sample", "empty"), 3, "no checkpoint in this folder");
    hstep_error error = {0};
    cr_assert_eq(
        hstep_checkpoint_export("run/checkpoint-00000120.safetensors", "weights", HSTEP_STORAGE_F32, NULL, &error),
        HSTEP_OK, "%s", error.message);
    expect_refused(HS_TEST_RUN("sample", "weights"), 3, "name a checkpoint that trainer train wrote");
}

/* Damage is found in a file that is named, and passed over in a folder. */
Test(trained, damaged_weights_are_not_used) {
    hs_test_bytes bytes = hs_test_read_bytes("run/checkpoint-00000120.safetensors");
    bytes.at[bytes.size / 2] ^= 1;
    hs_test_write_bytes("run/checkpoint-00000121.safetensors", bytes.at, bytes.size);
    free(bytes.at);
    expect_refused(HS_TEST_RUN("sample", "run/checkpoint-00000121.safetensors"), 3, "00000121");
    hs_test_program run = HS_TEST_RUN("sample", "run", "--prompt", "ab", "--tokens", "4", "--temperature", "0");
    cr_expect_str_eq(run.out, "abcabc\n");
    cr_expect_not_null(strstr(run.err, "passed over"), "%s", run.err);
    hs_test_program_free(&run);
}

/* Text comes while it is made; an interrupt ends it with a whole line. */
Test(trained, an_interrupt_ends_the_line) {
    hs_test_program run = hs_test_start(
        (const char *const[]){"sample", "run", "--prompt", "ab", "--tokens", "1000000", "--temperature", "0", NULL});
    struct stat out = {0};
    for (int i = 0; i < 2000 && out.st_size < 100; ++i) {
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        cr_assert_eq(fstat(fileno(run.out_file), &out), 0);
    }
    cr_assert_geq(out.st_size, 100);
    kill(run.pid, SIGINT);
    hs_test_finish(&run);
    cr_expect_eq(run.status, 130, "%s", run.err);
    cr_expect_eq(run.out[run.out_size - 1], '\n');
    cr_expect_lt(run.out_size, 1000000);
    hs_test_program_free(&run);
}
