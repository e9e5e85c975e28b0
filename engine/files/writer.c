/* A file of tensors, written tensor by tensor. Checksums are filled into the header when all tensors are there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "engine/error.h"
#include "engine/files/atomic.h"
#include "engine/files/path.h"
#include "engine/files/tensor_file.h"
#include "engine/utf8.h"

typedef struct declared {
    uint64_t bytes;
    json_t *checksum; /* in the header */
} declared;

struct hs_tensor_writer {
    json_t *root, *metadata;
    size_t count;
    declared *tensors;
    uint64_t data_size; /* of all tensors */

    bool begun;
    hs_atomic_file file;
    char *header; /* room for the length and the text */
    size_t header_size;
    XXH3_state_t *state;
    size_t at;      /* the tensor that is being written */
    uint64_t done;  /* bytes of it */
    uint64_t place; /* in the file */
};

static hstep_status no_memory(hstep_error *error) { return hs_fail_memory(error, "the header of a file"); }

/* ---- Declaring ---- */

/* Adds a checksum that is not known yet. */
static json_t *add_checksum(hs_tensor_writer *writer, const char *name) {
    char *key = name != NULL ? hs_format(HS_CHECKSUM_KEY ".%s", name) : hs_format(HS_CHECKSUM_KEY);
    json_t *digits = json_string(hs_checksum_text(0).digits);
    const bool set = key != NULL && json_object_set(writer->metadata, key, digits) == 0;
    json_decref(digits);
    free(key);
    return set ? digits : NULL;
}

hstep_status hs_tensor_writer_create(hs_tensor_writer **writer, hstep_error *error) {
    hs_tensor_writer *made = calloc(1, sizeof *made);
    if (made == NULL)
        return no_memory(error);
    made->root = json_object();
    made->metadata = json_object();
    made->state = XXH3_createState();
    /* The header's own checksum comes first, where readers know to find it. */
    if (made->state == NULL || json_object_set(made->root, "__metadata__", made->metadata) != 0 ||
        add_checksum(made, NULL) == NULL) {
        hs_tensor_writer_destroy(made);
        return no_memory(error);
    }
    *writer = made;
    return HSTEP_OK;
}

void hs_tensor_writer_destroy(hs_tensor_writer *writer) {
    if (writer == NULL)
        return;
    if (writer->begun)
        hs_atomic_abandon(&writer->file);
    json_decref(writer->metadata);
    json_decref(writer->root);
    (void)XXH3_freeState(writer->state);
    free(writer->tensors);
    free(writer->header);
    free(writer);
}

hstep_status hs_tensor_writer_text(hs_tensor_writer *writer, const char *key, const char *value, hstep_error *error) {
    return json_object_set_new(writer->metadata, key, json_string(value)) == 0 ? HSTEP_OK : no_memory(error);
}

/* {"dtype": ..., "shape": [...], "data_offsets": [begin, end]} */
static json_t *describe(hstep_storage storage, size_t rank, const size_t *dims, uint64_t begin, uint64_t end) {
    json_t *shape = json_array();
    bool made = shape != NULL;
    for (size_t i = 0; i < rank && made; i++)
        made = json_array_append_new(shape, json_integer((json_int_t)dims[i])) == 0;
    if (!made) {
        json_decref(shape);
        return NULL;
    }
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", hstep_storage_name(storage), "shape", shape, "data_offsets",
                     (json_int_t)begin, (json_int_t)end);
}

static hstep_status count_bytes(const hs_tensor_writer *writer, const char *name, hstep_storage storage, size_t rank,
                                const size_t *dims, uint64_t *bytes, hstep_error *error) {
    uint64_t size = hs_storage_size(storage), end = 0;
    bool fits = rank <= HSTEP_TENSOR_MAX_RANK;
    for (size_t i = 0; i < rank && fits; i++)
        fits = !__builtin_mul_overflow(size, (uint64_t)dims[i], &size);
    fits = fits && !__builtin_add_overflow(writer->data_size, size, &end) && end <= INT64_MAX;
    HS_RETURN_IF(!fits, error, HSTEP_ERROR_SHAPE, "tensor \"%.64s\" is more than a file can hold", name);
    *bytes = size;
    return HSTEP_OK;
}

hstep_status hs_tensor_writer_declare(hs_tensor_writer *writer, const char *name, hstep_storage storage, size_t rank,
                                      const size_t *dims, hstep_error *error) {
    uint64_t bytes = 0;
    HS_FORWARD(count_bytes(writer, name, storage, rank, dims, &bytes, error));
    HS_RETURN_IF(!hs_is_utf8(name), error, HSTEP_ERROR_ARGUMENT, "the name \"%.64s\" is not UTF-8; give another", name);
    HS_RETURN_IF(json_object_get(writer->root, name) != NULL, error, HSTEP_ERROR_ARGUMENT,
                 "two tensors are named \"%.64s\"; a file holds one of each name", name);
    declared *tensors = realloc(writer->tensors, (writer->count + 1) * sizeof *tensors);
    if (tensors == NULL)
        return no_memory(error);
    writer->tensors = tensors;
    json_t *entry = describe(storage, rank, dims, writer->data_size, writer->data_size + bytes);
    if (entry == NULL)
        return no_memory(error);
    if (json_object_set_new(writer->root, name, entry) != 0)
        return no_memory(error);
    tensors[writer->count] = (declared){.bytes = bytes, .checksum = add_checksum(writer, name)};
    if (tensors[writer->count].checksum == NULL)
        return no_memory(error);
    writer->count++;
    writer->data_size += bytes;
    return HSTEP_OK;
}

