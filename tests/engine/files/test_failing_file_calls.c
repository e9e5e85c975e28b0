/* Calls that fail leave everything as it was: data, records, files of tensors and checkpoints. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/folder.h"
#include "support/models.h"
#include "support/untouched.h"

static hs_test_run run;
static hstep_dataset *dataset;
static hstep_tensor_file *file, *damaged;

/* A file with its last byte, which is one of the section's, turned over. */
static void damage(const char *from, const char *to) {
    hs_test_bytes bytes = hs_test_read_bytes(from);
    bytes.at[bytes.size - 1] ^= 0xff;
    hs_test_write_bytes(to, bytes.at, bytes.size);
    free(bytes.at);
}

static void start(void) {
    hs_test_enter_folder();
    hstep_error error = {0};
    hstep_update update;
    const hs_test_setup setup = {.backend = HSTEP_BACKEND_CPU_REFERENCE, .precision = HSTEP_PRECISION_BF16};
    run = hs_test_run_create(&setup);
    const hstep_batch batch = hs_test_fixture_batch();
    hs_test_expect_ok(hstep_trainer_update(run.trainer, &batch, 1, &update, &error), &error);
    const hstep_section section = {"notes", "bytes", 5};
    const hstep_checkpoint_extras extras = {&section, 1, NAN};
    hs_test_expect_ok(hstep_checkpoint_save(run.trainer, "whole", &extras, &error), &error);
    damage("whole", "damaged");
    hs_test_write_file("text", "no file of tensors");
    hs_test_expect_ok(hstep_tensor_file_open("whole", &file, &error), &error);
    hs_test_expect_ok(hstep_tensor_file_open("damaged", &damaged, &error), &error);
    hs_test_expect_ok(hstep_dataset_from_bytes("twenty bytes of text", 20, &dataset, &error), &error);
    hs_test_out_fill();
    hs_test_watch(run.trainer, NULL);
}

static void stop(void) {
    hs_test_watch(NULL, NULL);
    hstep_dataset_destroy(dataset);
    hstep_tensor_file_close(file);
    hstep_tensor_file_close(damaged);
    hs_test_run_destroy(&run);
    hs_test_leave_folder();
}

