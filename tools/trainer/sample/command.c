#include "trainer/sample/command.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/exit.h"
#include "trainer/model/load.h"
#include "trainer/options/command.h"
#include "trainer/report.h"
#include "trainer/sample/stream.h"
#include "trainer/text/sample.h"
#include "trainer/train/watching/clock.h"
#include "trainer/train/watching/interrupt.h"

typedef struct settings {
    const char *prompt, *prompt_tokens;
    uint64_t tokens, context, seed;
    double temperature, top_p, repetition_penalty;
    uint64_t top_k;
    hs_texts stops;
    hs_model_choices model;
    bool quiet, help;
} settings;

#define HS_SETTINGS settings
#include "trainer/options/rows.h"

/* clang-format off */
static const hs_option table[] = {
    {.name = "prompt", .group = "Text", TEXT(prompt), .argument = "TEXT",
     .help = "Text to go on from; without it: a line end"},
    {.name = "prompt-tokens", .group = "Text", TEXT(prompt_tokens), .argument = "LIST",
     .help = "Tokens to go on from instead, such as 15,3,27; a model of token shards needs them"},
    {.name = "tokens", .group = "Text", COUNT(tokens, 1, HS_MANY), .argument = "N", .initial = "200",
     .help = "The most tokens to add"},
    {.name = "stop", .group = "Text", TEXTS(stops), .argument = "TEXT",
     .help = "End before this text; may be repeated"},
    {.name = "context", .group = "Text", COUNT(context, 0, HS_MANY), .argument = "N", .initial = "0",
     .help = "Tokens that the model looks back on: when it is full, it begins anew with its last half; 0: that of the "
             "training"},

    {.name = "temperature", .group = "Choice of a token", REAL(temperature, 0, 1e6), .argument = "X", .initial = "0.8",
     .help = "Divides the logits; 0: always the likeliest token"},
    {.name = "top-k", .group = "Choice of a token", COUNT(top_k, 0, 1e9), .argument = "N", .initial = "0",
     .help = "Choose among the N likeliest tokens; 0: all"},
    {.name = "top-p", .group = "Choice of a token", REAL(top_p, 0, 1), .above = true, .argument = "X", .initial = "1",
     .help = "Choose among the fewest likeliest tokens whose probabilities add up to X"},
    {.name = "repetition-penalty", .group = "Choice of a token", REAL(repetition_penalty, 0, 1e6), .above = true,
     .argument = "X", .initial = "1", .help = "Above 1: tokens that were there become less likely"},
    {.name = "seed", .group = "Choice of a token", COUNT(seed, 0, 0x1p63), .argument = "N", .initial = "1",
     .help = "The same seed chooses the same tokens"},

    MODEL_ROWS(model),
    {.name = "quiet", .group = "Run", FLAG(quiet), .help = "No speed at the end"},
    {.name = "help", .group = "Run", FLAG(help), .help = "This text"},
};
/* clang-format on */

static const hs_command command = {
    .name = "sample",
    .head = "Usage: trainer sample [OPTION...] CHECKPOINT\n\n"
            "Lets a trained model go on from a prompt. CHECKPOINT is a file, or the folder of a run, of which the\n"
            "newest good checkpoint is taken. Prompt and text go to standard output as they come; of models of token\n"
            "shards, the numbers of the tokens. Defaults stand in brackets.\n",
    .end = "\nExit status: 0 done; 1 numerical stop; 2 usage; 3 bad checkpoint; 4 could not write; 5 backend, device,\n"
           "memory or required lever unavailable; 130 interrupted.\n",
    .word = "a checkpoint",
    .table = table,
    .count = sizeof table / sizeof table[0],
};

/* ---- The beginning ---- */

/* Appends the numbers of a list; returns how many, or 0 where it is none. */
static size_t read_tokens(const char *list, int32_t *tokens) {
    size_t count = 0;
    for (const char *at = list;; ++at) {
        char *end;
        errno = 0;
        const long value = strtol(at, &end, 10);
        if (end == at || errno == ERANGE || value < 0 || value > INT32_MAX || (*end != ',' && *end != '\0'))
            return 0;
        tokens[count++] = (int32_t)value;
        at = end;
        if (*at == '\0')
            return count;
    }
}

/* Fills the row with the prompt; *known becomes its length. The row has room for as many tokens as the prompt has
 * bytes. */
static int read_prompt(const settings *s, const hs_loaded_model *loaded, int32_t *row, size_t *known) {
    if (s->prompt_tokens == NULL) {
        const char *prompt = s->prompt != NULL ? s->prompt : "\n";
        *known = strlen(prompt);
        hs_tokens_from_bytes(prompt, *known, row);
        return HS_EXIT_DONE;
    }
    const char *mark = hs_report_mark(s->prompt_tokens);
    *known = read_tokens(s->prompt_tokens, row);
    if (*known == 0)
        return hs_report_usage("sample", "--prompt-tokens %s%s%s: give whole numbers, such as 15,3,27", mark,
                               s->prompt_tokens, mark);
    for (size_t i = 0; i < *known; ++i)
        if ((size_t)row[i] >= loaded->vocabulary)
            return hs_report_usage("sample", "--prompt-tokens: the model has tokens 0 to %zu, and %" PRId32 " is none",
                                   loaded->vocabulary - 1, row[i]);
    return HS_EXIT_DONE;
}

