/* `trainer inspect` on checkpoints and other safetensors files, whole and damaged. */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "engine/files/tensor_file.h"
#include "support/program.h"

#define FILE_NAME "run/checkpoint-00000004.safetensors"

static void train(void) {
    hs_test_enter_folder();
    hs_test_program run = HS_TEST_RUN("train", "--layers", "1", "--width", "8", "--heads", "2", "--feed-forward", "12",
                                      "--context", "8", "--batch-size", "2", "--threads", "1", "--precision", "fp16",
                                      "--steps", "4", "--growth-interval", "3", "--out", "run", "--quiet");
    cr_assert_eq(run.status, 0, "%s", run.err);
    hs_test_program_free(&run);
}

TestSuite(inspect_tensors, .init = train, .fini = hs_test_leave_folder);

/* What is said of a file as JSON; *err, which may be NULL, is what stands on stderr. */
static json_t *inspect(const char *path, int status, char **err) {
    hs_test_program run = HS_TEST_RUN("inspect", "--json", path);
    cr_assert_eq(run.status, status, "status %d: %s", run.status, run.err);
    json_error_t error;
    json_t *found = json_loads(run.out, JSON_REJECT_DUPLICATES, &error);
    cr_assert_not_null(found, "%s in: %s", error.text, run.out);
    if (err != NULL)
        *err = strdup(run.err);
    hs_test_program_free(&run);
    return found;
}

static long long integer_at(const json_t *found, const char *name) {
    const json_t *value = json_object_get(found, name);
    cr_assert(json_is_integer(value), "%s", name);
    return json_integer_value(value);
}

static const char *text_at(const json_t *found, const char *name) {
    const char *text = json_string_value(json_object_get(found, name));
    cr_assert_not_null(text, "%s", name);
    return text;
}

static const json_t *find_tensor(const json_t *found, const char *name) {
    size_t i;
    const json_t *tensor;
    json_array_foreach(json_object_get(found, "tensors"), i,
                       tensor) if (strcmp(text_at(tensor, "name"), name) == 0) return tensor;
    cr_assert_fail("no tensor %s", name);
    return NULL;
}

Test(inspect_tensors, a_checkpoint) {
    json_t *found = inspect(FILE_NAME, 0, NULL);
    cr_expect_str_eq(text_at(found, "kind"), "checkpoint");
    cr_expect(json_is_true(json_object_get(found, "verified")));
    cr_expect_eq(json_array_size(json_object_get(found, "problems")), 0);
    cr_expect_eq(integer_at(found, "step"), 4);
    cr_expect_eq(integer_at(found, "attempts"), 4);
    cr_expect_eq(integer_at(found, "finite_updates"), 1, "the scale grew after the third");
    cr_expect_eq(json_real_value(json_object_get(found, "loss_scale")), 131072);
    cr_expect(json_is_real(json_object_get(found, "held_out_loss")));
    cr_expect_eq(integer_at(found, "parameters"), 258 * 8 + 4 * 64 + 3 * 96 + 3 * 8);
    cr_expect_eq(integer_at(found, "parameter_tensors"), 11);
    cr_expect_eq(json_array_size(json_object_get(found, "tensors")), 33);
    const json_t *tensor = find_tensor(found, "blocks.0.feed_forward.down.weight"), *shape;
    cr_expect_str_eq(text_at(tensor, "dtype"), "F64");
    cr_expect_str_eq(text_at(tensor, "part"), "weights");
    shape = json_object_get(tensor, "shape");
    cr_expect(json_integer_value(json_array_get(shape, 0)) == 8 && json_integer_value(json_array_get(shape, 1)) == 12);
    cr_expect_str_eq(text_at(find_tensor(found, "adamw.v.final_norm.gain"), "part"), "moments");
    cr_expect_eq(integer_at(json_object_get(found, "configuration"), "feed-forward"), 12);
    cr_expect_eq(integer_at(json_object_get(found, "data"), "windows"), 8);
    cr_expect_str_eq(text_at(json_object_get(found, "levers"), "backend"), "cpu");
    cr_expect_eq(integer_at(json_object_get(found, "run"), "steps"), 4);
    json_decref(found);
}

