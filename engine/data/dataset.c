#include "engine/data/dataset.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "engine/error.h"

/* Mappings of so many bytes in all may stay in memory. */
enum { RESIDENT = 1 << 26 };

hstep_status hs_dataset_allocate(size_t capacity, hstep_dataset **dataset, hstep_error *error) {
    hstep_dataset *made = calloc(1, sizeof *made);
    if (made != NULL)
        made->files = calloc(capacity, sizeof *made->files);
    if (made == NULL || made->files == NULL) {
        hstep_dataset_destroy(made);
        return hs_fail_memory(error, "a dataset");
    }
    *dataset = made;
    return HSTEP_OK;
}

hstep_status hs_dataset_examine(hstep_dataset *dataset, size_t vocabulary, hstep_error *error) {
    XXH3_state_t *all = XXH3_createState();
    if (all == NULL)
        return hs_fail_memory(error, "a checksum");
    (void)XXH3_64bits_reset(all);
    hstep_status status = HSTEP_OK;
    dataset->type = dataset->files[0].known.type;
    for (size_t i = 0; i < dataset->file_count && status == HSTEP_OK; ++i) {
        hs_file *file = &dataset->files[i];
        file->known.first = dataset->tokens;
        dataset->tokens += file->known.tokens;
        dataset->mapped += file->mapped ? file->size : 0;
        status = hs_file_scan(file, vocabulary, all, error);
    }
    dataset->vocabulary = vocabulary;
    dataset->training = dataset->tokens;
    dataset->checksum = XXH3_64bits_digest(all);
    (void)XXH3_freeState(all);
    return status;
}

static hstep_status make_from_bytes(hstep_dataset *dataset, const void *bytes, size_t size, hstep_error *error) {
    hs_file *file = &dataset->files[0];
    dataset->file_count = 1;
    file->known.name = strdup("memory");
    file->bytes = malloc(size);
    if (file->known.name == NULL || file->bytes == NULL)
        return hs_fail_memory(error, "a text");
    memcpy(file->bytes, bytes, size);
    file->size = size;
    HS_FORWARD(hs_file_recognize(file, HSTEP_TOKENS_BYTES, error));
    HS_FORWARD(hs_dataset_examine(dataset, HSTEP_BYTE_VOCABULARY, error));
    return hstep_dataset_hold_out(dataset, HS_HELD_OUT_SHARE, error);
}

hstep_status hstep_dataset_from_bytes(const void *bytes, size_t size, hstep_dataset **dataset, hstep_error *error) {
    HS_RETURN_IF(dataset == NULL, error, HSTEP_ERROR_ARGUMENT, "dataset: the place for the result is NULL");
    HS_RETURN_IF(bytes == NULL || size == 0, error, HSTEP_ERROR_ARGUMENT, "the text is empty: give at least one byte");
    hstep_dataset *made = NULL;
    HS_FORWARD(hs_dataset_allocate(1, &made, error));
    const hstep_status status = make_from_bytes(made, bytes, size, error);
    if (status == HSTEP_OK)
        *dataset = made;
    else
        hstep_dataset_destroy(made);
    return status;
}

void hstep_dataset_destroy(hstep_dataset *dataset) {
    if (dataset == NULL)
        return;
    for (size_t i = 0; i < dataset->file_count; ++i)
        hs_file_close(&dataset->files[i]);
    free(dataset->files);
    free(dataset);
}

hstep_status hstep_dataset_hold_out(hstep_dataset *dataset, double share, hstep_error *error) {
    HS_RETURN_IF(dataset == NULL, error, HSTEP_ERROR_ARGUMENT, "dataset: it is NULL");
    HS_RETURN_IF(!(share >= 0 && share < 1), error, HSTEP_ERROR_ARGUMENT,
                 "the held-out share is %g: give one from 0 up to, but not including, 1", share);
    const size_t held = (size_t)((double)dataset->tokens * share);
    return hstep_dataset_split_at(dataset, dataset->tokens - held, error);
}

