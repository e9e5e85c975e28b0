#include "trainer/trace/command.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "trainer/exit.h"
#include "trainer/model/build.h"
#include "trainer/model/target.h"
#include "trainer/options/command.h"
#include "trainer/options/places.h"
#include "trainer/report.h"
#include "trainer/trace/subject.h"
#include "trainer/trace/values.h"

#define HS_SETTINGS hs_trace_settings
#include "trainer/options/rows.h"

#define SIZE_ROW(word, field, text)                                                                                    \
    { .name = word, .group = "Model", COUNT(options.field, 0, HS_MANY), .argument = "N", .initial = "0", .help = text }

/* clang-format off */
static const hs_option table[] = {
    {.name = "weights", .group = "Model", TEXT(weights), .argument = "FROM", .initial = "integers",
     .help = "A checkpoint, the folder of a run, or what trainer export wrote; or integers: made by the formula of "
             "docs/comparing.md, so that any program can make the same ones"},
    SIZE_ROW("vocabulary", vocabulary, "Tokens that the model knows. This and the next five: 0 stands for what the "
             "weights have, and with integers for 258"),
    SIZE_ROW("layers", layers, "Decoder blocks; 0 with integers: 2"),
    SIZE_ROW("width", width, "Width of the residual stream; 0 with integers: 64"),
    SIZE_ROW("heads", heads, "Attention heads; 0 with integers: 4. Exported weights do not say it"),
    SIZE_ROW("kv-heads", kv_heads, "Key and value heads; 0 with integers: as many as --heads"),
    SIZE_ROW("feed-forward", feed_forward, "Width of the feed-forward layers; 0 with integers: 192"),
    {.name = "data", .group = "Tokens", TEXTS(options.data), .argument = "PATH",
     .help = "Text or token shards, of which the first windows are taken; may be repeated. Without it tokens are made "
             "from integers, as weights are"},
    {.name = "token-type", .group = "Tokens", CHOICE(options.token_type, hs_token_type_choices), .argument = "T",
     .initial = "auto", .help = "How raw tokens are written; auto knows shards of llm.c and takes all else for text"},
    {.name = "batch-size", .group = "Tokens", COUNT(options.batch_size, 1, HS_MANY), .argument = "N", .initial = "2",
     .help = "Sequences"},
    {.name = "context", .group = "Tokens", COUNT(options.context, 1, HS_MANY), .argument = "N", .initial = "32",
     .help = "Tokens in a sequence"},
    {.name = "precision", .group = "Run", CHOICE(options.precision, hs_precision_choices), .argument = "P",
     .initial = "f64", .help = "How matrix products round"},
    {.name = "precision-for", .group = "Run", TEXTS(options.precision_for), .argument = "LIST", .initial = "none",
     .help = "Precision by place, as in trainer train"},
    BACKEND_ROW(options.backend, .group = "Run", .initial = "auto", .help = "What computes"),
    DEVICE_ROW(options.device, .group = "Run", .initial = "any", .help = DEVICE_HELP),
    THREADS_ROW(options.threads, .group = "Run", .initial = "0",
                .help = "Processor threads; 0: as many as the process may use"),
    LEVERS_ROW(options.levers, .group = "Run", .initial = "exact",
               .help = "Faster ways to compute, as in trainer train. Without cpu.compact, as with none, every value is "
                       "stored in f64, also those that products alone read"),
    {.name = "gradients", .group = "Run", FLAG(gradients), .help = "The gradient of every parameter, too"},
    {.name = "loss-scale", .group = "Run", REAL(loss_scale, 0, 0x1p100), .argument = "S", .initial = "0",
     .help = "That gradients are computed with, a power of two, and divided by; 0: as training starts"},
    {.name = "out", .group = "Output", TEXT(options.out), .argument = "FILE", .initial = "trace.safetensors",
     .help = "Where they go"},
    {.name = "overwrite", .group = "Output", FLAG(overwrite), .help = "Replace a file that is there"},
    {.name = "quiet", .group = "Output", FLAG(options.quiet), .help = "Say nothing"},
    {.name = "help", .group = "Output", FLAG(options.help), .help = "This text"},
};
/* clang-format on */

