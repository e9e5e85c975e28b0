#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/data/dataset.h"
#include "engine/error.h"

typedef struct text_buffer {
    unsigned char *bytes;
    size_t size, capacity;
} text_buffer;

/* The end of a long path says more than its beginning, and a message must have room left for the reason. */
static const char *path_end(const char *path) {
    enum { ROOM = 240 };
    const size_t length = strlen(path);
    return length > ROOM ? path + length - ROOM : path;
}

static hstep_status fail_file(hstep_error *error, const char *path, const char *reason, const char *advice) {
    const char *shown = path_end(path);
    return hs_fail(error, HSTEP_ERROR_INPUT_FILE, "data file '%s%s': %s: %s", shown == path ? "" : "...", shown, reason,
                   advice);
}

/* Room for at least one more byte. */
static hstep_status grow(text_buffer *text, hstep_error *error) {
    if (text->size < text->capacity)
        return HSTEP_OK;
    const size_t capacity = text->capacity == 0 ? (size_t)1 << 16 : text->capacity * 2;
    unsigned char *bytes = capacity > text->capacity ? realloc(text->bytes, capacity) : NULL;
    if (bytes == NULL)
        return hs_fail_memory(error, "the text");
    text->bytes = bytes;
    text->capacity = capacity;
    return HSTEP_OK;
}

static hstep_status read_stream(FILE *stream, const char *path, text_buffer *text, hstep_error *error) {
    const size_t before = text->size;
    while (!feof(stream)) {
        HS_FORWARD(grow(text, error));
        errno = 0;
        text->size += fread(text->bytes + text->size, 1, text->capacity - text->size, stream);
        if (ferror(stream))
            return fail_file(error, path, errno != 0 ? strerror(errno) : "it cannot be read",
                             "give a file that can be read");
    }
    if (text->size == before)
        return fail_file(error, path, "it is empty", "give a file with some text");
    return HSTEP_OK;
}

static hstep_status read_file(const char *path, text_buffer *text, hstep_error *error) {
    struct stat status;
    if (stat(path, &status) != 0)
        return fail_file(error, path, strerror(errno), "check the path");
    if (S_ISDIR(status.st_mode))
        return fail_file(error, path, strerror(EISDIR), "give the files in it");
    FILE *stream = fopen(path, "rb");
    if (stream == NULL)
        return fail_file(error, path, strerror(errno), "give a file that can be read");
    const hstep_status result = read_stream(stream, path, text, error);
    fclose(stream);
    return result;
}

hstep_status hstep_dataset_load(const char *const *paths, size_t count, hstep_dataset **dataset, hstep_error *error) {
    HS_RETURN_IF(paths == NULL || count == 0, error, HSTEP_ERROR_ARGUMENT, "no data file: name at least one");
    HS_RETURN_IF(dataset == NULL, error, HSTEP_ERROR_ARGUMENT, "dataset: the place for the result is NULL");
    for (size_t i = 0; i < count; ++i)
        HS_RETURN_IF(paths[i] == NULL, error, HSTEP_ERROR_ARGUMENT, "data file %zu of %zu: its path is NULL", i + 1,
                     count);
    text_buffer text = {0};
    for (size_t i = 0; i < count; ++i) {
        const hstep_status status = read_file(paths[i], &text, error);
        if (status != HSTEP_OK) {
            free(text.bytes);
            return status;
        }
    }
    return hs_dataset_adopt(text.bytes, text.size, dataset, error);
}
