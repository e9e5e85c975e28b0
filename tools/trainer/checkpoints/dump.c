#include "trainer/checkpoints/dump.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/checkpoints/sections.h"
#include "trainer/report.h"
#include "trainer/train/watching/clock.h"

static json_t *overflow_as_json(const hstep_overflow *overflow) {
    return json_pack("{s:s, s:s, s:s, s:s, s:I}", "operation", overflow->operation, "tensor", overflow->tensor, "phase",
                     overflow->phase, "kind", overflow->kind, "index", (json_int_t)overflow->index);
}

static json_t *attempt_as_json(const hs_run *run, const hstep_update *update) {
    const hs_options *o = run->options;
    return json_pack("{s:s, s:I, s:I, s:f, s:f, s:I, s:I, s:I, s:I, s:o}", "schema", HS_ATTEMPT_SCHEMA, "step",
                     (json_int_t)update->step, "attempt", (json_int_t)update->attempt, "loss", update->loss,
                     "loss_scale", update->loss_scale, "replicas", (json_int_t)o->replicas, "micro_batches",
                     (json_int_t)o->micro_batches, "sequences", (json_int_t)o->batch_size, "length",
                     (json_int_t)o->context, "overflow", overflow_as_json(&update->overflow));
}

static bool add_numbers(const hs_run *run, const int32_t *numbers, const char *name, hs_sections *sections) {
    const size_t size = run->window_count * run->batch_tokens * sizeof *numbers;
    void *copy = malloc(size);
    if (copy != NULL)
        memcpy(copy, numbers, size);
    return hs_sections_add(sections, name, copy, size);
}

static hstep_status collect(const hs_run *run, const hstep_update *update, hs_sections *sections, hstep_error *error) {
    const hstep_status status = hs_sections_collect(run, false, sections, error);
    if (status != HSTEP_OK)
        return status;
    const bool enough = hs_sections_add_json(sections, HS_SECTION_ATTEMPT, attempt_as_json(run, update)) &&
                        add_numbers(run, run->tokens, HS_SECTION_TOKENS, sections) &&
                        add_numbers(run, run->targets, HS_SECTION_TARGETS, sections);
    return enough ? HSTEP_OK : hs_no_memory(error);
}

static hstep_status save(hs_run *run, const hstep_update *update, const char *path, hstep_error *error) {
    hs_sections sections;
    hstep_status status = collect(run, update, &sections, error);
    const hstep_checkpoint_extras extras = {sections.items, sections.count, run->held_out_loss};
    if (status == HSTEP_OK)
        status = hstep_checkpoint_save(run->trainer, path, &extras, error);
    hs_sections_free(&sections);
    return status;
}

static hstep_status choose_path(const char *folder, const hstep_update *update, char *path, size_t size,
                                hstep_error *error) {
    const int length = snprintf(path, size, "%s/overflow-%08" PRIu64 "-%08" PRIu64 ".safetensors", folder, update->step,
                                update->attempt);
    if (length >= 0 && (size_t)length < size)
        return HSTEP_OK;
    *error = (hstep_error){.status = HSTEP_ERROR_ARGUMENT, .message = "the path of the run's folder is too long"};
    return error->status;
}

static hstep_status warn(hs_run *run, const hstep_error *reason, hstep_error *error) {
    hs_progress_say(&run->progress, "trainer: warning: a skipped attempt was not kept: %s", reason->message);
    const hstep_warning_record record = {.step = run->tally.steps,
                                         .kind = "overflow-dump",
                                         .message = reason->message,
                                         .attempts = run->tally.attempts,
                                         .skipped = run->tally.skipped,
                                         .overflows = run->tally.overflows,
                                         .overflow_count = run->tally.overflow_count};
    return hstep_records_write_warning(run->records, &record, error);
}

hstep_status hs_run_dump(hs_run *run, const hstep_update *update, hstep_error *error) {
    if (update->outcome != HSTEP_SKIPPED || run->dumps == run->options->dump_overflow)
        return HSTEP_OK;
    ++run->dumps;
    const double start = hs_now();
    char path[HS_PATH_ROOM];
    hstep_error reason = {0};
    hstep_status status = choose_path(run->folder, update, path, sizeof path, &reason);
    if (status == HSTEP_OK)
        status = save(run, update, path, &reason);
    hs_progress_pause(&run->progress, hs_now() - start);
    if (status != HSTEP_OK)
        return warn(run, &reason, error);
    hs_progress_say(&run->progress, "kept the attempt that was skipped: %s", path);
    const hstep_dump_record record = {update->step, update->attempt, path, hs_now() - start};
    return hstep_records_write_dump(run->records, &record, error);
}
