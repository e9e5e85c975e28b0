/* The yardstick of a run: what token frequencies alone reach. */
#include <stdlib.h>

#include "engine/data/dataset.h"
#include "engine/error.h"
#include "precision/arithmetic.h"

/* Adds how often each symbol stands in tokens first .. end - 1. */
static void count_tokens(const hstep_dataset *dataset, size_t first, size_t end, uint64_t *counts) {
    enum { CHUNK = 1 << 12, RELEASED = 1 << 22 };
    int32_t tokens[CHUNK];
    const int32_t shift = dataset->type == HSTEP_TOKENS_BYTES ? HSTEP_TOKEN_FIRST_BYTE : 0;
    size_t kept = first;
    for (size_t count; first < end; first += count) {
        count = end - first < CHUNK ? end - first : CHUNK;
        hs_dataset_copy(dataset, first, count, tokens);
        for (size_t i = 0; i < count; ++i)
            ++counts[tokens[i] - shift];
        if (first - kept < RELEASED && first + count < end)
            continue;
        hs_dataset_release(dataset, kept, first + count - kept);
        kept = first + count;
    }
}

static double mean_loss(const uint64_t *trained, double trained_total, const uint64_t *seen, double seen_total,
                        size_t symbols) {
    double sum = 0;
    for (size_t i = 0; i < symbols; ++i)
        if (seen[i] != 0)
            sum += (double)seen[i] * -hs_log((double)(trained[i] + 1) / (trained_total + (double)symbols));
    return sum / seen_total;
}

static void expect_order(const hstep_dataset *dataset, bool sequential) {
    for (size_t i = 0; i < dataset->file_count; ++i)
        hs_file_expect_order(&dataset->files[i], sequential);
}

hstep_status hstep_dataset_unigram_loss(const hstep_dataset *dataset, double *loss, hstep_error *error) {
    HS_RETURN_IF(dataset == NULL || loss == NULL, error, HSTEP_ERROR_ARGUMENT, "dataset: an argument is NULL");
    const bool text = dataset->type == HSTEP_TOKENS_BYTES;
    const size_t symbols = text ? 256 : dataset->vocabulary;
    const size_t training = dataset->training, held = dataset->tokens - training;
    uint64_t *trained = calloc(symbols, sizeof *trained), *seen = calloc(symbols, sizeof *seen);
    hstep_status status = HSTEP_OK;
    if (trained != NULL && seen != NULL) {
        expect_order(dataset, true);
        count_tokens(dataset, 0, training, trained);
        count_tokens(dataset, training, dataset->tokens, seen);
        expect_order(dataset, false);
        *loss = mean_loss(trained, (double)training, held > 0 ? seen : trained, (double)(held > 0 ? held : training),
                          symbols);
    } else {
        status = hs_fail_memory(error, "the counts of tokens");
    }
    free(trained);
    free(seen);
    return status;
}