Test(inspect_tensors, a_folder_stands_for_its_newest_checkpoint) {
    json_t *named = inspect(FILE_NAME, 0, NULL), *found = inspect("run", 0, NULL);
    cr_expect_str_eq(text_at(found, "file"), FILE_NAME);
    cr_assert_eq(json_object_del(found, "file"), 0);
    cr_expect(json_equal(named, found));
    json_decref(named);
    json_decref(found);
}

/* What a person looks for stands before what belongs to it. */
Test(inspect_tensors, weights_stand_before_moments) {
    json_t *found = inspect(FILE_NAME, 0, NULL);
    const json_t *tensors = json_object_get(found, "tensors");
    for (size_t i = 0; i < json_array_size(tensors); ++i)
        cr_expect_str_eq(text_at(json_array_get(tensors, i), "part"), i < 11 ? "weights" : "moments", "tensor %zu", i);
    json_decref(found);
}

Test(inspect_tensors, for_people) {
    hs_test_program run = HS_TEST_RUN("inspect", FILE_NAME);
    cr_expect_eq(run.status, 0, "%s", run.err);
    cr_expect_str_empty(run.err);
    static const char *const lines[] = {
        "kind:                            checkpoint\n", "\nverified:                        true\n",
        "\nproblems:                        -\n",        "\nstep:                            4\n",
        "\nconfiguration.precision:         fp16\n",     "\nconfiguration.prompt:            \"\\n\"\n",
        "\nconfiguration.min-learning-rate: 0\n",        "  F64  [258, 8]  weights\n"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; ++i)
        cr_expect_not_null(strstr(run.out, lines[i]), "no '%s' in: %s", lines[i], run.out);
    hs_test_program_free(&run);
}

Test(inspect_tensors, weights_alone) {
    hs_test_program run = HS_TEST_RUN("export", "run", "--dtype", "bf16", "--out", "weights");
    cr_assert_eq(run.status, 0, "%s", run.err);
    hs_test_program_free(&run);
    json_t *found = inspect("weights", 0, NULL);
    cr_expect_str_eq(text_at(found, "kind"), "weights");
    cr_expect(json_is_true(json_object_get(found, "verified")));
    cr_expect_eq(integer_at(found, "tensor_count"), 11);
    cr_expect_str_eq(text_at(find_tensor(found, "final_norm.gain"), "dtype"), "BF16");
    cr_expect_null(json_object_get(found, "step"));
    json_decref(found);
}

Test(inspect_tensors, a_file_of_another_program) {
    static const char header[] = "{\"a\":{\"dtype\":\"I32\",\"shape\":[2],\"data_offsets\":[0,8]}}";
    unsigned char bytes[8 + sizeof header - 1 + 8] = {sizeof header - 1};
    memcpy(bytes + 8, header, sizeof header - 1);
    hs_test_write_bytes("theirs", bytes, sizeof bytes);
    json_t *found = inspect("theirs", 0, NULL);
    cr_expect_str_eq(text_at(found, "kind"), "tensors");
    cr_expect(json_is_null(json_object_get(found, "verified")), "without checksums nobody can tell");
    cr_expect_str_eq(text_at(find_tensor(found, "a"), "dtype"), "I32");
    json_decref(found);
}

/* Where the bytes of a tensor begin. */
static size_t offset_of(const hs_test_bytes *file, const char *name) {
    size_t length = 0;
    for (int i = 7; i >= 0; --i)
        length = length << 8 | file->at[i];
    json_t *header = json_loadb((const char *)file->at + 8, length, 0, NULL);
    cr_assert_not_null(header);
    const json_t *offsets = json_object_get(json_object_get(header, name), "data_offsets");
    const size_t offset = 8 + length + (size_t)json_integer_value(json_array_get(offsets, 0));
    json_decref(header);
    return offset;
}

