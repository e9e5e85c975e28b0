/* Decoding: passes over new positions, with keys and values of earlier ones in buffers that outlive them. */
#include <halfstep/decoding.h>

#include <stdlib.h>
#include <string.h>

#include <halfstep/data.h>

#include "engine/decoder/decoder.h"
#include "engine/error.h"
#include "engine/model/model.h"

struct hstep_decoding {
    hstep_model *model;
    hstep_graph *graph;
    size_t sequences, capacity, vocabulary;
    size_t length;     /* positions fed */
    size_t origin;     /* of hstep_decoding_extend: the place in a row of tokens that position 0 has */
    uint64_t revision; /* of the parameters that filled the cache */
    hs_view *states;
    size_t state_count;
    int32_t *window; /* [sequences][capacity] of hstep_decoding_extend */
    double *logits;  /* [sequences][vocabulary], alike */
};

static hstep_status find_plan(hstep_decoding *decoding, size_t length, hs_plan **plan, hstep_error *error) {
    const hs_plan_request request = {.backend = decoding->model->context->backend,
                                     .graph = decoding->graph,
                                     .mode = HS_MODE_OUTPUT,
                                     .sequences = decoding->sequences,
                                     .length = length,
                                     .parameters = decoding->model->parameters,
                                     .casts = decoding->model->casts,
                                     .states = decoding->states};
    return hs_plan_cache_get(&decoding->model->plans, &request, plan, error);
}

static hstep_status fill_decoding(hstep_decoding *made, hstep_error *error) {
    HS_FORWARD(hs_decoder_decoding_graph(&made->model->decoder, made->sequences, made->capacity, &made->graph, error));
    for (size_t v = 0; v < made->graph->value_count; v++)
        made->state_count += made->graph->values[v].role == HS_ROLE_STATE;
    made->states = calloc(made->state_count, sizeof *made->states);
    made->window = calloc(made->sequences * made->capacity, sizeof *made->window);
    made->logits = calloc(made->sequences * made->vocabulary, sizeof *made->logits);
    if (made->states == NULL || made->window == NULL || made->logits == NULL)
        return hs_fail_memory(error, "a decoding");
    hs_plan *plan = NULL;
    return find_plan(made, 1, &plan, error); /* makes the states */
}

hstep_status hstep_decoding_create(hstep_model *model, size_t sequences, size_t capacity, hstep_decoding **decoding,
                                   hstep_error *error) {
    HS_RETURN_IF(model == NULL || decoding == NULL, error, HSTEP_ERROR_ARGUMENT,
                 "hstep_decoding_create needs a model and a place for the decoding");
    HS_RETURN_IF(model->decoder.width == 0, error, HSTEP_ERROR_ARGUMENT,
                 "only a model that hstep_model_create_decoder made can decode with a cache");
    HS_FORWARD(hs_batch_check_shape(sequences, capacity, error));
    hstep_decoding *made = calloc(1, sizeof *made);
    if (made == NULL)
        return hs_fail_memory(error, "a decoding");
    made->model = model;
    made->sequences = sequences;
    made->capacity = capacity;
    made->vocabulary = model->decoder.vocabulary;
    const hstep_status status = fill_decoding(made, error);
    if (status != HSTEP_OK) {
        hstep_decoding_destroy(made);
        return status;
    }
    *decoding = made;
    return HSTEP_OK;
}

void hstep_decoding_destroy(hstep_decoding *decoding) {
    if (decoding == NULL)
        return;
    hs_backend *backend = decoding->model->context->backend;
    hs_plan_cache_forget(&decoding->model->plans, decoding->graph);
    for (size_t i = 0; i < decoding->state_count && decoding->states != NULL; i++)
        if (decoding->states[i].buffer != NULL)
            backend->api->buffer_destroy(backend, decoding->states[i].buffer);
    free(decoding->states);
    free(decoding->window);
    free(decoding->logits);
    hstep_graph_destroy(decoding->graph);
    free(decoding);
}

size_t hstep_decoding_sequences(const hstep_decoding *decoding) { return decoding->sequences; }

size_t hstep_decoding_capacity(const hstep_decoding *decoding) { return decoding->capacity; }

size_t hstep_decoding_length(const hstep_decoding *decoding) { return decoding->length; }

hstep_status hstep_decoding_rewind(hstep_decoding *decoding, size_t length, hstep_error *error) {
    HS_RETURN_IF(decoding == NULL, error, HSTEP_ERROR_ARGUMENT, "hstep_decoding_rewind needs a decoding");
    HS_RETURN_IF(length > decoding->length, error, HSTEP_ERROR_ARGUMENT,
                 "rewinding to %zu positions; %zu have been fed", length, decoding->length);
    decoding->length = length;
    if (length == 0)
        decoding->origin = 0;
    return HSTEP_OK;
}

