/* The kinds of records, one function each: what docs/records.md lists, in its order. */
#include <string.h>

#include "engine/error.h"
#include "engine/records/trace.h"
#include "engine/records/writer.h"

#include <halfstep/halfstep.h>

#define CHECK_POINTERS(records, content, error)                                                                        \
    HS_RETURN_IF((records) == NULL || (content) == NULL, error, HSTEP_ERROR_ARGUMENT, "records: an argument is NULL")

/* A list that a record points to. */
#define CHECK_LIST(list, count, error)                                                                                 \
    HS_RETURN_IF((list) == NULL && (count) > 0, error, HSTEP_ERROR_ARGUMENT,                                           \
                 "records: " #list " is NULL and has a length")

/* Under its own name, or another one. */
static void put_setting(hs_record *record, json_t *object, const char *name, const hstep_setting *setting) {
    switch (setting->kind) {
    case HSTEP_SETTING_TEXT:
        hs_put_text(record, object, name, setting->text);
        break;
    case HSTEP_SETTING_NUMBER:
        hs_put_number(record, object, name, setting->number);
        break;
    case HSTEP_SETTING_INTEGER:
        hs_put_integer(record, object, name, setting->integer);
        break;
    case HSTEP_SETTING_BOOLEAN:
        hs_put_boolean(record, object, name, setting->boolean != 0);
        break;
    }
}

static void put_model(hs_record *record, const hstep_run_record *run) {
    json_t *model = hs_put_object(record, record->root, "model");
    const hstep_decoder_config *decoder = run->decoder;
    hs_put_text(record, model, "kind", decoder != NULL ? "decoder" : "graph");
    if (decoder != NULL) {
        hs_put_integer(record, model, "vocabulary", decoder->vocabulary);
        hs_put_integer(record, model, "width", decoder->width);
        hs_put_integer(record, model, "layers", decoder->layers);
        hs_put_integer(record, model, "heads", decoder->heads);
        hs_put_integer(record, model, "kv_heads", decoder->kv_heads != 0 ? decoder->kv_heads : decoder->heads);
        hs_put_integer(record, model, "feed_forward", decoder->feed_forward);
        hs_put_number(record, model, "rotary_base", decoder->rotary_base);
        hs_put_number(record, model, "rms_epsilon", decoder->rms_epsilon);
    }
    hs_put_integer(record, model, "parameter_tensors", run->parameter_tensors);
    hs_put_integer(record, model, "parameters", run->parameters);
}

static void put_dtypes(hs_record *record, hstep_precision precision) {
    static const char *const operands[] = {"f64", "fp16", "bf16"};
    json_t *dtypes = hs_put_object(record, record->root, "dtypes");
    hs_put_text(record, dtypes, "matmul_operands", operands[precision]);
    hs_put_text(record, dtypes, "matmul_accumulator", precision == HSTEP_PRECISION_F64 ? "f64" : "f32");
    hs_put_text(record, dtypes, "matmul_result", operands[precision]);
    hs_put_text(record, dtypes, "master_weights", "f64");
    hs_put_text(record, dtypes, "adamw_moments", "f64");
}

static void put_rules(hs_record *record, const hstep_decoder_config *decoder) {
    if (decoder == NULL || decoder->rule_count == 0)
        return;
    json_t *array = hs_put_array(record, record->root, "precision_for");
    for (size_t i = 0; i < decoder->rule_count; i++) {
        json_t *rule = hs_put_element(record, array);
        hs_put_text(record, rule, "operations", decoder->rules[i].pattern);
        hs_put_text(record, rule, "precision", hstep_precision_name(decoder->rules[i].precision));
    }
}

/* Whether no gated lever is active for any precision that the run's products may have. */
static bool keeps_bits(const hstep_run_record *run) {
    bool exact = hstep_levers_exact(run->levers, run->lever_count, run->precision) != 0;
    for (size_t i = 0; run->decoder != NULL && i < run->decoder->rule_count; i++)
        exact = exact && hstep_levers_exact(run->levers, run->lever_count, run->decoder->rules[i].precision);
    return exact;
}

static void put_gate(hs_record *record, json_t *lever, const hstep_lever_gate *gate) {
    if (gate == NULL) {
        hs_put_null(record, lever, "gate");
        return;
    }
    json_t *object = hs_put_object(record, lever, "gate");
    const hstep_gate_case *worst = &gate->worst;
    hs_put_text(record, object, "precision", hstep_precision_name(gate->precision));
    hs_put_boolean(record, object, "flushes_subnormals", gate->flushes_subnormals != 0);
    hs_put_boolean(record, object, "passed", worst->passed != 0);
    hs_put_number(record, object, "max_abs", worst->max_abs);
    hs_put_number(record, object, "max_abs_limit", worst->max_abs_limit);
    hs_put_number(record, object, "mean_rel", worst->mean_rel);
    hs_put_number(record, object, "mean_rel_limit", worst->mean_rel_limit);
    hs_put_number(record, object, "max_rel", worst->max_rel);
    hs_put_integer(record, object, "cells", worst->cells);
    hs_put_integer(record, object, "cells_beyond", worst->cells_beyond);
    hs_put_integer(record, object, "cells_wrong", worst->cells_wrong);
    hs_put_number(record, object, "speed", gate->speed);
    hs_put_boolean(record, object, "from_cache", gate->from_cache != 0);
}

static void put_levers(hs_record *record, const hstep_lever *levers, size_t count) {
    json_t *array = hs_put_array(record, record->root, "levers");
    for (size_t i = 0; i < count; i++) {
        json_t *lever = hs_put_element(record, array);
        hs_put_text(record, lever, "name", levers[i].name);
        hs_put_boolean(record, lever, "exact", levers[i].exact != 0);
        hs_put_text(record, lever, "state", hstep_lever_state_name(levers[i].state));
        hs_put_text(record, lever, "reason", levers[i].reason);
        put_gate(record, lever, levers[i].gate);
    }
}

static void put_data(hs_record *record, const hstep_data_source *sources, size_t count) {
    json_t *array = hs_put_array(record, record->root, "data");
    for (size_t i = 0; i < count; i++) {
        json_t *source = hs_put_element(record, array);
        hs_put_text(record, source, "name", sources[i].name);
        hs_put_integer(record, source, "tokens", sources[i].tokens);
        hs_put_integer(record, source, "training_tokens", sources[i].training_tokens);
        hs_put_integer(record, source, "evaluation_tokens", sources[i].evaluation_tokens);
        hs_put_checksum(record, source, "checksum", sources[i].checksum);
        hs_put_number(record, source, "unigram_loss", sources[i].unigram_loss);
    }
}

static hstep_status check_settings(const hstep_setting *settings, size_t count, hstep_error *error) {
    for (size_t i = 0; i < count; i++) {
        HS_RETURN_IF(settings[i].name == NULL, error, HSTEP_ERROR_ARGUMENT, "records: setting %zu has no name", i);
        HS_RETURN_IF((unsigned)settings[i].kind > HSTEP_SETTING_BOOLEAN, error, HSTEP_ERROR_ARGUMENT,
                     "records: setting '%.100s' is of unknown kind %d", settings[i].name, (int)settings[i].kind);
    }
    return HSTEP_OK;
}

hstep_status hstep_records_write_run(hstep_records *records, const hstep_run_record *run, hstep_error *error) {
    CHECK_POINTERS(records, run, error);
    HS_RETURN_IF((unsigned)run->precision > HSTEP_PRECISION_BF16, error, HSTEP_ERROR_ARGUMENT,
                 "run record: unknown precision %d", (int)run->precision);
    CHECK_LIST(run->settings, run->setting_count, error);
    CHECK_LIST(run->levers, run->lever_count, error);
    CHECK_LIST(run->data, run->data_count, error);
    if (run->decoder != NULL)
        CHECK_LIST(run->decoder->rules, run->decoder->rule_count, error);
    HS_FORWARD(check_settings(run->settings, run->setting_count, error));
    hs_record record = hs_record_begin("run");
    json_t *root = record.root;
    hs_put_text(&record, root, "version", hstep_version());
    hs_put_text(&record, root, "precision", hstep_precision_name(run->precision));
    put_rules(&record, run->decoder);
    json_t *configuration = hs_put_object(&record, root, "configuration");
    for (size_t i = 0; i < run->setting_count; i++)
        put_setting(&record, configuration, run->settings[i].name, &run->settings[i]);
    put_model(&record, run);
    put_dtypes(&record, run->precision);
    hs_put_text(&record, root, "backend", run->backend);
    hs_put_text(&record, root, "device", run->device);
    hs_put_integer(&record, root, "threads", run->threads);
    put_levers(&record, run->levers, run->lever_count);
    hs_put_boolean(&record, root, "reference_bits", keeps_bits(run));
    put_data(&record, run->data, run->data_count);
    hs_put_integer(&record, root, "seed", run->seed);
    return hs_records_append(records, &record, error);
}

static void put_overflow(hs_record *record, const hstep_overflow *overflow) {
    json_t *object = hs_put_object(record, record->root, "overflow");
    hs_put_text(record, object, "operation", overflow->operation);
    hs_put_text(record, object, "tensor", overflow->tensor);
    hs_put_text(record, object, "phase", overflow->phase);
    hs_put_text(record, object, "kind", overflow->kind);
    hs_put_integer(record, object, "index", overflow->index);
}

/*
 * A skip before the norm has no norm, which is null alone; a norm that was formed and is not finite is the overflow
 * itself, and null with its companion.
 */
static void put_gradient_norm(hs_record *record, const hstep_update *update) {
    const bool formed = update->outcome == HSTEP_APPLIED || strcmp(update->overflow.operation, "gradient_norm") == 0;
    if (formed)
        hs_put_number(record, record->root, "gradient_norm", update->gradient_norm);
    else
        hs_put_null(record, record->root, "gradient_norm");
}

static void put_work(hs_record *record, const hstep_work *work) {
    json_t *object = hs_put_object(record, record->root, "work");
    hs_put_integer(record, object, "bytes_up", work->bytes_up);
    hs_put_integer(record, object, "bytes_down", work->bytes_down);
    hs_put_integer(record, object, "submissions", work->submissions);
    hs_put_integer(record, object, "dispatches", work->dispatches);
    hs_put_integer(record, object, "barriers", work->barriers);
}

hstep_status hstep_records_write_update(hstep_records *records, const hstep_update_record *written,
                                        hstep_error *error) {
    CHECK_POINTERS(records, written, error);
    const hstep_update *update = written->update;
    HS_RETURN_IF(update == NULL, error, HSTEP_ERROR_ARGUMENT, "update record: there is no update");
    hs_record record = hs_record_begin("update");
    json_t *root = record.root;
    hs_put_integer(&record, root, "step", update->step);
    hs_put_integer(&record, root, "attempt", update->attempt);
    hs_put_text(&record, root, "outcome", update->outcome == HSTEP_APPLIED ? "applied" : "skipped");
    hs_put_number(&record, root, "loss", update->loss);
    hs_put_number(&record, root, "loss_scale", update->loss_scale);
    hs_put_number(&record, root, "next_loss_scale", update->next_loss_scale);
    hs_put_integer(&record, root, "finite_updates", update->finite_updates);
    put_gradient_norm(&record, update);
    hs_put_boolean(&record, root, "clipped", update->clipped != 0);
    hs_put_number(&record, root, "learning_rate", update->learning_rate);
    hs_put_integer(&record, root, "optimizer_step", update->optimizer_step);
    hs_put_integer(&record, root, "tokens", update->tokens);
    hs_put_integer(&record, root, "threads", update->threads);
    hs_put_number(&record, root, "seconds", written->seconds);
    hs_put_number(&record, root, "tokens_per_second", (double)update->tokens / written->seconds);
    if (update->outcome == HSTEP_SKIPPED)
        put_overflow(&record, &update->overflow);
    if (written->trace != NULL)
        hs_put_trace(&record, written->trace);
    if (written->work != NULL)
        put_work(&record, written->work);
    return hs_records_append(records, &record, error);
}

hstep_status hstep_records_write_evaluation(hstep_records *records, const hstep_evaluation_record *evaluation,
                                            hstep_error *error) {
    CHECK_POINTERS(records, evaluation, error);
    hs_record record = hs_record_begin("evaluation");
    hs_put_integer(&record, record.root, "step", evaluation->step);
    hs_put_number(&record, record.root, "loss", evaluation->loss);
    hs_put_integer(&record, record.root, "tokens", evaluation->tokens);
    hs_put_number(&record, record.root, "seconds", evaluation->seconds);
    return hs_records_append(records, &record, error);
}

hstep_status hstep_records_write_sample(hstep_records *records, const hstep_sample_record *sample, hstep_error *error) {
    CHECK_POINTERS(records, sample, error);
    HS_RETURN_IF((sample->prompt == NULL && sample->prompt_size > 0) || (sample->text == NULL && sample->text_size > 0),
                 error, HSTEP_ERROR_ARGUMENT, "sample record: a text is NULL and has a size");
    hs_record record = hs_record_begin("sample");
    hs_put_integer(&record, record.root, "step", sample->step);
    hs_put_bytes(&record, record.root, "prompt", sample->prompt, sample->prompt_size);
    hs_put_bytes(&record, record.root, "text", sample->text, sample->text_size);
    return hs_records_append(records, &record, error);
}

hstep_status hstep_records_write_warning(hstep_records *records, const hstep_warning_record *warning,
                                         hstep_error *error) {
    CHECK_POINTERS(records, warning, error);
    CHECK_LIST(warning->overflows, warning->overflow_count, error);
    hs_record record = hs_record_begin("warning");
    hs_put_integer(&record, record.root, "step", warning->step);
    hs_put_text(&record, record.root, "kind", warning->kind);
    hs_put_text(&record, record.root, "message", warning->message);
    hs_put_integer(&record, record.root, "attempts", warning->attempts);
    hs_put_integer(&record, record.root, "skipped", warning->skipped);
    json_t *overflows = hs_put_array(&record, record.root, "overflows");
    for (size_t i = 0; i < warning->overflow_count; i++) {
        json_t *overflow = hs_put_element(&record, overflows);
        hs_put_text(&record, overflow, "operation", warning->overflows[i].operation);
        hs_put_integer(&record, overflow, "count", warning->overflows[i].count);
    }
    return hs_records_append(records, &record, error);
}

hstep_status hstep_records_write_checkpoint(hstep_records *records, const hstep_checkpoint_record *checkpoint,
                                            hstep_error *error) {
    CHECK_POINTERS(records, checkpoint, error);
    hs_record record = hs_record_begin("checkpoint");
    hs_put_integer(&record, record.root, "step", checkpoint->step);
    hs_put_text(&record, record.root, "path", checkpoint->path);
    hs_put_number(&record, record.root, "seconds", checkpoint->seconds);
    return hs_records_append(records, &record, error);
}

hstep_status hstep_records_write_dump(hstep_records *records, const hstep_dump_record *dump, hstep_error *error) {
    CHECK_POINTERS(records, dump, error);
    hs_record record = hs_record_begin("dump");
    hs_put_integer(&record, record.root, "step", dump->step);
    hs_put_integer(&record, record.root, "attempt", dump->attempt);
    hs_put_text(&record, record.root, "path", dump->path);
    hs_put_number(&record, record.root, "seconds", dump->seconds);
    return hs_records_append(records, &record, error);
}

static void put_changes(hs_record *record, const hstep_setting_change *changes, size_t count) {
    json_t *array = hs_put_array(record, record->root, "changes");
    for (size_t i = 0; i < count; i++) {
        json_t *change = hs_put_element(record, array);
        hs_put_text(record, change, "option", changes[i].after.name);
        put_setting(record, change, "before", &changes[i].before);
        put_setting(record, change, "after", &changes[i].after);
    }
}

hstep_status hstep_records_write_resume(hstep_records *records, const hstep_resume_record *resume, hstep_error *error) {
    CHECK_POINTERS(records, resume, error);
    CHECK_LIST(resume->passed_over, resume->passed_over_count, error);
    CHECK_LIST(resume->changes, resume->change_count, error);
    for (size_t i = 0; i < resume->change_count; i++) {
        HS_FORWARD(check_settings(&resume->changes[i].before, 1, error));
        HS_FORWARD(check_settings(&resume->changes[i].after, 1, error));
    }
    hs_record record = hs_record_begin("resume");
    hs_put_integer(&record, record.root, "step", resume->step);
    hs_put_text(&record, record.root, "path", resume->path);
    json_t *list = hs_put_array(&record, record.root, "passed_over");
    for (size_t i = 0; i < resume->passed_over_count; i++)
        hs_put_text(&record, hs_put_element(&record, list), "reason", resume->passed_over[i]);
    put_changes(&record, resume->changes, resume->change_count);
    return hs_records_append(records, &record, error);
}

static void put_success(hs_record *record, const hstep_end_record *end) {
    if (end->questions == 0) {
        hs_put_null(record, record->root, "success");
        return;
    }
    json_t *success = hs_put_object(record, record->root, "success");
    hs_put_integer(record, success, "correct", end->correct);
    hs_put_integer(record, success, "questions", end->questions);
    hs_put_number(record, success, "rate", (double)end->correct / (double)end->questions);
}

hstep_status hstep_records_write_end(hstep_records *records, const hstep_end_record *end, hstep_error *error) {
    static const char *const outcomes[] = {"finished",    "diverged", "too-many-skips",
                                           "interrupted", "failed",   "time-limit"};
    CHECK_POINTERS(records, end, error);
    HS_RETURN_IF((unsigned)end->outcome > HSTEP_RUN_TIME_LIMIT, error, HSTEP_ERROR_ARGUMENT,
                 "end record: unknown outcome %d", (int)end->outcome);
    hs_record record = hs_record_begin("end");
    hs_put_text(&record, record.root, "outcome", outcomes[end->outcome]);
    hs_put_text(&record, record.root, "message", end->message);
    json_t *totals = hs_put_object(&record, record.root, "totals");
    hs_put_integer(&record, totals, "steps", end->steps);
    hs_put_integer(&record, totals, "attempts", end->attempts);
    hs_put_integer(&record, totals, "skipped", end->skipped);
    hs_put_integer(&record, totals, "tokens", end->tokens);
    hs_put_number(&record, totals, "seconds", end->seconds);
    if (end->weights_lost)
        hs_put_text(&record, record.root, "weights_checksum", NULL);
    else
        hs_put_checksum(&record, record.root, "weights_checksum", end->weights_checksum);
    put_success(&record, end);
    return hs_records_append(records, &record, error);
}
