/*
 * Sections of a checkpoint: "configuration" (every option), "data" (position in the data, and what the data is),
 * "levers" (what computed), and "run" (counts that stand in records, and how many bytes of records there are).
 */
#include "trainer/checkpoints/save.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <halfstep/checkpoint.h>

#include "trainer/checkpoints/stored.h"
#include "trainer/text/sample.h"
#include "trainer/train/clock.h"

enum { CONFIGURATION, DATA, LEVERS, RUN, SECTIONS };

/* ---- Saving ---- */

static json_t *overflows_as_json(const hs_tally *tally) {
    json_t *list = json_array();
    for (size_t i = 0; i < tally->overflow_count; ++i)
        if (json_array_append_new(list, json_pack("{s:s, s:I}", "operation", tally->overflows[i].operation, "count",
                                                  (json_int_t)tally->overflows[i].count)) != 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static json_t *run_as_json(const hs_run *run, bool finished) {
    const hs_tally *t = &run->tally;
    return json_pack("{s:b, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "finished", finished, "warned", run->warned,
                     "steps", (json_int_t)t->steps, "attempts", (json_int_t)t->attempts, "skipped",
                     (json_int_t)t->skipped, "skipped_in_row", (json_int_t)t->skipped_in_row, "tokens",
                     (json_int_t)t->tokens, "correct", (json_int_t)run->correct, "records_bytes",
                     (json_int_t)hstep_records_size(run->records), "overflows", overflows_as_json(t));
}

static bool put_json(json_t *value, const char *name, hstep_section *section) {
    char *text = value != NULL ? json_dumps(value, JSON_REAL_PRECISION(17)) : NULL;
    json_decref(value);
    *section = (hstep_section){name, text, text != NULL ? strlen(text) : 0};
    return text != NULL;
}

static hstep_status put_position(const hs_run *run, hstep_section *section, hstep_error *error) {
    size_t size = 0;
    hstep_status status = hstep_dataset_save_position(run->dataset, &run->position, NULL, &size, error);
    char *text = status == HSTEP_OK ? malloc(size + 1) : NULL;
    if (status == HSTEP_OK && text == NULL)
        return hs_no_memory(error);
    if (status == HSTEP_OK)
        status = hstep_dataset_save_position(run->dataset, &run->position, text, &size, error);
    *section = (hstep_section){"data", text, size};
    return status;
}

static hstep_status write_checkpoint(hs_run *run, const hstep_section *sections, hstep_error *error) {
    const double start = hs_now();
    char path[HS_PATH_ROOM];
    const hstep_checkpoint_extras extras = {sections, SECTIONS, run->held_out_loss};
    hstep_status status = hstep_checkpoint_path(run->folder, run->tally.steps, path, sizeof path, error);
    if (status == HSTEP_OK)
        status = hstep_checkpoint_save(run->trainer, path, &extras, error);
    if (status != HSTEP_OK)
        return status;
    const hstep_checkpoint_record record = {.step = run->tally.steps, .path = path, .seconds = hs_now() - start};
    run->saved_attempts = run->tally.attempts;
    run->saved = true;
    hs_progress_pause(&run->progress, record.seconds);
    status = hstep_records_write_checkpoint(run->records, &record, error);
    size_t removed = 0;
    return status == HSTEP_OK ? hstep_checkpoint_keep(run->folder, run->options->keep_checkpoints, 1, &removed, error)
                              : status;
}

hstep_status hs_run_save(hs_run *run, bool finished, hstep_error *error) {
    if (run->folder == NULL || (run->saved && run->saved_attempts == run->tally.attempts && !finished))
        return HSTEP_OK;
    hstep_section sections[SECTIONS] = {{0}};
    hstep_status status = put_position(run, &sections[DATA], error);
    if (status == HSTEP_OK &&
        (!put_json(hs_stored_configuration(run->options), "configuration", &sections[CONFIGURATION]) ||
         !put_json(run_as_json(run, finished), "run", &sections[RUN])))
        status = hs_no_memory(error);
    const char *levers = hstep_context_lever_set(run->context);
    sections[LEVERS] = (hstep_section){"levers", strdup(levers), strlen(levers)};
    if (status == HSTEP_OK && sections[LEVERS].data == NULL)
        status = hs_no_memory(error);
    if (status == HSTEP_OK)
        status = write_checkpoint(run, sections, error);
    for (size_t i = 0; i < SECTIONS; ++i)
        free((void *)(uintptr_t)sections[i].data);
    return status;
}

/* ---- Restoring ---- */

static hstep_status damaged(const hs_run *run, const char *section, hstep_error *error) {
    *error = (hstep_error){.status = HSTEP_ERROR_INPUT_FILE};
    snprintf(error->message, sizeof error->message,
             "checkpoint '%.200s': its section %s is not as trainer train writes it", run->options->resumed.path,
             section);
    return error->status;
}

static hstep_status read_section(const hstep_tensor_file *file, const char *name, char **text, size_t *size,
                                 hstep_error *error) {
    hstep_status status = hstep_checkpoint_section(file, name, NULL, size, error);
    if (status != HSTEP_OK)
        return status;
    *text = malloc(*size + 1);
    return *text != NULL ? hstep_checkpoint_section(file, name, *text, size, error) : hs_no_memory(error);
}

static hstep_status restore_position(hs_run *run, const hstep_tensor_file *file, hstep_error *error) {
    char *text = NULL;
    size_t size = 0;
    hstep_data_position position = {0};
    hstep_status status = read_section(file, "data", &text, &size, error);
    if (status == HSTEP_OK)
        status = hstep_dataset_restore_position(run->dataset, text, size, &position, error);
    free(text);
    /* Other data begin at their beginning. */
    if (status == HSTEP_ERROR_INPUT_FILE && run->options->allow_changes)
        return HSTEP_OK;
    if (status == HSTEP_OK)
        run->position.windows = position.windows;
    return status;
}

/* False where a member is missing. */
static bool get_count(const json_t *object, const char *name, uint64_t *count) {
    const json_t *value = json_object_get(object, name);
    *count = (uint64_t)json_integer_value(value);
    return json_is_integer(value) && json_integer_value(value) >= 0;
}

static bool read_overflows(const json_t *list, hs_tally *tally) {
    size_t i;
    const json_t *item;
    json_array_foreach(list, i, item) {
        uint64_t count;
        const char *operation = json_string_value(json_object_get(item, "operation"));
        if (operation == NULL || !get_count(item, "count", &count) || !hs_tally_restore(tally, operation, count))
            return false;
    }
    return json_is_array(list);
}

static bool read_run(const json_t *stored, hs_run *run, uint64_t *records_bytes) {
    hs_tally *t = &run->tally;
    run->warned = json_is_true(json_object_get(stored, "warned"));
    run->finished = json_is_true(json_object_get(stored, "finished"));
    return get_count(stored, "steps", &t->steps) && get_count(stored, "attempts", &t->attempts) &&
           get_count(stored, "skipped", &t->skipped) && get_count(stored, "skipped_in_row", &t->skipped_in_row) &&
           get_count(stored, "tokens", &t->tokens) && get_count(stored, "correct", &run->correct) &&
           get_count(stored, "records_bytes", records_bytes) &&
           read_overflows(json_object_get(stored, "overflows"), t) &&
           t->steps == hstep_trainer_optimizer_step(run->trainer);
}

static hstep_status restore_run(hs_run *run, const hstep_tensor_file *file, uint64_t *records_bytes,
                                hstep_error *error) {
    char *text = NULL;
    size_t size = 0;
    const hstep_status status = read_section(file, "run", &text, &size, error);
    json_t *stored = status == HSTEP_OK ? json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL) : NULL;
    const bool right = stored != NULL && read_run(stored, run, records_bytes);
    json_decref(stored);
    free(text);
    return status == HSTEP_OK && !right ? damaged(run, "\"run\"", error) : status;
}

static hstep_status restore(hs_run *run, const hstep_tensor_file *file, uint64_t *records_bytes, hstep_error *error) {
    hstep_checkpoint_state state;
    hstep_status status = hstep_checkpoint_read_state(file, &state, error);
    if (status == HSTEP_OK)
        status = restore_position(run, file, error);
    if (status == HSTEP_OK)
        status = hstep_checkpoint_restore(run->trainer, file, run->options->allow_changes, error);
    if (status == HSTEP_OK)
        status = restore_run(run, file, records_bytes, error);
    if (status == HSTEP_OK)
        run->held_out_loss = state.held_out_loss;
    run->saved_attempts = run->tally.attempts;
    run->saved = status == HSTEP_OK;
    return status;
}

hstep_status hs_run_restore(hs_run *run, uint64_t *records_bytes, hstep_error *error) {
    hstep_tensor_file *file = NULL;
    hstep_status status = hstep_tensor_file_open(run->options->resumed.path, &file, error);
    if (status == HSTEP_OK)
        status = restore(run, file, records_bytes, error);
    hstep_tensor_file_close(file);
    return status;
}
