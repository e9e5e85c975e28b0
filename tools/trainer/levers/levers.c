#include "trainer/levers/levers.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/exit.h"
#include "trainer/options/options.h"
#include "trainer/options/words.h"
#include "trainer/report.h"

typedef struct settings {
    bool json, help;
    const char *explain, *device;
    unsigned threads;
    int backend; /* hstep_backend */
} settings;

static void help(FILE *out) {
    fputs("Usage: trainer levers [OPTION...]\n\n"
          "Looks for every faster way to compute, holds the inexact ones against the numeric policy's bounds, and\n"
          "times them against the exact kernels. The verdicts are kept for later runs.\n\n"
          "  --json           one JSON object with every figure\n"
          "  --explain NAME   every shape that one lever was judged at and timed on\n"
          "  --backend B      whose levers: auto, cpu, cpu-reference, vulkan [auto]\n"
          "  --device D       of --backend vulkan: a number or a part of a name, from the list of devices\n"
          "  --threads N      processor threads; 0: as many as the process may use [0]\n"
          "  --help           this text\n\n"
          "Exit status: 0 done; 2 usage; 4 could not write; 5 backend, device or memory unavailable.\n",
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

static int read_backend(const char *text, int *backend) {
    for (const hs_choice *choice = hs_backend_choices; choice->name != NULL; ++choice)
        if (strcmp(choice->name, text) == 0) {
            *backend = choice->value;
            return HS_EXIT_DONE;
        }
    return hs_report_usage("levers", "--backend %s%s%s: give auto, cpu, cpu-reference or vulkan", hs_report_mark(text),
                           text, hs_report_mark(text));
}

enum { JSON, EXPLAIN, BACKEND, DEVICE, THREADS, HELP, OPTIONS };
static const char *const names[OPTIONS] = {"json", "explain", "backend", "device", "threads", "help"};

static int store(settings *s, int option, const char *value) {
    switch (option) {
    case JSON:
        s->json = true;
        break;
    case EXPLAIN:
        s->explain = value;
        break;
    case BACKEND:
        return read_backend(value, &s->backend);
    case DEVICE:
        s->device = value;
        break;
    case THREADS:
        return read_threads(value, &s->threads);
    default:
        s->help = true;
    }
    return HS_EXIT_DONE;
}

/* The option that a word names, OPTIONS for none. */
static int find_option(const char *word, const char **value) {
    int option = 0;
    while (option < OPTIONS && !hs_word_names(word, names[option], value))
        ++option;
    return option;
}

static int parse(int argc, char **argv, settings *s) {
    int result = HS_EXIT_DONE;
    for (int i = 1; i < argc && result == HS_EXIT_DONE; ++i) {
        if (!hs_word_is_option(argv[i]))
            return hs_report_usage("levers", "unexpected word '%s': it takes options alone", argv[i]);
        const char *value = NULL;
        const int option = find_option(argv[i], &value);
        const bool wants_value = option >= EXPLAIN && option <= THREADS;
        if (option == OPTIONS)
            return hs_report_unknown_option("levers", argv[i], names, OPTIONS, "check its spelling");
        if (!wants_value && value != NULL)
            return hs_report_usage("levers", "option --%s takes no value", names[option]);
        if (wants_value && value == NULL) {
            result = hs_word_check_value("levers", argv[i], i + 1 < argc ? argv[i + 1] : NULL, names, OPTIONS);
            if (result != HS_EXIT_DONE)
                return result;
            value = argv[++i];
        }
        result = store(s, option, value);
    }
    return result;
}

const char *hs_levers_form(hstep_transpose a_form, hstep_transpose b_form) {
    static const char *const forms[2][2] = {{"A B", "A Bt"}, {"At B", "At Bt"}};
    return forms[a_form == HSTEP_TRANSPOSE][b_form == HSTEP_TRANSPOSE];
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
    if (one == NULL)
        hs_levers_print_devices(stdout);
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
    if (s.device != NULL && s.backend != HSTEP_BACKEND_VULKAN)
        return hs_report_usage("levers", "--device goes with --backend vulkan: give it too");
    const hstep_context_options options = {.backend = (hstep_backend)s.backend,
                                           .device = s.device,
                                           .threads = s.threads,
                                           .levers = "auto",
                                           .judge_anew = 1};
    hstep_context *context = NULL;
    hstep_error error = {0};
    if (hstep_context_create(&options, &context, &error) != HSTEP_OK)
        return hs_report_error(&error);
    result = print(&s, context);
    hstep_context_destroy(context);
    return result;
}
