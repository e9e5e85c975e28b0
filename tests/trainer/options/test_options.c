/* One table of options: help, parser, defaults and configuration file agree. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <criterion/criterion.h>

#include "support/program.h"
#include "trainer/options/table.c"

static void enter(void) {
    hs_test_enter_folder();
    hs_test_write_file("empty.json", "{}");
    hs_test_write_file("text", "some text to train on, some text to train on, some text to train on");
}

TestSuite(options, .init = enter, .fini = hs_test_leave_folder);

/* The smallest run there is; what follows on the command line wins. */
#define TINY                                                                                                           \
    "train", "--data", "text", "--layers", "1", "--width", "4", "--heads", "2", "--feed-forward", "4", "--context",    \
        "4", "--batch-size", "1", "--threads", "1", "--steps", "1", "--sample-tokens", "0", "--records", "-",          \
        "--quiet"

static json_t *configuration_of(const hs_test_program *run) {
    cr_assert_eq(run->status, 0, "%s", run->err);
    json_t *records = hs_test_parse_lines(run->out);
    json_t *configuration = json_object_get(hs_test_record(records, "run"), "configuration");
    cr_assert(json_is_object(configuration));
    json_incref(configuration);
    json_decref(records);
    return configuration;
}

static double number(const json_t *configuration, const char *name) {
    const json_t *value = json_object_get(configuration, name);
    cr_assert(json_is_number(value), "%s", name);
    return json_number_value(value);
}

/* The default that --help states for an option, or NULL. `kind` is "" or the word that stands before it. */
static char *stated_default(const char *help, const char *name, const char *kind) {
    char head[64];
    snprintf(head, sizeof head, "\n  --%s ", name);
    const char *entry = strstr(help, head);
    if (entry == NULL)
        return NULL;
    const char *end = strstr(entry + 1, "\n  --"), *bracket = strchr(entry, '[');
    if (bracket == NULL || (end != NULL && bracket > end))
        return NULL;
    const char *value = bracket + 1;
    if (kind[0] != '\0') {
        value = strstr(bracket, kind);
        if (value == NULL || value > strchr(bracket, ']'))
            return NULL;
        value += strlen(kind);
        value += strspn(value, " \n");
    }
    return strndup(value, strcspn(value, "],; \n"));
}

Test(options, help_names_every_option_of_the_table_and_no_other) {
    hs_test_program run = HS_TEST_RUN("train", "--help");
    cr_assert_eq(run.status, 0);
    cr_assert_str_empty(run.err);
    size_t rows, listed = 0;
    const hs_option *table = hs_option_table(&rows);
    cr_assert_gt(rows, 35);
    for (size_t i = 0; i < rows; ++i) {
        char head[64];
        snprintf(head, sizeof head, "\n  --%s", table[i].name);
        const char *entry = strstr(run.out, head);
        cr_expect_not_null(entry, "--%s is not in the help", table[i].name);
    }
    for (const char *entry = strstr(run.out, "\n  --"); entry != NULL; entry = strstr(entry + 1, "\n  --"))
        ++listed;
    cr_expect_eq(listed, rows);
    for (const char *line = run.out; *line != '\0'; line += strcspn(line, "\n") + 1)
        cr_expect_leq(strcspn(line, "\n"), 100, "a line is too long: %.60s", line);
    hs_test_program_free(&run);
}

/* Every option is given the value that help states, or one that suits; a data file that is missing then ends the run
   with status 3, after the options were accepted. */
Test(options, every_option_in_the_help_parses) {
    hs_test_program help = HS_TEST_RUN("train", "--help");
    static const char *const suitable[][2] = {{"data", "missing"}, {"eval-data", "missing"}, {"config", "empty.json"},
                                              {"out", "there"},    {"records", "r"},         {"prompt", "x"}};
    size_t rows;
    const hs_option *table = hs_option_table(&rows);
    for (size_t i = 0; i < rows; ++i) {
        if (strcmp(table[i].name, "help") == 0)
            continue;
        char option[64];
        snprintf(option, sizeof option, "--%s", table[i].name);
        char *value = stated_default(help.out, table[i].name, table[i].by_precision ? "fp16" : "");
        if (value == NULL)
            value = stated_default(help.out, table[i].name, "");
        for (size_t j = 0; j < sizeof suitable / sizeof suitable[0]; ++j) {
            if (strcmp(suitable[j][0], table[i].name) == 0) {
                free(value);
                value = strdup(suitable[j][1]);
            }
        }
        cr_assert(value != NULL || table[i].kind == HS_OPTION_FLAG, "help states no default for %s", option);
        const char *given = table[i].kind == HS_OPTION_FLAG ? NULL : value;
        /* One that is refused without another. */
        const char *partner = strcmp(table[i].name, "allow-changes") == 0 ? "--resume" : "--quiet";
        hs_test_program run =
            HS_TEST_RUN("train", "--precision", "fp16", "--data", "missing", "--out", "there", partner, option, given);
        cr_expect_eq(run.status, 3, "%s %s: %s", option, given != NULL ? given : "", run.err);
        hs_test_program_free(&run);
        free(value);
    }
    hs_test_program_free(&help);
}

