/* A dataset from files. */
#include <stdlib.h>

#include "engine/data/dataset.h"
#include "engine/data/files/sources.h"
#include "engine/error.h"

/* Tokens are numbers of 32 bits with a sign. */
#define LARGEST_VOCABULARY ((size_t)INT32_MAX)

static hstep_status check_paths(const char *const *paths, size_t count, hstep_error *error) {
    HS_RETURN_IF(paths == NULL, error, HSTEP_ERROR_ARGUMENT, "the list of data files is NULL");
    for (size_t i = 0; i < count; ++i)
        HS_RETURN_IF(paths[i] == NULL, error, HSTEP_ERROR_ARGUMENT, "data file %zu of %zu: its path is NULL", i + 1,
                     count);
    return HSTEP_OK;
}

static hstep_status check_options(const hstep_dataset_options *options, hstep_error *error) {
    HS_RETURN_IF((unsigned)options->token_type > HSTEP_TOKENS_UINT32, error, HSTEP_ERROR_ARGUMENT,
                 "unknown token type %d", (int)options->token_type);
    HS_RETURN_IF(options->vocabulary > LARGEST_VOCABULARY && options->vocabulary != HSTEP_VOCABULARY_OF_DATA, error,
                 HSTEP_ERROR_ARGUMENT, "a vocabulary of %zu: give one of at most %zu", options->vocabulary,
                 LARGEST_VOCABULARY);
    return options->evaluation_count == 0 ? HSTEP_OK
                                          : check_paths(options->evaluation_paths, options->evaluation_count, error);
}

static hstep_status add_sources(hs_sources *sources, const char *const *paths, size_t count, hstep_error *error) {
    for (size_t i = 0; i < count; ++i)
        HS_FORWARD(hs_sources_add(sources, paths[i], error));
    return HSTEP_OK;
}

/* All files are of one type, and without a vocabulary of the caller's, of one format. */
static hstep_status check_alike(const hs_file *first, const hs_file *file, bool vocabulary_given, hstep_error *error) {
    if (file->known.type != first->known.type || (!vocabulary_given && file->vocabulary != first->vocabulary))
        return hs_fail_file(error, file->known.name,
                            "%s with tokens of %zu bytes beside %s with %zu, '%.60s': give "
                            "one kind",
                            file->known.format, hs_token_width(file->known.type), first->known.format,
                            hs_token_width(first->known.type), first->known.name);
    return HSTEP_OK;
}

static hstep_status open_files(hstep_dataset *dataset, const hs_sources *sources, const hstep_dataset_options *options,
                               hstep_error *error) {
    for (size_t i = 0; i < sources->count; ++i) {
        hs_file *file = &dataset->files[i];
        HS_FORWARD(hs_file_open(sources->paths[i], file, error));
        dataset->file_count = i + 1;
        HS_FORWARD(hs_file_recognize(file, options->token_type, error));
        HS_FORWARD(check_alike(&dataset->files[0], file, options->vocabulary != 0, error));
    }
    return HSTEP_OK;
}

/* No file is trained on and evaluated on, under whatever names. */
static hstep_status check_apart(const hstep_dataset *dataset, size_t trained, hstep_error *error) {
    for (size_t i = 0; i < trained; ++i) {
        const hs_file *a = &dataset->files[i];
        for (size_t j = trained; j < dataset->file_count && a->regular; ++j) {
            const hs_file *b = &dataset->files[j];
            if (b->regular && a->device == b->device && a->inode == b->inode)
                return hs_fail_file(error, b->known.name, "it would be trained on and evaluated on: name it once");
        }
    }
    return HSTEP_OK;
}

static size_t vocabulary_of_data(const hstep_dataset *dataset) {
    uint32_t largest = 0;
    for (size_t i = 0; i < dataset->file_count; ++i)
        largest = dataset->files[i].known.largest > largest ? dataset->files[i].known.largest : largest;
    return (size_t)largest + 1;
}

