#include "trainer/compare/command.h"

#include <fnmatch.h>

#include "trainer/compare/rows.h"
#include "trainer/exit.h"
#include "trainer/options/command.h"
#include "trainer/report.h"

typedef struct settings {
    hs_comparison_task task;
    bool json, help;
} settings;

#define HS_SETTINGS settings
#include "trainer/options/rows.h"

/* clang-format off */
static const hs_option table[] = {
    {.name = "ours", .group = "What", TEXT(task.ours), .argument = "A",
     .help = "Tensors of this engine: a safetensors file, or a folder of them"},
    {.name = "theirs", .group = "What", TEXT(task.theirs), .argument = "B",
     .help = "The same of another framework, computed in float32"},
    {.name = "referee", .group = "What", TEXT(task.referee), .argument = "C",
     .help = "The same of a float64 run; without it every tensor is held to the target"},
    {.name = "precision", .group = "Rules", CHOICE(task.precision, hs_precision_choices), .argument = "P",
     .help = "That ours was computed in, where its file says nothing or something else; without either: f64"},
    {.name = "target", .group = "Rules", REAL(task.target, 0, 1e300), .argument = "X",
     .help = "Largest distance from theirs, for outputs of blocks, logits and probabilities; without it 1e-4 in f64, "
             "and none in other precisions"},
    {.name = "target-for", .group = "Rules", TEXTS(task.target_for),
     .argument = "PATTERN",
     .help = "Further tensors that the target is for, such as 'decoder.*'; may be repeated"},
    {.name = "json", .group = "Output", FLAG(json),
     .help = "One JSON object instead of a table"},
    {.name = "help", .group = "Output", FLAG(help), .help = "This text"},
};
/* clang-format on */

static const hs_command command = {
    .name = "compare",
    .head = "Usage: trainer compare --ours A --theirs B [--referee C] [OPTION...]\n\n"
            "Compares tensors of the same names, and says of each which claim holds: equal bits; within the target;\n"
            "no farther from the referee than the other's own float32; or outside.\n",
    .end = "\nExit status: 0 all within; 1 something outside, missing, extra, nonfinite or of another shape; 2 usage;\n"
           "3 bad file; 4 could not write; 5 memory.\n",
    .table = table,
    .count = sizeof table / sizeof table[0],
};

static int print(const settings *s, const hs_rows *rows) {
    int status = HS_EXIT_DONE;
    if (s->json)
        status = hs_rows_print_json(&s->task, rows);
    else
        hs_rows_print(&s->task, rows);
    for (size_t i = 0; i < rows->count && status == HS_EXIT_DONE; ++i)
        status = hs_row_passes(&rows->items[i]) ? HS_EXIT_DONE : HS_EXIT_NUMERICAL_STOP;
    return status;
}

/* A pattern that fits nothing is a mistake in it: what it was to hold to the target would pass by another rule. */
static int check_patterns(const hs_texts *patterns, const hs_rows *rows) {
    for (size_t i = 0; i < patterns->count; ++i) {
        size_t row = 0;
        while (row < rows->count &&
               (rows->items[row].tensor == NULL || fnmatch(patterns->items[i], rows->items[row].tensor, 0) != 0))
            ++row;
        if (row == rows->count)
            return hs_report_usage("compare", "--target-for '%s' fits no tensor: trainer inspect lists their names",
                                   patterns->items[i]);
    }
    return HS_EXIT_DONE;
}

static int compare(const settings *s) {
    if (s->task.ours == NULL || s->task.theirs == NULL)
        return hs_report_usage("compare", "there is nothing to compare: give --ours and --theirs");
    hs_rows rows;
    int status = hs_rows_collect(&s->task, &rows);
    if (status == HS_EXIT_DONE)
        status = check_patterns(&s->task.target_for, &rows);
    if (status == HS_EXIT_DONE)
        status = print(s, &rows);
    hs_rows_free(&rows);
    return status;
}

int hs_compare(int argc, char **argv) {
    settings s = {.task = {.precision = -1, .target = -1}};
    const char *word;
    int status = hs_command_parse(&command, argc, argv, &s, &word);
    if (status == HS_EXIT_DONE && !s.help)
        status = compare(&s);
    free(s.task.target_for.items);
    return status;
}
