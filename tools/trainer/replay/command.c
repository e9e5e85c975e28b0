#include "trainer/replay/command.h"

#include "trainer/exit.h"
#include "trainer/options/command.h"
#include "trainer/replay/attempt.h"
#include "trainer/replay/print.h"
#include "trainer/report.h"

typedef struct settings {
    hs_attempt_choices choices;
    bool json, help;
} settings;

#define HS_SETTINGS settings
#include "trainer/options/rows.h"

/* clang-format off */
static const hs_option table[] = {
    BACKEND_ROW(choices.backend, .group = "Options", .help = "What computes; without it: as in the run"),
    DEVICE_ROW(choices.device, .group = "Options",
               .help = "Of the backend vulkan: a number, from 0, or a part of a device's name; without it: as in the run, "
                       "and with --backend any"),
    THREADS_ROW(choices.threads, .group = "Options",
                .help = "Processor threads, 0 as many as the process may use; without it: as in the run"),
    LEVERS_ROW(choices.levers, .group = "Options",
               .help = "Faster ways to compute, as in trainer train; without it: those of the run"),
    {.name = "json", .group = "Options", FLAG(json), .help = "One JSON object"},
    {.name = "help", .group = "Options", FLAG(help), .help = "This text"},
};
/* clang-format on */

static const hs_command command = {
    .name = "replay",
    .head = "Usage: trainer replay [OPTION...] FILE\n\n"
            "Runs an attempt that overflowed once more, and says what the operation read and wrote where the first\n"
            "value was not finite. FILE is one that trainer train --dump-overflow kept. Nothing is learned.\n",
    .end = "\nExit status: 0 the same overflow as recorded; 1 another one, or none; 2 usage; 3 bad file; 4 could not\n"
           "write; 5 backend, device, memory or required lever unavailable.\n",
    .word = "a file of an attempt",
    .table = table,
    .count = sizeof table / sizeof table[0],
};

/* The tokens are the file's: what an update refuses is the file's fault. */
static int report(const hs_attempt *attempt, hstep_status status, const hstep_error *error) {
    if (status != HSTEP_ERROR_TOKEN && status != HSTEP_ERROR_SHAPE && status != HSTEP_ERROR_NO_TARGETS)
        return hs_report_error(error);
    hs_report("'%s': %s", attempt->path, error->message);
    return HS_EXIT_INPUT;
}

static int replay(const settings *s, hs_attempt *attempt) {
    hstep_explanation found;
    hstep_error error = {0};
    const hstep_status explained =
        hstep_trainer_explain(attempt->trainer, attempt->window, attempt->window_count, &found, &error);
    if (explained != HSTEP_OK)
        return report(attempt, explained, &error);
    int status = HS_EXIT_DONE;
    if (s->json)
        status = hs_replay_print_json(stdout, attempt, &found);
    else
        hs_replay_print(stdout, attempt, &found);
    if (status != HS_EXIT_DONE || hs_replay_agrees(attempt, &found))
        return status;
    hs_report("this is not what was recorded: other levers, another machine or another version compute otherwise");
    return HS_EXIT_NUMERICAL_STOP;
}

int hs_replay(int argc, char **argv) {
    settings s = {.choices = {.backend = -1, .threads = UINT64_MAX}};
    const char *path;
    int status = hs_command_parse(&command, argc, argv, &s, &path);
    if (status != HS_EXIT_DONE || path == NULL)
        return status;
    hs_attempt attempt;
    status = hs_attempt_open(path, &s.choices, &attempt);
    if (status == HS_EXIT_DONE)
        status = replay(&s, &attempt);
    hs_attempt_close(&attempt);
    return status;
}
