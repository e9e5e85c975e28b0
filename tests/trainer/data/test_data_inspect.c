/* `trainer inspect`: token shards, texts and records, for people and as JSON, whole and damaged. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "support/folder.h"
#include "support/program.h"
#include "support/shards.h"

TestSuite(inspect, .init = hs_test_enter_folder, .fini = hs_test_leave_folder);

static json_t *inspect(const char *path, const char *type) {
    hs_test_program run = HS_TEST_RUN("inspect", "--json", "--token-type", type, path);
    cr_assert_eq(run.status, 0, "%s", run.err);
    cr_expect_str_empty(run.err);
    json_error_t error;
    json_t *found = json_loads(run.out, JSON_REJECT_DUPLICATES, &error);
    cr_assert_not_null(found, "%s in: %s", error.text, run.out);
    hs_test_program_free(&run);
    return found;
}

static void expect_number(const json_t *found, const char *name, double number) {
    const json_t *value = json_object_get(found, name);
    cr_assert(json_is_number(value), "%s", name);
    cr_expect_eq(json_number_value(value), number, "%s is %g", name, json_number_value(value));
}

static void expect_text(const json_t *found, const char *name, const char *text) {
    const char *value = json_string_value(json_object_get(found, name));
    cr_assert_not_null(value, "%s", name);
    cr_expect_str_eq(value, text, "%s", name);
}

Test(inspect, a_shard) {
    uint16_t tokens[40];
    for (size_t i = 0; i < 40; ++i)
        tokens[i] = (uint16_t)(60000 - i); /* also beyond the vocabulary of its format */
    hs_test_write_shard("s.bin", tokens, 40);
    json_t *found = inspect("s.bin", "auto");
    expect_text(found, "kind", "data");
    expect_text(found, "format", "llm.c");
    expect_text(found, "token_type", "uint16");
    expect_number(found, "tokens", 40);
    expect_number(found, "vocabulary_needed", 60001);
    const json_t *first = json_object_get(found, "first_tokens");
    cr_assert_eq(json_array_size(first), 16);
    cr_expect_eq(json_integer_value(json_array_get(first, 0)), 60000);
    cr_expect_eq(json_integer_value(json_array_get(first, 15)), 59985);
    json_decref(found);
    hs_test_program run = HS_TEST_RUN("inspect", "s.bin");
    cr_expect_eq(run.status, 0, "%s", run.err);
    cr_expect_not_null(strstr(run.out, "\nvocabulary needed:      60001\n"), "%s", run.out);
    cr_expect_not_null(strstr(run.out, " 60000 59999 59998 "), "%s", run.out);
    hs_test_program_free(&run);
}

Test(inspect, raw_tokens_and_text) {
    static const uint32_t tokens[] = {70000, 3};
    hs_test_write_bytes("raw.bin", tokens, sizeof tokens);
    json_t *found = inspect("raw.bin", "uint32");
    expect_text(found, "format", "raw");
    expect_number(found, "tokens", 2);
    expect_number(found, "vocabulary_needed", 70001);
    cr_expect_eq(json_array_size(json_object_get(found, "first_tokens")), 2);
    json_decref(found);
    hs_test_write_file("-text*", "ab");
    hs_test_program run = HS_TEST_RUN("inspect", "--json", "--", "-text*");
    cr_expect_eq(run.status, 0, "%s", run.err);
    cr_expect_not_null(strstr(run.out, "\"format\": \"text\""), "%s", run.out);
    cr_expect_not_null(strstr(run.out, "\"vocabulary_needed\": 258"), "%s", run.out);
    hs_test_program_free(&run);
}

static void make_records(void) {
    hs_test_program run = HS_TEST_RUN("train", "--layers", "1", "--width", "8", "--heads", "2", "--feed-forward", "8",
                                      "--context", "8", "--batch-size", "2", "--threads", "1", "--precision", "fp16",
                                      "--loss-scale", "1073741824", "--max-loss-scale", "1073741824", "--steps", "3",
                                      "--sample-tokens", "0", "--quiet", "--records", "r");
    cr_assert_eq(run.status, 0, "%s", run.err);
    hs_test_program_free(&run);
}

