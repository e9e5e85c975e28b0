/* The trainer as a user meets it: run with arguments, seen by exit status, standard output and standard error. */
#ifndef HS_TESTS_SUPPORT_PROGRAM_H
#define HS_TESTS_SUPPORT_PROGRAM_H

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "support/folder.h"

typedef struct hs_test_program {
    pid_t pid;
    FILE *out_file, *err_file;
    int status;      /* exit status, or 128 + signal */
    char *out, *err; /* texts, ended by a zero */
    size_t out_size;
} hs_test_program;

/* Starts the trainer; `arguments` end with NULL. */
hs_test_program hs_test_start(const char *const *arguments);

/* Waits for its end and reads what it wrote. */
void hs_test_finish(hs_test_program *program);

hs_test_program hs_test_run(const char *const *arguments);
#define HS_TEST_RUN(...) hs_test_run((const char *const[]){__VA_ARGS__, NULL})

void hs_test_program_free(hs_test_program *program);

/* Every line of JSON Lines, parsed strictly, as one array. Fails the test where a line is no JSON. */
json_t *hs_test_parse_lines(const char *text);

/* The records of one kind, as a new array. */
json_t *hs_test_records_of(const json_t *records, const char *kind);

/* The only record of that kind, borrowed. Fails the test where there is not exactly one. */
json_t *hs_test_record(const json_t *records, const char *kind);

#endif
