#include "trainer/replay/attempt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <halfstep/checkpoint.h>

#include "trainer/checkpoints/dump.h"
#include "trainer/checkpoints/read.h"
#include "trainer/checkpoints/stored.h"
#include "trainer/exit.h"
#include "trainer/model/build.h"
#include "trainer/model/load.h"
#include "trainer/options/places.h"
#include "trainer/report.h"

static int refuse(const hs_attempt *a, const char *why) {
    hs_report("'%s': %s", a->path, why);
    return HS_EXIT_INPUT;
}

static int refuse_section(const hs_attempt *a, const char *name) {
    hs_report("'%s': its section \"%s\" is not as trainer train writes it", a->path, name);
    return HS_EXIT_INPUT;
}

/* ---- What the file tells of the attempt ---- */

static bool get_count(const json_t *object, const char *name, uint64_t least, uint64_t *count) {
    const json_t *value = json_object_get(object, name);
    *count = (uint64_t)json_integer_value(value);
    return json_is_integer(value) && json_integer_value(value) >= (json_int_t)least;
}

static bool copy_text(const json_t *object, const char *name, char *text, size_t size) {
    const char *found = json_string_value(json_object_get(object, name));
    if (found == NULL || strlen(found) >= size)
        return false;
    memcpy(text, found, strlen(found) + 1);
    return true;
}

static bool read_overflow(const json_t *told, hstep_overflow *overflow) {
    overflow->phase = json_string_value(json_object_get(told, "phase"));
    overflow->kind = json_string_value(json_object_get(told, "kind"));
    return overflow->phase != NULL && overflow->kind != NULL && get_count(told, "index", 0, &overflow->index) &&
           copy_text(told, "operation", overflow->operation, sizeof overflow->operation) &&
           copy_text(told, "tensor", overflow->tensor, sizeof overflow->tensor);
}

/* Every batch has the same shape; its tokens stand behind those of the one before. */
typedef struct shape {
    uint64_t replicas, micro_batches, sequences, length;
} shape;

static bool read_told(hs_attempt *a, shape *s) {
    const char *schema = json_string_value(json_object_get(a->told, "schema"));
    a->loss_scale = json_real_value(json_object_get(a->told, "loss_scale"));
    return schema != NULL && strcmp(schema, HS_ATTEMPT_SCHEMA) == 0 && a->loss_scale >= 1 &&
           get_count(a->told, "step", 1, &a->step) && get_count(a->told, "attempt", 1, &a->attempt) &&
           get_count(a->told, "replicas", 1, &s->replicas) &&
           get_count(a->told, "micro_batches", 1, &s->micro_batches) &&
           get_count(a->told, "sequences", 1, &s->sequences) && get_count(a->told, "length", 1, &s->length) &&
           read_overflow(json_object_get(a->told, "overflow"), &a->overflow);
}

/* A section of one int32 for each row of the window. */
static int read_numbers(const hs_attempt *a, const hstep_tensor_file *file, const char *name, size_t count,
                        int32_t **numbers) {
    void *data;
    size_t size;
    hstep_error error = {0};
    if (hs_section_read(file, name, &data, &size, &error) != HSTEP_OK)
        return hs_report_error(&error);
    *numbers = data;
    return size == count * sizeof **numbers ? HS_EXIT_DONE : refuse_section(a, name);
}

static int read_window(hs_attempt *a, const hstep_tensor_file *file, const shape *s) {
    size_t rows = 0, count = 0;
    if (__builtin_mul_overflow(s->sequences, s->length, &rows) ||
        __builtin_mul_overflow(s->replicas, s->micro_batches, &a->window_count) ||
        __builtin_mul_overflow(rows, a->window_count, &count) || count > SIZE_MAX / sizeof *a->window)
        return refuse_section(a, HS_SECTION_ATTEMPT);
    int status = read_numbers(a, file, HS_SECTION_TOKENS, count, &a->tokens);
    if (status == HS_EXIT_DONE)
        status = read_numbers(a, file, HS_SECTION_TARGETS, count, &a->targets);
    if (status != HS_EXIT_DONE)
        return status;
    a->window = calloc(a->window_count, sizeof *a->window);
    if (a->window == NULL)
        return hs_report_no_memory();
    for (size_t i = 0; i < a->window_count; ++i)
        a->window[i] = (hstep_batch){.sequences = (size_t)s->sequences,
                                     .length = (size_t)s->length,
                                     .tokens = a->tokens + i * rows,
                                     .targets = a->targets + i * rows};
    return HS_EXIT_DONE;
}

