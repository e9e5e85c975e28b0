/*
 * The safetensors format, read and written (docs/checkpoints.md):
 *
 *   8 bytes   n, the length of the header, little-endian
 *   n bytes   the header: a JSON object, from which every tensor's type, shape and place are read
 *   the rest  the tensors' bytes, one after the other
 *
 * Checksums stand in the header's __metadata__: under "xxh3.NAME" that of a tensor's bytes, and under "xxh3" that of
 * all bytes before the tensors, computed while its own sixteen digits are '0'.
 */
#ifndef HS_ENGINE_FILES_TENSOR_FILE_H
#define HS_ENGINE_FILES_TENSOR_FILE_H

#include <halfstep/tensor_file.h>
#include <jansson.h>

#include "engine/files/files.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "The files are little-endian, and their numbers are copied as they are."
#endif

enum {
    HS_CHUNK = 1 << 20,       /* bytes that move at once: a checkpoint is never in memory as a whole */
    HS_HEADER_MOST = 1 << 24, /* longest header that is read or written */
    HS_CHECKSUM_DIGITS = 16,  /* of a checksum in hexadecimal */
    HS_LENGTH_BYTES = 8       /* of the header's length */
};

/* How a header with checksums begins; the digits follow. */
#define HS_CHECKSUM_KEY "xxh3"
#define HS_CHECKSUM_START "{\"__metadata__\":{\"" HS_CHECKSUM_KEY "\":\""

typedef struct hs_checksum {
    char digits[HS_CHECKSUM_DIGITS + 1];
} hs_checksum;

hs_checksum hs_checksum_text(uint64_t value);

/* Bytes of an element. */
size_t hs_storage_size(hstep_storage storage);

/* ---- Reading ---- */

struct hstep_tensor_file {
    const hs_files *files;
    int descriptor;
    char *path;
    uint64_t size;
    json_t *root;     /* the header; owns all names */
    json_t *metadata; /* in it, or NULL */
    bool checksums;
    size_t count;
    hstep_tensor_info *tensors; /* in the order of their bytes */
};

/* hstep_tensor_file_open with a table of file operations, which must outlive the file. */
hstep_status hs_tensor_file_open(const hs_files *files, const char *path, hstep_tensor_file **file, hstep_error *error);

/* Reads bytes at a place in the file. */
hstep_status hs_tensor_file_read_bytes(const hstep_tensor_file *file, uint64_t offset, void *data, size_t size,
                                       hstep_error *error);

/* Compares the checksum of a tensor whose bytes have been read; without checksums there is nothing to compare. */
hstep_status hs_tensor_file_check_bytes(const hstep_tensor_file *file, size_t index, const void *bytes,
                                        hstep_error *error);

/* engine/files/header.c: fills root, metadata, checksums and tensors from the header's text. */
hstep_status hs_tensor_file_parse(hstep_tensor_file *file, const char *text, size_t length, hstep_error *error);

/* ---- Writing ---- */

typedef struct hs_tensor_writer hs_tensor_writer;

/*
 * First all texts and tensors are declared, then the file is begun, then every tensor's bytes come in the order of
 * declaration, in pieces of any size, then the file is committed.
 */
hstep_status hs_tensor_writer_create(hs_tensor_writer **writer, hstep_error *error);

/* Removes what was written, unless it was committed. NULL is ignored. */
void hs_tensor_writer_destroy(hs_tensor_writer *writer);

/* A text of the metadata. */
hstep_status hs_tensor_writer_text(hs_tensor_writer *writer, const char *key, const char *value, hstep_error *error);

hstep_status hs_tensor_writer_declare(hs_tensor_writer *writer, const char *name, hstep_storage storage, size_t rank,
                                      const size_t *dims, hstep_error *error);

hstep_status hs_tensor_writer_begin(hs_tensor_writer *writer, const hs_files *files, const char *path,
                                    hstep_error *error);

hstep_status hs_tensor_writer_write(hs_tensor_writer *writer, const void *data, size_t size, hstep_error *error);

hstep_status hs_tensor_writer_commit(hs_tensor_writer *writer, hstep_error *error);

#endif
