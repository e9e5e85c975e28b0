/* The command line, by getopt_long from the table. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/exit.h"
#include "trainer/options/options.h"
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

/* Defaults that depend on other options, which are only known now. */
static void set_dependent_defaults(hs_options *options) {
    size_t count;
    const hs_option *table = hs_option_table(&count);
    for (size_t i = 0; i < count; ++i) {
        if (options->sources[i] != HS_SOURCE_DEFAULT)
            continue;
        hs_refusal refusal;
        if (table[i].builtin_initial != NULL && options->data.count == 0)
            hs_option_store_text(&table[i], table[i].builtin_initial, HS_SOURCE_DEFAULT, options, &refusal);
        if (!table[i].by_precision)
            continue;
        char text[32];
        hs_option_scaler_default(&table[i], (hstep_precision)options->precision, text, sizeof text);
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

static void fill_long_options(struct option *long_options) {
    size_t count;
    const hs_option *table = hs_option_table(&count);
    for (size_t i = 0; i < count; ++i)
        long_options[i] = (struct option){
            .name = table[i].name,
            .has_arg = table[i].kind == HS_OPTION_FLAG ? no_argument : required_argument,
        };
    long_options[count] = (struct option){0};
}

static int report_unknown(int argc, char **argv) {
    const char *word = optind > 0 && optind <= argc ? argv[optind - 1] : "";
    const size_t name = strcspn(word, "=");
    size_t count;
    const hs_option *table = hs_option_table(&count);
    for (size_t i = 0; i < count; ++i)
        if (table[i].kind == HS_OPTION_FLAG && name > 2 && strncmp(word + 2, table[i].name, name - 2) == 0 &&
            word[name] == '=')
            return hs_report_usage("train", "option --%s takes no value", table[i].name);
    return hs_report_usage("train", "unknown option '%.*s': check its spelling", (int)name, word);
}

/* Reads the words of the command line into `list`, which has room for argc of them. */
static int split(int argc, char **argv, said *list, size_t *count) {
    struct option long_options[HS_OPTIONS_MAX + 1];
    fill_long_options(long_options);
    size_t rows;
    const hs_option *table = hs_option_table(&rows);
    opterr = 0;
    optind = 1;
    for (;;) {
        int row = -1;
        const int found = getopt_long(argc, argv, "+:", long_options, &row);
        if (found == -1)
            break;
        if (found == ':')
            return hs_report_usage("train", "option '%s' needs a value", argv[optind - 1]);
        if (found != 0 || row < 0)
            return report_unknown(argc, argv);
        list[(*count)++] = (said){&table[row], optarg};
    }
    if (optind < argc)
        return hs_report_usage("train", "unexpected word '%s': a text to train on is given as --data FILE",
                               argv[optind]);
    return HS_EXIT_DONE;
}

static int store_all(const said *list, size_t count, hs_options *options) {
    for (size_t i = 0; i < count; ++i) {
        hs_refusal refusal;
        const char *text = list[i].text != NULL ? list[i].text : "";
        if (!hs_option_store_text(list[i].option, text, HS_SOURCE_COMMAND_LINE, options, &refusal))
            return hs_report_usage("train", "--%s %s: %s", list[i].option->name, text, refusal.why);
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
    if (status != HS_EXIT_DONE)
        return status;
    set_dependent_defaults(options);
    shorten_warmup(options);
    return hs_options_check(options);
}

int hs_options_parse(int argc, char **argv, hs_options *options) {
    *options = (hs_options){0};
    said *list = calloc((size_t)argc + 1, sizeof *list);
    if (list == NULL) {
        hs_report("no memory for the command line");
        return HS_EXIT_UNAVAILABLE;
    }
    size_t count = 0;
    int status = split(argc, argv, list, &count);
    if (status == HS_EXIT_DONE)
        status = read_all(list, count, options);
    free(list);
    return status;
}

void hs_options_free(hs_options *options) {
    free(options->data.items);
    json_decref(options->config_root);
}
