/* Where a run stands in its data, as JSON, with what makes the data the same. */
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/data/dataset.h"
#include "engine/error.h"
#include "engine/records/fields.h"

static const char SCHEMA[] = "halfstep.data-position/1";

static void put_data(hs_record *record, const hstep_dataset *dataset) {
    json_t *data = hs_put_object(record, record->root, "data");
    hs_put_text(record, data, "token_type", hstep_token_type_name(dataset->type));
    hs_put_integer(record, data, "vocabulary", dataset->vocabulary);
    hs_put_integer(record, data, "tokens", dataset->tokens);
    hs_put_integer(record, data, "training_tokens", dataset->training);
    hs_put_checksum(record, data, "checksum", dataset->checksum);
    json_t *files = hs_put_array(record, data, "files");
    for (size_t i = 0; i < dataset->file_count; ++i) {
        const hstep_data_file *known = &dataset->files[i].known;
        json_t *file = hs_put_element(record, files);
        hs_put_text(record, file, "name", known->name);
        hs_put_integer(record, file, "tokens", known->tokens);
        hs_put_checksum(record, file, "checksum", known->checksum);
    }
}

/* The text, from malloc, or NULL with the reason in `record`. */
static char *write_text(hs_record *record, const hstep_dataset *dataset, const hstep_data_position *position,
                        size_t *size) {
    hs_put_text(record, record->root, "schema", SCHEMA);
    /* A seed may use all 64 bits, which integers of JSON do not. */
    hs_put_checksum(record, record->root, "seed", position->seed);
    hs_put_integer(record, record->root, "length", position->length);
    hs_put_integer(record, record->root, "windows", position->windows);
    put_data(record, dataset);
    return hs_record_line(record, size);
}

hstep_status hstep_dataset_save_position(const hstep_dataset *dataset, const hstep_data_position *position,
                                         char *buffer, size_t *size, hstep_error *error) {
    HS_RETURN_IF(dataset == NULL || position == NULL || size == NULL, error, HSTEP_ERROR_ARGUMENT,
                 "data position: an argument is NULL");
    hs_record record = {.root = json_object()};
    size_t written = 0;
    char *text = write_text(&record, dataset, position, &written);
    hstep_status status = HSTEP_OK;
    if (text == NULL)
        status = hs_fail(error, record.status, "data position: %s", record.reason);
    else if (buffer != NULL && *size < written)
        status = hs_fail(error, HSTEP_ERROR_ARGUMENT, "data position: it takes %zu bytes, there is room for %zu",
                         written, *size);
    else if (buffer != NULL)
        memcpy(buffer, text, written);
    if (status == HSTEP_OK)
        *size = written;
    free(text);
    hs_record_end(&record);
    return status;
}

/* What two sides disagree on, in words. A list that has no more room ends in dots. */
typedef struct differences {
    char text[320];
    bool any;
} differences;