/* What can be said before the model is there, and after. */
static int check(const settings *s) {
    if (s->prompt != NULL && s->prompt_tokens != NULL)
        return hs_report_usage("sample", "--prompt and --prompt-tokens both say where to begin: give one of them");
    for (size_t i = 0; i < s->stops.count; ++i)
        if (s->stops.items[i][0] == '\0')
            return hs_report_usage("sample", "--stop '': give at least one character");
    return HS_EXIT_DONE;
}

static int check_model(const settings *s, const hs_loaded_model *loaded) {
    if (loaded->is_text || (s->prompt_tokens != NULL && s->stops.count == 0))
        return HS_EXIT_DONE;
    return hs_report_usage("sample",
                           "this model's tokens are not bytes (its vocabulary is %zu): begin with --prompt-tokens%s",
                           loaded->vocabulary, s->stops.count > 0 ? ", and leave --stop out" : "");
}

/* ---- The text ---- */

typedef struct writer {
    hs_stream stream;
    bool is_text, begun;
} writer;

/* False without memory. */
static bool write_tokens(writer *w, const int32_t *tokens, size_t count) {
    char bytes[16];
    bool held = true;
    for (size_t i = 0; i < count && held; ++i) {
        const size_t size = w->is_text
                                ? hs_bytes_from_tokens(&tokens[i], 1, bytes)
                                : (size_t)snprintf(bytes, sizeof bytes, "%s%" PRId32, w->begun ? " " : "", tokens[i]);
        held = hs_stream_put(&w->stream, bytes, size);
        w->begun = true;
    }
    return held;
}

/* The prompt is written without looking for stop texts in it. */
static bool write_prompt(writer *w, const int32_t *tokens, size_t count) {
    const hs_texts stops = w->stream.stops;
    w->stream.stops = (hs_texts){0};
    const bool written = write_tokens(w, tokens, count);
    w->stream.stops = stops;
    return written;
}

static bool is_over(const writer *w, int32_t token) {
    return w->stream.stopped || (w->is_text && token == HSTEP_TOKEN_EOS) || ferror(w->stream.out);
}

/* Adds up to s->tokens tokens behind `known` ones; *added becomes their number. */
static hstep_status go_on(const settings *s, hstep_decoding *decoding, writer *w, int32_t *row, size_t known,
                          size_t *added, hstep_error *error) {
    const hstep_sampling sampling = {.temperature = s->temperature,
                                     .top_k = s->top_k,
                                     .top_p = s->top_p,
                                     .repetition_penalty = s->repetition_penalty};
    const size_t stride = known + s->tokens;
    for (*added = 0; *added < s->tokens && !hs_interrupted(); ++*added) {
        const size_t at = known + *added;
        const hstep_status status = hstep_decoding_extend(decoding, &sampling, s->seed, row, stride, at, error);
        if (status != HSTEP_OK)
            return status;
        if (!write_tokens(w, &row[at], 1))
            return hs_no_memory(error);
        if (is_over(w, row[at])) {
            ++*added;
            break;
        }
    }
    return HSTEP_OK;
}

static void end_line(writer *w) {
    hs_stream_flush(&w->stream);
    if (w->stream.last != '\n')
        putchar('\n');
    fflush(stdout);
}

static int write_text(const settings *s, const hs_loaded_model *loaded, int32_t *row, size_t known) {
    const size_t context = s->context != 0 ? s->context : loaded->options.context;
    hstep_decoding *decoding = NULL;
    hstep_error error = {0};
    if (hstep_decoding_create(loaded->model, 1, context, &decoding, &error) != HSTEP_OK)
        return hs_report_error(&error);
    writer w = {.stream = {.out = stdout, .stops = s->stops}, .is_text = loaded->is_text};
    size_t added = 0;
    const double start = hs_now();
    const hstep_status status =
        write_prompt(&w, row, known) ? go_on(s, decoding, &w, row, known, &added, &error) : hs_no_memory(&error);
    const double seconds = hs_now() - start;
    end_line(&w);
    hs_stream_free(&w.stream);
    hstep_decoding_destroy(decoding);
    if (status != HSTEP_OK)
        return hs_report_error(&error);
    if (!s->quiet)
        hs_report("%zu tokens in %.2f s: %.1f tokens/s", added, seconds, (double)added / seconds);
    return hs_interrupted() ? HS_EXIT_INTERRUPTED : HS_EXIT_DONE;
}

static int sample_from(const settings *s, const hs_loaded_model *loaded) {
    int status = check_model(s, loaded);
    if (status != HS_EXIT_DONE)
        return status;
    const char *prompt = s->prompt_tokens != NULL ? s->prompt_tokens : s->prompt != NULL ? s->prompt : "\n";
    int32_t *row = calloc(strlen(prompt) + s->tokens, sizeof *row);
    size_t known = 0;
    if (row == NULL)
        return hs_report_no_memory();
    status = read_prompt(s, loaded, row, &known);
    if (status == HS_EXIT_DONE)
        status = write_text(s, loaded, row, known);
    free(row);
    return status;
}

int hs_sample(int argc, char **argv) {
    settings s = {.model = {.precision = -1}};
    const char *checkpoint;
    int status = hs_command_parse(&command, argc, argv, &s, &checkpoint);
    if (status == HS_EXIT_DONE && checkpoint != NULL)
        status = check(&s);
    if (status == HS_EXIT_DONE && checkpoint != NULL) {
        hs_loaded_model loaded;
        hs_interrupt_watch();
        status = hs_model_load("sample", checkpoint, &s.model, &loaded);
        if (status == HS_EXIT_DONE)
            status = sample_from(&s, &loaded);
        hs_model_unload(&loaded);
    }
    free(s.stops.items);
    free(s.model.precision_for.items);
    return status;
}
