/* The program: which command was asked for. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <halfstep/halfstep.h>

#include "trainer/compare/command.h"
#include "trainer/demonstration.h"
#include "trainer/eval/command.h"
#include "trainer/exit.h"
#include "trainer/export/export.h"
#include "trainer/inspect/inspect.h"
#include "trainer/levers/levers.h"
#include "trainer/options/words.h"
#include "trainer/replay/command.h"
#include "trainer/report.h"
#include "trainer/sample/command.h"
#include "trainer/threads.h"
#include "trainer/trace/command.h"
#include "trainer/train/train.h"
#include "trainer/verify/command.h"

static void help(FILE *out) {
    fputs("Usage: trainer train [OPTION...]\n"
          "       trainer sample [OPTION...] CHECKPOINT\n"
          "       trainer eval [OPTION...] CHECKPOINT --data PATH...\n"
          "       trainer export [OPTION...] CHECKPOINT\n"
          "       trainer replay [OPTION...] FILE\n"
          "       trainer levers [OPTION...]\n"
          "       trainer verify [--lever NAME... | --against f64] [OPTION...]\n"
          "       trainer compare --ours A --theirs B [--referee C] [OPTION...]\n"
          "       trainer trace-forward [OPTION...]\n"
          "       trainer inspect [OPTION...] FILE\n"
          "       trainer [--precision fp16|bf16|f64]\n"
          "       trainer COMMAND --help\n"
          "       trainer --help | --version\n\n"
          "train          Trains a decoder on text or token shards, or without --data on a built-in corpus.\n"
          "sample         Lets a trained model go on from a prompt.\n"
          "eval           Loss and perplexity of a trained model on data.\n"
          "export         Writes the weights of a checkpoint alone, for other tools.\n"
          "replay         Runs an attempt that overflowed and was kept once more.\n"
          "levers         Judges and times every faster way to compute on this machine.\n"
          "verify         Trains levers, or a precision, and a reference side by side.\n"
          "compare        Compares tensors with those of another framework.\n"
          "trace-forward  Stores every value of a forward pass, for compare.\n"
          "inspect        Says what is in a checkpoint, a record file, a token shard or a text.\n\n"
          "Without a command it prints one JSON record of numerical demonstrations:\n"
          "  --precision P   fp16, bf16 or f64 [fp16]\n"
          "  --help          this text\n"
          "  --version       the version\n",
          out);
}

/* Standard output that cannot be written, a full disk for instance, is noticed here at the latest. */
static int finish(int result) {
    if (fflush(stdout) == 0 && !ferror(stdout))
        return result;
    if (result != HS_EXIT_DONE)
        return result;
    hs_report("standard output could not be written: see whether its disk is full");
    return HS_EXIT_OUTPUT;
}

static int report_unknown(const char *word) {
    static const char *const names[] = {"precision", "help", "version"};
    if (!hs_word_is_option(word))
        return hs_report_usage(NULL, "unexpected word '%s': a command, such as train, comes first", word);
    return hs_report_unknown_option(NULL, word, names, sizeof names / sizeof names[0],
                                    "training options come after 'train'");
}

static int demonstrate(int argc, char **argv) {
    hstep_precision precision = HSTEP_PRECISION_FP16;
    for (int i = 1; i < argc; ++i) {
        const char *value = NULL;
        if (hs_word_names(argv[i], "help", &value) && value == NULL) {
            help(stdout);
            return HS_EXIT_DONE;
        }
        if (hs_word_names(argv[i], "version", &value) && value == NULL) {
            printf("halfstep %s\n", hstep_version());
            return HS_EXIT_DONE;
        }
        if (value != NULL)
            return hs_report_usage(NULL, "option '%s': it takes no value", argv[i]);
        if (!hs_word_names(argv[i], "precision", &value))
            return report_unknown(argv[i]);
        if (value == NULL && i + 1 < argc)
            value = argv[++i];
        if (value == NULL)
            return hs_report_usage(NULL, "option '--precision' needs a value: fp16, bf16 or f64");
        if (hstep_precision_parse(value, &precision) != HSTEP_OK)
            return hs_report_usage(NULL, "--precision %s%s%s: give one of fp16, bf16, f64", hs_report_mark(value),
                                   value, hs_report_mark(value));
    }
    if (isatty(STDERR_FILENO) && isatty(STDOUT_FILENO))
        hs_report("these are the numerical demonstrations; to train a model: trainer train");
    return demonstration_run(precision, stdout);
}

/*
 * A file that is opened while a standard descriptor is closed would take its number, and messages would be written into
 * it. The null device takes the place, opened the wrong way round: what is read or written there fails, as it does on a
 * closed descriptor.
 */
static void fill_standard_descriptors(void) {
    for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor)
        if (fcntl(descriptor, F_GETFD) < 0 && errno == EBADF)
            (void)open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int main(int argc, char **argv) {
    fill_standard_descriptors();
    /* A limit on the size of files is then a write error with a message. */
    signal(SIGXFSZ, SIG_IGN);
    if (argc < 2 || argv[1][0] == '-')
        return finish(demonstrate(argc, argv));
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
        bool computes;
    } commands[] = {{"train", hs_train, true},      {"sample", hs_sample, true},
                    {"eval", hs_eval, true},        {"levers", hs_levers, true},
                    {"export", hs_export, false},   {"replay", hs_replay, true},
                    {"verify", hs_verify, true},    {"compare", hs_compare, false},
                    {"inspect", hs_inspect, false}, {"trace-forward", hs_trace_forward, true}};
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; ++i) {
        if (strcmp(argv[1], commands[i].name) != 0)
            continue;
        if (commands[i].computes)
            hs_threads_wait_briefly(argv);
        return finish(commands[i].run(argc - 1, argv + 1));
    }
    return hs_report_usage(NULL,
                           "unknown command '%s': there are train, sample, eval, export, replay, levers, verify, "
                           "compare, trace-forward and inspect",
                           argv[1]);
}
