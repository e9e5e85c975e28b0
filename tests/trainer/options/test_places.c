/* --precision-for: what a run says of it, what it starts with, and every command that goes on from one. */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "support/program.h"

#define SMALL                                                                                                          \
    "--layers", "2", "--width", "8", "--heads", "2", "--feed-forward", "8", "--context", "8", "--batch-size", "2",     \
        "--threads", "1", "--sample-tokens", "0", "--eval-every", "0", "--quiet"
#define MIXTURE "head=f64, blocks.0.*=fp16 ,*.attention=bf16"

TestSuite(places, .init = hs_test_enter_folder, .fini = hs_test_leave_folder, .timeout = 60);

/* ---- Runs ---- */

/* What a run recorded: its beginning and its end. The caller gives both back. */
typedef struct recorded {
    json_t *start, *end;
} recorded;

static recorded read_run(hs_test_program run, const char *text) {
    cr_assert_eq(run.status, 0, "%s", run.err);
    json_t *records = hs_test_parse_lines(text);
    const recorded found = {json_incref(hs_test_record(records, "run")), json_incref(hs_test_record(records, "end"))};
    json_decref(records);
    return found;
}

static recorded train(const char *precision, const char *places) {
    hs_test_program run = HS_TEST_RUN("train", SMALL, "--steps", "6", "--records", "-", "--precision", precision,
                                      "--precision-for", places);
    const recorded found = read_run(run, run.out);
    hs_test_program_free(&run);
    return found;
}

static void forget(recorded run) {
    json_decref(run.start);
    json_decref(run.end);
}

static const char *text_of(const json_t *object, const char *name) {
    return json_string_value(json_object_get(object, name));
}

static const char *weights(recorded run) { return text_of(run.end, "weights_checksum"); }

static double setting(recorded run, const char *name) {
    return json_number_value(json_object_get(json_object_get(run.start, "configuration"), name));
}

static void expect_rule(recorded run, size_t index, const char *operations, const char *precision) {
    const json_t *rule = json_array_get(json_object_get(run.start, "precision_for"), index);
    cr_expect_str_eq(text_of(rule, "operations"), operations);
    cr_expect_str_eq(text_of(rule, "precision"), precision);
}

Test(places, stand_in_the_record) {
    const recorded mixed = train("bf16", MIXTURE), plain = train("bf16", "none");
    cr_assert_eq(json_array_size(json_object_get(mixed.start, "precision_for")), 3);
    expect_rule(mixed, 0, "head", "f64");
    expect_rule(mixed, 1, "blocks.0.*", "fp16-fp32");
    expect_rule(mixed, 2, "*.attention", "bf16-fp32");
    cr_expect_str_eq(text_of(json_object_get(mixed.start, "configuration"), "precision-for"), MIXTURE);
    cr_expect_str_eq(text_of(mixed.start, "precision"), "bf16-fp32");
    cr_expect_null(json_object_get(plain.start, "precision_for"));
    cr_expect_str_neq(weights(mixed), weights(plain));
    forget(mixed);
    forget(plain);
}

