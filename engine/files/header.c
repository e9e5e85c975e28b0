/* The header of a file of tensors: everything that can be wrong with it is found here. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "engine/error.h"
#include "engine/files/path.h"
#include "engine/files/tensor_file.h"

/* A header under examination. */
typedef struct examined {
    hstep_tensor_file *file;
    const char *text;
    size_t length;
    hstep_error *error;
} examined;

/* Names come from the file: a message shows the beginning of a long one, and no control characters. */
typedef struct shown_name {
    char text[72];
} shown_name;

static shown_name show(const char *name) {
    shown_name shown;
    (void)snprintf(shown.text, sizeof shown.text, "%s", name);
    for (char *c = shown.text; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    return shown;
}

/* Where in the file a name stands, as far as it is written there without escapes; else where the header begins. */
static uint64_t place_of(const examined *header, const char *name) {
    const size_t length = strlen(name);
    for (size_t i = 1; i + length < header->length; i++)
        if (header->text[i - 1] == '"' && header->text[i + length] == '"' &&
            memcmp(header->text + i, name, length) == 0)
            return HS_LENGTH_BYTES + i;
    return HS_LENGTH_BYTES;
}

static hstep_status refuse_tensor(const examined *header, const char *name, const char *why) {
    return hs_fail(header->error, HSTEP_ERROR_INPUT_FILE,
                   "'%s', byte %" PRIu64 ", tensor \"%s\": %s; it is damaged or "
                   "no safetensors file",
                   hs_show_path(header->file->path).text, place_of(header, name), show(name).text, why);
}

static hstep_status refuse_header(const examined *header, uint64_t place, const char *why) {
    return hs_fail(header->error, HSTEP_ERROR_INPUT_FILE,
                   "'%s', byte %" PRIu64 ": %s; it is damaged or no safetensors file",
                   hs_show_path(header->file->path).text, place, why);
}

/* ---- One tensor ---- */

static bool read_count(const json_t *value, uint64_t *count) {
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *count = (uint64_t)json_integer_value(value);
    return true;
}

static hstep_status read_shape(const examined *header, const json_t *shape, hstep_tensor_info *info) {
    if (!json_is_array(shape))
        return refuse_tensor(header, info->name, "\"shape\" is no array");
    info->rank = json_array_size(shape);
    if (info->rank > HSTEP_TENSOR_MAX_RANK)
        return refuse_tensor(header, info->name, "it has more than 8 dimensions");
    info->elements = 1;
    for (size_t i = 0; i < info->rank; i++) {
        uint64_t dim = 0;
        if (!read_count(json_array_get(shape, i), &dim) || dim > SIZE_MAX)
            return refuse_tensor(header, info->name, "a dimension is no whole number of at least 0");
        if (__builtin_mul_overflow(info->elements, dim, &info->elements))
            return refuse_tensor(header, info->name, "its shape has more elements than can be counted");
        info->dims[i] = (size_t)dim;
    }
    return HSTEP_OK;
}

/* Offsets count from the end of the header. */
static hstep_status read_place(const examined *header, const json_t *offsets, hstep_tensor_info *info) {
    const uint64_t start = HS_LENGTH_BYTES + header->length, room = header->file->size - start;
    uint64_t begin = 0, end = 0, bytes = 0;
    if (json_array_size(offsets) != 2 || !read_count(json_array_get(offsets, 0), &begin) ||
        !read_count(json_array_get(offsets, 1), &end))
        return refuse_tensor(header, info->name, "\"data_offsets\" are no two whole numbers of at least 0");
    if (begin > end || end > room) {
        char why[160];
        (void)snprintf(why, sizeof why,
                       "its bytes %" PRIu64 " to %" PRIu64 " lie outside the %" PRIu64 " that follow the header", begin,
                       end, room);
        return refuse_tensor(header, info->name, why);
    }
    if (__builtin_mul_overflow(info->elements, (uint64_t)hs_storage_size(info->storage), &bytes) ||
        bytes != end - begin) {
        char why[160];
        (void)snprintf(why, sizeof why, "%" PRIu64 " elements of type %s do not fill its %" PRIu64 " bytes",
                       info->elements, hstep_storage_name(info->storage), end - begin);
        return refuse_tensor(header, info->name, why);
    }
    info->offset = start + begin;
    info->bytes = bytes;
    return HSTEP_OK;
}

static hstep_status read_tensor(const examined *header, const char *name, const json_t *entry,
                                hstep_tensor_info *info) {
    *info = (hstep_tensor_info){.name = name};
    if (!json_is_object(entry) || json_object_size(entry) != 3)
        return refuse_tensor(header, name, "it is not described by \"dtype\", \"shape\" and \"data_offsets\"");
    const char *type = json_string_value(json_object_get(entry, "dtype"));
    if (type == NULL)
        return refuse_tensor(header, name, "\"dtype\" is no text");
    if (type[0] >= 'a' || hstep_storage_parse(type, &info->storage) != HSTEP_OK) {
        char why[120];
        (void)snprintf(why, sizeof why, "type \"%s\" is not known here", show(type).text);
        return refuse_tensor(header, name, why);
    }
    HS_FORWARD(read_shape(header, json_object_get(entry, "shape"), info));
    return read_place(header, json_object_get(entry, "data_offsets"), info);
}

/* ---- All tensors ---- */

static int by_place(const void *left, const void *right) {
    const hstep_tensor_info *a = left, *b = right;
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? -1 : 1; /* empty tensors before one that begins at the same byte */
    return strcmp(a->name, b->name);
}

static hstep_status check_places(const examined *header) {
    const hstep_tensor_file *file = header->file;
    uint64_t end = HS_LENGTH_BYTES + header->length;
    for (size_t i = 0; i < file->count; i++) {
        const hstep_tensor_info *info = &file->tensors[i];
        if (info->offset < end)
            return refuse_tensor(header, info->name, "its bytes overlap those of another tensor");
        if (info->offset > end)
            return refuse_tensor(header, info->name, "bytes before it belong to no tensor");
        end += info->bytes;
    }
    if (end != file->size)
        return refuse_header(header, end, "the bytes from here on belong to no tensor");
    return HSTEP_OK;
}

static hstep_status read_tensors(const examined *header) {
    hstep_tensor_file *file = header->file;
    file->tensors = calloc(json_object_size(file->root) + 1, sizeof *file->tensors);
    if (file->tensors == NULL)
        return hs_fail_memory(header->error, "the table of a file's tensors");
    const char *name;
    json_t *entry;
    json_object_foreach(file->root, name, entry) {
        if (entry == file->metadata)
            continue;
        HS_FORWARD(read_tensor(header, name, entry, &file->tensors[file->count]));
        file->count++;
    }
    qsort(file->tensors, file->count, sizeof *file->tensors, by_place);
    return check_places(header);
}

/* ---- Metadata and checksums ---- */

static hstep_status read_metadata(const examined *header) {
    hstep_tensor_file *file = header->file;
    file->metadata = json_object_get(file->root, "__metadata__");
    if (file->metadata == NULL)
        return HSTEP_OK;
    if (!json_is_object(file->metadata))
        return refuse_header(header, place_of(header, "__metadata__"), "\"__metadata__\" is no object");
    const char *key;
    json_t *value;
    json_object_foreach(file->metadata, key, value) {
        if (!json_is_string(value))
            return refuse_header(header, place_of(header, key), "a value of \"__metadata__\" is no text");
        file->checksums |= strncmp(key, HS_CHECKSUM_KEY, sizeof HS_CHECKSUM_KEY - 1) == 0 ||
                           (strcmp(key, "schema") == 0 && strncmp(json_string_value(value), "halfstep.", 9) == 0);
    }
    return HSTEP_OK;
}

/* The checksum of the file up to its tensors: both ends of the header are hashed apart from the digits. */
static hstep_status check_header_checksum(const examined *header) {
    static const char start[] = HS_CHECKSUM_START;
    const size_t before = sizeof start - 1;
    const uint64_t place = HS_LENGTH_BYTES + before;
    if (header->length < before + HS_CHECKSUM_DIGITS || memcmp(header->text, start, before) != 0)
        return refuse_header(header, HS_LENGTH_BYTES,
                             "the header's checksum is not where halfstep writes it (if another program wrote the file "
                             "anew, let it leave out the metadata)");
    const hs_checksum zeros = hs_checksum_text(0);
    XXH3_state_t *state = XXH3_createState();
    if (state == NULL)
        return hs_fail_memory(header->error, "a checksum");
    const uint64_t length = header->length;
    const char *digits = header->text + before;
    (void)XXH3_64bits_reset(state);
    (void)XXH3_64bits_update(state, &length, sizeof length);
    (void)XXH3_64bits_update(state, header->text, before);
    (void)XXH3_64bits_update(state, zeros.digits, HS_CHECKSUM_DIGITS);
    (void)XXH3_64bits_update(state, digits + HS_CHECKSUM_DIGITS, header->length - before - HS_CHECKSUM_DIGITS);
    const hs_checksum found = hs_checksum_text(XXH3_64bits_digest(state));
    (void)XXH3_freeState(state);
    if (memcmp(found.digits, digits, HS_CHECKSUM_DIGITS) != 0)
        return refuse_header(header, place, "the header's checksum is another");
    return HSTEP_OK;
}

static hstep_status find_checksums(const examined *header) {
    hstep_tensor_file *file = header->file;
    for (size_t i = 0; i < file->count; i++) {
        hstep_tensor_info *info = &file->tensors[i];
        char *key = hs_format(HS_CHECKSUM_KEY ".%s", info->name);
        if (key == NULL)
            return hs_fail_memory(header->error, "a checksum");
        info->checksum = json_string_value(json_object_get(file->metadata, key));
        free(key);
        if (info->checksum == NULL)
            return refuse_tensor(header, info->name, "its checksum is missing");
    }
    return HSTEP_OK;
}

/* ---- The whole ---- */

/*
 * When memory is short Jansson may take it for a mistake in the text, or drop characters of a long word without a sign.
 * A text is therefore read twice: it counts as wrong, and as read, when both times agree. Who passes over a good file
 * because memory was short would lose what is in it.
 */
static hstep_status parse_json(const examined *header) {
    json_error_t first, second;
    json_t *root = json_loadb(header->text, header->length, JSON_REJECT_DUPLICATES, &first);
    json_t *again = json_loadb(header->text, header->length, JSON_REJECT_DUPLICATES, &second);
    const bool read = root != NULL && again != NULL && json_equal(root, again);
    const bool wrong = root == NULL && again == NULL && first.text[0] != '\0' && first.position == second.position &&
                       strcmp(first.text, second.text) == 0;
    json_decref(again);
    header->file->root = root;
    if (read)
        return HSTEP_OK;
    return wrong ? refuse_header(header, HS_LENGTH_BYTES + (uint64_t)first.position, first.text)
                 : hs_fail_memory(header->error, "a file's header");
}

hstep_status hs_tensor_file_parse(hstep_tensor_file *file, const char *text, size_t length, hstep_error *error) {
    const examined header = {.file = file, .text = text, .length = length, .error = error};
    if (length == 0 || text[0] != '{')
        return refuse_header(&header, HS_LENGTH_BYTES, "the header does not begin with '{'");
    HS_FORWARD(parse_json(&header));
    HS_FORWARD(read_metadata(&header));
    if (file->checksums)
        HS_FORWARD(check_header_checksum(&header));
    HS_FORWARD(read_tensors(&header));
    return file->checksums ? find_checksums(&header) : HSTEP_OK;
}
