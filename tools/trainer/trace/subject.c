#include "trainer/trace/subject.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/checkpoints/stored.h"
#include "trainer/exit.h"
#include "trainer/model/build.h"
#include "trainer/model/load.h"
#include "trainer/options/places.h"
#include "trainer/report.h"
#include "trainer/trace/integers.h"

static bool made_from_integers(const hs_trace_settings *s) { return strcmp(s->weights, "integers") == 0; }

/* ---- Sizes ---- */

static int refuse(const hs_subject *subject, const char *why) {
    hs_report("weights '%s': %s", subject->file, why);
    return HS_EXIT_INPUT;
}

/* Dimension `axis` of a tensor; 0 where there is none of that name. */
static uint64_t dimension(const hstep_tensor_file *file, const char *name, size_t axis) {
    hstep_tensor_info info;
    const size_t index = hstep_tensor_file_find(file, name);
    if (index == SIZE_MAX || hstep_tensor_file_tensor(file, index, &info, NULL) != HSTEP_OK || axis >= info.rank)
        return 0;
    return info.dims[axis];
}

static uint64_t count_layers(const hstep_tensor_file *file) {
    char name[64];
    for (uint64_t layers = 0;; ++layers) {
        snprintf(name, sizeof name, "blocks.%" PRIu64 ".attention_norm.gain", layers);
        if (hstep_tensor_file_find(file, name) == SIZE_MAX)
            return layers;
    }
}

/* The number of heads is no shape: it stands in a checkpoint's configuration, or in the option. */
static int read_heads(hs_subject *subject, const hstep_tensor_file *file, uint64_t kv_width, hs_options *found) {
    hs_options stored = {.layers = 0};
    int status = HS_EXIT_DONE;
    if (hstep_tensor_file_find(file, "section.configuration") != SIZE_MAX)
        status = hs_stored_load(subject->file, &stored);
    found->heads = stored.heads != 0 ? stored.heads : subject->options.heads;
    hs_options_free(&stored);
    if (status != HS_EXIT_DONE)
        return status;
    if (found->heads == 0)
        return hs_report_usage("trace-forward", "'%s' does not say how many heads attention has: give --heads",
                               subject->file);
    found->kv_heads = kv_width * found->heads / found->width;
    return found->kv_heads != 0 ? HS_EXIT_DONE : refuse(subject, "its keys are narrower than a head");
}

static int read_sizes(hs_subject *subject, const hstep_tensor_file *file, hs_options *found) {
    found->vocabulary = dimension(file, "token_embedding.weight", 0);
    found->width = dimension(file, "token_embedding.weight", 1);
    found->layers = count_layers(file);
    found->feed_forward = dimension(file, "blocks.0.feed_forward.gate.weight", 0);
    const uint64_t kv_width = dimension(file, "blocks.0.attention.key.weight", 0);
    if (found->vocabulary == 0 || found->width == 0 || found->layers == 0 || found->feed_forward == 0 || kv_width == 0)
        return refuse(subject, "they are not those of a decoder: name a checkpoint, or what trainer export wrote");
    return read_heads(subject, file, kv_width, found);
}

/* What the options leave open, in `sizes`, takes the place of a 0; with a file they may say nothing else. */
static int settle(hs_subject *subject, const hs_options *sizes) {
    hs_options *o = &subject->options;
    const struct {
        const char *name;
        uint64_t *said, right;
    } list[] = {{"vocabulary", &o->vocabulary, sizes->vocabulary},
                {"layers", &o->layers, sizes->layers},
                {"width", &o->width, sizes->width},
                {"heads", &o->heads, sizes->heads},
                {"kv-heads", &o->kv_heads, sizes->kv_heads},
                {"feed-forward", &o->feed_forward, sizes->feed_forward}};
    for (size_t i = 0; i < sizeof list / sizeof list[0]; ++i) {
        if (subject->file[0] != '\0' && *list[i].said != 0 && *list[i].said != list[i].right)
            return hs_report_usage("trace-forward", "--%s %" PRIu64 ": the weights '%s' have %" PRIu64 "; leave it out",
                                   list[i].name, *list[i].said, subject->file, list[i].right);
        if (*list[i].said == 0)
            *list[i].said = list[i].right;
    }
    return HS_EXIT_DONE;
}

int hs_subject_open(const hs_trace_settings *s, hs_subject *subject) {
    *subject = (hs_subject){.options = s->options};
    if (made_from_integers(s)) {
        const hs_options sizes = {
            .vocabulary = HSTEP_BYTE_VOCABULARY, .layers = 2, .width = 64, .heads = 4, .feed_forward = 192};
        (void)settle(subject, &sizes);
        subject->options.kv_heads = s->options.kv_heads != 0 ? s->options.kv_heads : subject->options.heads;
        return HS_EXIT_DONE;
    }
    int status = hs_model_find(s->weights, subject->file, sizeof subject->file);
    if (status != HS_EXIT_DONE)
        return status;
    hstep_tensor_file *file = NULL;
    hstep_error error = {0};
    if (hstep_tensor_file_open(subject->file, &file, &error) != HSTEP_OK)
        return hs_report_error(&error);
    hs_options sizes = {.layers = 0};
    status = read_sizes(subject, file, &sizes);
    hstep_tensor_file_close(file);
    return status == HS_EXIT_DONE ? settle(subject, &sizes) : status;
}