Test(options, stated_defaults_are_those_of_a_run) {
    hs_test_program help = HS_TEST_RUN("train", "--help");
    /* Sizes are given, so that the run is short; all else is left alone. */
    static const char *const given[] = {"layers",     "width",   "heads", "feed-forward",  "context",
                                        "batch-size", "threads", "steps", "sample-tokens", "warmup-steps"};
    const char *const kinds[] = {"fp16", "bf16", "f64"};
    for (size_t k = 0; k < 3; ++k) {
        hs_test_program run = HS_TEST_RUN(TINY, "--precision", kinds[k]);
        json_t *configuration = configuration_of(&run);
        size_t rows, compared = 0;
        const hs_option *table = hs_option_table(&rows);
        for (size_t i = 0; i < rows; ++i) {
            bool skip = table[i].kind != HS_OPTION_COUNT && table[i].kind != HS_OPTION_REAL;
            for (size_t j = 0; j < sizeof given / sizeof given[0]; ++j)
                skip = skip || strcmp(given[j], table[i].name) == 0;
            if (skip)
                continue;
            char *value = stated_default(help.out, table[i].name, table[i].by_precision ? kinds[k] : "");
            if (value == NULL)
                value = stated_default(help.out, table[i].name, "");
            cr_assert_not_null(value, "%s", table[i].name);
            cr_expect_eq(number(configuration, table[i].name), strtod(value, NULL), "%s in %s", table[i].name,
                         kinds[k]);
            free(value);
            ++compared;
        }
        cr_expect_gt(compared, 18);
        json_decref(configuration);
        hs_test_program_free(&run);
    }
    hs_test_program_free(&help);
}

Test(options, configuration_file_is_used_and_the_command_line_wins) {
    hs_test_write_file("text2", "another text, a little longer than the first one of all those texts");
    hs_test_write_file("run.json", "{\"steps\": 2, \"learning-rate\": 0.25, \"seed\": 7, \"precision\": \"f64\","
                                   " \"data\": [\"text\", \"text2\"], \"grad-clip\": 3, \"prompt\": \"ab\"}");
    hs_test_program run =
        HS_TEST_RUN("train", "--seed", "8", "--config", "run.json", "--layers", "1", "--width", "4", "--heads", "2",
                    "--feed-forward=4", "--context", "4", "--batch-size", "1", "--threads", "1", "--grad-clip", "2",
                    "--sample-tokens", "0", "--records", "-", "--quiet");
    json_t *configuration = configuration_of(&run);
    cr_expect_eq(number(configuration, "steps"), 2);
    cr_expect_eq(number(configuration, "learning-rate"), 0.25);
    cr_expect_eq(number(configuration, "seed"), 8);
    cr_expect_eq(number(configuration, "grad-clip"), 2);
    cr_expect_str_eq(json_string_value(json_object_get(configuration, "precision")), "f64");
    cr_expect_str_eq(json_string_value(json_object_get(configuration, "data")), "text + text2");
    cr_expect_str_eq(json_string_value(json_object_get(configuration, "prompt")), "ab");
    json_decref(configuration);
    hs_test_program_free(&run);

    run = HS_TEST_RUN(TINY, "--config", "run.json");
    configuration = configuration_of(&run);
    cr_expect_str_eq(json_string_value(json_object_get(configuration, "data")), "text",
                     "data on the command line replaces that of the file");
    json_decref(configuration);
    hs_test_program_free(&run);
}

/* Whatever options there will be: a file may hold all of them but the two that only make sense on a command line. */
Test(options, configuration_file_takes_every_option_but_config_and_help) {
    size_t rows;
    const hs_option *table = hs_option_table(&rows);
    for (size_t i = 0; i < rows; ++i)
        cr_expect_eq(table[i].command_line_only,
                     strcmp(table[i].name, "config") == 0 || strcmp(table[i].name, "help") == 0 ||
                         strcmp(table[i].name, "resume") == 0 || strcmp(table[i].name, "allow-changes") == 0,
                     "%s", table[i].name);
    hs_test_write_file("quiet.json",
                       "{\"quiet\": true, \"data\": \"text\", \"steps\": 2, \"context\": 4, \"layers\": 1}");
    hs_test_program run = HS_TEST_RUN("train", "--config", "quiet.json", "--out", "silent");
    cr_expect_eq(run.status, 0, "%s", run.err);
    cr_expect_str_empty(run.err);
    cr_expect_str_empty(run.out);
    hs_test_program_free(&run);
}

