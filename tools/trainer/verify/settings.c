/* The command line of `trainer verify`: options of its own, and those of a run. */
#include "trainer/verify/settings.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/exit.h"
#include "trainer/options/command.h"
#include "trainer/options/words.h"
#include "trainer/report.h"

#define HS_SETTINGS hs_verify_settings
#include "trainer/options/rows.h"

static const hs_choice against_choices[] = {{"f64", HSTEP_PRECISION_F64}, {NULL, 0}};
static const hs_choice reference_choices[] = {
    {"exact", HS_VERIFY_EXACT}, {"cpu-reference", HS_VERIFY_CPU_REFERENCE}, {NULL, 0}};

/* clang-format off */
static const hs_option table[] = {
    {.name = "lever", .group = "What", TEXTS(levers), .argument = "NAME",
     .help = "Lever to verify, with the exact ones beside it; may be repeated. Without it: every gated lever that is "
             "active here for the precision"},
    {.name = "against", .group = "What", CHOICE(against, against_choices), .argument = "P",
     .help = "Verify the precision itself, with exact levers, against this one"},
    {.name = "reference", .group = "What", CHOICE(reference, reference_choices), .argument = "R", .initial = "exact",
     .help = "What the others are held to: exact levers, or the plain loops of cpu-reference"},
    {.name = "within", .group = "What", TEXT(within_text), .argument = "X", .initial = "1%",
     .help = "Largest relative gap of the smoothed loss curves, in percent or as a share"},
    {.name = "clear", .group = "What", TEXT(clear), .argument = "NAME",
     .help = "Train nothing: take back that this lever was rejected here"},
    {.name = "json", .group = "Output", FLAG(json), .help = "One JSON object instead of a table"},
    {.name = "help", .group = "Output", FLAG(help), .help = "This text"},
};
/* clang-format on */

static const hs_command command = {
    .name = "verify",
    .head = "Usage: trainer verify [--lever NAME... | --against f64] [OPTION...]\n\n"
            "Trains a reference and what is to be verified side by side, from the same start on the same batches, and\n"
            "holds their smoothed loss curves to each other. A lever that is more than 1% off is remembered as\n"
            "rejected on this machine. Defaults stand in brackets.\n",
    .end = "\nOptions of trainer train say what to train (trainer train --help): those of data, model, training and\n"
           "loss scaling, --backend, --device, --threads, --recompute, --head-rows, --seed, --quiet and --config.\n"
           "--steps is 500 unless given.\n"
           "\nExit status: 0 within; 1 outside, or the reference itself went no further; 2 usage; 3 bad input file;\n"
           "4 could not write; 5 lever, backend or memory unavailable; 130 interrupted.\n",
    .table = table,
    .count = sizeof table / sizeof table[0],
};

static bool names_any(const char *word, const hs_option *rows, size_t count, const hs_option **option,
                      const char **value) {
    for (size_t i = 0; i < count; ++i)
        if (hs_word_names(word, rows[i].name, value)) {
            *option = &rows[i];
            return true;
        }
    return false;
}

/* Words of this command's own options go to `own`, all others to `run`; both have room for argc of them. */
static void split(int argc, char **argv, char **own, int *own_count, char **run, int *run_count) {
    size_t rows;
    const hs_option *run_table = hs_option_table(&rows);
    for (int i = 1; i < argc; ++i) {
        const hs_option *option = NULL;
        const char *value = NULL;
        const bool is_own = names_any(argv[i], table, command.count, &option, &value);
        if (!is_own)
            (void)names_any(argv[i], run_table, rows, &option, &value);
        const bool takes_next = option != NULL && option->kind != HS_OPTION_FLAG && value == NULL && i + 1 < argc;
        for (int words = takes_next ? 2 : 1; words > 0; --words) {
            if (is_own)
                own[(*own_count)++] = argv[i];
            else
                run[(*run_count)++] = argv[i];
            i += words > 1;
        }
    }
}

static int read_within(hs_verify_settings *s) {
    char *end;
    const char *text = s->within_text;
    s->within = strtod(text, &end);
    const bool percent = strcmp(end, "%") == 0;
    if (percent)
        s->within /= 100;
    if ((isdigit((unsigned char)text[0]) || text[0] == '.') && (percent || *end == '\0') && s->within >= 0 &&
        s->within <= 1)
        return HS_EXIT_DONE;
    return hs_report_usage("verify", "--within %s%s%s: give a share of at most 1, such as 1%% or 0.01",
                           hs_report_mark(text), text, hs_report_mark(text));
}

/* A run of this command has no records, checkpoints or samples. */
static bool is_allowed(const hs_option *option) {
    static const char *const groups[] = {"Data", "Model", "Training", "Loss scaling"};
    static const char *const names[] = {"backend",   "device", "threads", "recompute",
                                        "head-rows", "seed",   "quiet",   "config"};
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; ++i)
        if (strcmp(option->group, groups[i]) == 0)
            return true;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i)
        if (strcmp(option->name, names[i]) == 0)
            return true;
    return false;
}

static int check_run_options(const hs_options *o) {
    size_t count;
    const hs_option *rows = hs_option_table(&count);
    for (size_t i = 0; i < count; ++i)
        if (o->sources[i] == HS_SOURCE_COMMAND_LINE && !is_allowed(&rows[i]))
            return hs_report_usage("verify", "--%s has no place in a verification: leave it out", rows[i].name);
    return HS_EXIT_DONE;
}

static int check(hs_verify_settings *s) {
    hs_options *o = &s->options;
    size_t rows;
    int status = read_within(s);
    if (status == HS_EXIT_DONE)
        status = check_run_options(o);
    if (status != HS_EXIT_DONE)
        return status;
    if (o->sources[hs_option_find("steps") - hs_option_table(&rows)] == HS_SOURCE_DEFAULT)
        o->steps = 500;
    if (s->against >= 0 && s->levers.count > 0)
        return hs_report_usage("verify", "--against judges a precision and --lever a lever: give one of them");
    if (s->against >= 0 && o->in_use[s->against] && o->in_use[0] + o->in_use[1] + o->in_use[2] == 1)
        return hs_report_usage("verify", "--precision %s against itself shows nothing: give another --precision",
                               hstep_precision_name((hstep_precision)s->against));
    return HS_EXIT_DONE;
}

int hs_verify_settings_parse(int argc, char **argv, hs_verify_settings *s) {
    char **own = calloc(2 * ((size_t)argc + 1), sizeof *own), **run = own + argc + 1;
    const char *word;
    int own_count = 1, run_count = 1;
    *s = (hs_verify_settings){.against = -1};
    if (own == NULL)
        return hs_report_no_memory();
    own[0] = run[0] = argv[0];
    split(argc, argv, own, &own_count, run, &run_count);
    int status = hs_command_parse(&command, own_count, own, s, &word);
    if (status == HS_EXIT_DONE && !s->help)
        status = hs_options_parse(run_count, run, &s->options);
    if (status == HS_EXIT_DONE && !s->help)
        status = check(s);
    free(own);
    return status;
}

void hs_verify_settings_free(hs_verify_settings *s) {
    free(s->levers.items);
    hs_options_free(&s->options);
}
