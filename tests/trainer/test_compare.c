/* `trainer compare` on files made by hand: both sides of each rule, and everything that cannot be compared. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <criterion/criterion.h>

#include "engine/files/tensor_file.h"
#include "support/program.h"

TestSuite(compare, .init = hs_test_enter_folder, .fini = hs_test_leave_folder);

/* A tensor of at most four f64 numbers, [rows][columns]; of integers where `integers`. */
typedef struct tensor {
    const char *name;
    size_t rows, columns;
    double values[4];
    bool integers;
} tensor;

#define NUMBERS(text, r, c, ...)                                                                                       \
    {                                                                                                                  \
        .name = text, .rows = r, .columns = c, .values = { __VA_ARGS__ }                                               \
    }
#define INTEGERS(text, r, c, ...)                                                                                      \
    { .name = text, .rows = r, .columns = c, .values = {__VA_ARGS__}, .integers = true }

static void write_file(const char *path, const char *precision, const tensor *tensors, size_t count) {
    hs_tensor_writer *writer = NULL;
    hstep_error error = {0};
    cr_assert_eq(hs_tensor_writer_create(&writer, &error), HSTEP_OK);
    if (precision != NULL)
        cr_assert_eq(hs_tensor_writer_text(writer, "precision", precision, &error), HSTEP_OK);
    for (size_t i = 0; i < count; ++i) {
        const size_t dims[2] = {tensors[i].rows, tensors[i].columns};
        cr_assert_eq(hs_tensor_writer_declare(writer, tensors[i].name,
                                              tensors[i].integers ? HSTEP_STORAGE_I64 : HSTEP_STORAGE_F64, 2, dims,
                                              &error),
                     HSTEP_OK, "%s", error.message);
    }
    cr_assert_eq(hs_tensor_writer_begin(writer, &hs_files_posix, path, &error), HSTEP_OK, "%s", error.message);
    for (size_t i = 0; i < count; ++i)
        cr_assert_eq(hs_tensor_writer_write(writer, tensors[i].values,
                                            tensors[i].rows * tensors[i].columns * sizeof(double), &error),
                     HSTEP_OK);
    cr_assert_eq(hs_tensor_writer_commit(writer, &error), HSTEP_OK, "%s", error.message);
    hs_tensor_writer_destroy(writer);
}

#define WRITE(path, precision, list) write_file(path, precision, list, sizeof(list) / sizeof((list)[0]))

static json_t *compare(int status, const char *const *arguments) {
    hs_test_program run = hs_test_run(arguments);
    cr_assert_eq(run.status, status, "status %d: %s%s", run.status, run.err, run.out);
    json_t *root = json_loads(run.out, JSON_REJECT_DUPLICATES, NULL);
    cr_assert_not_null(root, "%s", run.out);
    cr_expect_eq(json_is_true(json_object_get(root, "passed")), status == 0);
    hs_test_program_free(&run);
    return root;
}

#define COMPARE(status, ...) compare(status, (const char *const[]){"compare", "--json", __VA_ARGS__, NULL})
#define THREE "--ours", "a", "--theirs", "b", "--referee", "c"

static const json_t *row_of(const json_t *root, const char *which) {
    const json_t *rows = json_object_get(root, "tensors");
    for (size_t i = 0; i < json_array_size(rows); ++i) {
        const char *name = json_string_value(json_object_get(json_array_get(rows, i), "tensor"));
        if (name != NULL && strcmp(name, which) == 0)
            return json_array_get(rows, i);
    }
    cr_assert_fail("no row %s", which);
    return NULL;
}

static void expect_text(const json_t *root, const char *which, const char *key, const char *text) {
    const char *found = json_string_value(json_object_get(row_of(root, which), key));
    cr_assert_not_null(found, "%s: %s", which, key);
    cr_expect_not_null(strstr(found, text), "%s: %s is %s", which, key, found);
}

