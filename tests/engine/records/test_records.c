/* Run records: what stands in them, as strict JSON. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>
#include <jansson.h>

#include <halfstep/halfstep.h>

static char path[] = "records-XXXXXX";
static hstep_records *records;

static void open_file(void) {
    const int descriptor = mkstemp(path);
    cr_assert(descriptor >= 0);
    close(descriptor);
    hstep_error error;
    cr_assert_eq(hstep_records_open(path, &records, &error), HSTEP_OK, "%s", error.message);
}

static void remove_file(void) { unlink(path); }

TestSuite(records, .init = open_file, .fini = remove_file);

/* Closes the writer and parses line `number`, from 0, of the file. */
static json_t *parse_line(size_t number) {
    cr_assert_eq(hstep_records_close(records, NULL), HSTEP_OK);
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file);
    char *line = NULL;
    size_t room = 0;
    ssize_t length = 0;
    for (size_t i = 0; i <= number; i++)
        cr_assert_gt(length = getline(&line, &room, file), 0);
    fclose(file);
    cr_assert_eq(line[length - 1], '\n');
    json_error_t error;
    json_t *object = json_loadb(line, (size_t)length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    free(line);
    cr_assert_not_null(object, "%s", error.text);
    cr_assert_str_eq(json_string_value(json_object_get(object, "schema")), "halfstep.records/1");
    return object;
}

static const char *text_of(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);
    cr_assert(json_is_string(value), "%s is no text", name);
    return json_string_value(value);
}

static long long integer_of(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);
    cr_assert(json_is_integer(value), "%s is no integer", name);
    return json_integer_value(value);
}

static double number_of(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);
    cr_assert(json_is_real(value), "%s is no number", name);
    return json_real_value(value);
}

static hstep_update applied_update(void) {
    return (hstep_update){.outcome = HSTEP_APPLIED,
                          .step = 7,
                          .attempt = 9,
                          .loss = 0.1 + 0.2,
                          .loss_scale = 65536,
                          .next_loss_scale = 131072,
                          .finite_updates = 0,
                          .gradient_norm = 0x1.fffffffffffffp-1,
                          .clipped = 1,
                          .learning_rate = 0x1p-1074,
                          .optimizer_step = 7,
                          .tokens = 768,
                          .threads = 3};
}

Test(records, update_keeps_every_bit) {
    const hstep_update update = applied_update();
    cr_assert_eq(hstep_records_write_update(records, &(hstep_update_record){.update = &update, .seconds = 0.5}, NULL),
                 HSTEP_OK);
    json_t *line = parse_line(0);
    cr_assert_str_eq(text_of(line, "record"), "update");
    cr_assert_eq(integer_of(line, "step"), 7);
    cr_assert_eq(integer_of(line, "attempt"), 9);
    cr_assert_str_eq(text_of(line, "outcome"), "applied");
    cr_assert_eq(number_of(line, "loss"), 0.1 + 0.2);
    cr_assert_eq(number_of(line, "loss_scale"), 65536);
    cr_assert_eq(number_of(line, "next_loss_scale"), 131072);
    cr_assert_eq(integer_of(line, "finite_updates"), 0);
    cr_assert_eq(number_of(line, "gradient_norm"), 0x1.fffffffffffffp-1);
    cr_assert(json_is_true(json_object_get(line, "clipped")));
    cr_assert_eq(number_of(line, "learning_rate"), 0x1p-1074);
    cr_assert_eq(integer_of(line, "optimizer_step"), 7);
    cr_assert_eq(integer_of(line, "tokens"), 768);
    cr_assert_eq(integer_of(line, "threads"), 3);
    cr_assert_eq(number_of(line, "seconds"), 0.5);
    cr_assert_eq(number_of(line, "tokens_per_second"), 1536);
    cr_assert_eq(json_object_size(line), 17);
    json_decref(line);
}

static hstep_update skipped_update(const char *operation, double norm) {
    hstep_update update = applied_update();
    update.outcome = HSTEP_SKIPPED;
    update.gradient_norm = norm;
    update.overflow = (hstep_overflow){.tensor = "token_embedding.weight", .phase = "backward", .kind = "nan"};
    update.overflow.index = 1031;
    strcpy(update.overflow.operation, operation);
    return update;
}

