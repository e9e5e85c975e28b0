/* One record under construction: a JSON object whose fields keep the rules of halfstep/records.h. */
#ifndef HS_ENGINE_RECORDS_FIELDS_H
#define HS_ENGINE_RECORDS_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include <halfstep/types.h>

/*
 * A failure sticks: later puts do nothing, so that a record is written as one list of fields and judged once. An object
 * of NULL is one that could not be made.
 */
typedef struct hs_record {
    json_t *root;
    hstep_status status;
    char reason[160];
} hs_record;

/* Starts a record with its `schema` and `record` fields. */
hs_record hs_record_begin(const char *kind);

void hs_record_end(hs_record *record);

/* The whole line, line feed included, to be freed by free(); NULL, with the record's status set, when it failed. */
char *hs_record_line(hs_record *record, size_t *size);

/* Children belong to the record. An array takes objects by hs_put_element. */
json_t *hs_put_object(hs_record *record, json_t *object, const char *name);
json_t *hs_put_array(hs_record *record, json_t *object, const char *name);
json_t *hs_put_element(hs_record *record, json_t *array);

void hs_put_null(hs_record *record, json_t *object, const char *name);
void hs_put_boolean(hs_record *record, json_t *object, const char *name, bool value);
void hs_put_integer(hs_record *record, json_t *object, const char *name, uint64_t value);
void hs_put_number(hs_record *record, json_t *object, const char *name, double value);

/* 16 hexadecimal digits. */
void hs_put_checksum(hs_record *record, json_t *object, const char *name, uint64_t value);

/* NULL is written as null. */
void hs_put_text(hs_record *record, json_t *object, const char *name, const char *text);
void hs_put_bytes(hs_record *record, json_t *object, const char *name, const char *bytes, size_t size);

#endif