static void expect(const json_t *root, const char *which, const char *verdict, const char *rule) {
    expect_text(root, which, "verdict", verdict);
    expect_text(root, which, "rule", rule);
}

static double number_of(const json_t *root, const char *which, const char *key) {
    const json_t *value = json_object_get(row_of(root, which), key);
    cr_assert(json_is_number(value), "%s: %s", which, key);
    return json_number_value(value);
}

/* 1e-4 lies between 13/2^17 and 14/2^17. */
#define BELOW (13 * 0x1p-17)
#define ABOVE (14 * 0x1p-17)

Test(compare, four_claims_by_two_rules) {
    static const tensor ours[] = {NUMBERS("blocks.0.attention_norm", 1, 2, 1, 2),
                                  NUMBERS("blocks.0.attention.output", 1, 2, 1.5, 2),
                                  NUMBERS("blocks.0.feed_forward.up", 1, 2, 1, 2.75),
                                  NUMBERS("blocks.0.output", 1, 2, 1 + BELOW, 2),
                                  NUMBERS("blocks.1", 1, 2, 1 + ABOVE, 2),
                                  NUMBERS("logits", 2, 2, 1, 2, 3, 3 - BELOW)};
    static const tensor theirs[] = {NUMBERS("blocks.0.attention_norm", 1, 2, 1, 2),
                                    NUMBERS("blocks.0.attention.output", 1, 2, 1, 2),
                                    NUMBERS("blocks.0.feed_forward.up", 1, 2, 1, 2.25),
                                    NUMBERS("blocks.0.output", 1, 2, 1, 2),
                                    NUMBERS("blocks.1", 1, 2, 1, 2),
                                    NUMBERS("logits", 2, 2, 1, 2, 3, 3)};
    static const tensor referee[] = {
        NUMBERS("blocks.0.attention_norm", 1, 2, 5, 5),  NUMBERS("blocks.0.attention.output", 1, 2, 1.25, -200),
        NUMBERS("blocks.0.feed_forward.up", 1, 2, 1, 2), NUMBERS("blocks.0.output", 1, 2, 1, 2),
        NUMBERS("blocks.1", 1, 2, 1 + ABOVE, 2),         NUMBERS("logits", 2, 2, 1, 2, 3, 3.5)};
    WRITE("a", "f64", ours);
    WRITE("b", NULL, theirs);
    WRITE("c", NULL, referee);
    json_t *root = COMPARE(1, THREE);
    expect(root, "blocks.0.attention_norm", "equal bits", "referee");
    expect(root, "blocks.0.attention.output", "no farther than theirs", "referee");
    expect(root, "blocks.0.feed_forward.up", "outside", "referee");
    expect(root, "blocks.0.output", "within the target", "target");
    expect(root, "blocks.1", "outside", "target");
    expect(root, "logits", "within the target", "target");
    cr_expect_eq(number_of(root, "blocks.0.feed_forward.up", "our_error"), 0.75);
    cr_expect_eq(number_of(root, "blocks.0.feed_forward.up", "their_error"), 0.25);
    cr_expect_eq(number_of(root, "blocks.0.feed_forward.up", "error"), 0.5);
    cr_expect_eq(number_of(root, "blocks.0.attention.output", "largest"), 200);
    cr_expect_eq(number_of(root, "blocks.0.attention.output", "f32_step"), 0x1p-16);
    cr_expect_eq(number_of(root, "logits", "argmax_flips"), 1, "3 before 3 - something, and 3.5 behind 3");
    cr_expect_eq(number_of(root, "logits", "argmax_rows"), 2);
    cr_expect(json_is_null(json_object_get(row_of(root, "blocks.1"), "argmax_flips")));
    json_decref(root);
    root = COMPARE(1, THREE, "--target", "0.001");
    expect(root, "blocks.1", "within the target", "target");
    json_decref(root);
    root = COMPARE(0, THREE, "--target-for", "*.up", "--target", "0.5");
    expect(root, "blocks.0.feed_forward.up", "within the target", "target");
    expect(root, "blocks.0.attention.output", "no farther than theirs", "referee");
    json_decref(root);
    hs_test_program run =
        hs_test_run((const char *const[]){"compare", THREE, "--target-for", "*.up", "--target-for", "up", NULL});
    cr_expect_eq(run.status, 2, "a pattern that fits nothing is a mistake in it");
    cr_expect_str_empty(run.out);
    cr_expect_not_null(strstr(run.err, "--target-for 'up' fits no tensor"), "%s", run.err);
    hs_test_program_free(&run);
}

