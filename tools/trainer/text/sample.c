#include "trainer/text/sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/train/watching/interrupt.h"

/* Questions in one pass: few, for the memory they take comes on top of that of training. */
enum { QUESTIONS = 32 };

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

hstep_status hs_generate(const hs_generation *g, int32_t *rows, size_t count, size_t length, size_t more,
                         hstep_error *error) {
    /* The last token is written and never read. */
    const size_t longest = length + more - 1;
    const hstep_sampling sampling = {.temperature = g->temperature};
    hstep_decoding *decoding = NULL;
    hstep_status status =
        hstep_decoding_create(g->model, count, longest < g->context ? longest : g->context, &decoding, error);
    for (size_t i = 0; i < more && status == HSTEP_OK && !hs_interrupted(); ++i)
        status = hstep_decoding_extend(decoding, &sampling, g->seed, rows, length + more, length + i, error);
    hstep_decoding_destroy(decoding);
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

hstep_status hs_count_correct(hstep_model *model, const hs_corpus *corpus, uint64_t *correct, hstep_error *error) {
    const hs_generation greedy = {.model = model, .context = ROW};
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
