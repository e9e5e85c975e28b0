#include "engine/records/fields.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <halfstep/records.h>

#include "engine/utf8.h"

static void refuse(hs_record *record, hstep_status status, const char *name, const char *why) {
    if (record->status != HSTEP_OK)
        return;
    record->status = status;
    snprintf(record->reason, sizeof record->reason, "%.100s: %s", name, why);
}

/* Takes the reference to value. */
static void put(hs_record *record, json_t *object, const char *name, json_t *value) {
    if (record->status == HSTEP_OK && json_object_get(object, name) != NULL)
        refuse(record, HSTEP_ERROR_ARGUMENT, name, "this field is there twice");
    if (record->status != HSTEP_OK || object == NULL)
        json_decref(value);
    else if (json_object_set_new(object, name, value) != 0)
        refuse(record, HSTEP_ERROR_MEMORY, name, "no memory, or a name that is not UTF-8");
}

/* Puts a companion field called `name` + `suffix`. */
static void put_beside(hs_record *record, json_t *object, const char *name, const char *suffix, json_t *value) {
    char beside[128];
    const int length = snprintf(beside, sizeof beside, "%s%s", name, suffix);
    if (length < 0 || (size_t)length >= sizeof beside) {
        refuse(record, HSTEP_ERROR_ARGUMENT, name, "the field's name is too long");
        json_decref(value);
        return;
    }
    put(record, object, beside, value);
}

hs_record hs_record_begin(const char *kind) {
    hs_record record = {.root = json_object(), .status = HSTEP_OK};
    hs_put_text(&record, record.root, "schema", HSTEP_RECORDS_SCHEMA);
    hs_put_text(&record, record.root, "record", kind);
    return record;
}

void hs_record_end(hs_record *record) { json_decref(record->root); }

char *hs_record_line(hs_record *record, size_t *size) {
    if (record->status != HSTEP_OK)
        return NULL;
    const size_t flags = JSON_COMPACT | JSON_REAL_PRECISION(17);
    const size_t length = json_dumpb(record->root, NULL, 0, flags);
    char *line = length == 0 ? NULL : malloc(length + 1);
    if (line == NULL || json_dumpb(record->root, line, length, flags) != length) {
        refuse(record, HSTEP_ERROR_MEMORY, "record", "no memory for the line");
        free(line);
        return NULL;
    }
    line[length] = '\n';
    *size = length + 1;
    return line;
}

json_t *hs_put_object(hs_record *record, json_t *object, const char *name) {
    put(record, object, name, json_object());
    return json_object_get(object, name);
}

json_t *hs_put_array(hs_record *record, json_t *object, const char *name) {
    put(record, object, name, json_array());
    return json_object_get(object, name);
}

json_t *hs_put_element(hs_record *record, json_t *array) {
    if (record->status != HSTEP_OK)
        return NULL;
    json_t *element = json_object();
    if (json_array_append_new(array, element) != 0) {
        refuse(record, HSTEP_ERROR_MEMORY, "record", "no memory for a list");
        return NULL;
    }
    return element;
}

void hs_put_null(hs_record *record, json_t *object, const char *name) { put(record, object, name, json_null()); }

void hs_put_boolean(hs_record *record, json_t *object, const char *name, bool value) {
    put(record, object, name, json_boolean(value));
}

void hs_put_integer(hs_record *record, json_t *object, const char *name, uint64_t value) {
    if (value > INT64_MAX) {
        refuse(record, HSTEP_ERROR_ARGUMENT, name, "records hold integers up to 2^63 - 1");
        return;
    }
    put(record, object, name, json_integer((json_int_t)value));
}

void hs_put_number(hs_record *record, json_t *object, const char *name, double value) {
    if (isfinite(value)) {
        put(record, object, name, json_real(value));
        return;
    }
    put(record, object, name, json_null());
    put_beside(record, object, name, "_nonfinite", json_string(isnan(value) ? "nan" : value > 0 ? "inf" : "-inf"));
}

void hs_put_checksum(hs_record *record, json_t *object, const char *name, uint64_t value) {
    char digits[17];
    snprintf(digits, sizeof digits, "%016" PRIx64, value);
    put(record, object, name, json_string(digits));
}

/* Copies to `text`, which holds 3 * size bytes, every stray byte replaced by U+FFFD. Returns the new size. */
static size_t replace_stray_bytes(const unsigned char *bytes, size_t size, char *text, bool *stray) {
    size_t written = 0;
    *stray = false;
    for (size_t i = 0; i < size;) {
        const size_t length = hs_utf8_length(bytes + i, size - i);
        if (length == 0) {
            memcpy(text + written, "\xef\xbf\xbd", 3);
            written += 3;
            i++;
            *stray = true;
            continue;
        }
        memcpy(text + written, bytes + i, length);
        written += length;
        i += length;
    }
    return written;
}

static json_t *hexadecimal(const unsigned char *bytes, size_t size) {
    static const char digits[] = "0123456789abcdef";
    char *text = malloc(2 * size);
    if (text == NULL)
        return NULL;
    for (size_t i = 0; i < size; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    json_t *value = json_stringn(text, 2 * size);
    free(text);
    return value;
}

void hs_put_bytes(hs_record *record, json_t *object, const char *name, const char *bytes, size_t size) {
    const unsigned char *source = (const unsigned char *)bytes;
    bool stray = false;
    char *text = calloc(3 * size + 1, 1);
    if (text == NULL) {
        refuse(record, HSTEP_ERROR_MEMORY, name, "no memory for the text");
        return;
    }
    const size_t written = replace_stray_bytes(source, size, text, &stray);
    put(record, object, name, json_stringn(text, written));
    free(text);
    if (stray)
        put_beside(record, object, name, "_bytes", hexadecimal(source, size));
}

void hs_put_text(hs_record *record, json_t *object, const char *name, const char *text) {
    if (text == NULL)
        hs_put_null(record, object, name);
    else
        hs_put_bytes(record, object, name, text, strlen(text));
}
