#include "support/program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <criterion/criterion.h>

static void execute(const char *const *arguments, FILE *out, FILE *err) {
    char *list[64] = {"trainer"};
    size_t count = 1;
    for (; arguments[count - 1] != NULL && count < 63; ++count)
        list[count] = (char *)(size_t)arguments[count - 1];
    list[count] = NULL;
    dup2(fileno(out), STDOUT_FILENO);
    dup2(fileno(err), STDERR_FILENO);
    execv(HS_TEST_TRAINER, list);
    _exit(127);
}

hs_test_program hs_test_start(const char *const *arguments) {
    hs_test_program program = {.out_file = tmpfile(), .err_file = tmpfile()};
    cr_assert_not_null(program.out_file);
    cr_assert_not_null(program.err_file);
    program.pid = fork();
    cr_assert_geq(program.pid, 0);
    if (program.pid == 0)
        execute(arguments, program.out_file, program.err_file);
    return program;
}

void hs_test_finish(hs_test_program *program) {
    int status;
    pid_t ended;
    do
        ended = waitpid(program->pid, &status, 0);
    while (ended < 0 && errno == EINTR);
    cr_assert_eq(ended, program->pid);
    program->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    size_t size;
    program->out = hs_test_read_stream(program->out_file, &program->out_size);
    program->err = hs_test_read_stream(program->err_file, &size);
    cr_assert_neq(program->status, 127, "%s cannot be executed", HS_TEST_TRAINER);
}

hs_test_program hs_test_run(const char *const *arguments) {
    hs_test_program program = hs_test_start(arguments);
    hs_test_finish(&program);
    return program;
}

void hs_test_program_free(hs_test_program *program) {
    free(program->out);
    free(program->err);
}

json_t *hs_test_parse_lines(const char *text) {
    json_t *array = json_array();
    while (*text != '\0') {
        const size_t length = strcspn(text, "\n");
        cr_assert_eq(text[length], '\n', "the last line is not whole: %s", text);
        json_error_t error;
        json_t *record = json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
        cr_assert_not_null(record, "%s in: %.*s", error.text, (int)length, text);
        json_array_append_new(array, record);
        text += length + 1;
    }
    return array;
}

json_t *hs_test_records_of(const json_t *records, const char *kind) {
    json_t *found = json_array();
    for (size_t i = 0; i < json_array_size(records); ++i) {
        json_t *record = json_array_get(records, i);
        const char *name = json_string_value(json_object_get(record, "record"));
        cr_assert_not_null(name);
        if (strcmp(name, kind) == 0)
            json_array_append(found, record);
    }
    return found;
}

json_t *hs_test_record(const json_t *records, const char *kind) {
    json_t *found = hs_test_records_of(records, kind);
    cr_assert_eq(json_array_size(found), 1, "%zu records of kind %s", json_array_size(found), kind);
    json_t *record = json_array_get(found, 0);
    json_decref(found);
    return record;
}