Test(places, of_one_precision_are_that_run_with_its_scale) {
    static const struct {
        const char *precision, *base, *everywhere;
        double scale;
    } cases[] = {{"fp16", "f64", "*=fp16", 65536}, {"bf16", "fp16", "*=bf16", 1}, {"f64", "fp16", "*=f64", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        const recorded plain = train(cases[i].precision, "none"), same = train(cases[i].base, cases[i].everywhere);
        cr_expect_str_eq(weights(plain), weights(same), "%s", cases[i].precision);
        cr_expect_eq(setting(plain, "loss-scale"), cases[i].scale);
        cr_expect_eq(setting(same, "loss-scale"), cases[i].scale);
        cr_expect_eq(setting(plain, "max-loss-scale"), setting(same, "max-loss-scale"));
        forget(plain);
        forget(same);
    }
}

/* In any of the ways of saying it: a list, several options, a configuration file. */
Test(places, are_said_in_several_ways) {
    const recorded listed = train("bf16", "head=f64,*.down=fp16");
    hs_test_program run =
        HS_TEST_RUN("train", SMALL, "--steps", "6", "--records", "-", "--precision-for", "*=fp16", "--precision-for",
                    "none", "--precision-for=head=f64", "--precision-for", "*.down=fp16-fp32");
    recorded other = read_run(run, run.out);
    cr_expect_str_eq(weights(listed), weights(other));
    cr_expect_str_eq(text_of(json_object_get(other.start, "configuration"), "precision-for"),
                     "*=fp16,none,head=f64,*.down=fp16-fp32");
    forget(other);
    hs_test_program_free(&run);
    hs_test_write_file("config", "{\"precision-for\": [\"head=f64\", \"*.down=fp16\"]}");
    run = HS_TEST_RUN("train", SMALL, "--steps", "6", "--records", "-", "--config", "config");
    other = read_run(run, run.out);
    cr_expect_str_eq(weights(listed), weights(other));
    forget(other);
    forget(listed);
    hs_test_program_free(&run);
}

static void expect_refusal(const char *places, const char *words) {
    hs_test_program run = HS_TEST_RUN("train", SMALL, "--records", "-", "--precision-for", places);
    cr_expect_eq(run.status, 2, "%s", places);
    cr_expect_eq(run.out_size, 0);
    cr_expect_not_null(strstr(run.err, words), "%s: no '%s' in: %s", places, words, run.err);
    hs_test_program_free(&run);
}

Test(places, that_make_no_sense_are_refused_before_anything_starts) {
    expect_refusal("head", "--precision-for 'head': give NAME=PRECISION");
    expect_refusal("head=f64,", "--precision-for '': an exception is empty");
    expect_refusal(" =f64", "no name stands before the '='");
    expect_refusal("head=f32", "--precision-for 'head=f32': behind the '=' give one of bf16, fp16, f64");
    expect_refusal("head=", "behind the '=' give one of");
    expect_refusal("head=f64, haed=f64", "no product has a name like \"haed\", the nearest is \"head\"");
    expect_refusal("blocks.2.*=f64", "no product has a name like \"blocks.2.*\"");
    expect_refusal("final_norm=f64", "\"final_norm\" is no product");
    char longest[128];
    memset(longest, '*', 96);
    strcpy(longest + 96, "=f64");
    expect_refusal(longest, "its name is longer than any operation's");
}

/* ---- What goes on from a run ---- */

static void expect_done(hs_test_program run) {
    cr_assert_eq(run.status, 0, "%s", run.err);
    hs_test_program_free(&run);
}

static void expect_same_weights(const char *left, const char *right) {
    char *texts[] = {hs_test_read_file(left), hs_test_read_file(right)};
    char checksums[2][32];
    for (size_t i = 0; i < 2; ++i) {
        const char *found = strstr(texts[i], "\"weights_checksum\":\"");
        cr_assert_not_null(found);
        while (strstr(found + 1, "\"weights_checksum\":\"") != NULL)
            found = strstr(found + 1, "\"weights_checksum\":\"");
        snprintf(checksums[i], sizeof checksums[i], "%s", found + strlen("\"weights_checksum\":\""));
        free(texts[i]);
    }
    cr_expect_str_eq(checksums[0], checksums[1]);
}

Test(places, are_kept_by_a_run_that_goes_on) {
#define RUN "train", SMALL, "--schedule", "constant", "--warmup-steps", "0", "--precision-for", MIXTURE
    expect_done(HS_TEST_RUN(RUN, "--steps", "8", "--out", "whole"));
    expect_done(HS_TEST_RUN(RUN, "--steps", "5", "--out", "parts"));
    expect_done(HS_TEST_RUN("train", "--out", "parts", "--resume", "--steps", "8", "--allow-changes", "--quiet"));
    expect_same_weights("whole/records.jsonl", "parts/records.jsonl");
    hs_test_program run = HS_TEST_RUN("train", "--out", "parts", "--resume", "--precision-for", "head=f64", "--quiet");
    cr_expect_eq(run.status, 2);
    cr_expect_not_null(strstr(run.err, "--precision-for: the run has "), "%s", run.err);
    hs_test_program_free(&run);
#undef RUN
}

static char *evaluate(const char *option, const char *value, const char *places) {
    const char *arguments[] = {"eval", "run", "--data", "text", "--json", NULL, NULL, NULL, NULL, NULL};
    size_t count = 5;
    if (option != NULL) {
        arguments[count++] = option;
        arguments[count++] = value;
    }
    if (places != NULL) {
        arguments[count++] = "--precision-for";
        arguments[count++] = places;
    }
    hs_test_program run = hs_test_run(arguments);
    cr_assert_eq(run.status, 0, "%s", run.err);
    json_t *found = json_loads(run.out, 0, NULL);
    char *loss = json_dumps(json_object_get(found, "loss"), JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));
    json_decref(found);
    hs_test_program_free(&run);
    return loss;
}