Test(records, an_attempt_that_was_kept) {
    const hstep_dump_record dump = {7, 9, "runs/a/overflow-00000007-00000009.safetensors", 0.25};
    cr_assert_eq(hstep_records_write_dump(records, &dump, NULL), HSTEP_OK);
    json_t *line = parse_line(0);
    cr_expect_str_eq(text_of(line, "record"), "dump");
    cr_expect_eq(integer_of(line, "step"), 7);
    cr_expect_eq(integer_of(line, "attempt"), 9);
    cr_expect_str_eq(text_of(line, "path"), dump.path);
    cr_expect_eq(number_of(line, "seconds"), 0.25);
    cr_expect_eq(json_object_size(line), 6);
    json_decref(line);
}

Test(records, skip_names_its_overflow_and_has_no_norm) {
    const hstep_update update = skipped_update("blocks.0.attention", NAN);
    cr_assert_eq(hstep_records_write_update(records, &(hstep_update_record){.update = &update, .seconds = 0.5}, NULL),
                 HSTEP_OK);
    json_t *line = parse_line(0);
    cr_assert_str_eq(text_of(line, "outcome"), "skipped");
    cr_assert(json_is_null(json_object_get(line, "gradient_norm")));
    cr_assert_null(json_object_get(line, "gradient_norm_nonfinite"));
    const json_t *overflow = json_object_get(line, "overflow");
    cr_assert_str_eq(text_of(overflow, "operation"), "blocks.0.attention");
    cr_assert_str_eq(text_of(overflow, "tensor"), "token_embedding.weight");
    cr_assert_str_eq(text_of(overflow, "phase"), "backward");
    cr_assert_str_eq(text_of(overflow, "kind"), "nan");
    cr_assert_eq(integer_of(overflow, "index"), 1031);
    cr_assert_eq(json_object_size(overflow), 5);
    json_decref(line);
}

Test(records, nonfinite_norm_is_said) {
    const hstep_update update = skipped_update("gradient_norm", INFINITY);
    cr_assert_eq(hstep_records_write_update(records, &(hstep_update_record){.update = &update}, NULL), HSTEP_OK);
    json_t *line = parse_line(0);
    cr_assert(json_is_null(json_object_get(line, "gradient_norm")));
    cr_assert_str_eq(text_of(line, "gradient_norm_nonfinite"), "inf");
    cr_assert(json_is_null(json_object_get(line, "tokens_per_second")));
    cr_assert_str_eq(text_of(line, "tokens_per_second_nonfinite"), "inf");
    json_decref(line);
}

Test(records, nonfinite_evaluations) {
    const double losses[] = {-INFINITY, NAN};
    static const char *const words[] = {"-inf", "nan"};
    for (size_t i = 0; i < 2; i++) {
        const hstep_evaluation_record evaluation = {.step = 3, .loss = losses[i], .tokens = 10, .seconds = 1};
        cr_assert_eq(hstep_records_write_evaluation(records, &evaluation, NULL), HSTEP_OK);
    }
    json_t *line = parse_line(0);
    cr_assert_str_eq(text_of(line, "record"), "evaluation");
    cr_assert_str_eq(text_of(line, "loss_nonfinite"), words[0]);
    json_decref(line);
    records = NULL;
    line = parse_line(1);
    cr_assert_str_eq(text_of(line, "loss_nonfinite"), words[1]);
    json_decref(line);
}