/*
 * Both sides of both rules for every kind of name. Where ours is the referee and theirs beyond the target, the target
 * says outside; where theirs is the referee and ours within the target, the referee does.
 */
Test(compare, names_decide_by_which_rule) {
    static const struct {
        const char *name;
        bool target;
    } list[] = {{"blocks.0", true},
                {"blocks.12.output", true},
                {"logits", true},
                {"probabilities", true},
                {"decoder.logits", true},
                {"token_embedding", false},
                {"final_norm", false},
                {"loss", false},
                {"blocks.0.attention", false},
                {"blocks.0.attention.output", false},
                {"blocks.0.attention_residual", false},
                {"blocks.0.output.more", false},
                {"gradient.blocks.0", false},
                {"gradient.blocks.0.attention.output.weight", false}};
    enum { NAMES = sizeof list / sizeof list[0] };
    tensor far[NAMES], near_by[NAMES], theirs[NAMES];
    for (size_t i = 0; i < NAMES; ++i) {
        far[i] = (tensor){.name = list[i].name, .rows = 1, .columns = 2, .values = {1, 2 + ABOVE}};
        near_by[i] = (tensor){.name = list[i].name, .rows = 1, .columns = 2, .values = {1, 2 + BELOW}};
        theirs[i] = (tensor){.name = list[i].name, .rows = 1, .columns = 2, .values = {1, 2}};
    }
    WRITE("far", "f64", far);
    WRITE("near", "f64", near_by);
    WRITE("b", NULL, theirs);
    json_t *beyond = COMPARE(1, "--ours", "far", "--theirs", "b", "--referee", "far"),
           *inside = COMPARE(1, "--ours", "near", "--theirs", "b", "--referee", "b");
    for (size_t i = 0; i < NAMES; ++i) {
        const char *rule = list[i].target ? "target" : "referee";
        expect(beyond, list[i].name, list[i].target ? "outside" : "no farther than theirs", rule);
        expect(inside, list[i].name, list[i].target ? "within the target" : "outside", rule);
    }
    json_decref(beyond);
    json_decref(inside);
}

/* At the limit itself a rule is kept; a step beyond it is not. */
Test(compare, limits_belong_to_what_they_limit) {
    static const tensor ours[] = {NUMBERS("logits", 1, 2, 1.5, 2), NUMBERS("inner", 1, 2, 1.5, 2)},
                        beyond[] = {NUMBERS("logits", 1, 2, 1.5 + 0x1p-52, 2),
                                    NUMBERS("inner", 1, 2, 1.5 + 0x1p-52, 2)},
                        theirs[] = {NUMBERS("logits", 1, 2, 1, 2), NUMBERS("inner", 1, 2, 0.5, 2)},
                        referee[] = {NUMBERS("logits", 1, 2, 1, 2), NUMBERS("inner", 1, 2, 1, 2)};
    WRITE("a", "f64", ours);
    WRITE("beyond", "f64", beyond);
    WRITE("b", NULL, theirs);
    WRITE("c", NULL, referee);
    json_t *root = COMPARE(0, THREE, "--target", "0.5");
    expect(root, "logits", "within the target", "target");
    expect(root, "inner", "no farther than theirs", "referee");
    json_decref(root);
    root = COMPARE(1, "--ours", "beyond", "--theirs", "b", "--referee", "c", "--target", "0.5");
    expect(root, "logits", "outside", "target");
    expect(root, "inner", "outside", "referee");
    json_decref(root);
}