Test(options, a_repeated_option_counts_as_last_given) {
    hs_test_program run = HS_TEST_RUN(TINY, "--seed", "3", "--seed", "4");
    json_t *configuration = configuration_of(&run);
    cr_expect_eq(number(configuration, "seed"), 4);
    json_decref(configuration);
    hs_test_program_free(&run);
}

Test(options, configuration_errors_name_file_and_key) {
    static const struct {
        const char *content;
        int status;
        const char *words[2];
    } bad[] = {
        {"{\"stepz\": 3}", 2, {"\"stepz\"", "no option"}},
        {"{\"steps\": \"3\"}", 2, {"\"steps\"", "whole number"}},
        {"{\"steps\": 3.5}", 2, {"\"steps\"", "whole number"}},
        {"{\"steps\": -3}", 2, {"\"steps\"", "whole number of at least 1"}},
        {"{\"quiet\": 1}", 2, {"\"quiet\"", "true or false"}},
        {"{\"help\": true}", 2, {"\"help\"", "command line only"}},
        {"{\"steps\": 0}", 2, {"\"steps\"", "at least 1"}},
        {"{\"beta1\": \"0.9\"}", 2, {"\"beta1\"", "number"}},
        {"{\"beta1\": 1}", 2, {"\"beta1\"", "below 1"}},
        {"{\"precision\": 16}", 2, {"\"precision\"", "quotes"}},
        {"{\"precision\": \"fp8\"}", 2, {"\"precision\"", "bf16, fp16, f64"}},
        {"{\"data\": []}", 2, {"\"data\"", "text"}},
        {"{\"data\": [1]}", 2, {"\"data\"", "text"}},
        {"{\"config\": \"other.json\"}", 2, {"\"config\"", "command line only"}},
        {"{\"width\": 30, \"heads\": 4}", 2, {"--heads 4", "--width 30"}},
        {"[1]", 3, {"object"}},
        {"{\"steps\": 3,", 3, {"line 1"}},
        {"{\"steps\": 3, \"steps\": 4}", 3, {"steps"}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
        hs_test_write_file("bad.json", bad[i].content);
        hs_test_program run = HS_TEST_RUN("train", "--config", "bad.json");
        cr_expect_eq(run.status, bad[i].status, "%s: %d: %s", bad[i].content, run.status, run.err);
        for (size_t j = 0; j < 2 && bad[i].words[j] != NULL; ++j)
            cr_expect_not_null(strstr(run.err, bad[i].words[j]), "no %s in: %s", bad[i].words[j], run.err);
        if (strstr(bad[i].content, "width") == NULL)
            cr_expect_not_null(strstr(run.err, "bad.json"), "%s", run.err);
        hs_test_program_free(&run);
    }
}

Test(options, a_configuration_file_that_cannot_be_read_is_3) {
    cr_assert_eq(mkdir("folder", 0700), 0);
    static const char *const bad[][2] = {{"missing.json", "No such file"},
                                         {"folder", "it is a directory"},
                                         {"empty.json/below", "Not a directory"},
                                         {"/proc/self/mem", "nput/output error"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
        hs_test_program run = HS_TEST_RUN("train", "--config", bad[i][0]);
        cr_expect_eq(run.status, 3);
        cr_expect_not_null(strstr(run.err, bad[i][0]), "%s", run.err);
        cr_expect_not_null(strstr(run.err, bad[i][1]), "%s", run.err);
        hs_test_program_free(&run);
    }
}

/* With and without --data: the fixture's scheme is for the fixture. */
Test(options, weights_start_normal) {
    hs_test_program run = HS_TEST_RUN(TINY);
    json_t *configuration = configuration_of(&run);
    cr_expect_str_eq(json_string_value(json_object_get(configuration, "init")), "normal");
    json_decref(configuration);
    hs_test_program_free(&run);
    run = HS_TEST_RUN("train", "--layers", "1", "--width", "4", "--heads", "2", "--feed-forward", "4", "--held-out",
                      "0", "--threads", "1", "--steps", "1", "--sample-tokens", "0", "--records", "-", "--quiet");
    configuration = configuration_of(&run);
    cr_expect_str_eq(json_string_value(json_object_get(configuration, "init")), "normal");
    json_decref(configuration);
    hs_test_program_free(&run);
}
