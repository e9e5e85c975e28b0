/* madvise */
#define _DEFAULT_SOURCE

#include "engine/data/files/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/error.h"

hstep_status hs_fail_file(hstep_error *error, const char *path, const char *format, ...) {
    /* The end of a long path says more than its beginning, and a message must have room left for the reason. */
    enum { ROOM = 200 };
    const size_t length = strlen(path);
    const char *shown = length > ROOM ? path + length - ROOM : path;
    char reason[sizeof error->message];
    va_list list;
    va_start(list, format);
    vsnprintf(reason, sizeof reason, format, list);
    va_end(list);
    return hs_fail(error, HSTEP_ERROR_INPUT_FILE, "data file '%s%s': %s", shown == path ? "" : "...", shown, reason);
}

static hstep_status fail_reading(hstep_error *error, const char *path, int reason, size_t offset) {
    return hs_fail_file(error, path, "%s at byte offset %zu: give a file that can be read",
                        reason != 0 ? strerror(reason) : "it cannot be read", offset);
}

/* Reads to the end, wherever that is: pipes and files of /proc do not say. */
static hstep_status read_all(int descriptor, const char *path, hs_file *file, hstep_error *error) {
    size_t capacity = 0;
    for (;;) {
        if (file->size == capacity) {
            const size_t more = capacity == 0 ? HS_FILE_MAPPED_FROM : capacity * 2;
            unsigned char *bytes = more > capacity ? realloc(file->bytes, more) : NULL;
            if (bytes == NULL)
                return hs_fail_memory(error, "the data");
            file->bytes = bytes;
            capacity = more;
        }
        const ssize_t got = read(descriptor, file->bytes + file->size, capacity - file->size);
        if (got < 0)
            return fail_reading(error, path, errno, file->size);
        if (got == 0)
            return HSTEP_OK;
        file->size += (size_t)got;
    }
}

/* Whether the file could be mapped; some file systems have no mappings, and their number is limited. */
static bool map(int descriptor, size_t size, hs_file *file) {
    void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (bytes == MAP_FAILED)
        return false;
    file->bytes = bytes;
    file->size = size;
    file->mapped = true;
    return true;
}

static hstep_status check_kind(const char *path, const struct stat *status, hstep_error *error) {
    if (S_ISDIR(status->st_mode))
        return hs_fail_file(error, path, "%s: give the files in it", strerror(EISDIR));
    if (!S_ISREG(status->st_mode) && !S_ISFIFO(status->st_mode))
        return hs_fail_file(error, path, "it is a device or socket: give a file or a pipe");
    return HSTEP_OK;
}

static hstep_status load(int descriptor, const char *path, hs_file *file, hstep_error *error) {
    struct stat status;
    if (fstat(descriptor, &status) != 0)
        return fail_reading(error, path, errno, 0);
    file->regular = S_ISREG(status.st_mode);
    file->device = status.st_dev;
    file->inode = status.st_ino;
    const bool large = file->regular && status.st_size >= HS_FILE_MAPPED_FROM;
    return large && map(descriptor, (size_t)status.st_size, file) ? HSTEP_OK : read_all(descriptor, path, file, error);
}

hstep_status hs_file_open(const char *path, hs_file *file, hstep_error *error) {
    *file = (hs_file){.size = 0};
    struct stat status;
    if (stat(path, &status) != 0)
        return hs_fail_file(error, path, "%s: check the path", strerror(errno));
    /* Before it is opened, which does something to some devices. */
    HS_FORWARD(check_kind(path, &status, error));
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return hs_fail_file(error, path, "%s: give a file that can be read", strerror(errno));
    hstep_status result = load(descriptor, path, file, error);
    close(descriptor);
    if (result == HSTEP_OK && (file->known.name = strdup(path)) == NULL)
        result = hs_fail_memory(error, "the name of a data file");
    if (result != HSTEP_OK)
        hs_file_close(file);
    return result;
}

void hs_file_expect_order(const hs_file *file, bool sequential) {
    if (file->mapped)
        (void)madvise(file->bytes, file->size, sequential ? MADV_SEQUENTIAL : MADV_RANDOM);
}

void hs_file_release(const hs_file *file, size_t first, size_t count) {
    /* What one fault brings in at most: a large page of the system's cache. */
    enum { AROUND = 1 << 21 };
    if (!file->mapped)
        return;
    const size_t width = hs_token_width(file->known.type);
    const uintptr_t mapping = (uintptr_t)file->bytes, tokens = mapping + file->start + first * width;
    uintptr_t begin = tokens & ~(uintptr_t)(AROUND - 1);
    uintptr_t end = (tokens + count * width + AROUND - 1) & ~(uintptr_t)(AROUND - 1);
    begin = begin < mapping ? mapping : begin;
    end = end > mapping + file->size ? mapping + file->size : end;
    (void)madvise(file->bytes + (begin - mapping), end - begin, MADV_DONTNEED);
}

void hs_file_close(hs_file *file) {
    if (file->mapped)
        munmap(file->bytes, file->size);
    else
        free(file->bytes);
    free((char *)(size_t)file->known.name);
    *file = (hs_file){.size = 0};
}