static const tensor one[] = {NUMBERS("logits", 1, 2, 1, 2)};
static const tensor near[] = {NUMBERS("logits", 1, 2, 1, 2 + BELOW)};

/* The target is for f64: other precisions are only held to the referee. */
Test(compare, the_precision_of_ours_decides_whether_there_is_a_target) {
    WRITE("a", "bf16-fp32", near);
    WRITE("b", NULL, one);
    WRITE("c", NULL, one);
    json_t *root = COMPARE(1, THREE);
    expect(root, "logits", "outside", "referee");
    json_decref(root);
    root = COMPARE(0, THREE, "--precision", "f64");
    expect(root, "logits", "within the target", "target");
    json_decref(root);
    root = COMPARE(0, THREE, "--target", "0.01");
    expect(root, "logits", "within the target", "target");
    json_decref(root);
    hs_test_program run = HS_TEST_RUN("compare", "--ours", "a", "--theirs", "b");
    cr_expect_eq(run.status, 2);
    cr_expect_not_null(strstr(run.err, "bf16"), "%s", run.err);
    hs_test_program_free(&run);
    WRITE("a", "fp8", near);
    run = HS_TEST_RUN("compare", THREE);
    cr_expect_eq(run.status, 3);
    cr_expect_not_null(strstr(run.err, "fp8"), "%s", run.err);
    hs_test_program_free(&run);
}

Test(compare, without_a_referee_all_are_held_to_the_target) {
    static const tensor ours[] = {NUMBERS("inner", 1, 2, 1, 2 + BELOW)}, theirs[] = {NUMBERS("inner", 1, 2, 1, 2)};
    WRITE("a", NULL, ours);
    WRITE("b", NULL, theirs);
    json_t *root = COMPARE(0, "--ours", "a", "--theirs", "b");
    expect(root, "inner", "within the target", "target");
    cr_expect(json_is_null(json_object_get(row_of(root, "inner"), "our_error")));
    json_decref(root);
    root = COMPARE(1, "--ours", "a", "--theirs", "b", "--target", "0.00001");
    json_decref(root);
}

Test(compare, what_cannot_be_compared_has_a_row_of_its_own) {
    static const tensor ours[] = {NUMBERS("same", 1, 2, 1, 2),        NUMBERS("extra", 1, 2, 1, 2),
                                  NUMBERS("shape", 2, 1, 1, 2),       INTEGERS("type", 1, 2, 1, 2),
                                  NUMBERS("nan", 1, 2, NAN, 2),       NUMBERS("infinity", 1, 2, 1, INFINITY),
                                  NUMBERS("unknown to c", 1, 2, 1, 2)};
    static const tensor theirs[] = {NUMBERS("same", 1, 2, 1, 2),        NUMBERS("missing", 1, 2, 1, 2),
                                    NUMBERS("shape", 1, 2, 1, 2),       NUMBERS("type", 1, 2, 1, 2),
                                    NUMBERS("nan", 1, 2, NAN, 2),       NUMBERS("infinity", 1, 2, 1, 2),
                                    NUMBERS("unknown to c", 1, 2, 1, 2)};
    static const tensor referee[] = {NUMBERS("same", 1, 2, 1, 2),  NUMBERS("missing", 1, 2, 1, 2),
                                     NUMBERS("shape", 1, 2, 1, 2), NUMBERS("type", 1, 2, 1, 2),
                                     NUMBERS("nan", 1, 2, 1, 2),   NUMBERS("infinity", 1, 2, 1, 2)};
    WRITE("a", NULL, ours);
    WRITE("b", NULL, theirs);
    WRITE("c", NULL, referee);
    json_t *root = COMPARE(1, THREE);
    cr_expect_eq(json_array_size(json_object_get(root, "tensors")), 8);
    expect(root, "same", "equal bits", "referee");
    expect_text(root, "missing", "verdict", "missing");
    expect_text(root, "extra", "verdict", "extra");
    expect_text(root, "unknown to c", "verdict", "no referee");
    expect_text(root, "shape", "reason", "[2, 1] in ours, [1, 2] in theirs");
    expect_text(root, "type", "reason", "I64");
    expect_text(root, "nan", "verdict", "nonfinite");
    expect_text(root, "nan", "reason", "1 of ours, 1 of theirs, 0 of the referee");
    expect_text(root, "infinity", "verdict", "nonfinite");
    cr_expect(json_is_null(json_object_get(row_of(root, "infinity"), "error")), "no infinity in JSON");
    json_decref(root);
}

