#include "trainer/options/command.h"

#include <string.h>

#include "trainer/exit.h"
#include "trainer/options/words.h"
#include "trainer/report.h"

static void *target_of(const hs_option *option, void *settings) { return (char *)settings + option->offset; }

static int store(const hs_command *command, const hs_option *option, const char *text, void *settings) {
    hs_refusal refusal;
    if (hs_option_put_text(option, text, target_of(option, settings), &refusal))
        return HS_EXIT_DONE;
    if (refusal.no_memory)
        return hs_report_no_memory();
    const char *mark = hs_report_mark(text);
    return hs_report_usage(command->name, "--%s %s%s%s: %s", option->name, mark, text, mark, refusal.why);
}

static void list_names(const hs_command *command, const char *names[HS_OPTIONS_MAX]) {
    for (size_t i = 0; i < command->count; ++i)
        names[i] = command->table[i].name;
}

static int report_unknown(const hs_command *command, const char *word) {
    const char *names[HS_OPTIONS_MAX];
    list_names(command, names);
    return hs_report_unknown_option(command->name, word, names, command->count, "check its spelling");
}

static int check_value(const hs_command *command, const char *option, const char *next) {
    const char *names[HS_OPTIONS_MAX];
    list_names(command, names);
    return hs_word_check_value(command->name, option, next, names, command->count);
}

/* The option at argv[*i], with its value where it has one. */
static int read_option(const hs_command *command, int argc, char **argv, int *i, void *settings) {
    const char *value = NULL, *word = argv[*i];
    const hs_option *option = NULL;
    for (size_t row = 0; row < command->count && option == NULL; ++row)
        option = hs_word_names(word, command->table[row].name, &value) ? &command->table[row] : NULL;
    if (option == NULL)
        return report_unknown(command, word);
    if (option->kind == HS_OPTION_FLAG)
        return value == NULL ? store(command, option, "", settings)
                             : hs_report_usage(command->name, "option --%s takes no value", option->name);
    if (value != NULL)
        return store(command, option, value, settings);
    const int status = check_value(command, word, *i + 1 < argc ? argv[*i + 1] : NULL);
    return status == HS_EXIT_DONE ? store(command, option, argv[++*i], settings) : status;
}

static void print_help(const hs_command *command) {
    fputs(command->head, stdout);
    hs_option_print_help(stdout, command->table, command->count);
    fputs(command->end, stdout);
}

static int set_help(const hs_command *command, void *settings) {
    for (size_t i = 0; i < command->count; ++i)
        if (strcmp(command->table[i].name, "help") == 0)
            return store(command, &command->table[i], "", settings);
    return HS_EXIT_DONE;
}

int hs_command_parse(const hs_command *command, int argc, char **argv, void *settings, const char **word) {
    int status = HS_EXIT_DONE;
    bool words_only = false;
    *word = NULL;
    for (size_t i = 0; i < command->count && status == HS_EXIT_DONE; ++i)
        if (command->table[i].initial != NULL)
            status = store(command, &command->table[i], command->table[i].initial, settings);
    for (int i = 1; i < argc && status == HS_EXIT_DONE; ++i) {
        if (!words_only && strcmp(argv[i], "--help") == 0) {
            print_help(command);
            *word = NULL;
            return set_help(command, settings);
        }
        if (!words_only && strcmp(argv[i], "--") == 0)
            words_only = true;
        else if (!words_only && hs_word_is_option(argv[i]))
            status = read_option(command, argc, argv, &i, settings);
        else if (command->word == NULL)
            status = hs_report_usage(command->name, "unexpected word '%s'", argv[i]);
        else if (*word != NULL)
            status =
                hs_report_usage(command->name, "unexpected word '%s': %s was named before", argv[i], command->word);
        else
            *word = argv[i];
    }
    if (status == HS_EXIT_DONE && *word == NULL && command->word != NULL)
        status = hs_report_usage(command->name, "name %s", command->word);
    return status;
}
