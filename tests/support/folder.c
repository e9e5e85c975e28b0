/* For nftw and mkdtemp. */
#define _XOPEN_SOURCE 700

#include "support/folder.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/halfstep-test-XXXXXX";

void hs_test_enter_folder(void) {
    cr_assert_not_null(mkdtemp(folder));
    cr_assert_eq(chdir(folder), 0);
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *place) {
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

void hs_test_leave_folder(void) {
    cr_assert_eq(chdir("/"), 0);
    nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

void hs_test_write_file(const char *path, const char *content) { hs_test_write_bytes(path, content, strlen(content)); }

char *hs_test_read_stream(FILE *file, size_t *size) {
    char *text = NULL;
    rewind(file);
    *size = 0;
    for (size_t room = 1 << 12, got = 1; got > 0; room *= 2) {
        text = realloc(text, room + 1);
        cr_assert_not_null(text);
        *size += got = fread(text + *size, 1, room - *size, file);
    }
    text[*size] = '\0';
    fclose(file);
    return text;
}

hs_test_bytes hs_test_read_bytes(const char *path) {
    FILE *file = fopen(path, "rb");
    cr_assert_not_null(file, "%s", path);
    hs_test_bytes bytes;
    bytes.at = (unsigned char *)hs_test_read_stream(file, &bytes.size);
    return bytes;
}

char *hs_test_read_file(const char *path) { return (char *)hs_test_read_bytes(path).at; }

void hs_test_write_bytes(const char *path, const void *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    cr_assert_not_null(file, "%s", path);
    cr_assert_eq(fwrite(bytes, 1, size, file), size);
    cr_assert_eq(fclose(file), 0);
}

bool hs_test_same_file(const char *left, const char *right) {
    const hs_test_bytes a = hs_test_read_bytes(left), b = hs_test_read_bytes(right);
    const bool same = a.size == b.size && memcmp(a.at, b.at, a.size) == 0;
    free(a.at);
    free(b.at);
    return same;
}

bool hs_test_exists(const char *path) { return access(path, F_OK) == 0; }

size_t hs_test_count_names(const char *ending) {
    DIR *open = opendir(".");
    cr_assert_not_null(open);
    size_t count = 0;
    const struct dirent *entry;
    while ((entry = readdir(open)) != NULL) {
        const size_t length = strlen(entry->d_name), tail = strlen(ending);
        count += length >= tail && strcmp(entry->d_name + length - tail, ending) == 0;
    }
    closedir(open);
    return count;
}