/* ---- Writing ---- */

/*
 * The length and the text, filled up with spaces so that the tensors begin at a multiple of 8. Made twice: with
 * checksums of zeros to know its size, and with the right ones at the end.
 */
static hstep_status make_header(hs_tensor_writer *writer, hstep_error *error) {
    const size_t length = json_dumpb(writer->root, NULL, 0, JSON_COMPACT);
    const size_t padded = (length + 7) / 8 * 8;
    if (length == 0)
        return no_memory(error);
    HS_RETURN_IF(padded > HS_HEADER_MOST, error, HSTEP_ERROR_ARGUMENT,
                 "the names and texts take %zu bytes; a header holds %d", padded, HS_HEADER_MOST);
    if (writer->header == NULL) {
        writer->header_size = HS_LENGTH_BYTES + padded;
        writer->header = malloc(writer->header_size);
    }
    if (writer->header == NULL)
        return no_memory(error);
    const uint64_t stored = padded;
    memcpy(writer->header, &stored, sizeof stored);
    memset(writer->header + HS_LENGTH_BYTES, ' ', padded);
    return json_dumpb(writer->root, writer->header + HS_LENGTH_BYTES, padded, JSON_COMPACT) == length
               ? HSTEP_OK
               : no_memory(error);
}

/* Passes over tensors that have no bytes, too. */
static hstep_status finish_tensors(hs_tensor_writer *writer, hstep_error *error) {
    while (writer->at < writer->count && writer->done == writer->tensors[writer->at].bytes) {
        const hs_checksum found = hs_checksum_text(XXH3_64bits_digest(writer->state));
        if (json_string_set(writer->tensors[writer->at].checksum, found.digits) != 0)
            return no_memory(error);
        writer->at++;
        writer->done = 0;
        (void)XXH3_64bits_reset(writer->state);
    }
    return HSTEP_OK;
}

hstep_status hs_tensor_writer_begin(hs_tensor_writer *writer, const hs_files *files, const char *path,
                                    hstep_error *error) {
    HS_FORWARD(make_header(writer, error));
    HS_FORWARD(hs_atomic_begin(&writer->file, files, path, error));
    writer->begun = true;
    writer->place = writer->header_size;
    (void)XXH3_64bits_reset(writer->state);
    return finish_tensors(writer, error);
}

hstep_status hs_tensor_writer_write(hs_tensor_writer *writer, const void *data, size_t size, hstep_error *error) {
    const unsigned char *bytes = data;
    while (size > 0) {
        HS_RETURN_IF(writer->at == writer->count, error, HSTEP_ERROR_ARGUMENT, "more bytes than the tensors declared");
        const uint64_t missing = writer->tensors[writer->at].bytes - writer->done;
        const size_t now = missing < size ? (size_t)missing : size;
        HS_FORWARD(hs_atomic_write(&writer->file, bytes, now, writer->place, error));
        (void)XXH3_64bits_update(writer->state, bytes, now);
        bytes += now;
        size -= now;
        writer->place += now;
        writer->done += now;
        HS_FORWARD(finish_tensors(writer, error));
    }
    return HSTEP_OK;
}

hstep_status hs_tensor_writer_commit(hs_tensor_writer *writer, hstep_error *error) {
    HS_RETURN_IF(writer->at < writer->count, error, HSTEP_ERROR_ARGUMENT, "fewer bytes than the tensors declared");
    HS_FORWARD(make_header(writer, error));
    const hs_checksum found = hs_checksum_text(XXH3_64bits(writer->header, writer->header_size));
    memcpy(writer->header + HS_LENGTH_BYTES + (sizeof HS_CHECKSUM_START - 1), found.digits, HS_CHECKSUM_DIGITS);
    HS_FORWARD(hs_atomic_write(&writer->file, writer->header, writer->header_size, 0, error));
    writer->begun = false;
    return hs_atomic_commit(&writer->file, error);
}

/* ---- From memory ---- */

static hstep_status write_all(hs_tensor_writer *writer, const char *path, const hstep_tensor_data *tensors,
                              size_t count, hstep_error *error) {
    for (size_t i = 0; i < count; i++)
        HS_FORWARD(hs_tensor_writer_declare(writer, tensors[i].name, HSTEP_STORAGE_F64, tensors[i].rank,
                                            tensors[i].dims, error));
    HS_FORWARD(hs_tensor_writer_begin(writer, &hs_files_posix, path, error));
    for (size_t i = 0; i < count; i++)
        HS_FORWARD(hs_tensor_writer_write(writer, tensors[i].values, (size_t)writer->tensors[i].bytes, error));
    return hs_tensor_writer_commit(writer, error);
}

hstep_status hstep_tensor_file_write(const char *path, const hstep_tensor_data *tensors, size_t count,
                                     const hstep_tensor_text *texts, size_t text_count, hstep_error *error) {
    HS_RETURN_IF(path == NULL || (tensors == NULL && count > 0) || (texts == NULL && text_count > 0), error,
                 HSTEP_ERROR_ARGUMENT, "hstep_tensor_file_write needs a path, tensors and texts");
    hs_tensor_writer *writer = NULL;
    HS_FORWARD(hs_tensor_writer_create(&writer, error));
    hstep_status status = HSTEP_OK;
    for (size_t i = 0; i < text_count && status == HSTEP_OK; i++)
        status = hs_tensor_writer_text(writer, texts[i].key, texts[i].value, error);
    if (status == HSTEP_OK)
        status = write_all(writer, path, tensors, count, error);
    hs_tensor_writer_destroy(writer);
    return status;
}
