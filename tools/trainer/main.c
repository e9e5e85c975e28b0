/* The program: which command was asked for. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <halfstep/halfstep.h>

#include "trainer/demonstration.h"
#include "trainer/exit.h"
#include "trainer/report.h"
#include "trainer/threads.h"
#include "trainer/train/train.h"

static void help(FILE *out) {
    fputs("Usage: trainer train [OPTION...]\n"
          "       trainer [--precision fp16|bf16|f64]\n"
          "       trainer --help | --version\n\n"
          "train    Trains a decoder on text files, or without --data on a built-in corpus\n"
          "         (trainer train --help).\n\n"
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

/* The value of an option that is "NAME VALUE" or "NAME=VALUE" at argv[*i], which moves on; NULL when it is neither. */
static const char *value_of(const char *name, int argc, char **argv, int *i) {
    const size_t length = strlen(name);
    if (strncmp(argv[*i], name, length) != 0)
        return NULL;
    if (argv[*i][length] == '=')
        return argv[*i] + length + 1;
    return argv[*i][length] == '\0' && *i + 1 < argc ? argv[++*i] : NULL;
}

static int demonstrate(int argc, char **argv) {
    hstep_precision precision = HSTEP_PRECISION_FP16;
    for (int i = 1; i < argc; ++i) {
        if (strcmp(argv[i], "--help") == 0) {
            help(stdout);
            return HS_EXIT_DONE;
        }
        if (strcmp(argv[i], "--version") == 0) {
            printf("halfstep %s\n", hstep_version());
            return HS_EXIT_DONE;
        }
        const char *option = argv[i];
        const char *value = value_of("--precision", argc, argv, &i);
        if (value == NULL)
            return strcmp(option, "--precision") == 0
                       ? hs_report_usage(NULL, "option '--precision' needs a value: fp16, bf16 or f64")
                       : hs_report_usage(NULL, "unknown option '%s': training options come after 'train'", option);
        if (hstep_precision_parse(value, &precision) != HSTEP_OK)
            return hs_report_usage(NULL, "--precision %s: give one of fp16, bf16, f64", value);
    }
    if (isatty(STDERR_FILENO) && isatty(STDOUT_FILENO))
        hs_report("these are the numerical demonstrations; to train a model: trainer train");
    return demonstration_run(precision, stdout);
}

int main(int argc, char **argv) {
    if (argc < 2 || argv[1][0] == '-')
        return finish(demonstrate(argc, argv));
    if (strcmp(argv[1], "train") == 0) {
        hs_threads_wait_briefly(argv);
        return finish(hs_train(argc - 1, argv + 1));
    }
    static const char *const later[] = {"sample", "eval", "levers", "verify", "compare", "export", "inspect"};
    for (size_t i = 0; i < sizeof later / sizeof later[0]; ++i)
        if (strcmp(argv[1], later[i]) == 0)
            return hs_report_usage(NULL, "this version has no command '%s' yet: it has 'train'", argv[1]);
    return hs_report_usage(NULL, "unknown command '%s': there is 'train'", argv[1]);
}
