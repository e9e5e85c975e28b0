/* A run in a checkpoint: saving, and going on from one. */
#include "trainer/checkpoints/save.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <halfstep/checkpoint.h>

#include "trainer/checkpoints/read.h"
#include "trainer/checkpoints/sections.h"
#include "trainer/train/watching/clock.h"

/* ---- Saving ---- */

static hstep_status write_checkpoint(hs_run *run, const hs_sections *sections, hstep_error *error) {
    const double start = hs_now();
    char path[HS_PATH_ROOM];
    const hstep_checkpoint_extras extras = {sections->items, sections->count, run->held_out_loss};
    hstep_status status = hstep_checkpoint_path(run->folder, run->tally.steps, path, sizeof path, error);
    if (status == HSTEP_OK)
        status = hstep_checkpoint_save(run->trainer, path, &extras, error);
    if (status != HSTEP_OK)
        return status;
    const hstep_checkpoint_record record = {.step = run->tally.steps, .path = path, .seconds = hs_now() - start};
    run->saved_attempts = run->tally.attempts;
    run->saved_step = run->tally.steps;
    run->saved = true;
    memcpy(run->last_checkpoint, path, sizeof run->last_checkpoint);
    hs_progress_pause(&run->progress, record.seconds);
    status = hstep_records_write_checkpoint(run->records, &record, error);
    size_t removed = 0;
    return status == HSTEP_OK ? hstep_checkpoint_keep(run->folder, run->options->keep_checkpoints, 1, &removed, error)
                              : status;
}

hstep_status hs_run_save(hs_run *run, bool finished, hstep_error *error) {
    if (run->folder == NULL || (run->saved && run->saved_attempts == run->tally.attempts && !finished))
        return HSTEP_OK;
    hs_sections sections;
    hstep_status status = hs_sections_collect(run, finished, &sections, error);
    if (status == HSTEP_OK)
        status = write_checkpoint(run, &sections, error);
    hs_sections_free(&sections);
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

static hstep_status restore_position(hs_run *run, const hstep_tensor_file *file, hstep_error *error) {
    void *text;
    size_t size;
    hstep_data_position position = {0};
    hstep_status status = hs_section_read(file, "data", &text, &size, error);
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

static bool read_place(const json_t *stored, hs_records_place *place) {
    const char *print = json_string_value(json_object_get(stored, "records_print"));
    if (print == NULL || strlen(print) >= sizeof place->print)
        return false;
    memcpy(place->print, print, strlen(print) + 1);
    return get_count(stored, "records_bytes", &place->bytes);
}

static bool read_run(const json_t *stored, hs_run *run, hs_records_place *place) {
    hs_tally *t = &run->tally;
    run->warned = json_is_true(json_object_get(stored, "warned"));
    run->finished = json_is_true(json_object_get(stored, "finished"));
    return get_count(stored, "steps", &t->steps) && get_count(stored, "attempts", &t->attempts) &&
           get_count(stored, "skipped", &t->skipped) && get_count(stored, "skipped_in_row", &t->skipped_in_row) &&
           get_count(stored, "tokens", &t->tokens) && get_count(stored, "correct", &run->correct) &&
           read_place(stored, place) && read_overflows(json_object_get(stored, "overflows"), t) &&
           t->steps == hstep_trainer_optimizer_step(run->trainer);
}

static hstep_status restore_run(hs_run *run, const hstep_tensor_file *file, hs_records_place *place,
                                hstep_error *error) {
    void *text;
    size_t size;
    const hstep_status status = hs_section_read(file, "run", &text, &size, error);
    json_t *stored = status == HSTEP_OK ? json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL) : NULL;
    const bool right = stored != NULL && read_run(stored, run, place);
    json_decref(stored);
    free(text);
    return status == HSTEP_OK && !right ? damaged(run, "\"run\"", error) : status;
}

/* Under the name of another step it would pass for the newest of its folder, and newer ones be taken for old. */
static hstep_status check_name(const hs_run *run, hstep_error *error) {
    char path[HS_PATH_ROOM];
    const hstep_status status = hstep_checkpoint_path(run->options->out, run->tally.steps, path, sizeof path, error);
    if (status != HSTEP_OK || strcmp(path, run->options->resumed.path) == 0)
        return status;
    *error = (hstep_error){.status = HSTEP_ERROR_INPUT_FILE};
    snprintf(error->message, sizeof error->message,
             "checkpoint '%.160s' is that of step %" PRIu64 ": give it the name '%.160s' again",
             run->options->resumed.path, run->tally.steps, path);
    return error->status;
}

static hstep_status restore(hs_run *run, const hstep_tensor_file *file, hs_records_place *place, hstep_error *error) {
    hstep_checkpoint_state state;
    hstep_status status = hstep_checkpoint_read_state(file, &state, error);
    if (status == HSTEP_OK)
        status = restore_position(run, file, error);
    if (status == HSTEP_OK)
        status = hstep_checkpoint_restore(run->trainer, file, run->options->allow_changes, error);
    if (status == HSTEP_OK)
        status = restore_run(run, file, place, error);
    if (status == HSTEP_OK)
        status = check_name(run, error);
    if (status == HSTEP_OK)
        run->held_out_loss = state.held_out_loss;
    run->saved_attempts = run->tally.attempts;
    run->saved_step = run->tally.steps;
    run->saved = status == HSTEP_OK;
    memcpy(run->last_checkpoint, run->options->resumed.path, sizeof run->last_checkpoint);
    return status;
}

hstep_status hs_run_restore(hs_run *run, hs_records_place *place, hstep_error *error) {
    hstep_tensor_file *file = NULL;
    hstep_status status = hstep_tensor_file_open(run->options->resumed.path, &file, error);
    if (status == HSTEP_OK)
        status = restore(run, file, place, error);
    hstep_tensor_file_close(file);
    return status;
}