static const hs_command command = {
    .name = "trace-forward",
    .head = "Usage: trainer trace-forward [OPTION...]\n\n"
            "Computes the loss of one batch and stores what every operation gave, by its name, as a safetensors file\n"
            "of f64 numbers, to be held to what another framework computes of the same weights and tokens.\n"
            "Defaults stand in brackets.\n",
    .end = "\nExit status: 0 done; 1 a value is not finite; 2 usage; 3 bad weights or data; 4 could not write, or a\n"
           "file is there already; 5 backend, device, memory or required lever unavailable.\n",
    .table = table,
    .count = sizeof table / sizeof table[0],
};

/* The model's shape and the batch's, for who computes the same; from malloc. */
static char *describe(const hs_subject *subject) {
    const hstep_decoder_config d = hs_decoder_of(&subject->options, subject->options.vocabulary);
    json_t *root = json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:I, s:I}", "vocabulary", (json_int_t)d.vocabulary, "width",
        (json_int_t)d.width, "layers", (json_int_t)d.layers, "heads", (json_int_t)d.heads, "kv_heads",
        (json_int_t)d.kv_heads, "feed_forward", (json_int_t)d.feed_forward, "rotary_base", d.rotary_base, "rms_epsilon",
        d.rms_epsilon, "sequences", (json_int_t)subject->batch.sequences, "length", (json_int_t)subject->batch.length);
    char *text = root != NULL ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    return text;
}

static int write_file(const hs_subject *subject, const hs_values *values) {
    const hs_options *o = &subject->options;
    /* Results are as exact as their least exact product. */
    const hstep_precision least =
        o->precision != HSTEP_PRECISION_F64 ? (hstep_precision)o->precision : hs_places_scaled(o);
    char precision[512], *configuration = describe(subject);
    hs_places_describe(o, precision, sizeof precision);
    if (configuration == NULL)
        return hs_report_no_memory();
    const hstep_tensor_text texts[] = {
        {"schema", "halfstep.trace/1"},
        {"version", hstep_version()},
        {"precision", hstep_precision_name(least)},
        {"precision_by_place", precision},
        {"backend", hstep_context_backend_name(subject->context)},
        {"levers", hstep_context_lever_set(subject->context)},
        {"configuration", configuration},
        {"weights", subject->file[0] != '\0' ? "file" : "integers"},
        {"tokens", o->data.count > 0 ? "data" : "integers"},
    };
    hstep_error error = {0};
    const hstep_status status =
        hstep_tensor_file_write(o->out, values->items, values->count, texts, sizeof texts / sizeof texts[0], &error);
    free(configuration);
    if (status != HSTEP_OK)
        return hs_report_error(&error);
    if (!o->quiet)
        hs_report("'%s': %zu tensors in %s, %s", o->out, values->count, precision,
                  hstep_context_backend_name(subject->context));
    return HS_EXIT_DONE;
}

static int check_loss_scale(const hs_trace_settings *s) {
    int exponent;
    if (s->loss_scale == 0)
        return HS_EXIT_DONE;
    if (frexp(s->loss_scale, &exponent) != 0.5)
        return hs_report_usage("trace-forward", "--loss-scale %s is no power of two: give 1, 2, 4, ..., or 0",
                               hs_digits_of(s->loss_scale).text);
    if (!s->gradients)
        return hs_report_usage("trace-forward", "--loss-scale is for gradients: give --gradients too, or leave it out");
    return HS_EXIT_DONE;
}

static int trace(const hs_trace_settings *s, hs_subject *subject) {
    hs_values values = {.count = 0};
    hstep_error error = {0};
    int status = hs_subject_open(s, subject);
    if (status == HS_EXIT_DONE)
        status = hs_target_check("trace-forward", subject->file[0] != '\0' ? subject->file : NULL, s->options.out,
                                 s->overwrite);
    if (status == HS_EXIT_DONE)
        status = hs_subject_make(s, subject);
    if (status == HS_EXIT_DONE && hs_values_collect(s, subject, &values, &error) != HSTEP_OK)
        status = hs_report_error(&error);
    if (status == HS_EXIT_DONE)
        status = write_file(subject, &values);
    hs_values_free(&values);
    return status;
}

int hs_trace_forward(int argc, char **argv) {
    hs_trace_settings s = {.loss_scale = 0};
    const char *word;
    int status = hs_command_parse(&command, argc, argv, &s, &word);
    if (status == HS_EXIT_DONE && !s.options.help)
        status = check_loss_scale(&s);
    if (status == HS_EXIT_DONE && !s.options.help) {
        hs_subject subject;
        status = trace(&s, &subject);
        hs_subject_close(&subject);
    }
    free(s.options.data.items);
    free(s.options.precision_for.items);
    return status;
}