Test(records, run_says_everything) {
    const hstep_setting settings[] = {
        {.name = "data", .kind = HSTEP_SETTING_TEXT, .text = NULL},
        {.name = "out", .kind = HSTEP_SETTING_TEXT, .text = "runs/\xff"},
        {.name = "learning_rate", .kind = HSTEP_SETTING_NUMBER, .number = 1e-3},
        {.name = "steps", .kind = HSTEP_SETTING_INTEGER, .integer = 500},
        {.name = "quiet", .kind = HSTEP_SETTING_BOOLEAN, .boolean = 2},
    };
    const hstep_decoder_config decoder = {258, 128, 4, 4, 0, 384, 10000, 1e-5, HSTEP_PRECISION_FP16, NULL, 0};
    const hstep_lever levers[] = {
        {.name = "cpu.portable", .exact = 1, .state = HSTEP_LEVER_ACTIVE, .reason = "always there"},
        {.name = "cpu.amx", .state = HSTEP_LEVER_ABSENT}};
    const hstep_data_source data = {"text \"a\"\n", 100, 90, 10, UINT64_C(0xabc), 3.25};
    const hstep_run_record run = {.precision = HSTEP_PRECISION_FP16,
                                  .settings = settings,
                                  .setting_count = 5,
                                  .decoder = &decoder,
                                  .parameter_tensors = 38,
                                  .parameters = 886000,
                                  .backend = "cpu",
                                  .device = "some processor",
                                  .threads = 2,
                                  .levers = levers,
                                  .lever_count = 2,
                                  .data = &data,
                                  .data_count = 1,
                                  .seed = INT64_MAX};
    cr_assert_eq(hstep_records_write_run(records, &run, NULL), HSTEP_OK);
    json_t *line = parse_line(0);
    cr_assert_str_eq(text_of(line, "version"), HSTEP_VERSION);
    cr_assert_str_eq(text_of(line, "precision"), "fp16-fp32");
    const json_t *configuration = json_object_get(line, "configuration");
    cr_assert(json_is_null(json_object_get(configuration, "data")));
    cr_assert_str_eq(text_of(configuration, "out"), "runs/\xef\xbf\xbd");
    cr_assert_str_eq(text_of(configuration, "out_bytes"), "72756e732fff");
    cr_assert_eq(number_of(configuration, "learning_rate"), 1e-3);
    cr_assert_eq(integer_of(configuration, "steps"), 500);
    cr_assert(json_is_true(json_object_get(configuration, "quiet")));
    const json_t *model = json_object_get(line, "model");
    cr_assert_str_eq(text_of(model, "kind"), "decoder");
    cr_assert_eq(integer_of(model, "kv_heads"), 4, "0 stands for the number of heads");
    cr_assert_eq(integer_of(model, "feed_forward"), 384);
    cr_assert_eq(integer_of(model, "parameters"), 886000);
    cr_assert_str_eq(text_of(json_object_get(line, "dtypes"), "matmul_operands"), "fp16");
    cr_assert_str_eq(text_of(json_object_get(line, "dtypes"), "matmul_accumulator"), "f32");
    const json_t *lever = json_array_get(json_object_get(line, "levers"), 1);
    cr_assert_str_eq(text_of(lever, "state"), "absent");
    cr_assert(json_is_false(json_object_get(lever, "exact")));
    cr_assert(json_is_null(json_object_get(lever, "reason")));
    const json_t *source = json_array_get(json_object_get(line, "data"), 0);
    cr_assert_str_eq(text_of(source, "name"), "text \"a\"\n");
    cr_assert_str_eq(text_of(source, "checksum"), "0000000000000abc");
    cr_assert_eq(number_of(source, "unigram_loss"), 3.25);
    cr_assert_eq(integer_of(line, "seed"), INT64_MAX);
    json_decref(line);
}

/* A gated lever of f64 keeps the bits of a run in bf16, and not those of one whose head is in f64. */
Test(records, precisions_by_place_count_for_the_bits) {
    const hstep_lever_gate gate = {.precision = HSTEP_PRECISION_F64};
    const hstep_lever lever = {.name = "cpu.openblas", .state = HSTEP_LEVER_ACTIVE, .gate = &gate};
    const hstep_precision_rule rule = {"head", HSTEP_PRECISION_F64};
    hstep_decoder_config decoder = {258, 128, 4, 4, 0, 384, 10000, 1e-5, HSTEP_PRECISION_BF16, &rule, 1};
    const hstep_run_record run = {.precision = HSTEP_PRECISION_BF16,
                                  .decoder = &decoder,
                                  .backend = "cpu",
                                  .device = "d",
                                  .levers = &lever,
                                  .lever_count = 1};
    cr_assert_eq(hstep_records_write_run(records, &run, NULL), HSTEP_OK);
    json_t *line = parse_line(0);
    cr_assert(json_is_false(json_object_get(line, "reference_bits")));
    const json_t *place = json_array_get(json_object_get(line, "precision_for"), 0);
    cr_assert_str_eq(text_of(place, "operations"), "head");
    cr_assert_str_eq(text_of(place, "precision"), "f64");
    json_decref(line);
    cr_assert_eq(hstep_records_open(path, &records, NULL), HSTEP_OK);
    decoder.rule_count = 0;
    cr_assert_eq(hstep_records_write_run(records, &run, NULL), HSTEP_OK);
    line = parse_line(0);
    cr_assert(json_is_true(json_object_get(line, "reference_bits")));
    cr_assert_null(json_object_get(line, "precision_for"));
    json_decref(line);
}

