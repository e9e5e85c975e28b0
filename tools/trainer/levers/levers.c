#include "trainer/levers/levers.h"

#include <ctype.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/exit.h"
#include "trainer/report.h"

typedef struct settings {
    bool json, help;
    const char *explain;
    unsigned threads;
} settings;

static void help(FILE *out) {
    fputs("Usage: trainer levers [OPTION...]\n\n"
          "Looks for every faster way to compute, holds the inexact ones against the numeric policy's bounds, and\n"
          "times them against the exact kernels. The verdicts are kept for later runs.\n\n"
          "  --json           one JSON object with every figure\n"
          "  --explain NAME   every shape that one lever was judged at and timed on\n"
          "  --threads N      processor threads; 0: as many as the process may use [0]\n"
          "  --help           this text\n",
          out);
}

static int read_threads(const char *text, unsigned *threads) {
    char *end;
    const unsigned long value = strtoul(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end != '\0' || value > 1024)
        return hs_report_usage("levers", "--threads %s%s%s: give a whole number of at most 1024", hs_report_mark(text),
                               text, hs_report_mark(text));
    *threads = (unsigned)value;
    return HS_EXIT_DONE;
}

static int parse(int argc, char **argv, settings *s) {
    static const struct option known[] = {{"json", no_argument, NULL, 'j'},
                                          {"explain", required_argument, NULL, 'e'},
                                          {"threads", required_argument, NULL, 't'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    int result = HS_EXIT_DONE, found;
    opterr = 0;
    while (result == HS_EXIT_DONE && (found = getopt_long(argc, argv, "+:", known, NULL)) != -1) {
        switch (found) {
        case 'j':
            s->json = true;
            break;
        case 'e':
            s->explain = optarg;
            break;
        case 't':
            result = read_threads(optarg, &s->threads);
            break;
        case 'h':
            s->help = true;
            break;
        case ':':
            return hs_report_usage("levers", "option '%s' needs a value", argv[optind - 1]);
        default:
            return hs_report_usage("levers", "unknown option '%s': check its spelling", argv[optind - 1]);
        }
    }
    if (result == HS_EXIT_DONE && optind < argc)
        return hs_report_usage("levers", "unexpected word '%s'", argv[optind]);
    return result;
}

const char *hs_levers_form(hstep_transpose a_form, hstep_transpose b_form) {
    return a_form == HSTEP_TRANSPOSE ? "At B" : b_form == HSTEP_TRANSPOSE ? "A Bt" : "A B";
}

static const hstep_lever *find(const hstep_context *context, const char *name) {
    const hstep_lever *levers;
    const size_t count = hstep_context_levers(context, &levers);
    for (size_t i = 0; i < count; ++i)
        if (strcmp(levers[i].name, name) == 0)
            return &levers[i];
    return NULL;
}

static int print(const settings *s, const hstep_context *context) {
    const hstep_lever *one = s->explain != NULL ? find(context, s->explain) : NULL;
    if (s->explain != NULL && one == NULL)
        return hs_report_usage("levers", "--explain %s%s%s: there is no lever of this name; trainer levers lists them",
                               hs_report_mark(s->explain), s->explain, hs_report_mark(s->explain));
    if (s->json)
        return hs_levers_print_json(stdout, context, one);
    if (one != NULL)
        hs_levers_explain(stdout, one);
    else
        hs_levers_print_table(stdout, context);
    return HS_EXIT_DONE;
}

int hs_levers(int argc, char **argv) {
    settings s = {0};
    int result = parse(argc, argv, &s);
    if (result != HS_EXIT_DONE)
        return result;
    if (s.help) {
        help(stdout);
        return HS_EXIT_DONE;
    }
    const hstep_context_options options = {.threads = s.threads, .levers = "auto", .judge_anew = 1};
    hstep_context *context = NULL;
    hstep_error error = {0};
    if (hstep_context_create(&options, &context, &error) != HSTEP_OK)
        return hs_report_error(&error);
    result = print(&s, context);
    hstep_context_destroy(context);
    return result;
}