hstep_status hstep_dataset_split_at(hstep_dataset *dataset, size_t training_tokens, hstep_error *error) {
    HS_RETURN_IF(dataset == NULL, error, HSTEP_ERROR_ARGUMENT, "dataset: it is NULL");
    HS_RETURN_IF(dataset->fixed_split, error, HSTEP_ERROR_ARGUMENT,
                 "the data has files of its own to evaluate on: they are what is held out");
    HS_RETURN_IF(training_tokens > dataset->tokens, error, HSTEP_ERROR_ARGUMENT,
                 "training on %zu of the data's %zu tokens: give at most all of them", training_tokens,
                 dataset->tokens);
    dataset->training = training_tokens;
    return HSTEP_OK;
}

size_t hstep_dataset_tokens(const hstep_dataset *dataset) { return dataset->tokens; }

size_t hstep_dataset_training_tokens(const hstep_dataset *dataset) { return dataset->training; }

hstep_token_type hstep_dataset_token_type(const hstep_dataset *dataset) { return dataset->type; }

size_t hstep_dataset_vocabulary(const hstep_dataset *dataset) { return dataset->vocabulary; }

uint64_t hstep_dataset_checksum(const hstep_dataset *dataset) { return dataset->checksum; }

size_t hstep_dataset_file_count(const hstep_dataset *dataset) { return dataset->file_count; }

hstep_status hstep_dataset_file(const hstep_dataset *dataset, size_t index, hstep_data_file *file, hstep_error *error) {
    HS_RETURN_IF(dataset == NULL || file == NULL, error, HSTEP_ERROR_ARGUMENT, "dataset: an argument is NULL");
    HS_RETURN_IF(index >= dataset->file_count, error, HSTEP_ERROR_ARGUMENT, "file %zu of a dataset of %zu", index,
                 dataset->file_count);
    *file = dataset->files[index].known;
    return HSTEP_OK;
}

/* The file that holds a token. */
static size_t file_of(const hstep_dataset *dataset, size_t token) {
    size_t low = 0, high = dataset->file_count;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (dataset->files[middle].known.first <= token)
            low = middle;
        else
            high = middle;
    }
    return low;
}

void hs_dataset_copy(const hstep_dataset *dataset, size_t first, size_t count, int32_t *tokens) {
    for (size_t i = file_of(dataset, first); count > 0; ++i) {
        const hs_file *file = &dataset->files[i];
        const size_t from = first - file->known.first, left = file->known.tokens - from;
        const size_t part = count < left ? count : left;
        hs_file_read(file, from, part, tokens);
        first += part;
        count -= part;
        tokens += part;
    }
}

void hs_dataset_release(const hstep_dataset *dataset, size_t first, size_t count) {
    if (dataset->mapped <= RESIDENT)
        return;
    for (size_t i = file_of(dataset, first); count > 0; ++i) {
        const hs_file *file = &dataset->files[i];
        const size_t from = first - file->known.first, left = file->known.tokens - from;
        const size_t part = count < left ? count : left;
        hs_file_release(file, from, part);
        first += part;
        count -= part;
    }
}

hstep_status hstep_dataset_read(const hstep_dataset *dataset, size_t first, size_t count, int32_t *tokens,
                                hstep_error *error) {
    HS_RETURN_IF(dataset == NULL || (tokens == NULL && count > 0), error, HSTEP_ERROR_ARGUMENT,
                 "dataset: an argument is NULL");
    HS_RETURN_IF(first > dataset->tokens || count > dataset->tokens - first, error, HSTEP_ERROR_ARGUMENT,
                 "%zu tokens from token %zu on, of the data's %zu", count, first, dataset->tokens);
    hs_dataset_copy(dataset, first, count, tokens);
    hs_dataset_release(dataset, first, count);
    return HSTEP_OK;
}

size_t hs_dataset_segments(const hstep_dataset *dataset) {
    return dataset->type == HSTEP_TOKENS_BYTES ? 1 : dataset->file_count;
}

void hs_dataset_segment(const hstep_dataset *dataset, size_t index, size_t *begin, size_t *end) {
    const bool last = index + 1 == hs_dataset_segments(dataset);
    *begin = dataset->files[index].known.first;
    *end = last ? dataset->tokens : dataset->files[index + 1].known.first;
}
