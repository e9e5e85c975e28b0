/* The records of a run. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <halfstep/records.h>

#include "trainer/inspect/kinds.h"
#include "trainer/report.h"

typedef struct record_file {
    const char *path;
    FILE *file;
    size_t offset, line; /* of the record that was read last */
} record_file;

/* What is counted and remembered while the lines go by. Records are kept, their fields are borrowed. */
typedef struct tally {
    json_int_t attempts, skips, warnings;
    json_t *run, *update, *evaluation, *end;
} tally;

static hstep_status fail(const record_file *file, const char *reason, hstep_error *error) {
    *error = (hstep_error){.status = HSTEP_ERROR_INPUT_FILE};
    snprintf(error->message, sizeof error->message, "record file '%.160s', byte offset %zu, line %zu: %.100s",
             file->path, file->offset, file->line, reason);
    return error->status;
}

static bool recognizes(const hs_inspection *inspection) {
    static const char start[] = "{\"schema\":\"halfstep.records/";
    const size_t length = strlen(inspection->path), size = sizeof start - 1;
    if (length >= 6 && strcmp(inspection->path + length - 6, ".jsonl") == 0)
        return true;
    return inspection->head_size >= size && memcmp(inspection->head, start, size) == 0;
}

static const char *text_of(const json_t *record, const char *name) {
    const char *text = json_string_value(json_object_get(record, name));
    return text != NULL ? text : "";
}

static void keep(json_t **place, json_t *record) {
    json_decref(*place);
    *place = json_incref(record);
}

static hstep_status count(const record_file *file, json_t *record, tally *t, hstep_error *error) {
    const char *kind = text_of(record, "record");
    if (strcmp(text_of(record, "schema"), HSTEP_RECORDS_SCHEMA) != 0)
        return fail(file, "its schema is not " HSTEP_RECORDS_SCHEMA, error);
    if ((strcmp(kind, "run") == 0) != (t->run == NULL))
        return fail(file, "a run record is the first, and there is one", error);
    if (t->end != NULL)
        return fail(file, "nothing follows an end record", error);
    if (strcmp(kind, "run") == 0) {
        keep(&t->run, record);
    } else if (strcmp(kind, "update") == 0) {
        ++t->attempts;
        t->skips += strcmp(text_of(record, "outcome"), "skipped") == 0;
        keep(&t->update, record);
    } else if (strcmp(kind, "evaluation") == 0) {
        keep(&t->evaluation, record);
    } else if (strcmp(kind, "warning") == 0) {
        ++t->warnings;
    } else if (strcmp(kind, "end") == 0) {
        keep(&t->end, record);
    }
    return HSTEP_OK;
}

static hstep_status read_line(record_file *file, const char *line, size_t size, tally *t, hstep_error *error) {
    if (line[size - 1] != '\n')
        return fail(file, "the line has no end: the file is cut short", error);
    json_error_t mistake;
    json_t *record = json_loadb(line, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &mistake);
    if (record == NULL) {
        file->offset += (size_t)(mistake.position > 0 ? mistake.position : 0);
        return fail(file, mistake.text, error);
    }
    const hstep_status status = count(file, record, t, error);
    json_decref(record);
    return status;
}

static hstep_status read_lines(record_file *file, tally *t, hstep_error *error) {
    char *line = NULL;
    size_t room = 0, size = 0;
    hstep_status status = HSTEP_OK;
    errno = 0;
    for (ssize_t got; status == HSTEP_OK && (got = getline(&line, &room, file->file)) > 0; errno = 0) {
        file->offset += size;
        size = (size_t)got;
        ++file->line;
        status = read_line(file, line, size, t, error);
    }
    const int reason = errno;
    free(line);
    if (status == HSTEP_OK && reason == ENOMEM)
        return hs_no_memory(error);
    if (status == HSTEP_OK && ferror(file->file))
        return fail(file, strerror(reason), error);
    return status == HSTEP_OK && t->run == NULL ? fail(file, "there is no record", error) : status;
}

/* A field that the record lacks becomes null. */
static void copy(json_t *found, const char *name, const json_t *record, const char *field) {
    json_t *value = json_object_get(record, field);
    json_object_set_new(found, name, value != NULL ? json_incref(value) : json_null());
}

static void add_run(json_t *found, const json_t *run) {
    const json_t *model = json_object_get(run, "model"), *data = json_array_get(json_object_get(run, "data"), 0);
    copy(found, "version", run, "version");
    copy(found, "precision", run, "precision");
    copy(found, "parameters", model, "parameters");
    copy(found, "vocabulary", model, "vocabulary");
    copy(found, "backend", run, "backend");
    copy(found, "device", run, "device");
    copy(found, "data", data, "name");
    copy(found, "training_tokens", data, "training_tokens");
    copy(found, "data_checksum", data, "checksum");
    copy(found, "planned_steps", json_object_get(run, "configuration"), "steps");
}

/* A run without an end record goes on, or was killed: its outcome is null. */
static void describe_run(const tally *t, json_t *found) {
    add_run(found, t->run);
    json_object_set_new(found, "attempts", json_integer(t->attempts));
    json_object_set_new(found, "applied", json_integer(t->attempts - t->skips));
    json_object_set_new(found, "skips", json_integer(t->skips));
    json_object_set_new(found, "warnings", json_integer(t->warnings));
    copy(found, "last_loss", t->update, "loss");
    copy(found, "last_loss_scale", t->update, "next_loss_scale");
    copy(found, "last_evaluation_step", t->evaluation, "step");
    copy(found, "last_evaluation_loss", t->evaluation, "loss");
    copy(found, "outcome", t->end, "outcome");
    copy(found, "message", t->end, "message");
    copy(found, "weights_checksum", t->end, "weights_checksum");
}

static hstep_status describe(const hs_inspection *inspection, json_t *found, hstep_error *error) {
    record_file file = {.path = inspection->path, .file = fopen(inspection->path, "rb")};
    if (file.file == NULL)
        return fail(&file, strerror(errno), error);
    tally t = {.attempts = 0};
    const hstep_status status = read_lines(&file, &t, error);
    fclose(file.file);
    if (status == HSTEP_OK)
        describe_run(&t, found);
    json_decref(t.run);
    json_decref(t.update);
    json_decref(t.evaluation);
    json_decref(t.end);
    return status;
}

const hs_inspect_kind hs_inspect_records = {"records", recognizes, describe};
