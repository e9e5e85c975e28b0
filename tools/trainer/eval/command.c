#include "trainer/eval/command.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "trainer/exit.h"
#include "trainer/model/load.h"
#include "trainer/options/command.h"
#include "trainer/report.h"
#include "trainer/train/evaluate.h"
#include "trainer/train/watching/interrupt.h"

typedef struct settings {
    hs_texts data;
    int token_type; /* hstep_token_type */
    uint64_t context, batch_size;
    hs_model_choices model;
    bool json, help;
} settings;

#define HS_SETTINGS settings
#include "trainer/options/rows.h"

/* clang-format off */
static const hs_option table[] = {
    {.name = "data", .group = "Data", TEXTS(data), .argument = "PATH",
     .help = "Text or token shards, all of it: a file, a folder, or a quoted pattern; may be repeated"},
    {.name = "token-type", .group = "Data", CHOICE(token_type, hs_token_type_choices), .argument = "T",
     .initial = "auto", .help = "How raw tokens are written; auto knows shards of llm.c and takes all else for text"},
    {.name = "context", .group = "Data", COUNT(context, 0, HS_MANY), .argument = "N", .initial = "0",
     .help = "Tokens in a window; 0: as in training"},
    {.name = "batch-size", .group = "Run", COUNT(batch_size, 1, HS_MANY), .argument = "N", .initial = "8",
     .help = "Windows in a pass; the loss depends on it in its last digits at most"},
    MODEL_ROWS(model),
    {.name = "json", .group = "Run", FLAG(json), .help = "One JSON object"},
    {.name = "help", .group = "Run", FLAG(help), .help = "This text"},
};
/* clang-format on */

static const hs_command command = {
    .name = "eval",
    .head =
        "Usage: trainer eval [OPTION...] CHECKPOINT --data PATH...\n\n"
        "Mean loss and perplexity of a trained model over data. CHECKPOINT is a file, or the folder of a run, of\n"
        "which the newest good checkpoint is taken. The data are cut into windows that lie end to end; in each, the\n"
        "model looks back as far as the window's beginning. Defaults stand in brackets.\n",
    .end = "\nExit status: 0 done; 1 numerical stop; 2 usage; 3 bad checkpoint or data; 4 could not write; 5 backend,\n"
           "device, memory or required lever unavailable; 130 interrupted.\n",
    .word = "a checkpoint",
    .table = table,
    .count = sizeof table / sizeof table[0],
};

static hstep_status load_data(const settings *s, const hs_loaded_model *loaded, hstep_dataset **dataset,
                              hstep_error *error) {
    const hstep_dataset_options options = {.token_type = (hstep_token_type)s->token_type,
                                           .vocabulary = loaded->is_text ? 0 : loaded->vocabulary};
    const hstep_status status = hstep_dataset_load(s->data.items, s->data.count, &options, dataset, error);
    return status == HSTEP_OK ? hstep_dataset_split_at(*dataset, 0, error) : status;
}

static int check_data(const hs_loaded_model *loaded, const hstep_dataset *dataset, size_t context) {
    const size_t vocabulary = hstep_dataset_vocabulary(dataset);
    const bool is_text = hstep_dataset_token_type(dataset) == HSTEP_TOKENS_BYTES;
    if (vocabulary != loaded->vocabulary || is_text != loaded->is_text) {
        hs_report("the data are %s with a vocabulary of %zu, the model is one of %s with %zu: give other data",
                  is_text ? "text" : "token shards", vocabulary, loaded->is_text ? "text" : "token shards",
                  loaded->vocabulary);
        return HS_EXIT_INPUT;
    }
    if (hstep_dataset_evaluation_windows(dataset, context, 0) > 0)
        return HS_EXIT_DONE;
    hs_report("the data have %zu token%s, and a loss takes 2 that stand together: give more",
              hstep_dataset_tokens(dataset), hstep_dataset_tokens(dataset) == 1 ? "" : "s");
    return HS_EXIT_INPUT;
}

static int print(const settings *s, const hs_evaluation *e) {
    const double perplexity = exp(e->loss);
    if (!s->json) {
        printf("loss        %.6f nats/token\nperplexity  %.4f\ntokens      %" PRIu64 "\nseconds     %.2f\n", e->loss,
               perplexity, e->tokens, e->seconds);
        return HS_EXIT_DONE;
    }
    /* A loss of which the exponential is beyond all numbers has no perplexity that JSON could say. */
    json_t *found = json_pack("{s:f, s:o, s:I, s:f}", "loss", e->loss, "perplexity",
                              isfinite(perplexity) ? json_real(perplexity) : json_null(), "tokens",
                              (json_int_t)e->tokens, "seconds", e->seconds);
    if (found == NULL)
        return hs_report_no_memory();
    const int failed = json_dumpf(found, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    json_decref(found);
    return failed != 0 || puts("") == EOF ? HS_EXIT_OUTPUT : HS_EXIT_DONE;
}

static int evaluate(const settings *s, const hs_loaded_model *loaded, const hstep_dataset *dataset, size_t context) {
    const size_t sequences = s->batch_size;
    int32_t *tokens = calloc(sequences * context, sizeof *tokens),
            *targets = calloc(sequences * context, sizeof *targets);
    hs_evaluation evaluation = {0};
    hstep_error error = {0};
    const hstep_status status =
        tokens == NULL || targets == NULL
            ? hs_no_memory(&error)
            : hs_evaluate(loaded->model, dataset, context, 0, sequences, tokens, targets, true, &evaluation, &error);
    free(tokens);
    free(targets);
    if (status != HSTEP_OK)
        return hs_report_error(&error);
    if (!evaluation.complete) {
        hs_report("interrupted: there is no loss of all the data");
        return HS_EXIT_INTERRUPTED;
    }
    return print(s, &evaluation);
}

static int evaluate_on(const settings *s, const hs_loaded_model *loaded) {
    const size_t context = s->context != 0 ? s->context : loaded->options.context;
    hstep_dataset *dataset = NULL;
    hstep_error error = {0};
    int status = load_data(s, loaded, &dataset, &error) == HSTEP_OK ? check_data(loaded, dataset, context)
                                                                    : hs_report_error(&error);
    if (status == HS_EXIT_DONE)
        status = evaluate(s, loaded, dataset, context);
    hstep_dataset_destroy(dataset);
    return status;
}

int hs_eval(int argc, char **argv) {
    settings s = {.model = {.precision = -1}};
    const char *checkpoint;
    int status = hs_command_parse(&command, argc, argv, &s, &checkpoint);
    if (status == HS_EXIT_DONE && checkpoint != NULL && s.data.count == 0)
        status = hs_report_usage("eval", "no data: name what to evaluate on by --data PATH");
    if (status == HS_EXIT_DONE && checkpoint != NULL) {
        hs_loaded_model loaded;
        hs_interrupt_watch();
        status = hs_model_load("eval", checkpoint, &s.model, &loaded);
        if (status == HS_EXIT_DONE)
            status = evaluate_on(&s, &loaded);
        hs_model_unload(&loaded);
    }
    free(s.data.items);
    free(s.model.precision_for.items);
    return status;
}
