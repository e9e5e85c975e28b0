#include "trainer/checkpoints/stored.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unistd.h>

#include <halfstep/checkpoint.h>

#include "trainer/checkpoints/read.h"
#include "trainer/exit.h"
#include "trainer/report.h"
#include "trainer/train/records/lock.h"

/* ---- Writing ---- */

json_t *hs_text_as_json(const char *text) {
    json_t *string = json_string(text);
    if (string != NULL)
        return string;
    const size_t size = strlen(text);
    char *digits = malloc(2 * size + 1);
    for (size_t i = 0; i < size && digits != NULL; ++i)
        snprintf(digits + 2 * i, 3, "%02x", (unsigned char)text[i]);
    json_t *object = digits != NULL ? json_pack("{s:s}", "bytes", digits) : NULL;
    free(digits);
    return object;
}

static json_t *texts_as_json(const hs_texts *texts) {
    json_t *list = json_array();
    for (size_t i = 0; i < texts->count; ++i)
        if (json_array_append_new(list, hs_text_as_json(texts->items[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static json_t *value_as_json(const hs_option *option, const hs_options *options) {
    const void *value = hs_option_value(option, options);
    switch (option->kind) {
    case HS_OPTION_FLAG:
        return json_boolean(*(const bool *)value);
    case HS_OPTION_COUNT:
        return json_integer((json_int_t) * (const uint64_t *)value);
    case HS_OPTION_REAL:
        return json_real(*(const double *)value);
    case HS_OPTION_CHOICE:
        return json_string(hs_option_choice_name(option, *(const int *)value));
    case HS_OPTION_TEXT:
        return hs_text_as_json(*(const char *const *)value);
    case HS_OPTION_TEXTS:
        return texts_as_json(value);
    }
    return NULL;
}

/* Options that say nothing about a run to come, and texts that were not given. */
static bool is_left_out(const hs_option *option, const hs_options *options) {
    if (option->command_line_only || option->of_command || option->kind == HS_OPTION_FLAG)
        return true;
    if (option->kind == HS_OPTION_TEXTS)
        return ((const hs_texts *)hs_option_value(option, options))->count == 0;
    return option->kind == HS_OPTION_TEXT && *(const char *const *)hs_option_value(option, options) == NULL;
}

json_t *hs_stored_value(const hs_option *option, const hs_options *options) {
    return is_left_out(option, options) ? NULL : value_as_json(option, options);
}

json_t *hs_stored_configuration(const hs_options *options) {
    size_t count;
    const hs_option *table = hs_option_table(&count);
    json_t *configuration = json_object();
    for (size_t i = 0; i < count; ++i) {
        if (is_left_out(&table[i], options))
            continue;
        if (json_object_set_new(configuration, table[i].name, value_as_json(&table[i], options)) != 0) {
            json_decref(configuration);
            return NULL;
        }
    }
    return configuration;
}

/* ---- Reading ---- */

static int refuse_checkpoint(const char *path, const char *why) {
    hs_report("checkpoint '%s': %s", path, why);
    return HS_EXIT_INPUT;
}

static int read_configuration(const hstep_tensor_file *file, hs_resumed *resumed) {
    void *text;
    size_t size;
    hstep_error error = {0};
    if (hstep_tensor_file_find(file, "section.configuration") == SIZE_MAX)
        return refuse_checkpoint(resumed->path, "no configuration of a run stands in it, as in weights that were "
                                                "exported: name a checkpoint that trainer train wrote");
    if (hs_section_read(file, "configuration", &text, &size, &error) != HSTEP_OK)
        return hs_report_error(&error);
    resumed->configuration = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
    free(text);
    return json_is_object(resumed->configuration)
               ? HS_EXIT_DONE
               : refuse_checkpoint(resumed->path,
                                   "its configuration is no JSON object: it was not written by trainer train");
}

/* Exact levers may be others from now on. Gated ones may not, and have an identity. */
static int read_levers(const hstep_tensor_file *file, hs_resumed *resumed) {
    void *text;
    size_t size;
    hstep_error error = {0};
    if (hs_section_read(file, "levers", &text, &size, &error) != HSTEP_OK)
        return hs_report_error(&error);
    if (strstr(text, "\"identity\"") != NULL)
        resumed->lever_set = text;
    else
        free(text);
    return HS_EXIT_DONE;
}

static int read_sections(hs_resumed *resumed) {
    hstep_tensor_file *file = NULL;
    hstep_error error = {0};
    if (hstep_tensor_file_open(resumed->path, &file, &error) != HSTEP_OK)
        return hs_report_error(&error);
    int status = read_configuration(file, resumed);
    if (status == HS_EXIT_DONE)
        status = read_levers(file, resumed);
    hstep_tensor_file_close(file);
    return status;
}

/* Whether a checkpoint lets an option have another value than the run so far. */
static bool may_change(const hs_option *option, const hs_options *options) {
    return option->free || options->allow_changes;
}

/* A value of the configuration for a message, from malloc; NULL where there is none. */
static char *show(const json_t *value) {
    if (json_is_real(value))
        return strdup(hs_digits_of(json_real_value(value)).text);
    return value != NULL ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
}

/* Compares what this command said with what is stored; differences are reported, each on a line. */
static int check_said(const json_t *stored, const hs_options *options, const char *path) {
    size_t count, differences = 0;
    const hs_option *table = hs_option_table(&count);
    for (size_t i = 0; i < count; ++i) {
        if (options->sources[i] == HS_SOURCE_DEFAULT || is_left_out(&table[i], options) ||
            may_change(&table[i], options))
            continue;
        json_t *given = value_as_json(&table[i], options);
        const json_t *was = json_object_get(stored, table[i].name);
        if (given == NULL)
            return hs_report_no_memory();
        if (!json_equal(given, was)) {
            char *before = show(was), *now = show(given);
            hs_report("--%s: the run has %s, this command says %s", table[i].name, before != NULL ? before : "none",
                      now != NULL ? now : "another");
            free(before);
            free(now);
            ++differences;
        }
        json_decref(given);
    }
    if (differences == 0)
        return HS_EXIT_DONE;
    return hs_report_usage("train",
                           "the run of '%s' would go on with other numbers: leave these options out, or give "
                           "--allow-changes",
                           path);
}

/* The text that hs_text_as_json wrote; it lives as long as the options. NULL where it is none. */
static const char *text_of(const json_t *value, hs_resumed *resumed) {
    const char *digits = json_string_value(json_object_get(value, "bytes"));
    if (json_is_string(value) || digits == NULL)
        return json_string_value(value);
    const size_t size = strlen(digits) / 2;
    char **texts = realloc(resumed->texts, (resumed->text_count + 1) * sizeof *texts);
    char *text = texts != NULL ? calloc(1, size + 1) : NULL;
    if (texts != NULL)
        resumed->texts = texts;
    if (text == NULL)
        return NULL;
    resumed->texts[resumed->text_count++] = text;
    for (size_t i = 0; i < size; ++i) {
        unsigned byte = 0;
        if (sscanf(digits + 2 * i, "%2x", &byte) != 1)
            return NULL;
        text[i] = (char)(unsigned char)byte;
    }
    return text;
}

static bool take_texts(const hs_option *option, const json_t *value, hs_options *options, hs_refusal *refusal) {
    *refusal = (hs_refusal){.why = "it is no text"};
    const size_t count = json_is_array(value) ? json_array_size(value) : 1;
    for (size_t i = 0; i < count; ++i) {
        const json_t *item = json_is_array(value) ? json_array_get(value, i) : value;
        const char *text = text_of(item, &options->resumed);
        if (text == NULL || !hs_option_store_text(option, text, HS_SOURCE_CHECKPOINT, options, refusal))
            return false;
    }
    return true;
}

static bool take_value(const hs_option *option, const json_t *value, hs_options *options, hs_refusal *refusal) {
    if (option->kind == HS_OPTION_TEXT || option->kind == HS_OPTION_TEXTS)
        return take_texts(option, value, options, refusal);
    return hs_option_store_json(option, value, HS_SOURCE_CHECKPOINT, options, refusal);
}

/* Stores what this command left open. */
static int take_over(const json_t *stored, hs_options *options, const char *path) {
    size_t count;
    const hs_option *table = hs_option_table(&count);
    for (size_t i = 0; i < count; ++i) {
        const json_t *value = json_object_get(stored, table[i].name);
        if (value == NULL || options->sources[i] != HS_SOURCE_DEFAULT)
            continue;
        hs_refusal refusal;
        if (!take_value(&table[i], value, options, &refusal)) {
            char why[256];
            snprintf(why, sizeof why, "its option %s: %s", table[i].name, refusal.why);
            return refusal.no_memory ? hs_report_no_memory() : refuse_checkpoint(path, why);
        }
        options->sources[i] = HS_SOURCE_CHECKPOINT;
    }
    return HS_EXIT_DONE;
}

static int note_passed_over(hs_resumed *resumed, const hstep_skipped_checkpoint *skipped, size_t count) {
    resumed->passed_over = calloc(count + 1, sizeof *resumed->passed_over);
    if (resumed->passed_over == NULL)
        return hs_report_no_memory();
    for (size_t i = 0; i < count; ++i) {
        resumed->passed_over[i] = strdup(skipped[i].reason);
        if (resumed->passed_over[i] == NULL)
            return hs_report_no_memory();
        resumed->passed_over_count = i + 1;
        hs_report("passed over: %s", skipped[i].reason);
    }
    return HS_EXIT_DONE;
}

/* Fills options->resumed. */
static int find_newest(hs_options *options) {
    enum { DESCRIBED = 16 };
    static hstep_skipped_checkpoint skipped[DESCRIBED];
    hstep_found_checkpoint found = {0};
    hstep_error error = {0};
    if (access(options->out, F_OK) != 0)
        return HS_EXIT_DONE;
    if (hstep_checkpoint_find(options->out, &found, skipped, DESCRIBED, &error) != HSTEP_OK)
        return hs_report_error(&error);
    const int status =
        note_passed_over(&options->resumed, skipped, found.skipped < DESCRIBED ? found.skipped : DESCRIBED);
    if (status != HS_EXIT_DONE || !found.found)
        return status == HS_EXIT_DONE && found.skipped > 0
                   ? refuse_checkpoint(options->out, "none of its checkpoints verifies: give another --out, or remove "
                                                     "them to start anew")
                   : status;
    options->resumed.found = true;
    if (hstep_checkpoint_path(options->out, found.step, options->resumed.path, sizeof options->resumed.path, &error) !=
        HSTEP_OK)
        return hs_report_error(&error);
    return HS_EXIT_DONE;
}

/* The device of the run so far is none of another backend's. */
static void forget_device(hs_options *options) {
    size_t count;
    const hs_option *table = hs_option_table(&count);
    const size_t place = (size_t)(hs_option_find("device") - table);
    if (options->backend != HSTEP_BACKEND_VULKAN && options->sources[place] == HS_SOURCE_CHECKPOINT)
        options->device = "any";
}

int hs_stored_read(hs_options *options) {
    if (options->out == NULL)
        return hs_report_usage("train", "--resume needs --out: the folder of the run that goes on");
    hstep_error error = {0};
    if (!options->dry_run && hs_folder_check_unused(options->out, &error) != HSTEP_OK)
        return hs_report_error(&error);
    int status = find_newest(options);
    if (status != HS_EXIT_DONE || !options->resumed.found)
        return status;
    const char *path = options->resumed.path;
    status = read_sections(&options->resumed);
    if (status != HS_EXIT_DONE)
        return status;
    status = check_said(options->resumed.configuration, options, path);
    if (status == HS_EXIT_DONE)
        status = take_over(options->resumed.configuration, options, path);
    if (status == HS_EXIT_DONE)
        forget_device(options);
    return status;
}

int hs_stored_load(const char *path, hs_options *options) {
    snprintf(options->resumed.path, sizeof options->resumed.path, "%s", path);
    const int status = read_sections(&options->resumed);
    return status == HS_EXIT_DONE ? take_over(options->resumed.configuration, options, path) : status;
}

int hs_stored_unpack(const json_t *configuration, const char *path, hs_options *options) {
    *options = (hs_options){0};
    return take_over(configuration, options, path);
}

void hs_stored_free(hs_options *options) {
    for (size_t i = 0; i < options->resumed.passed_over_count; ++i)
        free(options->resumed.passed_over[i]);
    free(options->resumed.passed_over);
    for (size_t i = 0; i < options->resumed.text_count; ++i)
        free(options->resumed.texts[i]);
    free(options->resumed.texts);
    json_decref(options->resumed.configuration);
    free(options->resumed.lever_set);
}
