/* A run that goes on in its records: what it writes about that, and where. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include <halfstep/records.h>

#include "support/program.h"

TestSuite(records_continue, .init = hs_test_enter_folder, .fini = hs_test_leave_folder);

static const hstep_checkpoint_record CHECKPOINT = {.step = 3, .path = "run/checkpoint", .seconds = 0.5};

static uint64_t write_checkpoints(size_t count) {
    hstep_records *records = NULL;
    cr_assert_eq(hstep_records_open("records", &records, NULL), HSTEP_OK);
    for (size_t i = 0; i < count; i++)
        cr_assert_eq(hstep_records_write_checkpoint(records, &CHECKPOINT, NULL), HSTEP_OK);
    const uint64_t size = hstep_records_size(records);
    cr_assert_eq(hstep_records_close(records, NULL), HSTEP_OK);
    return size;
}

Test(records_continue, cuts_off_what_stands_behind) {
    static const char *const passed_over[] = {"one is damaged", "another is shorter"};
    const hstep_resume_record resume = {
        .step = 3, .path = "run/checkpoint", .passed_over = passed_over, .passed_over_count = 2};
    const uint64_t size = write_checkpoints(2);
    hstep_records *records = NULL;
    cr_assert_eq(hstep_records_continue("records", size / 2, &records, NULL), HSTEP_OK);
    cr_assert_eq(hstep_records_size(records), size / 2);
    cr_assert_eq(hstep_records_write_resume(records, &resume, NULL), HSTEP_OK);
    cr_assert_eq(hstep_records_close(records, NULL), HSTEP_OK);
    char *text = hs_test_read_file("records");
    json_t *lines = hs_test_parse_lines(text);
    cr_assert_eq(json_array_size(lines), 2);
    const json_t *first = hs_test_record(lines, "checkpoint"), *line = hs_test_record(lines, "resume");
    cr_assert_str_eq(json_string_value(json_object_get(first, "path")), "run/checkpoint");
    cr_assert_eq(json_integer_value(json_object_get(line, "step")), 3);
    const json_t *list = json_object_get(line, "passed_over");
    cr_assert_eq(json_array_size(list), 2);
    cr_assert_str_eq(json_string_value(json_object_get(json_array_get(list, 1), "reason")), "another is shorter");
    json_decref(lines);
    free(text);
}

Test(records_continue, refuses_what_it_could_not_go_on_in) {
    const uint64_t size = write_checkpoints(1);
    hstep_records *records = NULL;
    hstep_error error = {0};
    cr_assert_eq(hstep_records_continue("records", size + 1, &records, &error), HSTEP_ERROR_OUTPUT_FILE);
    cr_assert_not_null(strstr(error.message, "shorter"));
    cr_assert_eq(hstep_records_continue("/dev/null", 0, &records, &error), HSTEP_ERROR_OUTPUT_FILE);
    cr_assert_not_null(strstr(error.message, "regular"));
    cr_assert_eq(hstep_records_continue("missing", 0, &records, &error), HSTEP_ERROR_OUTPUT_FILE);
    char *text = hs_test_read_file("records");
    cr_assert_eq(strlen(text), size, "a refusal changes nothing");
    free(text);
}
