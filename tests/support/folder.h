/* A folder of a test's own, and the files in it. Every failure ends the test. */
#ifndef HS_TESTS_SUPPORT_FOLDER_H
#define HS_TESTS_SUPPORT_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Goes into a new empty folder, for tests that write files; the second goes out and removes it. */
void hs_test_enter_folder(void);
void hs_test_leave_folder(void);

void hs_test_write_file(const char *path, const char *content);

/* The text of a file, from malloc. */
char *hs_test_read_file(const char *path);

/* A file as bytes. The caller frees `at`. */
typedef struct hs_test_bytes {
    unsigned char *at;
    size_t size;
} hs_test_bytes;

hs_test_bytes hs_test_read_bytes(const char *path);

/* Reads to the end, wherever that is (files of /proc say that their size is 0), adds a zero, and closes. */
char *hs_test_read_stream(FILE *file, size_t *size);

void hs_test_write_bytes(const char *path, const void *bytes, size_t size);

bool hs_test_same_file(const char *left, const char *right);

bool hs_test_exists(const char *path);

/* How many names in the current folder end like this. */
size_t hs_test_count_names(const char *ending);

#endif
