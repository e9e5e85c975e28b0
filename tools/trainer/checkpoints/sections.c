#include "trainer/checkpoints/sections.h"

#include <stdlib.h>
#include <string.h>

#include "trainer/checkpoints/continued.h"
#include "trainer/checkpoints/stored.h"
#include "trainer/report.h"

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
    const hs_records_place place = hs_records_here(run);
    return json_pack("{s:b, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:o}", "finished", finished, "warned",
                     run->warned, "steps", (json_int_t)t->steps, "attempts", (json_int_t)t->attempts, "skipped",
                     (json_int_t)t->skipped, "skipped_in_row", (json_int_t)t->skipped_in_row, "tokens",
                     (json_int_t)t->tokens, "correct", (json_int_t)run->correct, "records_bytes",
                     (json_int_t)place.bytes, "records_print", place.print, "overflows", overflows_as_json(t));
}

bool hs_sections_add(hs_sections *sections, const char *name, void *data, size_t size) {
    if (data != NULL)
        sections->items[sections->count++] = (hstep_section){name, data, size};
    return data != NULL;
}

bool hs_sections_add_json(hs_sections *sections, const char *name, json_t *value) {
    char *text = value != NULL ? json_dumps(value, JSON_REAL_PRECISION(17)) : NULL;
    json_decref(value);
    return text != NULL && hs_sections_add(sections, name, text, strlen(text));
}

static hstep_status add_position(const hs_run *run, hs_sections *sections, hstep_error *error) {
    size_t size = 0;
    hstep_status status = hstep_dataset_save_position(run->dataset, &run->position, NULL, &size, error);
    char *text = status == HSTEP_OK ? malloc(size + 1) : NULL;
    if (status == HSTEP_OK && text == NULL)
        return hs_no_memory(error);
    if (status == HSTEP_OK)
        status = hstep_dataset_save_position(run->dataset, &run->position, text, &size, error);
    if (status == HSTEP_OK)
        hs_sections_add(sections, "data", text, size);
    else
        free(text);
    return status;
}

hstep_status hs_sections_collect(const hs_run *run, bool finished, hs_sections *sections, hstep_error *error) {
    *sections = (hs_sections){.count = 0};
    if (!hs_sections_add_json(sections, "configuration", hs_stored_configuration(run->options)))
        return hs_no_memory(error);
    const hstep_status status = add_position(run, sections, error);
    if (status != HSTEP_OK)
        return status;
    const char *levers = hstep_context_lever_set(run->context);
    if (!hs_sections_add(sections, "levers", strdup(levers), strlen(levers)) ||
        !hs_sections_add_json(sections, "run", run_as_json(run, finished)))
        return hs_no_memory(error);
    return HSTEP_OK;
}

void hs_sections_free(hs_sections *sections) {
    for (size_t i = 0; i < sections->count; ++i)
        free((void *)(uintptr_t)sections->items[i].data);
}
