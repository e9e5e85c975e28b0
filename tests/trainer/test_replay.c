/* `trainer replay` on files that are not what they should be: their checksums are right, what they tell is not. */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "engine/files/tensor_file.h"
#include "support/program.h"

#define KEPT "run/overflow-00000001-00000001.safetensors"

static hstep_error error;

static void ok(hstep_status status) { cr_assert_eq(status, HSTEP_OK, "%s", error.message); }

static void train(void) {
    hs_test_enter_folder();
    hs_test_program run =
        HS_TEST_RUN("train", "--layers", "1", "--width", "8", "--heads", "2", "--feed-forward", "8", "--context", "8",
                    "--batch-size", "2", "--threads", "1", "--precision", "fp16", "--loss-scale", "16777216",
                    "--max-loss-scale", "16777216", "--steps", "1", "--out", "run", "--dump-overflow", "1", "--quiet");
    cr_assert_eq(run.status, 0, "%s", run.err);
    hs_test_program_free(&run);
}

TestSuite(replay, .init = train, .fini = hs_test_leave_folder);

/* One tensor of a copy: other bytes, or none at all where `bytes` is NULL. */
typedef struct change {
    const char *tensor;
    const void *bytes;
    size_t size;
} change;

static void *read_tensor(const hstep_tensor_file *file, const char *name, size_t *size) {
    hstep_tensor_info info;
    ok(hstep_tensor_file_tensor(file, hstep_tensor_file_find(file, name), &info, &error));
    *size = (size_t)info.bytes;
    char *bytes = calloc(1, *size + 1);
    cr_assert_not_null(bytes);
    ok(hs_tensor_file_read_bytes(file, info.offset, bytes, *size, &error));
    return bytes;
}

/* Writes KEPT to `copy` with one change, under right checksums. */
static void copy_with(const change *c) {
    hstep_tensor_file *file = NULL;
    hs_tensor_writer *writer = NULL;
    ok(hstep_tensor_file_open(KEPT, &file, &error));
    ok(hs_tensor_writer_create(&writer, &error));
    ok(hs_tensor_writer_text(writer, "schema", "halfstep.checkpoint/1", &error));
    for (int writing = 0; writing < 2; ++writing) {
        if (writing)
            ok(hs_tensor_writer_begin(writer, &hs_files_posix, "copy", &error));
        for (size_t i = 0; i < hstep_tensor_file_count(file); ++i) {
            hstep_tensor_info info;
            size_t size;
            ok(hstep_tensor_file_tensor(file, i, &info, &error));
            const bool changed = strcmp(info.name, c->tensor) == 0;
            if (changed && c->bytes == NULL)
                continue;
            if (!writing) {
                ok(hs_tensor_writer_declare(writer, info.name, info.storage, info.rank, changed ? &c->size : info.dims,
                                            &error));
                continue;
            }
            void *bytes = read_tensor(file, info.name, &size);
            ok(hs_tensor_writer_write(writer, changed ? c->bytes : bytes, changed ? c->size : size, &error));
            free(bytes);
        }
    }
    ok(hs_tensor_writer_commit(writer, &error));
    hs_tensor_writer_destroy(writer);
    hstep_tensor_file_close(file);
}

static void expect_copy(int status, const char *out, const char *err) {
    hs_test_program run = HS_TEST_RUN("replay", "copy");
    cr_expect_eq(run.status, status, "status %d: %s", run.status, run.err);
    cr_expect_not_null(strstr(run.out, out), "no '%s' in: %s", out, run.out);
    cr_expect_not_null(strstr(run.err, err), "no '%s' in: %s", err, run.err);
    hs_test_program_free(&run);
}

/* The section "attempt" as it is. */
static json_t *read_told(void) {
    hstep_tensor_file *file = NULL;
    size_t size;
    ok(hstep_tensor_file_open(KEPT, &file, &error));
    char *text = read_tensor(file, "section.attempt", &size);
    hstep_tensor_file_close(file);
    json_t *told = json_loadb(text, size, 0, NULL);
    free(text);
    cr_assert_not_null(told);
    return told;
}

static void copy_with_told(json_t *told) {
    char *text = json_dumps(told, 0);
    copy_with(&(change){"section.attempt", text, strlen(text)});
    free(text);
    json_decref(told);
}

/* The copy itself is right, or no test below could fail for the reason that it means. */
Test(replay, a_copy_replays) {
    copy_with_told(read_told());
    expect_copy(0, "replayed  the same\n", "");
}

Test(replay, another_overflow_is_status_1) {
    json_t *told = read_told();
    json_object_set_new(json_object_get(told, "overflow"), "index", json_integer(1));
    copy_with_told(told);
    expect_copy(1, "replayed  inf in operation head, tensor token_embedding.weight, index ", "not what was recorded");
    told = read_told();
    json_object_set_new(told, "loss_scale", json_real(1));
    copy_with_told(told);
    expect_copy(1, "every adjoint is finite", "not what was recorded");
    hs_test_program run = HS_TEST_RUN("replay", "--json", "copy");
    json_t *found = json_loads(run.out, JSON_REJECT_DUPLICATES, NULL);
    cr_expect(json_is_false(json_object_get(found, "same")));
    cr_expect(json_is_null(json_object_get(found, "replayed")));
    json_decref(found);
    hs_test_program_free(&run);
}

Test(replay, what_is_told_must_make_sense) {
    static const struct {
        const char *name;
        double value;
    } wrong[] = {{"loss_scale", 3},    {"loss_scale", 0},       {"step", 0},    {"sequences", 0},
                 {"sequences", 1e15},  {"length", 7},           {"length", 9},  {"micro_batches", 2},
                 {"replicas", 2.5e18}, {"micro_batches", 5e18}, {"replicas", 0}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
        json_t *told = read_told();
        json_object_set_new(told, wrong[i].name,
                            strcmp(wrong[i].name, "loss_scale") == 0 ? json_real(wrong[i].value)
                                                                     : json_integer((json_int_t)wrong[i].value));
        copy_with_told(told);
        expect_copy(3, "", "copy");
    }
    json_t *told = read_told();
    json_object_set_new(told, "schema", json_string("halfstep.attempt/2"));
    copy_with_told(told);
    expect_copy(3, "", "section \"attempt\"");
    told = read_told();
    json_object_set_new(told, "overflow", json_null());
    copy_with_told(told);
    expect_copy(3, "", "section \"attempt\"");
}

Test(replay, sections_that_are_missing_short_or_no_tokens) {
    static const int32_t beyond[16] = {258};
    static const change changes[] = {
        {"section.attempt", "{", 1},          {"section.attempt.tokens", "abc", 3},
        {"section.attempt.targets", NULL, 0}, {"section.attempt.tokens", beyond, sizeof beyond},
        {"section.configuration", "{}", 2},   {"section.configuration", NULL, 0},
        {"section.levers", NULL, 0}};
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; ++i) {
        copy_with(&changes[i]);
        hs_test_program run = HS_TEST_RUN("replay", "copy");
        cr_expect(run.status == 3, "change %zu: status %d: %s", i, run.status, run.err);
        cr_expect_eq(run.out_size, 0);
        cr_expect_not_null(strstr(run.err, "copy"), "%s", run.err);
        hs_test_program_free(&run);
    }
    copy_with(&(change){"section.attempt", NULL, 0});
    expect_copy(3, "", "--dump-overflow");
}
