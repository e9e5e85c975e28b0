#include "trainer/export/export.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <halfstep/checkpoint.h>

#include "trainer/exit.h"
#include "trainer/model/load.h"
#include "trainer/model/target.h"
#include "trainer/options/command.h"
#include "trainer/report.h"

typedef struct settings {
    int dtype; /* hstep_storage */
    const char *out;
    bool overwrite, quiet, help;
} settings;

static const hs_choice dtypes[] = {{"f32", HSTEP_STORAGE_F32},
                                   {"bf16", HSTEP_STORAGE_BF16},
                                   {"f16", HSTEP_STORAGE_F16},
                                   {"f64", HSTEP_STORAGE_F64},
                                   {NULL, 0}};

#define HS_SETTINGS settings
#include "trainer/options/rows.h"

/* clang-format off */
static const hs_option table[] = {
    {.name = "dtype", .group = "Options", CHOICE(dtype, dtypes), .argument = "T", .initial = "f32",
     .help = "Type of the numbers, each rounded once from f64"},
    {.name = "out", .group = "Options", TEXT(out), .argument = "FILE",
     .help = "Where they go; without it: beside the checkpoint, under its name with the type before the ending"},
    {.name = "overwrite", .group = "Options", FLAG(overwrite), .help = "Replace a file that is there"},
    {.name = "quiet", .group = "Options", FLAG(quiet), .help = "Say nothing but what was lost"},
    {.name = "help", .group = "Options", FLAG(help), .help = "This text"},
};
/* clang-format on */

static const hs_command command = {
    .name = "export",
    .head = "Usage: trainer export [OPTION...] CHECKPOINT\n\n"
            "Writes the weights of a checkpoint alone, as a safetensors file for other tools, and says on standard\n"
            "error how many numbers the type had no room for. CHECKPOINT is a file, or the folder of a run, of which\n"
            "the newest good checkpoint is taken. Defaults stand in brackets.\n",
    .end = "\nExit status: 0 done, also where numbers overflowed; 2 usage; 3 bad checkpoint; 4 could not write, or a\n"
           "file is there already; 5 memory.\n",
    .word = "a checkpoint",
    .table = table,
    .count = sizeof table / sizeof table[0],
};

static const char *dtype_name(int dtype) {
    size_t i = 0;
    while (dtypes[i].value != dtype)
        ++i;
    return dtypes[i].name;
}

/* NAME.safetensors gives NAME.bf16.safetensors. */
static int choose_path(const settings *s, const char *from, char *path, size_t size) {
    static const char ending[] = ".safetensors";
    const size_t length = strlen(from), tail = sizeof ending - 1;
    const bool ends = length > tail && strcmp(from + length - tail, ending) == 0;
    const int written = s->out != NULL ? snprintf(path, size, "%s", s->out)
                                       : snprintf(path, size, "%.*s.%s%s", (int)(ends ? length - tail : length), from,
                                                  dtype_name(s->dtype), ending);
    return written >= 0 && (size_t)written < size ? HS_EXIT_DONE
                                                  : hs_report_usage("export", "the path of --out is too long");
}

static const char *numbers_are(uint64_t count) { return count == 1 ? "number is" : "numbers are"; }

static void say_what_was_lost(const settings *s, const hstep_export_report *report) {
    const char *name = dtype_name(s->dtype);
    if (report->overflowed > 0)
        hs_report("%" PRIu64 " %s too large for %s and became infinite, the first in %s at index %" PRIu64,
                  report->overflowed, numbers_are(report->overflowed), name, report->first_overflow,
                  report->first_index);
    if (report->underflowed > 0)
        hs_report("%" PRIu64 " %s too small for %s and became 0", report->underflowed, numbers_are(report->underflowed),
                  name);
    if (report->nonfinite > 0)
        hs_report("%" PRIu64 " %s infinite or NaN in the checkpoint itself", report->nonfinite,
                  numbers_are(report->nonfinite));
}

static int export_weights(const settings *s, const char *from) {
    char path[HS_PATH_ROOM];
    hstep_error error = {0};
    hstep_export_report report;
    int status = choose_path(s, from, path, sizeof path);
    if (status == HS_EXIT_DONE)
        status = hs_target_check("export", from, path, s->overwrite);
    if (status != HS_EXIT_DONE)
        return status;
    if (hstep_checkpoint_export(from, path, (hstep_storage)s->dtype, &report, &error) != HSTEP_OK)
        return hs_report_error(&error);
    if (!s->quiet)
        hs_report("'%s': %zu tensors, %" PRIu64 " numbers in %s", path, report.tensors, report.elements,
                  dtype_name(s->dtype));
    say_what_was_lost(s, &report);
    return HS_EXIT_DONE;
}

int hs_export(int argc, char **argv) {
    settings s = {.help = false};
    const char *word;
    char from[HS_PATH_ROOM];
    int status = hs_command_parse(&command, argc, argv, &s, &word);
    if (status != HS_EXIT_DONE || word == NULL)
        return status;
    status = hs_model_find(word, from, sizeof from);
    return status == HS_EXIT_DONE ? export_weights(&s, from) : status;
}