/* The vocabulary is what the caller or the format says; 0 where nobody does. */
static hstep_status find_vocabulary(const hstep_dataset *dataset, size_t wanted, size_t *vocabulary,
                                    hstep_error *error) {
    const hs_file *first = &dataset->files[0];
    const bool given = wanted != 0 && wanted != HSTEP_VOCABULARY_OF_DATA;
    *vocabulary = given ? wanted : wanted == 0 ? first->vocabulary : 0;
    if (first->known.type != HSTEP_TOKENS_BYTES)
        return HSTEP_OK;
    *vocabulary = HSTEP_BYTE_VOCABULARY;
    if (given && wanted != HSTEP_BYTE_VOCABULARY)
        return hs_fail_file(error, first->known.name,
                            "it is text, whose vocabulary is %d, not %zu: give token shards, or no vocabulary",
                            HSTEP_BYTE_VOCABULARY, wanted);
    return HSTEP_OK;
}

/* Raw tokens are read first, so that the message can say what they need. */
static hstep_status examine(hstep_dataset *dataset, size_t wanted, hstep_error *error) {
    size_t vocabulary;
    HS_FORWARD(find_vocabulary(dataset, wanted, &vocabulary, error));
    HS_FORWARD(hs_dataset_examine(dataset, vocabulary != 0 ? vocabulary : LARGEST_VOCABULARY, error));
    if (vocabulary != 0)
        return HSTEP_OK;
    dataset->vocabulary = vocabulary_of_data(dataset);
    if (wanted == HSTEP_VOCABULARY_OF_DATA)
        return HSTEP_OK;
    return hs_fail_file(error, dataset->files[0].known.name,
                        "raw tokens do not say their vocabulary, and these need %zu at least: give that of their "
                        "tokenizer, such as 50257",
                        dataset->vocabulary);
}

static hstep_status fill(hstep_dataset *dataset, const hs_sources *sources, size_t trained,
                         const hstep_dataset_options *options, hstep_error *error) {
    HS_FORWARD(open_files(dataset, sources, options, error));
    HS_FORWARD(check_apart(dataset, trained, error));
    HS_FORWARD(examine(dataset, options->vocabulary, error));
    if (trained == dataset->file_count)
        return hstep_dataset_hold_out(dataset, HS_HELD_OUT_SHARE, error);
    HS_FORWARD(hstep_dataset_split_at(dataset, dataset->files[trained].known.first, error));
    dataset->fixed_split = true;
    return HSTEP_OK;
}

static hstep_status load(hs_sources *sources, const char *const *paths, size_t count,
                         const hstep_dataset_options *options, hstep_dataset **dataset, hstep_error *error) {
    HS_FORWARD(add_sources(sources, paths, count, error));
    const size_t trained = sources->count;
    HS_FORWARD(add_sources(sources, options->evaluation_paths, options->evaluation_count, error));
    hstep_dataset *made = NULL;
    HS_FORWARD(hs_dataset_allocate(sources->count, &made, error));
    const hstep_status status = fill(made, sources, trained, options, error);
    if (status == HSTEP_OK)
        *dataset = made;
    else
        hstep_dataset_destroy(made);
    return status;
}

hstep_status hstep_dataset_load(const char *const *paths, size_t count, const hstep_dataset_options *options,
                                hstep_dataset **dataset, hstep_error *error) {
    static const hstep_dataset_options defaults = {.token_type = HSTEP_TOKENS_AUTO};
    options = options != NULL ? options : &defaults;
    HS_RETURN_IF(paths == NULL || count == 0, error, HSTEP_ERROR_ARGUMENT, "no data file: name at least one");
    HS_RETURN_IF(dataset == NULL, error, HSTEP_ERROR_ARGUMENT, "dataset: the place for the result is NULL");
    HS_FORWARD(check_paths(paths, count, error));
    HS_FORWARD(check_options(options, error));
    hs_sources sources = {0};
    const hstep_status status = load(&sources, paths, count, options, dataset, error);
    hs_sources_free(&sources);
    return status;
}