static hstep_status check_feed(const hstep_decoding *decoding, const hstep_batch *batch, hstep_error *error) {
    HS_FORWARD(hs_model_check_whole(decoding->model, error));
    HS_FORWARD(hs_batch_check(decoding->graph, HS_MODE_OUTPUT, batch, error));
    HS_RETURN_IF(
        batch->length > decoding->capacity - decoding->length, error, HSTEP_ERROR_SHAPE,
        "%zu tokens do not fit behind %zu in a context of %zu; rewind, or make a decoding of a larger capacity",
        batch->length, decoding->length, decoding->capacity);
    HS_RETURN_IF(decoding->length > 0 && decoding->revision != decoding->model->revision, error, HSTEP_ERROR_STALE_TAPE,
                 "the model's parameters changed after %zu positions were fed; rewind to 0 and feed them again",
                 decoding->length);
    return HSTEP_OK;
}

hstep_status hstep_decoding_feed(hstep_decoding *decoding, const int32_t *tokens, size_t count, double *logits,
                                 hstep_error *error) {
    HS_RETURN_IF(decoding == NULL || tokens == NULL, error, HSTEP_ERROR_ARGUMENT,
                 "hstep_decoding_feed needs a decoding and tokens");
    const hstep_batch batch = {.sequences = decoding->sequences, .length = count, .tokens = tokens};
    hs_plan *plan = NULL;
    HS_FORWARD(check_feed(decoding, &batch, error));
    HS_FORWARD(find_plan(decoding, count, &plan, error));
    HS_FORWARD(hs_model_refresh_casts(decoding->model, error));
    HS_FORWARD(hs_plan_feed(plan, &batch, error));
    HS_FORWARD(hs_plan_start_at(plan, decoding->length, error));
    HS_FORWARD(hs_plan_evaluate(plan, error));
    if (logits != NULL)
        HS_FORWARD(hs_plan_read(plan, decoding->graph->output, logits, error));
    decoding->revision = decoding->model->revision;
    decoding->length += count;
    return HSTEP_OK;
}

/* ---- Text ---- */

/*
 * Moves the context so that token `known - 1` of a row is the last one to be fed, and one that was fed is fed anew. A
 * context that moved stays where it is when the pass that follows fails: tried again, it gives the same token.
 */
static void slide(hstep_decoding *decoding, size_t known) {
    const bool inside = known > decoding->origin;
    const size_t before = inside ? known - 1 - decoding->origin : 0;
    if (inside && before < decoding->capacity) {
        if (before < decoding->length)
            decoding->length = before;
        return;
    }
    const size_t half = decoding->capacity > 1 ? decoding->capacity / 2 : 1;
    const size_t most = inside && decoding->length > 0 ? half : decoding->capacity;
    decoding->origin = known > most ? known - most : 0;
    decoding->length = 0;
}

static hstep_status feed_new(hstep_decoding *decoding, const int32_t *tokens, size_t stride, size_t known,
                             hstep_error *error) {
    slide(decoding, known);
    const size_t fed = decoding->origin + decoding->length, count = known - fed;
    for (size_t i = 0; i < decoding->sequences; i++)
        memcpy(decoding->window + i * count, tokens + i * stride + fed, count * sizeof *tokens);
    return hstep_decoding_feed(decoding, decoding->window, count, decoding->logits, error);
}

hstep_status hstep_decoding_extend(hstep_decoding *decoding, const hstep_sampling *sampling, uint64_t seed,
                                   int32_t *tokens, size_t stride, size_t known, hstep_error *error) {
    HS_RETURN_IF(decoding == NULL || sampling == NULL || tokens == NULL, error, HSTEP_ERROR_ARGUMENT,
                 "hstep_decoding_extend needs a decoding, a way of sampling, and tokens");
    HS_RETURN_IF(known < 1 || known >= stride, error, HSTEP_ERROR_ARGUMENT,
                 "%zu tokens in rows of %zu; there must be 1 at least, and room for one more", known, stride);
    HS_FORWARD(hstep_sampling_check(sampling, error));
    HS_FORWARD(feed_new(decoding, tokens, stride, known, error));
    for (size_t i = 0; i < decoding->sequences; i++) {
        const uint64_t bits = hstep_random_at(seed, HSTEP_STREAM_SAMPLE, known * decoding->sequences + i);
        int32_t *row = tokens + i * stride;
        HS_FORWARD(hstep_choose_token(sampling, decoding->logits + i * decoding->vocabulary, decoding->vocabulary, row,
                                      known, (double)(bits >> 11) * 0x1p-53, &row[known], error));
    }
    return HSTEP_OK;
}