/* Each of them alone is enough for status 1. */
Test(compare, every_kind_of_row_fails_by_itself) {
    static const tensor odd[][2] = {{NUMBERS("logits", 1, 2, 1, 2), NUMBERS("extra", 1, 1, 0)},
                                    {NUMBERS("logits", 2, 1, 1, 2), NUMBERS("extra", 1, 1, 0)},
                                    {INTEGERS("logits", 1, 2, 1, 2), NUMBERS("extra", 1, 1, 0)},
                                    {NUMBERS("logits", 1, 2, 1, NAN), NUMBERS("extra", 1, 1, 0)}};
    WRITE("b", NULL, one);
    WRITE("c", NULL, one);
    for (size_t i = 0; i < 4; ++i) {
        remove("a");
        write_file("a", NULL, odd[i], i == 0 ? 2 : 1);
        json_decref(COMPARE(1, THREE));
    }
    json_decref(COMPARE(1, "--ours", "b", "--theirs", "a", "--referee", "c"));
    remove("a");
    write_file("a", NULL, odd[0], 2);
    json_decref(COMPARE(1, "--ours", "b", "--theirs", "a", "--referee", "c"));
    json_decref(COMPARE(0, "--ours", "b", "--theirs", "c", "--referee", "c"));
}

Test(compare, folders_are_matched_by_names_of_files) {
    static const char *const folders[] = {"ours", "theirs", "referee"};
    for (size_t i = 0; i < 3; ++i) {
        char path[64];
        cr_assert_eq(mkdir(folders[i], 0700), 0);
        snprintf(path, sizeof path, "%s/x.safetensors", folders[i]);
        if (i == 0)
            WRITE(path, NULL, near);
        else
            WRITE(path, NULL, one);
        snprintf(path, sizeof path, "%s/notes.txt", folders[i]);
        hs_test_write_file(path, "no tensors");
    }
    json_t *root = COMPARE(0, "--ours", "ours", "--theirs", "theirs", "--referee", "referee");
    expect(root, "logits", "within the target", "target");
    expect_text(root, "logits", "file", "x.safetensors");
    json_decref(root);
    WRITE("theirs/y.safetensors", NULL, one);
    WRITE("ours/z.safetensors", NULL, one);
    root = COMPARE(1, "--ours", "ours", "--theirs", "theirs");
    const json_t *rows = json_object_get(root, "tensors");
    cr_assert_eq(json_array_size(rows), 3);
    cr_expect_str_eq(json_string_value(json_object_get(json_array_get(rows, 1), "verdict")), "missing");
    cr_expect_str_eq(json_string_value(json_object_get(json_array_get(rows, 2), "verdict")), "extra");
    cr_expect(json_is_null(json_object_get(json_array_get(rows, 2), "tensor")));
    json_decref(root);
    hs_test_program run = HS_TEST_RUN("compare", "--ours", "ours", "--theirs", "theirs/x.safetensors");
    cr_expect_eq(run.status, 2, "%s", run.err);
    hs_test_program_free(&run);
}