Test(inspect, records_of_a_run) {
    make_records();
    char *text = hs_test_read_file("r");
    json_t *records = hs_test_parse_lines(text), *updates = hs_test_records_of(records, "update");
    const size_t attempts = json_array_size(updates);
    const json_t *last = json_array_get(updates, attempts - 1);
    cr_assert_gt(attempts, 3, "something was skipped");
    json_t *found = inspect("r", "auto");
    expect_text(found, "kind", "records");
    expect_text(found, "precision", "fp16-fp32");
    expect_text(found, "outcome", "finished");
    expect_number(found, "attempts", (double)attempts);
    expect_number(found, "applied", 3);
    expect_number(found, "skips", (double)attempts - 3);
    expect_number(found, "last_loss", json_number_value(json_object_get(last, "loss")));
    expect_number(found, "planned_steps", 3);
    expect_text(found, "weights_checksum",
                json_string_value(json_object_get(hs_test_record(records, "end"), "weights_checksum")));
    json_decref(found);
    /* Up to its last but one line it is that of a run that goes on. */
    char *end = strstr(text, "{\"schema\":\"halfstep.records/1\",\"record\":\"end\"");
    cr_assert_not_null(end);
    hs_test_write_bytes("going", text, (size_t)(end - text));
    found = inspect("going", "auto");
    cr_expect(json_is_null(json_object_get(found, "outcome")));
    expect_number(found, "attempts", (double)attempts);
    json_decref(found);
    json_decref(updates);
    json_decref(records);
    free(text);
}

/* Refused with status 3, naming the file and all words. */
static void expect_refused(const char *path, const char *word, const char *place) {
    hs_test_program run = HS_TEST_RUN("inspect", path);
    cr_expect_eq(run.status, 3, "%s: %d: %s", path, run.status, run.err);
    cr_expect_eq(run.out_size, 0, "%s", run.out);
    cr_expect_not_null(strstr(run.err, path), "%s", run.err);
    cr_expect_not_null(strstr(run.err, word), "no '%s' in: %s", word, run.err);
    cr_expect_not_null(strstr(run.err, place), "no '%s' in: %s", place, run.err);
    hs_test_program_free(&run);
}

Test(inspect, damage_is_3_with_its_place) {
    make_records();
    char *text = hs_test_read_file("r"), place[40];
    const size_t size = strlen(text), first = strcspn(text, "\n") + 1;
    hs_test_write_bytes("cut", text, size - 1);
    expect_refused("cut", "cut short", "byte offset");
    snprintf(place, sizeof place, "byte offset %zu, line 2:", first);
    hs_test_write_bytes("cut", text, first + 30);
    expect_refused("cut", "cut short", place);
    text[first + 1] = 'x';
    hs_test_write_bytes("changed", text, size);
    snprintf(place, sizeof place, "line 2:");
    expect_refused("changed", "byte offset", place);
    hs_test_write_file("twice", "{\"schema\":\"halfstep.records/1\",\"record\":\"run\"}\n"
                                "{\"schema\":\"halfstep.records/1\",\"record\":\"run\"}\n");
    expect_refused("twice", "run record", "byte offset 47, line 2");
    hs_test_write_file("none.jsonl", "");
    expect_refused("none.jsonl", "no record", "byte offset 0");
    hs_test_write_file("other.jsonl", "{\"a\":1}\n");
    expect_refused("other.jsonl", "schema", "byte offset 0, line 1");
    hs_test_write_file("empty", "");
    expect_refused("empty", "empty", "byte offset 0");
    hs_test_write_file("short.bin", "ab");
    expect_refused("short.bin", "token type", "byte offset 0");
    cr_assert_eq(mkdir("folder", 0700), 0);
    expect_refused("folder", "no checkpoint", "folder");
    expect_refused("missing", "No such file", "missing");
    expect_refused("/dev/zero", "no file", "/dev/zero");
    free(text);
}

Test(inspect, help_goes_to_standard_output) {
    hs_test_program run = HS_TEST_RUN("inspect", "--help");
    cr_expect_eq(run.status, 0);
    cr_expect_not_null(strstr(run.out, "--token-type"));
    cr_expect_str_empty(run.err);
    hs_test_program_free(&run);
}
