#include "trainer/text/sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/train/interrupt.h"

/* Questions in one forward pass. */
enum { QUESTIONS = 128 };

/* A random stream that no training step uses. */
#define STREAM_SAMPLE (UINT64_MAX - 2)

hstep_status hs_no_memory(hstep_error *error) {
    *error = (hstep_error){.status = HSTEP_ERROR_MEMORY};
    snprintf(error->message, sizeof error->message, "there is not enough memory: use a smaller model or batch");
    return HSTEP_ERROR_MEMORY;
}

void hs_tokens_from_bytes(const char *bytes, size_t count, int32_t *tokens) {
    for (size_t i = 0; i < count; ++i)
        tokens[i] = (unsigned char)bytes[i] + HSTEP_TOKEN_FIRST_BYTE;
}

size_t hs_bytes_from_tokens(const int32_t *tokens, size_t count, char *bytes) {
    size_t size = 0;
    for (size_t i = 0; i < count; ++i)
        if (tokens[i] >= HSTEP_TOKEN_FIRST_BYTE)
            bytes[size++] = (char)(unsigned char)(tokens[i] - HSTEP_TOKEN_FIRST_BYTE);
    return size;
}

/*
 * One token for every row, which has `known` tokens so far. Every pass has the same shape, with tokens of no meaning
 * behind the known ones: they stand later than what is read, and the model looks back only.
 */
static hstep_status extend(const hs_generation *g, int32_t *rows, size_t count, size_t stride, size_t known,
                           const hstep_batch *batch, int32_t *window, double *logits, hstep_error *error) {
    const size_t seen = known < batch->length ? known : batch->length;
    for (size_t i = 0; i < count; ++i) {
        for (size_t t = 0; t < batch->length; ++t)
            window[i * batch->length + t] = t < seen ? rows[i * stride + known - seen + t] : HSTEP_TOKEN_EOS;
    }
    const hstep_status status = hstep_model_output(g->model, batch, logits, error);
    if (status != HSTEP_OK)
        return status;
    for (size_t i = 0; i < count; ++i) {
        const uint64_t bits = hstep_random_at(g->seed, STREAM_SAMPLE, known * count + i);
        rows[i * stride + known] = hstep_choose_token(logits + (i * batch->length + seen - 1) * g->vocabulary,
                                                      g->vocabulary, g->temperature, (double)(bits >> 11) * 0x1p-53);
    }
    return HSTEP_OK;
}

hstep_status hs_generate(const hs_generation *g, int32_t *rows, size_t count, size_t length, size_t more,
                         hstep_error *error) {
    /* The last token is written and never read. */
    const size_t longest = length + more - 1;
    const size_t window_length = longest < g->context ? longest : g->context;
    int32_t *window = calloc(count * window_length, sizeof *window);
    double *logits = malloc(hstep_model_output_size(g->model, count, window_length) * sizeof *logits);
    const hstep_batch batch = {.sequences = count, .length = window_length, .tokens = window};
    hstep_status status = window == NULL || logits == NULL ? hs_no_memory(error) : HSTEP_OK;
    for (size_t i = 0; i < more && status == HSTEP_OK && !hs_interrupted(); ++i)
        status = extend(g, rows, count, length + more, length + i, &batch, window, logits, error);
    free(logits);
    free(window);
    return status;
}

/* Each prompt begins with a line end, as a line of the corpus does. */
enum { PROMPT = sizeof "\n37+48=" - 1, ROW = PROMPT + HS_CORPUS_ANSWER };

static size_t count_right(const int32_t *rows, const hs_sum *questions, size_t count) {
    size_t right = 0;
    for (size_t i = 0; i < count; ++i) {
        char given[HS_CORPUS_ANSWER + 1] = "", wanted[16];
        hs_bytes_from_tokens(rows + i * ROW + PROMPT, HS_CORPUS_ANSWER, given);
        const int length = snprintf(wanted, sizeof wanted, "%u\n", questions[i].a + questions[i].b);
        right += strncmp(given, wanted, (size_t)length) == 0;
    }
    return right;
}

hstep_status hs_count_correct(hstep_model *model, size_t vocabulary, const hs_corpus *corpus, uint64_t *correct,
                              hstep_error *error) {
    const hs_generation greedy = {.model = model, .vocabulary = vocabulary, .context = ROW};
    int32_t rows[QUESTIONS * ROW];
    *correct = 0;
    for (size_t first = 0; first < corpus->question_count && !hs_interrupted(); first += QUESTIONS) {
        const size_t left = corpus->question_count - first;
        const size_t count = left < QUESTIONS ? left : QUESTIONS;
        for (size_t i = 0; i < count; ++i) {
            char prompt[16];
            snprintf(prompt, sizeof prompt, "\n%u+%u=", corpus->questions[first + i].a, corpus->questions[first + i].b);
            hs_tokens_from_bytes(prompt, PROMPT, rows + i * ROW);
        }
        const hstep_status status = hs_generate(&greedy, rows, count, PROMPT, HS_CORPUS_ANSWER, error);
        if (status != HSTEP_OK)
            return status;
        *correct += count_right(rows, corpus->questions + first, count);
    }
    return HSTEP_OK;
}