static int read_attempt(hs_attempt *a, const hstep_tensor_file *file) {
    void *text;
    size_t size = 0;
    shape s = {0};
    hstep_error error = {0};
    if (hstep_checkpoint_section(file, HS_SECTION_ATTEMPT, NULL, &size, NULL) != HSTEP_OK)
        return refuse(a, "no attempt was kept in it: name a file that trainer train --dump-overflow wrote");
    if (hs_section_read(file, HS_SECTION_ATTEMPT, &text, &size, &error) != HSTEP_OK)
        return hs_report_error(&error);
    a->told = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
    free(text);
    return read_told(a, &s) ? read_window(a, file, &s) : refuse_section(a, HS_SECTION_ATTEMPT);
}

/* ---- What runs it again ---- */

static int choose(const hs_attempt_choices *choices, hs_options *options) {
    if (choices->backend >= 0) {
        options->backend = choices->backend;
        options->device = "any";
    }
    if (choices->device != NULL)
        options->device = choices->device;
    if (choices->threads != UINT64_MAX)
        options->threads = choices->threads;
    if (options->resumed.lever_set != NULL && choices->backend < 0)
        options->levers = options->resumed.lever_set;
    if (choices->levers != NULL)
        options->levers = choices->levers;
    return hs_options_check_device("replay", options->device, options->backend);
}

static hstep_status make_trainer(hs_attempt *a, size_t vocabulary, hstep_error *error) {
    const hs_options *o = &a->options;
    const hstep_decoder_config decoder = hs_decoder_of(o, vocabulary);
    const hstep_trainer_config config = hs_trainer_config_of(o);
    hstep_status status = hstep_model_create_decoder(a->context, &decoder, &a->model, error);
    return status == HSTEP_OK ? hstep_trainer_create(a->model, &config, &a->trainer, error) : status;
}

static hstep_status restore(hs_attempt *a, const hstep_tensor_file *file, size_t vocabulary, hstep_error *error) {
    hstep_scaler scaler = a->options.scaler;
    scaler.initial = a->loss_scale;
    hstep_status status = make_trainer(a, vocabulary, error);
    if (status == HSTEP_OK)
        status = hstep_checkpoint_restore(a->trainer, file, 0, error);
    return status == HSTEP_OK ? hstep_trainer_set_scaler(a->trainer, &scaler, error) : status;
}

static int build(hs_attempt *a, const hstep_tensor_file *file) {
    const size_t rows = a->window[0].sequences * a->window[0].length;
    size_t vocabulary = 0;
    hstep_error error = {0};
    const int status = hs_model_vocabulary(a->path, &vocabulary);
    if (status != HS_EXIT_DONE)
        return status;
    if (hs_context_of(&a->options, a->options.levers, vocabulary, rows, &a->context, &error) != HSTEP_OK)
        return hs_report_error(&error);
    const hstep_status restored = restore(a, file, vocabulary, &error);
    /* Everything came from the file: what does not fit contradicts itself. */
    return restored == HSTEP_ERROR_SHAPE || restored == HSTEP_ERROR_ARGUMENT ? refuse(a, error.message)
           : restored != HSTEP_OK                                            ? hs_report_error(&error)
                                                                             : HS_EXIT_DONE;
}

static int open_file(hs_attempt *a, const hstep_tensor_file *file, const hs_attempt_choices *choices) {
    int status = read_attempt(a, file);
    if (status == HS_EXIT_DONE)
        status = hs_stored_load(a->path, &a->options);
    if (status == HS_EXIT_DONE)
        status = hs_model_check_options(a->path, &a->options);
    if (status == HS_EXIT_DONE)
        status = hs_places_read(&a->options, "replay", a->path);
    if (status == HS_EXIT_DONE)
        status = choose(choices, &a->options);
    return status == HS_EXIT_DONE ? build(a, file) : status;
}

int hs_attempt_open(const char *path, const hs_attempt_choices *choices, hs_attempt *attempt) {
    *attempt = (hs_attempt){.path = path};
    hstep_tensor_file *file = NULL;
    hstep_error error = {0};
    if (hstep_tensor_file_open(path, &file, &error) != HSTEP_OK)
        return hs_report_error(&error);
    const int status = open_file(attempt, file, choices);
    hstep_tensor_file_close(file);
    return status;
}

void hs_attempt_close(hs_attempt *attempt) {
    hstep_trainer_destroy(attempt->trainer);
    hstep_model_destroy(attempt->model);
    hstep_context_destroy(attempt->context);
    free(attempt->window);
    free(attempt->tokens);
    free(attempt->targets);
    json_decref(attempt->told);
    hs_options_free(&attempt->options);
}