/* ---- Model and batch ---- */

static int make_model(const hs_trace_settings *s, hs_subject *subject) {
    const hs_options *o = &subject->options;
    const size_t rows = s->gradients ? o->batch_size * o->context : 0;
    hstep_error error = {0};
    int checked = hs_options_check_device("trace-forward", o->device, o->backend);
    if (checked == HS_EXIT_DONE)
        checked = hs_places_read(&subject->options, "trace-forward", NULL);
    if (checked != HS_EXIT_DONE)
        return checked;
    const hstep_decoder_config decoder = hs_decoder_of(o, o->vocabulary);
    if (hs_context_of(o, o->levers, o->vocabulary, rows, &subject->context, &error) != HSTEP_OK)
        return hs_report_error(&error);
    hstep_status status = hstep_model_create_decoder(subject->context, &decoder, &subject->model, &error);
    if (status == HSTEP_OK)
        status = subject->file[0] == '\0' ? hs_integers_write_weights(subject->model, &error)
                                          : hstep_checkpoint_load_weights(subject->model, subject->file, &error);
    const bool contradicts = status == HSTEP_ERROR_SHAPE || status == HSTEP_ERROR_ARGUMENT;
    return subject->file[0] != '\0' && contradicts ? refuse(subject, error.message)
           : status != HSTEP_OK                    ? hs_report_error(&error)
                                                   : HS_EXIT_DONE;
}

/* The first windows, as they stand end to end. */
static hstep_status read_windows(const hs_subject *subject, const hstep_dataset *dataset, hstep_error *error) {
    const hs_options *o = &subject->options;
    const size_t windows = hstep_dataset_evaluation_windows(dataset, o->context, 0);
    if (windows < o->batch_size) {
        *error = (hstep_error){.status = HSTEP_ERROR_INPUT_FILE};
        snprintf(error->message, sizeof error->message,
                 "the data have %zu window%s of %" PRIu64 " tokens, --batch-size is %" PRIu64
                 ": give more data, or a smaller one",
                 windows, windows == 1 ? "" : "s", o->context, o->batch_size);
        return error->status;
    }
    return hstep_dataset_evaluation_batch(dataset, o->context, 0, 0, o->batch_size, subject->tokens, subject->targets,
                                          error);
}

static hstep_status read_data(const hs_subject *subject, hstep_error *error) {
    const hs_options *o = &subject->options;
    const hstep_dataset_options options = {
        .token_type = (hstep_token_type)o->token_type,
        .vocabulary =
            o->vocabulary == HSTEP_BYTE_VOCABULARY && o->token_type <= HSTEP_TOKENS_BYTES ? 0 : o->vocabulary};
    hstep_dataset *dataset = NULL;
    hstep_status status = hstep_dataset_load(o->data.items, o->data.count, &options, &dataset, error);
    if (status == HSTEP_OK)
        status = hstep_dataset_split_at(dataset, 0, error);
    if (status == HSTEP_OK)
        status = read_windows(subject, dataset, error);
    hstep_dataset_destroy(dataset);
    return status;
}

static hstep_status make_batch(hs_subject *subject, hstep_error *error) {
    const hs_options *o = &subject->options;
    const size_t rows = o->batch_size * o->context;
    subject->tokens = calloc(rows, sizeof *subject->tokens);
    subject->targets = calloc(rows, sizeof *subject->targets);
    if (subject->tokens == NULL || subject->targets == NULL)
        return hs_no_memory(error);
    subject->batch = (hstep_batch){
        .sequences = o->batch_size, .length = o->context, .tokens = subject->tokens, .targets = subject->targets};
    if (o->data.count > 0)
        return read_data(subject, error);
    hs_integers_fill_tokens(o->vocabulary, o->batch_size, o->context, subject->tokens, subject->targets);
    return HSTEP_OK;
}

int hs_subject_make(const hs_trace_settings *s, hs_subject *subject) {
    hstep_error error = {0};
    const int status = make_model(s, subject);
    if (status != HS_EXIT_DONE)
        return status;
    return make_batch(subject, &error) == HSTEP_OK ? HS_EXIT_DONE : hs_report_error(&error);
}

void hs_subject_close(hs_subject *subject) {
    hstep_model_destroy(subject->model);
    hstep_context_destroy(subject->context);
    free(subject->tokens);
    free(subject->targets);
    free(subject->options.rules);
}