/* Every damaged tensor is named, and what is whole is told all the same. */
Test(inspect_tensors, every_damaged_tensor_is_named) {
    static const char *const damaged[] = {"token_embedding.weight", "adamw.v.final_norm.gain", "trainer.loss_scale",
                                          "section.run"};
    hs_test_bytes file = hs_test_read_bytes(FILE_NAME);
    for (size_t i = 0; i < 4; ++i)
        file.at[offset_of(&file, damaged[i])] ^= 0x40;
    hs_test_write_bytes("damaged", file.at, file.size);
    free(file.at);
    char *err = NULL;
    json_t *found = inspect("damaged", 3, &err);
    cr_expect(json_is_false(json_object_get(found, "verified")));
    const json_t *problems = json_object_get(found, "problems");
    cr_assert_eq(json_array_size(problems), 4);
    for (size_t i = 0; i < 4; ++i)
        cr_expect_not_null(strstr(json_string_value(json_array_get(problems, i)), damaged[i]), "%s: %s", damaged[i],
                           json_string_value(json_array_get(problems, i)));
    cr_expect_not_null(strstr(err, "'damaged', bytes "), "%s", err);
    cr_expect_not_null(strstr(err, "token_embedding.weight"), "%s", err);
    cr_expect_eq(integer_at(found, "parameter_tensors"), 11);
    cr_expect_eq(integer_at(json_object_get(found, "configuration"), "width"), 8);
    cr_expect_null(json_object_get(found, "loss_scale"));
    json_decref(found);
    free(err);
}

/* A file whose checksums are right and that is no state all the same. */
static void write_odd(void) {
    static const struct {
        const char *name;
        size_t size;
    } tensors[] = {{"w", 2}, {"adamw.m.w", 3}, {"adamw.v.other", 2}};
    const double numbers[3] = {1, 2, 3};
    hs_tensor_writer *writer = NULL;
    hstep_error error = {0};
    cr_assert_eq(hs_tensor_writer_create(&writer, &error), HSTEP_OK);
    cr_assert_eq(hs_tensor_writer_text(writer, "schema", "halfstep.checkpoint/1", &error), HSTEP_OK);
    for (size_t i = 0; i < 3; ++i)
        cr_assert_eq(hs_tensor_writer_declare(writer, tensors[i].name, HSTEP_STORAGE_F64, 1, &tensors[i].size, &error),
                     HSTEP_OK);
    cr_assert_eq(hs_tensor_writer_begin(writer, &hs_files_posix, "odd", &error), HSTEP_OK, "%s", error.message);
    for (size_t i = 0; i < 3; ++i)
        cr_assert_eq(hs_tensor_writer_write(writer, numbers, tensors[i].size * sizeof *numbers, &error), HSTEP_OK);
    cr_assert_eq(hs_tensor_writer_commit(writer, &error), HSTEP_OK, "%s", error.message);
    hs_tensor_writer_destroy(writer);
}

Test(inspect_tensors, what_does_not_fit_together_is_said) {
    write_odd();
    static const char *const expected[] = {"trainer.optimizer_step", "\"adamw.m.w\" is missing or of another",
                                           "\"adamw.v.w\" is missing", "\"adamw.v.other\" belongs to no weight"};
    json_t *found = inspect("odd", 3, NULL);
    cr_expect(json_is_false(json_object_get(found, "verified")));
    const json_t *problems = json_object_get(found, "problems");
    cr_assert_eq(json_array_size(problems), 4);
    for (size_t i = 0; i < 4; ++i)
        cr_expect_not_null(strstr(json_string_value(json_array_get(problems, i)), expected[i]), "%s: %s", expected[i],
                           json_string_value(json_array_get(problems, i)));
    json_decref(found);
}

/* Whatever byte is wrong and wherever a file ends: status 3 with a message, never a crash. */
Test(inspect_tensors, damage_anywhere, .timeout = 120) {
    hs_test_bytes file = hs_test_read_bytes(FILE_NAME);
    for (size_t i = 0; i < 40; ++i) {
        const size_t at = i * (file.size - 1) / 39;
        file.at[at] ^= 0x10;
        hs_test_write_bytes("damaged.safetensors", file.at, file.size);
        file.at[at] ^= 0x10;
        hs_test_program run = HS_TEST_RUN("inspect", "damaged.safetensors");
        cr_expect_eq(run.status, 3, "byte %zu: status %d", at, run.status);
        cr_expect_eq(strncmp(run.err, "trainer: ", 9), 0, "byte %zu: %s", at, run.err);
        hs_test_program_free(&run);
        hs_test_write_bytes("cut.safetensors", file.at, at);
        run = HS_TEST_RUN("inspect", "cut.safetensors");
        cr_expect_eq(run.status, 3, "%zu bytes: status %d", at, run.status);
        hs_test_program_free(&run);
    }
    free(file.at);
}
