#include "trainer/trace/values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/report.h"

/* ---- A list of tensors ---- */

/* Appends a tensor of zeros and returns its place; NULL where there is no memory. */
static double *append(hs_values *values, const char *name, size_t rank, const size_t *dims) {
    hstep_tensor_data *items = realloc(values->items, (values->count + 1) * sizeof *items);
    size_t elements = 1;
    for (size_t i = 0; i < rank; ++i)
        elements *= dims[i];
    if (items != NULL)
        values->items = items;
    char *copy = items != NULL ? strdup(name) : NULL;
    double *numbers = copy != NULL ? calloc(elements + 1, sizeof *numbers) : NULL;
    if (numbers == NULL) {
        free(copy);
        values->no_memory = true;
        return NULL;
    }
    items[values->count] = (hstep_tensor_data){.name = copy, .rank = rank, .values = numbers};
    memcpy(items[values->count++].dims, dims, rank * sizeof *dims);
    return numbers;
}

void hs_values_free(hs_values *values) {
    for (size_t i = 0; i < values->count; ++i) {
        free((void *)values->items[i].name);
        free((void *)values->items[i].values);
    }
    free(values->items);
}

/* ---- What goes in, and what the operations give ---- */

static void add_integers(hs_values *values, const char *name, const hstep_batch *batch, const int32_t *integers) {
    double *numbers = append(values, name, 2, (size_t[]){batch->sequences, batch->length});
    for (size_t i = 0; numbers != NULL && i < batch->sequences * batch->length; ++i)
        numbers[i] = integers[i];
}

typedef struct watch {
    hs_values *values;
    double targets;
} watch;

/* "blocks.3.output" out of "blocks.3.feed_forward_residual", "logits" out of "head"; other names stay. */
static void rename_value(const char *name, char *known_as, size_t size) {
    static const char end[] = ".feed_forward_residual";
    const size_t length = strlen(name), tail = sizeof end - 1;
    if (strcmp(name, "head") == 0)
        snprintf(known_as, size, "logits");
    else if (length > tail && strcmp(name + length - tail, end) == 0)
        snprintf(known_as, size, "%.*s.output", (int)(length - tail), name);
    else
        snprintf(known_as, size, "%s", name);
}

static void see(void *data, const hstep_traced_value *value) {
    watch *w = data;
    char name[128];
    rename_value(value->name, name, sizeof name);
    double *numbers = append(w->values, name, value->rank, value->dims);
    if (numbers == NULL)
        return;
    memcpy(numbers, value->values, value->elements * sizeof *numbers);
    if (strcmp(name, "loss") == 0)
        numbers[0] /= w->targets;
}

/* ---- Probabilities ---- */

/* A graph that knows nothing but softmax. */
static hstep_status make_softmax(hstep_context *context, size_t vocabulary, hstep_model **model, hstep_error *error) {
    const int64_t dims[2] = {HSTEP_ROWS, (int64_t)vocabulary};
    hstep_graph *graph = NULL;
    hstep_value logits = 0, probabilities = 0, sum = 0;
    hstep_status status = hstep_graph_create(&graph, error);
    if (status == HSTEP_OK)
        status = hstep_graph_input(graph, "logits", HSTEP_DTYPE_F64, 2, dims, &logits, error);
    if (status == HSTEP_OK)
        status = hstep_graph_softmax(graph, "probabilities", logits, &probabilities, error);
    if (status == HSTEP_OK)
        status = hstep_graph_sum(graph, "sum", probabilities, &sum, error);
    if (status == HSTEP_OK)
        status = hstep_graph_set_output(graph, probabilities, error);
    if (status == HSTEP_OK)
        status = hstep_graph_set_loss(graph, sum, error);
    if (status == HSTEP_OK)
        status = hstep_model_create(context, graph, model, error);
    if (status != HSTEP_OK)
        hstep_graph_destroy(graph);
    return status;
}

