/* The command line, by the table. */
#include <stdlib.h>
#include <string.h>

#include "trainer/checkpoints/stored.h"
#include "trainer/exit.h"
#include "trainer/options/options.h"
#include "trainer/options/places.h"
#include "trainer/options/words.h"
#include "trainer/report.h"

/* One option as it was said; values are stored once the configuration file is known. */
typedef struct said {
    const hs_option *option;
    const char *text;
} said;

static void set_defaults(hs_options *options) {
    size_t count;
    const hs_option *table = hs_option_table(&count);
    hs_refusal refusal;
    for (size_t i = 0; i < count; ++i)
        if (table[i].initial != NULL)
            hs_option_store_text(&table[i], table[i].initial, HS_SOURCE_DEFAULT, options, &refusal);
}

/* Defaults without --data. */
static void set_builtin_defaults(hs_options *options) {
    size_t count;
    const hs_option *table = hs_option_table(&count);
    hs_refusal refusal;
    for (size_t i = 0; i < count && options->data.count == 0; ++i)
        if (options->sources[i] == HS_SOURCE_DEFAULT && table[i].builtin_initial != NULL)
            hs_option_store_text(&table[i], table[i].builtin_initial, HS_SOURCE_DEFAULT, options, &refusal);
}

/* Defaults by the precisions in use, which are only known now. */
static void set_scaler_defaults(hs_options *options) {
    size_t count;
    const hs_option *table = hs_option_table(&count);
    for (size_t i = 0; i < count; ++i) {
        if (options->sources[i] != HS_SOURCE_DEFAULT || !table[i].by_precision)
            continue;
        char text[32];
        hs_refusal refusal;
        hs_option_scaler_default(&table[i], hs_places_scaled(options), text, sizeof text);
        hs_option_store_text(&table[i], text, HS_SOURCE_DEFAULT, options, &refusal);
    }
}

/* So that a short run needs no option to be a run at all. */
static void shorten_warmup(hs_options *options) {
    size_t count;
    const hs_option *table = hs_option_table(&count);
    const size_t place = (size_t)(hs_option_find("warmup-steps") - table);
    if (options->sources[place] == HS_SOURCE_DEFAULT && options->warmup_steps > options->steps / 10)
        options->warmup_steps = options->steps / 10;
}

static size_t list_names(const char *names[HS_OPTIONS_MAX]) {
    size_t count;
    const hs_option *table = hs_option_table(&count);
    for (size_t i = 0; i < count; ++i)
        names[i] = table[i].name;
    return count;
}

static int report_unknown(const char *word) {
    const char *names[HS_OPTIONS_MAX];
    const size_t count = list_names(names);
    return hs_report_unknown_option("train", word, names, count, "check its spelling");
}

static int check_value(const char *option, const char *next) {
    const char *names[HS_OPTIONS_MAX];
    const size_t count = list_names(names);
    return hs_word_check_value("train", option, next, names, count);
}

/* The row that the word names, with what follows its '='; NULL where there is none. */
static const hs_option *find(const char *word, const char **value) {
    size_t rows;
    const hs_option *table = hs_option_table(&rows);
    for (size_t i = 0; i < rows; ++i)
        if (hs_word_names(word, table[i].name, value))
            return &table[i];
    return NULL;
}

/* Reads the words of the command line into `list`, which has room for argc of them. */
static int split(int argc, char **argv, said *list, size_t *count) {
    int i = 1;
    for (; i < argc && hs_word_is_option(argv[i]); ++i) {
        if (strcmp(argv[i], "--") == 0) {
            ++i;
            break;
        }
        const char *value = NULL;
        const hs_option *option = find(argv[i], &value);
        if (option == NULL)
            return report_unknown(argv[i]);
        if (option->kind == HS_OPTION_FLAG && value != NULL)
            return hs_report_usage("train", "option --%s takes no value", option->name);
        if (option->kind != HS_OPTION_FLAG && value == NULL) {
            const int status = check_value(argv[i], i + 1 < argc ? argv[i + 1] : NULL);
            if (status != HS_EXIT_DONE)
                return status;
            value = argv[++i];
        }
        list[(*count)++] = (said){option, value};
    }
    if (i < argc)
        return hs_report_usage("train", "unexpected word '%s': a text to train on is given as --data PATH", argv[i]);
    return HS_EXIT_DONE;
}

static int store_all(const said *list, size_t count, hs_options *options) {
    for (size_t i = 0; i < count; ++i) {
        hs_refusal refusal;
        const char *text = list[i].text != NULL ? list[i].text : "";
        if (hs_option_store_text(list[i].option, text, HS_SOURCE_COMMAND_LINE, options, &refusal))
            continue;
        if (refusal.no_memory)
            return hs_report_no_memory();
        const char *mark = hs_report_mark(text);
        return hs_report_usage("train", "--%s %s%s%s: %s", list[i].option->name, mark, text, mark, refusal.why);
    }
    return HS_EXIT_DONE;
}

static int read_all(const said *list, size_t count, hs_options *options) {
    set_defaults(options);
    for (size_t i = 0; i < count; ++i) {
        if (strcmp(list[i].option->name, "help") == 0) {
            options->help = true;
            return HS_EXIT_DONE;
        }
    }
    const char *config = NULL;
    for (size_t i = 0; i < count; ++i)
        if (strcmp(list[i].option->name, "config") == 0)
            config = list[i].text;
    int status = config != NULL ? hs_options_read_config(config, options) : HS_EXIT_DONE;
    if (status == HS_EXIT_DONE)
        status = store_all(list, count, options);
    if (status == HS_EXIT_DONE && options->resume)
        status = hs_stored_read(options);
    if (status != HS_EXIT_DONE)
        return status;
    set_builtin_defaults(options);
    status = hs_places_read(options, "train", NULL);
    if (status != HS_EXIT_DONE)
        return status;
    set_scaler_defaults(options);
    shorten_warmup(options);
    return hs_options_check(options);
}

int hs_options_parse(int argc, char **argv, hs_options *options) {
    *options = (hs_options){0};
    said *list = calloc((size_t)argc + 1, sizeof *list);
    if (list == NULL)
        return hs_report_no_memory();
    size_t count = 0;
    int status = split(argc, argv, list, &count);
    if (status == HS_EXIT_DONE)
        status = read_all(list, count, options);
    free(list);
    return status;
}

void hs_options_free(hs_options *options) {
    free(options->data.items);
    free(options->eval_data.items);
    free(options->precision_for.items);
    free(options->rules);
    json_decref(options->config_root);
    hs_stored_free(options);
}
