/* --config FILE: a JSON object whose keys are the names of options. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "trainer/exit.h"
#include "trainer/options/options.h"
#include "trainer/report.h"

static int refuse(const char *path, const char *key, const char *why) {
    hs_report("configuration file '%s': key \"%s\": %s", path, key, why);
    return HS_EXIT_USAGE;
}

static const char *wanted(const hs_option *option, char *text, size_t size) {
    switch (option->kind) {
    case HS_OPTION_FLAG:
        return "give true or false";
    case HS_OPTION_COUNT:
        snprintf(text, size, "give a whole number of at least %s, without quotes", hs_digits_of(option->minimum).text);
        return text;
    case HS_OPTION_REAL:
        return "give a number, without quotes";
    case HS_OPTION_CHOICE:
    case HS_OPTION_TEXT:
        return "give a text in quotes";
    case HS_OPTION_TEXTS:
        return "give a text in quotes, or an array of them";
    }
    return "";
}

static bool store_texts(const hs_option *option, const json_t *value, hs_source source, hs_options *options,
                        hs_refusal *refusal) {
    if (json_is_string(value))
        return hs_option_store_text(option, json_string_value(value), source, options, refusal);
    if (!json_is_array(value) || json_array_size(value) == 0)
        return false;
    for (size_t i = 0; i < json_array_size(value); ++i) {
        const json_t *item = json_array_get(value, i);
        if (!json_is_string(item) || !hs_option_store_text(option, json_string_value(item), source, options, refusal))
            return false;
    }
    return true;
}

bool hs_option_store_json(const hs_option *option, const json_t *value, hs_source source, hs_options *options,
                          hs_refusal *refusal) {
    *refusal = (hs_refusal){.no_memory = false};
    char text[80];
    snprintf(refusal->why, sizeof refusal->why, "%s", wanted(option, text, sizeof text));
    switch (option->kind) {
    case HS_OPTION_FLAG:
        if (!json_is_boolean(value))
            return false;
        *(bool *)hs_option_target(option, options) = json_is_true(value);
        return true;
    case HS_OPTION_COUNT:
        return json_is_integer(value) && json_integer_value(value) >= 0 &&
               hs_option_store_count(option, (uint64_t)json_integer_value(value), options, refusal);
    case HS_OPTION_REAL:
        return json_is_number(value) && hs_option_store_real(option, json_number_value(value), options, refusal);
    case HS_OPTION_CHOICE:
    case HS_OPTION_TEXT:
        return json_is_string(value) &&
               hs_option_store_text(option, json_string_value(value), source, options, refusal);
    case HS_OPTION_TEXTS:
        return store_texts(option, value, source, options, refusal);
    }
    return false;
}

static int store_key(const char *path, const char *key, const json_t *value, hs_options *options) {
    const hs_option *option = hs_option_find(key);
    if (option == NULL || option->command_line_only)
        return refuse(path, key,
                      option == NULL ? "no option has this name: see trainer train --help"
                                     : "this option is for the command line only");
    hs_refusal refusal;
    if (!hs_option_store_json(option, value, HS_SOURCE_CONFIG, options, &refusal))
        return refusal.no_memory ? hs_report_no_memory() : refuse(path, key, refusal.why);
    size_t rows;
    options->sources[option - hs_option_table(&rows)] = HS_SOURCE_CONFIG;
    return HS_EXIT_DONE;
}

static int refuse_file(const char *path, const char *why) {
    hs_report("configuration file '%s': %s", path, why);
    return HS_EXIT_INPUT;
}

/* Reads a file that is open. Fills *root or reports. */
static int load(const char *path, FILE *file, json_t **root) {
    struct stat status;
    if (fstat(fileno(file), &status) == 0 && S_ISDIR(status.st_mode))
        return refuse_file(path, "it is a directory: give a JSON file");
    json_error_t error;
    errno = 0;
    *root = json_loadf(file, JSON_REJECT_DUPLICATES, &error);
    if (*root != NULL)
        return HS_EXIT_DONE;
    if (ferror(file))
        return refuse_file(path, errno != 0 ? strerror(errno) : "it cannot be read");
    if (json_error_code(&error) == json_error_out_of_memory)
        return hs_report_no_memory();
    hs_report("configuration file '%s', line %d, column %d: %s", path, error.line, error.column, error.text);
    return HS_EXIT_INPUT;
}

static int load_path(const char *path, json_t **root) {
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return refuse_file(path, strerror(errno));
    const int status = load(path, file, root);
    fclose(file);
    return status;
}

int hs_options_read_config(const char *path, hs_options *options) {
    const int loaded = load_path(path, &options->config_root);
    if (loaded != HS_EXIT_DONE)
        return loaded;
    if (!json_is_object(options->config_root))
        return refuse_file(path, "its content is no JSON object: write {\"option\": value, ...}");
    const char *key;
    json_t *value;
    json_object_foreach(options->config_root, key, value) {
        const int status = store_key(path, key, value, options);
        if (status != HS_EXIT_DONE)
            return status;
    }
    return HS_EXIT_DONE;
}