static hstep_status add_probabilities(hs_values *values, const hs_subject *subject, hstep_error *error) {
    size_t at = 0;
    while (at < values->count && strcmp(values->items[at].name, "logits") != 0)
        ++at;
    if (at == values->count)
        return HSTEP_OK;
    const hstep_tensor_data logits = values->items[at]; /* the list moves as it grows */
    double *numbers = append(values, "probabilities", 2, logits.dims);
    if (numbers == NULL)
        return HSTEP_OK;
    hstep_model *softmax = NULL;
    const hstep_feed feed = {.input = "logits", .data = logits.values};
    const hstep_batch batch = {
        .sequences = subject->batch.sequences, .length = subject->batch.length, .feeds = &feed, .feed_count = 1};
    hstep_status status = make_softmax(subject->context, logits.dims[1], &softmax, error);
    if (status == HSTEP_OK)
        status = hstep_model_output(softmax, &batch, numbers, error);
    hstep_model_destroy(softmax);
    return status;
}

/* ---- Gradients ---- */

static hstep_status add_gradient(hs_values *values, const hs_subject *subject, hstep_trainer *trainer, size_t index,
                                 hstep_error *error) {
    const double scale = hstep_trainer_loss_scale(trainer);
    hstep_parameter parameter;
    char name[128];
    hstep_status status = hstep_model_parameter(subject->model, index, &parameter, error);
    if (status != HSTEP_OK)
        return status;
    snprintf(name, sizeof name, "gradient.%s", parameter.name);
    double *numbers = append(values, name, parameter.rank, parameter.dims);
    if (numbers == NULL)
        return HSTEP_OK;
    status = hstep_trainer_read_gradient(trainer, index, numbers, error);
    for (size_t i = 0; status == HSTEP_OK && i < parameter.elements; ++i) {
        numbers[i] /= scale;
        if (!isfinite(numbers[i])) {
            *error = (hstep_error){.status = HSTEP_ERROR_NONFINITE_FORWARD};
            snprintf(error->message, sizeof error->message,
                     "the gradient of %s is not finite at loss scale %s: give a smaller --loss-scale", parameter.name,
                     hs_digits_of(scale).text);
            status = error->status;
        }
    }
    return status;
}

static hstep_status add_gradients(const hs_trace_settings *s, hs_values *values, const hs_subject *subject,
                                  hstep_error *error) {
    hstep_trainer_config config = hstep_trainer_defaults_for(subject->model);
    if (s->loss_scale != 0)
        config.scaler = (hstep_scaler){.initial = s->loss_scale,
                                       .minimum = 1,
                                       .maximum = fmax(s->loss_scale, config.scaler.maximum),
                                       .growth_interval = config.scaler.growth_interval};
    hstep_trainer *trainer = NULL;
    hstep_status status = hstep_trainer_create(subject->model, &config, &trainer, error);
    if (status == HSTEP_OK)
        status = hstep_trainer_record(trainer, &subject->batch, NULL, error);
    if (status == HSTEP_OK)
        status = hstep_trainer_backward(trainer, error);
    for (size_t i = 0; status == HSTEP_OK && i < hstep_model_parameter_count(subject->model); ++i)
        status = add_gradient(values, subject, trainer, i, error);
    hstep_trainer_destroy(trainer);
    return status;
}

hstep_status hs_values_collect(const hs_trace_settings *s, const hs_subject *subject, hs_values *values,
                               hstep_error *error) {
    const hstep_batch *batch = &subject->batch;
    watch w = {.values = values};
    for (size_t i = 0; i < batch->sequences * batch->length; ++i)
        w.targets += batch->targets[i] >= 0;
    add_integers(values, "tokens", batch, batch->tokens);
    add_integers(values, "targets", batch, batch->targets);
    hstep_status status = hstep_model_trace(subject->model, batch, see, &w, error);
    if (status == HSTEP_OK)
        status = add_probabilities(values, subject, error);
    if (status == HSTEP_OK && s->gradients)
        status = add_gradients(s, values, subject, error);
    return status == HSTEP_OK && values->no_memory ? hs_no_memory(error) : status;
}
