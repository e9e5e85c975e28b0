/* A file of tensors that is open: its bytes, read when they are wanted, and their checksums. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "engine/error.h"
#include "engine/files/path.h"
#include "engine/files/tensor_file.h"
#include "precision/format.h"

hs_checksum hs_checksum_text(uint64_t value) {
    hs_checksum checksum;
    for (int i = 0; i < HS_CHECKSUM_DIGITS; i++)
        checksum.digits[i] = "0123456789abcdef"[value >> (60 - 4 * i) & 15];
    checksum.digits[HS_CHECKSUM_DIGITS] = '\0';
    return checksum;
}

/* ---- Opening ---- */

/*
 * Files are read, not mapped: a disk that fails, or a file that another process cuts, is then an error of a call, where
 * it would end the process by a signal.
 */
hstep_status hs_tensor_file_read_bytes(const hstep_tensor_file *file, uint64_t offset, void *data, size_t size,
                                       hstep_error *error) {
    unsigned char *at = data;
    while (size > 0) {
        const ssize_t got = file->files->read(file->files->state, file->descriptor, at, size, offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return hs_fail(error, HSTEP_ERROR_INPUT_FILE, "'%s', byte %" PRIu64 ": %s; use another copy of the file",
                           hs_show_path(file->path).text, offset,
                           got < 0 ? strerror(errno) : "it became shorter while it was read");
        at += got;
        size -= (size_t)got;
        offset += (uint64_t)got;
    }
    return HSTEP_OK;
}

static hstep_status read_header(hstep_tensor_file *file, hstep_error *error) {
    uint64_t length = 0;
    HS_RETURN_IF(file->size < HS_LENGTH_BYTES, error, HSTEP_ERROR_INPUT_FILE,
                 "'%s': a file of %" PRIu64 " bytes is no safetensors file; it is damaged or of another kind",
                 hs_show_path(file->path).text, file->size);
    HS_FORWARD(hs_tensor_file_read_bytes(file, 0, &length, sizeof length, error));
    HS_RETURN_IF(length > file->size - HS_LENGTH_BYTES, error, HSTEP_ERROR_INPUT_FILE,
                 "'%s', byte 0: a header of %" PRIu64 " bytes does not fit into a file of %" PRIu64
                 "; it is cut short, damaged or no safetensors file",
                 hs_show_path(file->path).text, length, file->size);
    HS_RETURN_IF(length > HS_HEADER_MOST, error, HSTEP_ERROR_INPUT_FILE,
                 "'%s', byte 0: a header of %" PRIu64 " bytes is longer than the %d that are read",
                 hs_show_path(file->path).text, length, HS_HEADER_MOST);
    char *text = malloc((size_t)length + 1);
    if (text == NULL)
        return hs_fail_memory(error, "a file's header");
    hstep_status status = hs_tensor_file_read_bytes(file, HS_LENGTH_BYTES, text, (size_t)length, error);
    if (status == HSTEP_OK)
        status = hs_tensor_file_parse(file, text, (size_t)length, error);
    free(text);
    return status;
}

static hstep_status open_file(hstep_tensor_file *file, hstep_error *error) {
    file->descriptor = hs_files_open(file->files, file->path, HS_FILE_READ);
    HS_RETURN_IF(file->descriptor < 0, error, HSTEP_ERROR_INPUT_FILE, "cannot open '%s': %s; check the path",
                 hs_show_path(file->path).text, strerror(errno));
    hs_file_status status;
    HS_RETURN_IF(file->files->status(file->files->state, file->descriptor, &status) != 0, error, HSTEP_ERROR_INPUT_FILE,
                 "cannot look at '%s': %s; use another copy of the file", hs_show_path(file->path).text,
                 strerror(errno));
    HS_RETURN_IF(!status.regular, error, HSTEP_ERROR_INPUT_FILE,
                 "'%s' is no regular file; give a safetensors file itself, no folder", hs_show_path(file->path).text);
    file->size = status.size;
    return read_header(file, error);
}

hstep_status hs_tensor_file_open(const hs_files *files, const char *path, hstep_tensor_file **file,
                                 hstep_error *error) {
    HS_RETURN_IF(path == NULL || file == NULL, error, HSTEP_ERROR_ARGUMENT,
                 "opening a file of tensors needs a path and a place for the result");
    hstep_tensor_file *made = calloc(1, sizeof *made);
    if (made == NULL)
        return hs_fail_memory(error, "a file");
    *made = (hstep_tensor_file){.files = files, .descriptor = -1, .path = hs_format("%s", path)};
    const hstep_status status = made->path != NULL ? open_file(made, error) : hs_fail_memory(error, "a file");
    if (status != HSTEP_OK) {
        hstep_tensor_file_close(made);
        return status;
    }
    *file = made;
    return HSTEP_OK;
}

hstep_status hstep_tensor_file_open(const char *path, hstep_tensor_file **file, hstep_error *error) {
    return hs_tensor_file_open(&hs_files_posix, path, file, error);
}

void hstep_tensor_file_close(hstep_tensor_file *file) {
    if (file == NULL)
        return;
    if (file->descriptor >= 0)
        (void)file->files->close(file->files->state, file->descriptor);
    json_decref(file->root);
    free(file->tensors);
    free(file->path);
    free(file);
}

/* ---- What is in it ---- */

uint64_t hstep_tensor_file_size(const hstep_tensor_file *file) { return file->size; }

int hstep_tensor_file_has_checksums(const hstep_tensor_file *file) { return file->checksums; }

const char *hstep_tensor_file_text(const hstep_tensor_file *file, const char *key) {
    return json_string_value(json_object_get(file->metadata, key));
}

size_t hstep_tensor_file_count(const hstep_tensor_file *file) { return file->count; }

hstep_status hstep_tensor_file_tensor(const hstep_tensor_file *file, size_t index, hstep_tensor_info *info,
                                      hstep_error *error) {
    HS_RETURN_IF(file == NULL || info == NULL, error, HSTEP_ERROR_ARGUMENT, "no file or no place for the answer");
    HS_RETURN_IF(index >= file->count, error, HSTEP_ERROR_ARGUMENT, "tensor %zu does not exist; '%s' has %zu", index,
                 hs_show_path(file->path).text, file->count);
    *info = file->tensors[index];
    return HSTEP_OK;
}

size_t hstep_tensor_file_find(const hstep_tensor_file *file, const char *name) {
    for (size_t i = 0; i < file->count && name != NULL; i++)
        if (strcmp(file->tensors[i].name, name) == 0)
            return i;
    return SIZE_MAX;
}

/* ---- Numbers ---- */

/* Widens `count` elements, which stand at the end of the place for the results: from the first on, so that no element
 * is overwritten before it was read. */
static void widen(hstep_storage storage, const unsigned char *from, size_t count, double *values) {
    for (size_t i = 0; i < count; i++) {
        uint16_t half = 0;
        float single = 0;
        if (storage == HSTEP_STORAGE_F32) {
            memcpy(&single, from + i * sizeof single, sizeof single);
            values[i] = (double)single;
        } else {
            memcpy(&half, from + i * sizeof half, sizeof half);
            values[i] = hs_decode(storage == HSTEP_STORAGE_F16 ? HSTEP_FP16 : HSTEP_BF16, half);
        }
    }
}

hstep_status hstep_tensor_file_read(const hstep_tensor_file *file, size_t index, uint64_t first, size_t count,
                                    double *values, hstep_error *error) {
    hstep_tensor_info info;
    HS_FORWARD(hstep_tensor_file_tensor(file, index, &info, error));
    HS_RETURN_IF(info.storage > HSTEP_STORAGE_BF16, error, HSTEP_ERROR_ARGUMENT,
                 "tensor \"%s\" of '%s' has type %s; only floating-point numbers can be read", info.name,
                 hs_show_path(file->path).text, hstep_storage_name(info.storage));
    HS_RETURN_IF(first > info.elements || count > info.elements - first, error, HSTEP_ERROR_ARGUMENT,
                 "elements %" PRIu64 " to %" PRIu64 " + %zu lie outside tensor \"%s\" of %" PRIu64, first, first, count,
                 info.name, info.elements);
    HS_RETURN_IF(count > 0 && values == NULL, error, HSTEP_ERROR_ARGUMENT, "no place for the numbers");
    if (count == 0)
        return HSTEP_OK;
    const size_t size = hs_storage_size(info.storage), bytes = count * size;
    unsigned char *place = (unsigned char *)values + (count * sizeof *values - bytes);
    HS_FORWARD(hs_tensor_file_read_bytes(file, info.offset + first * size, place, bytes, error));
    if (info.storage != HSTEP_STORAGE_F64)
        widen(info.storage, place, count, values);
    return HSTEP_OK;
}

/* ---- Checksums ---- */

static hstep_status hash_tensor(const hstep_tensor_file *file, const hstep_tensor_info *info, void *chunk,
                                XXH3_state_t *state, hstep_error *error) {
    (void)XXH3_64bits_reset(state);
    for (uint64_t at = 0; at < info->bytes;) {
        const size_t size = info->bytes - at < HS_CHUNK ? (size_t)(info->bytes - at) : HS_CHUNK;
        HS_FORWARD(hs_tensor_file_read_bytes(file, info->offset + at, chunk, size, error));
        (void)XXH3_64bits_update(state, chunk, size);
        at += size;
    }
    return HSTEP_OK;
}

static hstep_status compare_checksum(const hstep_tensor_file *file, const hstep_tensor_info *info, uint64_t hash,
                                     hstep_error *error) {
    const hs_checksum found = hs_checksum_text(hash);
    if (strcmp(found.digits, info->checksum) == 0)
        return HSTEP_OK;
    return hs_fail(error, HSTEP_ERROR_INPUT_FILE,
                   "'%s', bytes %" PRIu64 " to %" PRIu64 ", tensor \"%.64s\": the checksum is %s and should be "
                   "%.16s; the file is damaged, use another",
                   hs_show_path(file->path).text, info->offset, info->offset + info->bytes, info->name, found.digits,
                   info->checksum);
}

hstep_status hs_tensor_file_check_bytes(const hstep_tensor_file *file, size_t index, const void *bytes,
                                        hstep_error *error) {
    const hstep_tensor_info *info = &file->tensors[index];
    return file->checksums ? compare_checksum(file, info, XXH3_64bits(bytes, (size_t)info->bytes), error) : HSTEP_OK;
}

static hstep_status verify_tensor(const hstep_tensor_file *file, const hstep_tensor_info *info, void *chunk,
                                  hstep_error *error) {
    XXH3_state_t *state = XXH3_createState();
    if (state == NULL)
        return hs_fail_memory(error, "a checksum");
    hstep_status status = hash_tensor(file, info, chunk, state, error);
    if (status == HSTEP_OK)
        status = compare_checksum(file, info, XXH3_64bits_digest(state), error);
    (void)XXH3_freeState(state);
    return status;
}

static hstep_status check_has_checksums(const hstep_tensor_file *file, hstep_error *error) {
    HS_RETURN_IF(file == NULL, error, HSTEP_ERROR_ARGUMENT, "no file was given");
    HS_RETURN_IF(!file->checksums, error, HSTEP_ERROR_INPUT_FILE,
                 "'%s' has no checksums: another program wrote it, so that damage would not be noticed",
                 hs_show_path(file->path).text);
    return HSTEP_OK;
}

static hstep_status verify_range(const hstep_tensor_file *file, size_t first, size_t end, hstep_error *error) {
    void *chunk = malloc(HS_CHUNK);
    if (chunk == NULL)
        return hs_fail_memory(error, "a checksum");
    hstep_status status = HSTEP_OK;
    for (size_t i = first; i < end && status == HSTEP_OK; i++)
        status = verify_tensor(file, &file->tensors[i], chunk, error);
    free(chunk);
    return status;
}

hstep_status hstep_tensor_file_verify(const hstep_tensor_file *file, hstep_error *error) {
    HS_FORWARD(check_has_checksums(file, error));
    return verify_range(file, 0, file->count, error);
}

hstep_status hstep_tensor_file_verify_tensor(const hstep_tensor_file *file, size_t index, hstep_error *error) {
    HS_FORWARD(check_has_checksums(file, error));
    hstep_tensor_info info;
    HS_FORWARD(hstep_tensor_file_tensor(file, index, &info, error));
    return verify_range(file, index, index + 1, error);
}
