/* --config FILE: a JSON object whose keys are the names of options. */
#include <string.h>

#include "trainer/exit.h"
#include "trainer/options/options.h"
#include "trainer/report.h"

static int refuse(const char *path, const char *key, const char *why) {
    hs_report("configuration file '%s': key \"%s\": %s", path, key, why);
    return HS_EXIT_USAGE;
}

static const char *wanted(const hs_option *option) {
    switch (option->kind) {
    case HS_OPTION_FLAG:
        return "give true or false";
    case HS_OPTION_COUNT:
        return "give a whole number, without quotes";
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

static bool store_texts(const hs_option *option, const json_t *value, hs_options *options, hs_refusal *refusal) {
    if (json_is_string(value))
        return hs_option_store_text(option, json_string_value(value), HS_SOURCE_CONFIG, options, refusal);
    snprintf(refusal->why, sizeof refusal->why, "%s", wanted(option));
    if (!json_is_array(value) || json_array_size(value) == 0)
        return false;
    for (size_t i = 0; i < json_array_size(value); ++i) {
        const json_t *item = json_array_get(value, i);
        if (!json_is_string(item) ||
            !hs_option_store_text(option, json_string_value(item), HS_SOURCE_CONFIG, options, refusal))
            return false;
    }
    return true;
}

static bool store(const hs_option *option, const json_t *value, hs_options *options, hs_refusal *refusal) {
    snprintf(refusal->why, sizeof refusal->why, "%s", wanted(option));
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
               hs_option_store_text(option, json_string_value(value), HS_SOURCE_CONFIG, options, refusal);
    case HS_OPTION_TEXTS:
        return store_texts(option, value, options, refusal);
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
    if (!store(option, value, options, &refusal))
        return refuse(path, key, refusal.why);
    size_t rows;
    options->sources[option - hs_option_table(&rows)] = HS_SOURCE_CONFIG;
    return HS_EXIT_DONE;
}

int hs_options_read_config(const char *path, hs_options *options) {
    json_error_t error;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL) {
        if (error.line > 0)
            hs_report("configuration file '%s', line %d, column %d: %s", path, error.line, error.column, error.text);
        else
            hs_report("configuration file '%s': %s", path, error.text);
        return HS_EXIT_INPUT;
    }
    options->config_root = root;
    if (!json_is_object(root)) {
        hs_report("configuration file '%s': its content is no JSON object: write {\"option\": value, ...}", path);
        return HS_EXIT_INPUT;
    }
    const char *key;
    json_t *value;
    json_object_foreach(root, key, value) {
        const int status = store_key(path, key, value, options);
        if (status != HS_EXIT_DONE)
            return status;
    }
    return HS_EXIT_DONE;
}