Test(compare, bad_files_are_named) {
    WRITE("a", NULL, one);
    hs_test_write_file("b", "no tensors");
    hs_test_program run = HS_TEST_RUN("compare", "--ours", "a", "--theirs", "b");
    cr_expect_eq(run.status, 3);
    cr_expect_eq(run.out_size, 0);
    cr_expect_not_null(strstr(run.err, "'b'"), "%s", run.err);
    hs_test_program_free(&run);
    cr_assert_eq(mkdir("empty", 0700), 0);
    run = HS_TEST_RUN("compare", "--ours", "empty", "--theirs", "empty");
    cr_expect_eq(run.status, 3, "nothing compared is nothing shown");
    hs_test_program_free(&run);
}

Test(compare, a_table_for_people) {
    WRITE("a", NULL, near);
    WRITE("b", NULL, one);
    hs_test_program run = HS_TEST_RUN("compare", "--ours", "a", "--theirs", "b");
    cr_expect_eq(run.status, 0, "%s", run.err);
    static const char *const words[] = {"logits  within the target", "9.92e-05 <= target 0.0001", "1 row", "0 outside"};
    for (size_t i = 0; i < 4; ++i)
        cr_expect_not_null(strstr(run.out, words[i]), "no '%s' in: %s", words[i], run.out);
    hs_test_program_free(&run);
}

/* A file's name may be no UTF-8, and a tensor's may hold what a terminal would obey. */
Test(compare, odd_names) {
    static const tensor odd[] = {NUMBERS("red\x1b[31m\nrow", 1, 1, 1)};
    WRITE("a\xff", NULL, odd);
    json_t *root = COMPARE(0, "--ours", "a\xff", "--theirs", "a\xff");
    cr_expect_str_eq(json_string_value(json_object_get(json_object_get(root, "ours"), "bytes")), "61ff");
    expect_text(root, "red\x1b[31m\nrow", "verdict", "equal bits");
    json_decref(root);
    hs_test_program run = HS_TEST_RUN("compare", "--ours", "a\xff", "--theirs", "a\xff");
    cr_expect_eq(run.status, 0, "%s", run.err);
    cr_expect_not_null(strstr(run.out, "\nred?[31m?row  equal bits"), "%s", run.out);
    hs_test_program_free(&run);
}

/* More than fits in memory at once: the last number counts too, and the flip in a row that lies over a border. */
Test(compare, large_tensors_are_read_in_pieces) {
    enum { ROWS = 3, COLUMNS = 100001 };
    const size_t dims[2] = {ROWS, COLUMNS};
    double *values = calloc(ROWS * COLUMNS, sizeof *values);
    cr_assert_not_null(values);
    for (size_t side = 0; side < 2; ++side) {
        hs_tensor_writer *writer = NULL;
        hstep_error error = {0};
        cr_assert_eq(hs_tensor_writer_create(&writer, &error), HSTEP_OK);
        cr_assert_eq(hs_tensor_writer_declare(writer, "logits", HSTEP_STORAGE_F64, 2, dims, &error), HSTEP_OK);
        cr_assert_eq(hs_tensor_writer_begin(writer, &hs_files_posix, side == 0 ? "a" : "b", &error), HSTEP_OK);
        values[COLUMNS + (side == 0 ? 5 : 99999)] = 1;
        values[COLUMNS + (side == 0 ? 99999 : 5)] = 0.5;
        values[ROWS * COLUMNS - 1] = side == 0 ? 2 : 4;
        cr_assert_eq(hs_tensor_writer_write(writer, values, ROWS * COLUMNS * sizeof *values, &error), HSTEP_OK);
        cr_assert_eq(hs_tensor_writer_commit(writer, &error), HSTEP_OK);
        hs_tensor_writer_destroy(writer);
    }
    free(values);
    json_t *root = COMPARE(1, "--ours", "a", "--theirs", "b");
    cr_expect_eq(number_of(root, "logits", "elements"), ROWS * COLUMNS);
    cr_expect_eq(number_of(root, "logits", "different"), 3);
    cr_expect_eq(number_of(root, "logits", "error"), 2);
    cr_expect_eq(number_of(root, "logits", "largest"), 4);
    cr_expect_eq(number_of(root, "logits", "argmax_flips"), 1);
    json_decref(root);
}