Test(failing_file_calls, datasets, .init = start, .fini = stop) {
    hs_test_places *o = &hs_test_out;
    const char *const missing[] = {"text", "nowhere"}, *const null[] = {NULL}, *const text[] = {"text"};
    hs_test_refuses(HSTEP_ERROR_INPUT_FILE, hstep_dataset_load(missing, 2, NULL, &o->dataset, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_dataset_load(null, 1, NULL, &o->dataset, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_dataset_load(text, 0, NULL, &o->dataset, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_dataset_load(text, 1, NULL, NULL, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_dataset_from_bytes("", 0, &o->dataset, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_dataset_from_bytes("a", 1, NULL, e));

    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_dataset_hold_out(dataset, 1, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_dataset_hold_out(dataset, NAN, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_dataset_split_at(dataset, 21, e));
    cr_expect_eq(hstep_dataset_training_tokens(dataset), 18);
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_dataset_file(dataset, 1, &o->data_file, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_dataset_file(dataset, 0, NULL, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_dataset_read(dataset, 15, 6, o->tokens, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_dataset_read(dataset, SIZE_MAX, 2, o->tokens, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_dataset_read(dataset, 0, 2, NULL, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_dataset_check(dataset, 0, e));
    hs_test_refuses(HSTEP_ERROR_INPUT_FILE, hstep_dataset_check(dataset, 18, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_dataset_unigram_loss(NULL, &o->loss, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_dataset_unigram_loss(dataset, NULL, e));
    hs_test_refuses(HSTEP_ERROR_INPUT_FILE, hstep_dataset_batch(dataset, 1, 0, 1, 18, o->tokens, o->targets, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_dataset_batch(dataset, 1, 0, 1, 0, o->tokens, o->targets, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_dataset_batch(dataset, 1, UINT64_MAX, 2, 4, o->tokens, o->targets, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_dataset_batch(dataset, 1, 0, 1, 4, NULL, o->targets, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT,
                    hstep_dataset_evaluation_batch(dataset, 1, 0, 1, 2, o->tokens, o->targets, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_dataset_evaluation_batch(dataset, 1, 0, 0, 1, o->tokens, NULL, e));
}

Test(failing_file_calls, positions, .init = start, .fini = stop) {
    hs_test_places *o = &hs_test_out;
    const hstep_data_position position = {1, 4, 7};
    o->size = 3; /* too few bytes */
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_dataset_save_position(dataset, &position, o->text, &o->size, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_dataset_save_position(dataset, NULL, o->text, &o->size, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_dataset_save_position(dataset, &position, o->text, NULL, e));
    hs_test_refuses(HSTEP_ERROR_INPUT_FILE, hstep_dataset_restore_position(dataset, "{}", 2, &o->position, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_dataset_restore_position(dataset, NULL, 2, &o->position, e));

    /* One of another text. */
    hstep_error error = {0};
    hstep_dataset *other = NULL;
    char text[4096];
    size_t size = sizeof text;
    hs_test_expect_ok(hstep_dataset_from_bytes("other bytes", 11, &other, &error), &error);
    hs_test_expect_ok(hstep_dataset_save_position(other, &position, text, &size, &error), &error);
    hs_test_refuses(HSTEP_ERROR_INPUT_FILE, hstep_dataset_restore_position(dataset, text, size, &o->position, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_dataset_restore_position(dataset, text, size, NULL, e));
    hstep_dataset_destroy(other);
}

Test(failing_file_calls, records, .init = start, .fini = stop) {
    hs_test_places *o = &hs_test_out;
    hs_test_refuses(HSTEP_ERROR_OUTPUT_FILE, hstep_records_open("nowhere/records", &o->records, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_records_open("records", NULL, e));
    hs_test_refuses(HSTEP_ERROR_OUTPUT_FILE, hstep_records_continue("text", 1000, &o->records, e));
    hs_test_refuses(HSTEP_ERROR_OUTPUT_FILE, hstep_records_continue("nowhere", 0, &o->records, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_records_continue(NULL, 0, &o->records, e));

    hstep_error error = {0};
    hstep_records *records = NULL;
    hs_test_expect_ok(hstep_records_open("records", &records, &error), &error);
    const hstep_run_record run_record = {.setting_count = 1}; /* which are not there */
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_records_write_run(records, &run_record, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_records_write_update(records, NULL, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_records_write_update(records, &(hstep_update_record){.seconds = 1}, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_records_write_evaluation(NULL, &(hstep_evaluation_record){0}, e));
    const hstep_evaluation_record evaluation = {.tokens = UINT64_MAX};
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_records_write_evaluation(records, &evaluation, e));
    const hstep_sample_record sample = {.text_size = 3};
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_records_write_sample(records, &sample, e));
    const hstep_warning_record warning = {.kind = "skips", .message = "many", .overflow_count = 2};
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_records_write_warning(records, &warning, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_records_write_checkpoint(records, NULL, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_records_write_dump(records, NULL, e));
    const hstep_resume_record resume = {.path = "whole", .passed_over_count = 1};
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_records_write_resume(records, &resume, e));
    const hstep_setting_change nameless = {.before = {.name = "steps"}};
    const hstep_resume_record changes[] = {{.path = "whole", .change_count = 1},
                                           {.path = "whole", .changes = &nameless, .change_count = 1}};
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_records_write_resume(records, &changes[0], e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_records_write_resume(records, &changes[1], e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_records_write_end(records, NULL, e));
    cr_expect_eq(hstep_records_size(records), 0, "a refused record wrote something");
    hs_test_expect_ok(hstep_records_close(records, &error), &error);
    hs_test_bytes bytes = hs_test_read_bytes("records");
    cr_expect_eq(bytes.size, 0);
    free(bytes.at);

    /* Where nothing can be written, closing has nothing to say. */
    hs_test_expect_ok(hstep_records_open("/dev/full", &records, &error), &error);
    hs_test_refuses(HSTEP_ERROR_OUTPUT_FILE, hstep_records_write_end(records, &(hstep_end_record){0}, e));
    (void)hstep_records_close(records, &error);
}

Test(failing_file_calls, tensor_files, .init = start, .fini = stop) {
    hs_test_places *o = &hs_test_out;
    const size_t beyond = hstep_tensor_file_count(file), gain = hstep_tensor_file_find(file, "final_norm.gain"),
                 section = hstep_tensor_file_find(file, "section.notes");
    cr_assert(gain != SIZE_MAX && section != SIZE_MAX);
    hs_test_refuses(HSTEP_ERROR_INPUT_FILE, hstep_tensor_file_open("nowhere", &o->file, e));
    hs_test_refuses(HSTEP_ERROR_INPUT_FILE, hstep_tensor_file_open("text", &o->file, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_tensor_file_open("whole", NULL, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_tensor_file_tensor(file, beyond, &o->tensor, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_tensor_file_tensor(file, 0, NULL, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_tensor_file_read(file, beyond, 0, 1, o->numbers, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_tensor_file_read(file, gain, 3, 2, o->numbers, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_tensor_file_read(file, section, 0, 1, o->numbers, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_tensor_file_read(file, gain, 0, 1, NULL, e));
    hs_test_refuses(HSTEP_ERROR_INPUT_FILE, hstep_tensor_file_verify(damaged, e));
    hs_test_refuses(HSTEP_ERROR_INPUT_FILE, hstep_tensor_file_verify_tensor(damaged, section, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_tensor_file_verify_tensor(file, beyond, e));

    const double number = 1;
    const hstep_tensor_data twice[2] = {{.name = "a", .values = &number}, {.name = "a", .values = &number}};
    const hstep_tensor_data rank = {.name = "a", .rank = HSTEP_TENSOR_MAX_RANK + 1, .values = &number};
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_tensor_file_write("text", twice, 2, NULL, 0, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_tensor_file_write("text", NULL, 2, NULL, 0, e));
    hs_test_refuses(HSTEP_ERROR_SHAPE, hstep_tensor_file_write("text", &rank, 1, NULL, 0, e));
    hs_test_refuses(HSTEP_ERROR_OUTPUT_FILE, hstep_tensor_file_write("nowhere/new", twice, 1, NULL, 0, e));
    hs_test_bytes text = hs_test_read_bytes("text");
    cr_expect(text.size == 18 && memcmp(text.at, "no file of tensors", 18) == 0);
    free(text.at);

    const hstep_tensor_place ours = {file, gain}, table = {file, 0}, bytes = {file, section};
    hs_test_refuses(HSTEP_ERROR_SHAPE, hstep_tensor_compare(&ours, &table, NULL, &o->comparison, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_tensor_compare(&bytes, &bytes, NULL, &o->comparison, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_tensor_compare(&ours, NULL, NULL, &o->comparison, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_tensor_compare(&ours, &ours, NULL, NULL, e));
}

Test(failing_file_calls, checkpoints, .init = start, .fini = stop) {
    hs_test_places *o = &hs_test_out;
    hs_test_refuses(HSTEP_ERROR_OUTPUT_FILE, hstep_checkpoint_save(run.trainer, "nowhere/new", NULL, e));
    const hstep_section nameless = {NULL, "x", 1};
    const hstep_checkpoint_extras extras = {&nameless, 1, NAN};
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_checkpoint_save(run.trainer, "whole", &extras, e));
    hs_test_refuses(HSTEP_ERROR_INPUT_FILE, hstep_checkpoint_load(run.trainer, "damaged", e));
    hs_test_refuses(HSTEP_ERROR_INPUT_FILE, hstep_checkpoint_load(run.trainer, "text", e));
    hs_test_refuses(HSTEP_ERROR_INPUT_FILE, hstep_checkpoint_load_weights(run.model, "text", e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_checkpoint_load_weights(NULL, "whole", e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_checkpoint_path("folder", 1, o->text, 20, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_checkpoint_path(NULL, 1, o->text, sizeof o->text, e));
    hs_test_refuses(HSTEP_ERROR_INPUT_FILE, hstep_checkpoint_find("nowhere", &o->found, o->skipped, 2, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_checkpoint_find(".", &o->found, NULL, 2, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_checkpoint_keep(".", 0, 0, &o->count, e));
    hs_test_refuses(HSTEP_ERROR_INPUT_FILE, hstep_checkpoint_keep("nowhere", 1, 0, &o->count, e));
    hs_test_refuses(HSTEP_ERROR_INPUT_FILE,
                    hstep_checkpoint_export("damaged", "new", HSTEP_STORAGE_F32, &o->report, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_checkpoint_export("whole", "new", HSTEP_STORAGE_I8, &o->report, e));
    hs_test_refuses(HSTEP_ERROR_OUTPUT_FILE,
                    hstep_checkpoint_export("whole", "nowhere/new", HSTEP_STORAGE_F32, &o->report, e));
    cr_expect_not(hs_test_exists("new"));
}

Test(failing_file_calls, parts_of_checkpoints, .init = start, .fini = stop) {
    hs_test_places *o = &hs_test_out;
    o->size = 2; /* too few bytes */
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_checkpoint_section(file, "notes", o->text, &o->size, e));
    o->size = 5;
    hs_test_refuses(HSTEP_ERROR_INPUT_FILE, hstep_checkpoint_section(damaged, "notes", o->text, &o->size, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_checkpoint_section(NULL, "notes", o->text, &o->size, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_checkpoint_read_state(file, NULL, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_checkpoint_differences(file, run.trainer, NULL, 2, &o->count, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT,
                    hstep_checkpoint_differences(NULL, run.trainer, o->differences, 2, &o->count, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_checkpoint_restore(run.trainer, NULL, 0, e));
    hs_test_refuses(HSTEP_ERROR_INPUT_FILE, hstep_checkpoint_restore(run.trainer, damaged, 1, e));

    hstep_error error = {0};
    hstep_tensor_file *weights = NULL; /* no checkpoint */
    hs_test_expect_ok(hstep_checkpoint_export("whole", "weights", HSTEP_STORAGE_F64, NULL, &error), &error);
    hs_test_expect_ok(hstep_tensor_file_open("weights", &weights, &error), &error);
    hs_test_refuses(HSTEP_ERROR_INPUT_FILE, hstep_checkpoint_read_state(weights, &o->state, e));
    hs_test_refuses(HSTEP_ERROR_INPUT_FILE,
                    hstep_checkpoint_differences(weights, run.trainer, o->differences, 2, &o->count, e));
    hs_test_refuses(HSTEP_ERROR_INPUT_FILE, hstep_checkpoint_restore(run.trainer, weights, 0, e));
    hstep_tensor_file_close(weights);
}
