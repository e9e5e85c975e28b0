#include "support/memory_file.h"

#include <string.h>

static int open_memory(void *state, const char *path, hs_file_access access) {
    (void)state;
    (void)path;
    return access == HS_FILE_READ ? 1000 : -1;
}

static int status_of_memory(void *state, int file, hs_file_status *status) {
    (void)file;
    *status = (hs_file_status){.size = ((hs_test_memory_file *)state)->size, .regular = true, .links = 1};
    return 0;
}

static ssize_t read_memory(void *state, int file, void *data, size_t size, uint64_t offset) {
    const hs_test_memory_file *from = state;
    (void)file;
    if (offset >= from->size)
        return 0;
    const size_t count = size < from->size - offset ? size : from->size - (size_t)offset;
    memcpy(data, from->bytes + offset, count);
    return (ssize_t)count;
}

static int close_memory(void *state, int file) {
    (void)state;
    (void)file;
    return 0;
}

hs_files hs_test_memory_files(hs_test_memory_file *file) {
    return (hs_files){
        .state = file, .open = open_memory, .status = status_of_memory, .read = read_memory, .close = close_memory};
}

static int open_sink(void *state, const char *path, hs_file_access access) {
    (void)state;
    (void)path;
    (void)access;
    return 1000;
}

static int status_of_sink(void *state, int file, hs_file_status *status) {
    (void)file;
    *status = (hs_file_status){.size = ((hs_test_memory_sink *)state)->size, .regular = true, .links = 1};
    return 0;
}

static int no_such_path(void *state, const char *path, hs_file_status *status) {
    (void)state;
    (void)path;
    (void)status;
    errno = ENOENT;
    return -1;
}

static ssize_t write_to_sink(void *state, int file, const void *data, size_t size, uint64_t offset) {
    hs_test_memory_sink *to = state;
    (void)file;
    if (offset > to->room || size > to->room - offset) {
        errno = ENOSPC;
        return -1;
    }
    memcpy(to->image + offset, data, size);
    to->size = to->size > offset + size ? to->size : (size_t)offset + size;
    return (ssize_t)size;
}

static int accept(void *state, int file) {
    (void)state;
    (void)file;
    return 0;
}

static int accept_path(void *state, const char *path) {
    (void)state;
    (void)path;
    return 0;
}

static int accept_name(void *state, const char *from, const char *to) {
    (void)state;
    (void)from;
    (void)to;
    return 0;
}

hs_files hs_test_memory_sinks(hs_test_memory_sink *sink) {
    return (hs_files){.state = sink,
                      .open = open_sink,
                      .status = status_of_sink,
                      .status_of_path = no_such_path,
                      .lock = accept,
                      .write = write_to_sink,
                      .sync = accept,
                      .close = accept,
                      .rename = accept_name,
                      .remove = accept_path};
}
