/* Records as a file: every line there at once, whole or not at all, and write errors that are seen. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <criterion/criterion.h>
#include <jansson.h>

#include <halfstep/records.h>

#include "support/program.h"

static const char path[] = "records";
static hstep_records *records;

static void open_file(void) {
    hs_test_enter_folder();
    cr_assert_eq(hstep_records_open(path, &records, NULL), HSTEP_OK);
}

TestSuite(records_file, .init = open_file, .fini = hs_test_leave_folder);

/* The file holds one evaluation, after this step. */
static void check_line(json_int_t step) {
    char *text = hs_test_read_file(path);
    json_t *lines = hs_test_parse_lines(text);
    cr_assert_eq(json_array_size(lines), 1);
    cr_assert_eq(json_integer_value(json_object_get(hs_test_record(lines, "evaluation"), "step")), step);
    json_decref(lines);
    free(text);
}

/* A run is read while it goes on: each line must be there as soon as the call returns. */
Test(records_file, lines_are_not_held_back) {
    const hstep_evaluation_record evaluation = {.step = 3};
    cr_assert_eq(hstep_records_write_evaluation(records, &evaluation, NULL), HSTEP_OK);
    check_line(3);
    cr_assert_eq(hstep_records_close(records, NULL), HSTEP_OK);
}

Test(records_file, opening_empties_and_bad_paths_are_named) {
    hstep_error error;
    const hstep_evaluation_record evaluation = {.step = 1};
    cr_assert_eq(hstep_records_write_evaluation(records, &evaluation, NULL), HSTEP_OK);
    cr_assert_eq(hstep_records_close(records, NULL), HSTEP_OK);
    cr_assert_eq(hstep_records_open(path, &records, NULL), HSTEP_OK);
    cr_assert_eq(hstep_records_close(records, NULL), HSTEP_OK);
    FILE *file = fopen(path, "r");
    cr_assert_eq(fgetc(file), EOF);
    fclose(file);
    cr_assert_eq(hstep_records_open("no/such/folder/records.jsonl", &records, &error), HSTEP_ERROR_OUTPUT_FILE);
    cr_assert_eq(error.status, HSTEP_ERROR_OUTPUT_FILE);
    cr_assert_not_null(strstr(error.message, "no/such/folder/records.jsonl"));
    cr_assert_not_null(strstr(error.message, strerror(ENOENT)));
    cr_assert_eq(hstep_records_open(".", &records, &error), HSTEP_ERROR_OUTPUT_FILE);
    cr_assert_not_null(strstr(error.message, strerror(EISDIR)));
}

Test(records_file, full_device) {
    hstep_error error;
    hstep_records *full;
    const hstep_evaluation_record evaluation = {.step = 1};
    cr_assert_eq(hstep_records_open("/dev/full", &full, &error), HSTEP_OK);
    cr_assert_eq(hstep_records_write_evaluation(full, &evaluation, &error), HSTEP_ERROR_OUTPUT_FILE);
    cr_assert_not_null(strstr(error.message, "/dev/full"));
    cr_assert_not_null(strstr(error.message, strerror(ENOSPC)));
    error.status = HSTEP_OK;
    cr_assert_eq(hstep_records_close(full, &error), HSTEP_ERROR_OUTPUT_FILE);
    cr_assert_eq(error.status, HSTEP_ERROR_OUTPUT_FILE);
}

/* A file that may grow to 300 bytes takes the second line in part only: the part must go, and the failure must stay. */
Test(records_file, torn_line_is_cut_back) {
    hstep_error error;
    const hstep_evaluation_record evaluation = {.step = 1, .loss = 0.1, .seconds = 0.1};
    const struct rlimit limit = {300, RLIM_INFINITY};
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit before;
    getrlimit(RLIMIT_FSIZE, &before);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    hstep_status status = HSTEP_OK;
    size_t lines = 0;
    while (lines < 10 && (status = hstep_records_write_evaluation(records, &evaluation, &error)) == HSTEP_OK)
        lines++;
    setrlimit(RLIMIT_FSIZE, &before);
    cr_assert_eq(status, HSTEP_ERROR_OUTPUT_FILE);
    cr_assert_not_null(strstr(error.message, strerror(EFBIG)));
    cr_assert_geq(lines, 1);
    cr_assert_eq(hstep_records_write_evaluation(records, &evaluation, NULL), HSTEP_ERROR_OUTPUT_FILE);
    cr_assert_eq(hstep_records_close(records, NULL), HSTEP_ERROR_OUTPUT_FILE);
    char bytes[400];
    FILE *file = fopen(path, "r");
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    cr_assert_eq(bytes[size - 1], '\n');
    size_t found = 0;
    for (size_t i = 0; i < size; i++)
        found += bytes[i] == '\n';
    cr_assert_eq(found, lines);
}

/* A child writes to its standard output, which is the file; closing the writer must leave the descriptor open. */
Test(records_file, standard_output) {
    hstep_records_close(records, NULL);
    const pid_t child = fork();
    if (child == 0) {
        const int descriptor = open(path, O_WRONLY);
        const hstep_evaluation_record evaluation = {.step = 4};
        hstep_records *standard;
        const int ok = dup2(descriptor, STDOUT_FILENO) == STDOUT_FILENO &&
                       hstep_records_open("-", &standard, NULL) == HSTEP_OK &&
                       hstep_records_write_evaluation(standard, &evaluation, NULL) == HSTEP_OK &&
                       hstep_records_close(standard, NULL) == HSTEP_OK && fcntl(STDOUT_FILENO, F_GETFD) >= 0;
        _exit(ok ? 0 : 1);
    }
    int status = 1;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
    check_line(4);
}

/* What a program prints when its standard descriptors are closed must not come between records. */
Test(records_file, standard_descriptors_stay_free) {
    hstep_records_close(records, NULL);
    const pid_t child = fork();
    if (child == 0) {
        const hstep_evaluation_record evaluation = {.step = 4};
        hstep_records *own;
        int ok = close(0) == 0 && close(1) == 0 && close(2) == 0;
        ok = ok && hstep_records_open(path, &own, NULL) == HSTEP_OK;
        for (int descriptor = 0; descriptor < 3; descriptor++)
            ok = ok && fcntl(descriptor, F_GETFD) < 0;
        ok = ok && hstep_records_write_evaluation(own, &evaluation, NULL) == HSTEP_OK &&
             hstep_records_close(own, NULL) == HSTEP_OK;
        _exit(ok ? 0 : 1);
    }
    int status = 1;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
    check_line(4);
}