Test(places, are_those_of_training_for_eval_and_sample) {
    hs_test_write_file("text", "12+34=46\n1+1=2\n40+50=90\n");
    expect_done(HS_TEST_RUN("train", SMALL, "--steps", "20", "--out", "run", "--precision-for", MIXTURE));
    char *stored = evaluate(NULL, NULL, NULL), *said = evaluate(NULL, NULL, MIXTURE),
         *both = evaluate("--precision", "bf16", MIXTURE), *plain = evaluate("--precision", "bf16", NULL),
         *none = evaluate(NULL, NULL, "none"), *f64 = evaluate("--precision", "f64", NULL);
    cr_expect_str_eq(stored, said);
    cr_expect_str_eq(stored, both);
    cr_expect_str_neq(stored, plain);
    cr_expect_str_eq(plain, none);
    cr_expect_str_neq(f64, stored);
    char *losses[] = {stored, said, both, plain, none, f64};
    for (size_t i = 0; i < 6; ++i)
        free(losses[i]);
    expect_done(HS_TEST_RUN("sample", "run", "--tokens", "3", "--precision-for", "head=bf16"));
    hs_test_program run = HS_TEST_RUN("sample", "run", "--tokens", "3", "--precision-for", "heat=bf16");
    cr_expect_eq(run.status, 2);
    cr_expect_not_null(strstr(run.err, "See: trainer sample --help"), "%s", run.err);
    hs_test_program_free(&run);
}

Test(places, are_those_of_the_attempt_for_replay) {
    expect_done(HS_TEST_RUN("train", SMALL, "--steps", "1", "--out", "run", "--dump-overflow", "1", "--precision-for",
                            "head=f64,*.down=fp16", "--loss-scale", "16777216", "--max-loss-scale", "16777216"));
    hs_test_program run = HS_TEST_RUN("replay", "run/overflow-00000001-00000001.safetensors");
    cr_expect_eq(run.status, 0, "%s", run.err);
    cr_expect_not_null(strstr(run.out, "feed_forward.down"), "%s", run.out);
    cr_expect_not_null(strstr(run.out, "fp16-fp32"), "%s", run.out);
    hs_test_program_free(&run);
}

Test(places, are_verified_against_f64) {
    hs_test_program run =
        HS_TEST_RUN("verify", "--against", "f64", "--layers", "2", "--width", "8", "--heads", "2", "--feed-forward",
                    "8", "--context", "8", "--batch-size", "2", "--threads", "1", "--steps", "12", "--quiet", "--json",
                    "--precision", "f64", "--precision-for", "head=bf16");
    cr_assert_eq(run.status, 0, "%s", run.err);
    json_t *found = json_loads(run.out, 0, NULL);
    const json_t *side = json_array_get(json_object_get(found, "sides"), 0);
    cr_expect_str_eq(text_of(side, "precision"), "f64, head=bf16");
    cr_expect_str_eq(text_of(json_object_get(found, "reference"), "precision"), "f64");
    cr_expect_eq(json_integer_value(json_object_get(side, "first_difference")), 1, "the precision is another one");
    json_decref(found);
    hs_test_program_free(&run);
    run = HS_TEST_RUN("verify", "--against", "f64", "--precision", "bf16", "--precision-for", "*=f64", "--quiet");
    cr_expect_eq(run.status, 2);
    cr_expect_not_null(strstr(run.err, "against itself"), "%s", run.err);
    hs_test_program_free(&run);
}

static json_int_t working_memory(const char *precision, const char *places) {
    hs_test_program run = HS_TEST_RUN("train", "--dry-run", "--width", "64", "--precision", precision,
                                      "--precision-for", places, "--threads", "1", "--batch-size", "8");
    cr_assert_eq(run.status, 0, "%s", run.err);
    json_t *plan = json_loads(run.out, 0, NULL);
    const json_int_t bytes = json_integer_value(json_object_get(json_object_get(plan, "memory_bytes"), "working"));
    json_decref(plan);
    hs_test_program_free(&run);
    return bytes;
}

/* Products in f64 keep their results in f64. */
Test(places, count_in_the_memory_that_is_predicted) {
    const json_int_t compact = working_memory("bf16", "none"), wide = working_memory("f64", "none"),
                     mixed = working_memory("bf16", "*.feed_forward.*=f64");
    cr_expect_eq(working_memory("bf16", "*=f64"), wide);
    cr_expect_gt(mixed, compact);
    cr_expect_lt(mixed, wide);
}