/* A refused record leaves no part of a line, and the writer goes on. */
Test(records, too_large_integer_and_repeated_setting_are_refused) {
    hstep_error error;
    hstep_evaluation_record evaluation = {.step = UINT64_C(1) << 63};
    cr_assert_eq(hstep_records_write_evaluation(records, &evaluation, &error), HSTEP_ERROR_ARGUMENT);
    cr_assert_not_null(strstr(error.message, "step"));
    const hstep_setting settings[] = {{.name = "seed", .kind = HSTEP_SETTING_INTEGER},
                                      {.name = "seed", .kind = HSTEP_SETTING_NUMBER}};
    const hstep_run_record run = {.settings = settings, .setting_count = 2, .backend = "cpu", .device = "d"};
    cr_assert_eq(hstep_records_write_run(records, &run, &error), HSTEP_ERROR_ARGUMENT);
    cr_assert_not_null(strstr(error.message, "seed"));
    evaluation.step = 5;
    cr_assert_eq(hstep_records_write_evaluation(records, &evaluation, &error), HSTEP_OK);
    json_t *line = parse_line(0);
    cr_assert_eq(integer_of(line, "step"), 5);
    json_decref(line);
}

/* What the sample holds, the text a reader must see, and whether the bytes must stand beside it. */
static void check_text(const char *bytes, size_t size, const char *expected, size_t expected_size, const char *hex) {
    const hstep_sample_record sample = {.prompt = "", .text = bytes, .text_size = size};
    cr_assert_eq(hstep_records_open(path, &records, NULL), HSTEP_OK);
    cr_assert_eq(hstep_records_write_sample(records, &sample, NULL), HSTEP_OK);
    json_t *line = parse_line(0);
    const json_t *text = json_object_get(line, "text");
    cr_assert_eq(json_string_length(text), expected_size);
    cr_assert_arr_eq(json_string_value(text), expected, expected_size);
    if (hex == NULL)
        cr_assert_null(json_object_get(line, "text_bytes"));
    else
        cr_assert_str_eq(text_of(line, "text_bytes"), hex);
    json_decref(line);
}

#define BAD "\xef\xbf\xbd"
#define CHECK_TEXT(bytes, expected, hex) check_text(bytes, sizeof(bytes) - 1, expected, sizeof(expected) - 1, hex)

Test(records, samples_of_any_bytes) {
    hstep_records_close(records, NULL);
    CHECK_TEXT("", "", NULL);
    CHECK_TEXT("a\0b\x01\n\x7f", "a\0b\x01\n\x7f", NULL);
    CHECK_TEXT("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf\xed\x9f\xbf",
               "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf\xed\x9f\xbf", NULL);
    CHECK_TEXT("a\xff", "a" BAD, "61ff");
    CHECK_TEXT("\xc3", BAD, "c3");
    CHECK_TEXT("\xe2\x82z", BAD BAD "z", "e2827a");
    CHECK_TEXT("\xc0\x80", BAD BAD, "c080");
    CHECK_TEXT("\xe0\x9f\xbf", BAD BAD BAD, "e09fbf");
    CHECK_TEXT("\xed\xa0\x80", BAD BAD BAD, "eda080");
    CHECK_TEXT("\xf0\x8f\xbf\xbf", BAD BAD BAD BAD, "f08fbfbf");
    CHECK_TEXT("\xf4\x90\x80\x80", BAD BAD BAD BAD, "f4908080");
}

/* Every pair of bytes must give a line that parses. */
Test(records, every_pair_of_bytes_is_valid_json) {
    char bytes[2 * 65536];
    for (size_t i = 0; i < 65536; i++) {
        bytes[2 * i] = (char)(i >> 8);
        bytes[2 * i + 1] = (char)(i & 255);
    }
    const hstep_sample_record sample = {.prompt = bytes, .prompt_size = sizeof bytes, .text = "t", .text_size = 1};
    cr_assert_eq(hstep_records_write_sample(records, &sample, NULL), HSTEP_OK);
    json_t *line = parse_line(0);
    cr_assert_eq(strlen(text_of(line, "prompt_bytes")), 2 * sizeof bytes);
    json_decref(line);
}

Test(records, warning_counts_operations) {
    const hstep_operation_count counts[] = {{"head", 3}, {"gradient_norm", 1}};
    const hstep_warning_record warning = {.step = 20,
                                          .kind = "skips",
                                          .message = "many",
                                          .attempts = 24,
                                          .skipped = 4,
                                          .overflows = counts,
                                          .overflow_count = 2};
    cr_assert_eq(hstep_records_write_warning(records, &warning, NULL), HSTEP_OK);
    json_t *line = parse_line(0);
    cr_assert_str_eq(text_of(line, "kind"), "skips");
    cr_assert_eq(integer_of(line, "skipped"), 4);
    const json_t *second = json_array_get(json_object_get(line, "overflows"), 1);
    cr_assert_str_eq(text_of(second, "operation"), "gradient_norm");
    cr_assert_eq(integer_of(second, "count"), 1);
    json_decref(line);
}