static void differ(differences *list, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void differ(differences *list, const char *format, ...) {
    static const char more[] = ", ...";
    const size_t used = strlen(list->text), room = sizeof list->text - sizeof more;
    if (used > room)
        return;
    char item[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(item, sizeof item, format, arguments);
    va_end(arguments);
    const char *comma = list->any ? ", " : "";
    list->any = true;
    if (used + strlen(comma) + strlen(item) > room)
        snprintf(list->text + used, sizeof list->text - used, "%s", more);
    else
        snprintf(list->text + used, sizeof list->text - used, "%s%s", comma, item);
}

static void compare_count(differences *list, const char *name, uint64_t now, const json_t *then) {
    if (now != (uint64_t)json_integer_value(then))
        differ(list, "%s %" JSON_INTEGER_FORMAT " then and %" PRIu64 " now", name, json_integer_value(then), now);
}

static bool same_checksum(uint64_t now, const json_t *then) {
    char digits[17];
    snprintf(digits, sizeof digits, "%016" PRIx64, now);
    return strcmp(digits, json_string_value(then)) == 0;
}

/* Of a joined text the borders of files do not matter, so files are looked at only to say which one changed. */
static void compare_files(differences *list, const hstep_dataset *dataset, const json_t *files) {
    const size_t count = json_array_size(files);
    if (count != dataset->file_count) {
        differ(list, "files %zu then and %zu now", count, dataset->file_count);
        return;
    }
    for (size_t i = 0; i < count; ++i) {
        const hstep_data_file *now = &dataset->files[i].known;
        const json_t *then = json_array_get(files, i);
        if ((uint64_t)json_integer_value(json_object_get(then, "tokens")) != now->tokens ||
            !same_checksum(now->checksum, json_object_get(then, "checksum")))
            differ(list, "file '%.60s' holds something else", now->name);
    }
}

static bool has_shape(const json_t *root) {
    const json_t *data = json_object_get(root, "data"), *files = json_object_get(data, "files");
    static const char *const counts[] = {"vocabulary", "tokens", "training_tokens"};
    bool good = json_is_string(json_object_get(root, "seed")) && json_is_integer(json_object_get(root, "length")) &&
                json_is_integer(json_object_get(root, "windows")) &&
                json_is_string(json_object_get(data, "token_type")) &&
                json_is_string(json_object_get(data, "checksum")) && json_is_array(files);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; ++i)
        good = good && json_is_integer(json_object_get(data, counts[i]));
    for (size_t i = 0; i < json_array_size(files); ++i) {
        const json_t *file = json_array_get(files, i);
        good = good && json_is_integer(json_object_get(file, "tokens")) &&
               json_is_string(json_object_get(file, "checksum"));
    }
    return good;
}

static bool read_position(const json_t *root, hstep_data_position *position) {
    const char *schema = json_string_value(json_object_get(root, "schema"));
    if (schema == NULL || strcmp(schema, SCHEMA) != 0 || !has_shape(root))
        return false;
    const json_int_t length = json_integer_value(json_object_get(root, "length"));
    const json_int_t windows = json_integer_value(json_object_get(root, "windows"));
    const char *seed = json_string_value(json_object_get(root, "seed"));
    *position = (hstep_data_position){strtoull(seed, NULL, 16), (size_t)length, (uint64_t)windows};
    return length > 0 && windows >= 0 && strlen(seed) == 16 && strspn(seed, "0123456789abcdef") == 16;
}

static hstep_status check_same(const hstep_dataset *dataset, const json_t *data, hstep_error *error) {
    differences list = {.any = false};
    const char *type = json_string_value(json_object_get(data, "token_type"));
    if (strcmp(type, hstep_token_type_name(dataset->type)) != 0)
        differ(&list, "token type %.20s then and %s now", type, hstep_token_type_name(dataset->type));
    compare_count(&list, "vocabulary", dataset->vocabulary, json_object_get(data, "vocabulary"));
    compare_count(&list, "tokens", dataset->tokens, json_object_get(data, "tokens"));
    compare_count(&list, "training tokens", dataset->training, json_object_get(data, "training_tokens"));
    const json_t *checksum = json_object_get(data, "checksum");
    const bool same = same_checksum(dataset->checksum, checksum);
    if (!same)
        differ(&list, "checksum %.16s then and %016" PRIx64 " now", json_string_value(checksum), dataset->checksum);
    if (!same || hs_dataset_segments(dataset) > 1 || dataset->type != HSTEP_TOKENS_BYTES)
        compare_files(&list, dataset, json_object_get(data, "files"));
    HS_RETURN_IF(list.any, error, HSTEP_ERROR_INPUT_FILE, "the data is not what the position was saved with: %s",
                 list.text);
    return HSTEP_OK;
}

hstep_status hstep_dataset_restore_position(const hstep_dataset *dataset, const char *text, size_t size,
                                            hstep_data_position *position, hstep_error *error) {
    HS_RETURN_IF(dataset == NULL || text == NULL || position == NULL, error, HSTEP_ERROR_ARGUMENT,
                 "data position: an argument is NULL");
    json_error_t mistake;
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &mistake);
    hstep_data_position found;
    hstep_status status;
    if (root == NULL)
        status =
            hs_fail(error, HSTEP_ERROR_INPUT_FILE, "data position, byte offset %d: %s", mistake.position, mistake.text);
    else if (!read_position(root, &found))
        status = hs_fail(error, HSTEP_ERROR_INPUT_FILE,
                         "data position: fields are missing or wrong, or its schema is "
                         "not %s",
                         SCHEMA);
    else
        status = check_same(dataset, json_object_get(root, "data"), error);
    if (status == HSTEP_OK)
        *position = found;
    json_decref(root);
    return status;
}
