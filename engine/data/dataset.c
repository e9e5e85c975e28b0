#include "engine/data/dataset.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "engine/error.h"
#include "precision/arithmetic.h"

static const double HELD_OUT_SHARE = 0.1;

hstep_status hs_dataset_adopt(unsigned char *bytes, size_t size, hstep_dataset **dataset, hstep_error *error) {
    hstep_dataset *made = malloc(sizeof *made);
    if (made == NULL) {
        free(bytes);
        return hs_fail_memory(error, "a dataset");
    }
    *made = (hstep_dataset){.bytes = bytes, .size = size, .training = size, .checksum = XXH3_64bits(bytes, size)};
    *dataset = made;
    return hstep_dataset_hold_out(made, HELD_OUT_SHARE, error);
}

hstep_status hstep_dataset_from_bytes(const void *bytes, size_t size, hstep_dataset **dataset, hstep_error *error) {
    HS_RETURN_IF(dataset == NULL, error, HSTEP_ERROR_ARGUMENT, "dataset: the place for the result is NULL");
    HS_RETURN_IF(bytes == NULL || size == 0, error, HSTEP_ERROR_ARGUMENT, "the text is empty: give at least one byte");
    unsigned char *copy = malloc(size);
    if (copy == NULL)
        return hs_fail_memory(error, "a text");
    memcpy(copy, bytes, size);
    return hs_dataset_adopt(copy, size, dataset, error);
}

void hstep_dataset_destroy(hstep_dataset *dataset) {
    if (dataset == NULL)
        return;
    free(dataset->bytes);
    free(dataset);
}

hstep_status hstep_dataset_hold_out(hstep_dataset *dataset, double share, hstep_error *error) {
    HS_RETURN_IF(dataset == NULL, error, HSTEP_ERROR_ARGUMENT, "dataset: it is NULL");
    HS_RETURN_IF(!(share >= 0 && share < 1), error, HSTEP_ERROR_ARGUMENT,
                 "the held-out share is %g: give one from 0 up to, but not including, 1", share);
    const size_t held = (size_t)((double)dataset->size * share);
    return hstep_dataset_split_at(dataset, dataset->size - held, error);
}

hstep_status hstep_dataset_split_at(hstep_dataset *dataset, size_t training_tokens, hstep_error *error) {
    HS_RETURN_IF(dataset == NULL, error, HSTEP_ERROR_ARGUMENT, "dataset: it is NULL");
    HS_RETURN_IF(training_tokens == 0 || training_tokens > dataset->size, error, HSTEP_ERROR_ARGUMENT,
                 "training on %zu of a text's %zu tokens: give from 1 to all of them", training_tokens, dataset->size);
    dataset->training = training_tokens;
    return HSTEP_OK;
}

size_t hstep_dataset_tokens(const hstep_dataset *dataset) { return dataset->size; }

size_t hstep_dataset_training_tokens(const hstep_dataset *dataset) { return dataset->training; }

uint64_t hstep_dataset_checksum(const hstep_dataset *dataset) { return dataset->checksum; }

hstep_status hstep_dataset_check(const hstep_dataset *dataset, size_t length, hstep_error *error) {
    HS_RETURN_IF(dataset == NULL, error, HSTEP_ERROR_ARGUMENT, "dataset: it is NULL");
    HS_RETURN_IF(length == 0, error, HSTEP_ERROR_ARGUMENT, "a context of 0 tokens holds nothing: give at least 1");
    HS_RETURN_IF(dataset->training <= length, error, HSTEP_ERROR_INPUT_FILE,
                 "the text has %zu token%s, of which %zu %s for training; a context of %zu needs at least %zu: give "
                 "more text, a shorter context or a smaller held-out share",
                 dataset->size, dataset->size == 1 ? "" : "s", dataset->training, dataset->training == 1 ? "is" : "are",
                 length, length + 1);
    HS_RETURN_IF(dataset->size - dataset->training == 1, error, HSTEP_ERROR_INPUT_FILE,
                 "the text has %zu tokens, of which only 1 is held out; an evaluation needs 2: give more text or "
                 "another held-out share",
                 dataset->size);
    return HSTEP_OK;
}

double hstep_dataset_unigram_loss(const hstep_dataset *dataset) {
    uint64_t counts[256];
    for (int b = 0; b < 256; ++b)
        counts[b] = 1;
    for (size_t i = 0; i < dataset->training; ++i)
        ++counts[dataset->bytes[i]];
    const double total = (double)dataset->training + 256;
    const size_t first = dataset->training < dataset->size ? dataset->training : 0;
    uint64_t seen[256] = {0};
    for (size_t i = first; i < dataset->size; ++i)
        ++seen[dataset->bytes[i]];
    double sum = 0;
    for (int b = 0; b < 256; ++b)
        if (seen[b] != 0)
            sum += (double)seen[b] * -hs_log((double)counts[b] / total);
    return sum / (double)(dataset->size - first);
}