Test(records, end_with_and_without_questions) {
    hstep_end_record end = {.outcome = HSTEP_RUN_TOO_MANY_SKIPS,
                            .message = "32 in a row",
                            .steps = 10,
                            .attempts = 42,
                            .skipped = 32,
                            .tokens = 7680,
                            .seconds = 2.5,
                            .weights_checksum = UINT64_MAX};
    cr_assert_eq(hstep_records_write_end(records, &end, NULL), HSTEP_OK);
    end.correct = 3;
    end.questions = 4;
    end.message = NULL;
    end.outcome = HSTEP_RUN_FINISHED;
    cr_assert_eq(hstep_records_write_end(records, &end, NULL), HSTEP_OK);
    end.outcome = HSTEP_RUN_FAILED;
    end.weights_lost = 1;
    cr_assert_eq(hstep_records_write_end(records, &end, NULL), HSTEP_OK);
    json_t *line = parse_line(0);
    cr_assert_str_eq(text_of(line, "outcome"), "too-many-skips");
    cr_assert_str_eq(text_of(line, "weights_checksum"), "ffffffffffffffff");
    cr_assert(json_is_null(json_object_get(line, "success")));
    cr_assert_eq(integer_of(json_object_get(line, "totals"), "tokens"), 7680);
    json_decref(line);
    records = NULL;
    line = parse_line(1);
    cr_assert_str_eq(text_of(line, "outcome"), "finished");
    cr_assert(json_is_null(json_object_get(line, "message")));
    cr_assert_eq(number_of(json_object_get(line, "success"), "rate"), 0.75);
    json_decref(line);
    line = parse_line(2);
    cr_assert(json_is_null(json_object_get(line, "weights_checksum")));
    json_decref(line);
}

/* Where a status is returned, NULL is an argument like any other that is wrong; the file stays as it is. */
Test(records, null_is_refused) {
    hstep_error error;
    hstep_records *other = NULL;
    const hstep_setting nameless = {.kind = HSTEP_SETTING_TEXT, .text = "x"};
    const hstep_setting strange = {.name = "x", .kind = (hstep_setting_kind)4};
    const hstep_run_record run = {.precision = HSTEP_PRECISION_F64, .backend = "cpu", .device = "x"};
    hstep_run_record settings = run, nothing = run, kinds = run, levers = run, data = run;
    settings.setting_count = levers.lever_count = data.data_count = 1;
    nothing.settings = &nameless;
    kinds.settings = &strange;
    nothing.setting_count = kinds.setting_count = 1;
    const hstep_update update = applied_update();
    const hstep_evaluation_record evaluation = {.step = 1};
    const hstep_sample_record sample = {.step = 1}, prompt = {.prompt_size = 1}, text = {.text_size = 1};
    const hstep_warning_record warning = {.step = 1}, overflows = {.overflow_count = 1};
    const hstep_end_record end = {.steps = 1};
    const hstep_status statuses[] = {
        hstep_records_open(NULL, &other, &error),
        hstep_records_open("no-such-folder/file", NULL, &error),
        hstep_records_write_run(NULL, &run, &error),
        hstep_records_write_run(records, NULL, &error),
        hstep_records_write_run(records, &settings, &error),
        hstep_records_write_run(records, &nothing, &error),
        hstep_records_write_run(records, &kinds, &error),
        hstep_records_write_run(records, &levers, &error),
        hstep_records_write_run(records, &data, &error),
        hstep_records_write_update(NULL, &(hstep_update_record){.update = &update}, &error),
        hstep_records_write_update(records, NULL, &error),
        hstep_records_write_evaluation(NULL, &evaluation, &error),
        hstep_records_write_evaluation(records, NULL, &error),
        hstep_records_write_sample(NULL, &sample, &error),
        hstep_records_write_sample(records, NULL, &error),
        hstep_records_write_sample(records, &prompt, &error),
        hstep_records_write_sample(records, &text, &error),
        hstep_records_write_warning(NULL, &warning, &error),
        hstep_records_write_warning(records, NULL, &error),
        hstep_records_write_warning(records, &overflows, &error),
        hstep_records_write_end(NULL, &end, &error),
        hstep_records_write_end(records, NULL, NULL),
    };
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
        cr_expect_eq(statuses[i], HSTEP_ERROR_ARGUMENT, "call %zu: %s", i, hstep_status_name(statuses[i]));
    cr_expect(hstep_records_close(NULL, &error) == HSTEP_OK && hstep_records_close(records, &error) == HSTEP_OK);
    FILE *file = fopen(path, "r");
    cr_expect_eq(fgetc(file), EOF);
    fclose(file);
}
