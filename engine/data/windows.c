/* Windows of a text: random ones to train on, consecutive ones to evaluate. */
#include <stdbool.h>

#include "engine/data/dataset.h"
#include "engine/error.h"
#include "precision/random.h"

uint64_t hstep_random_at(uint64_t seed, uint64_t stream, uint64_t index) {
    hs_random random = {seed};
    random.state = hs_random_next(&random) ^ stream;
    random.state = hs_random_next(&random) ^ index;
    return hs_random_next(&random);
}

static int32_t token_at(const hstep_dataset *dataset, size_t position) {
    return dataset->bytes[position] + HSTEP_TOKEN_FIRST_BYTE;
}

static hstep_status check_places(const int32_t *tokens, const int32_t *targets, size_t sequences, hstep_error *error) {
    HS_RETURN_IF((tokens == NULL || targets == NULL) && sequences > 0, error, HSTEP_ERROR_ARGUMENT,
                 "dataset: the place for tokens or targets is NULL");
    return HSTEP_OK;
}

hstep_status hstep_dataset_batch(const hstep_dataset *dataset, uint64_t seed, uint64_t step, uint64_t micro_batch,
                                 size_t sequences, size_t length, int32_t *tokens, int32_t *targets,
                                 hstep_error *error) {
    HS_FORWARD(check_places(tokens, targets, sequences, error));
    HS_FORWARD(hstep_dataset_check(dataset, length, error));
    const uint64_t starts = dataset->training - length;
    for (size_t i = 0; i < sequences; ++i) {
        const uint64_t row = micro_batch * sequences + i;
        const size_t start = (size_t)(hstep_random_at(seed, step, row) % starts);
        for (size_t t = 0; t < length; ++t) {
            tokens[i * length + t] = token_at(dataset, start + t);
            targets[i * length + t] = token_at(dataset, start + t + 1);
        }
    }
    return HSTEP_OK;
}

/* Consecutive windows that cover every held-out token but the first, which nothing predicts. */
static size_t all_windows(const hstep_dataset *dataset, size_t length) {
    const size_t held = dataset->size - dataset->training;
    return held < 2 || length == 0 ? 0 : (held - 2) / length + 1;
}

size_t hstep_dataset_evaluation_windows(const hstep_dataset *dataset, size_t length, size_t limit) {
    const size_t all = all_windows(dataset, length);
    return limit == 0 || limit > all ? all : limit;
}

hstep_status hstep_dataset_evaluation_batch(const hstep_dataset *dataset, size_t length, size_t limit, size_t first,
                                            size_t sequences, int32_t *tokens, int32_t *targets, hstep_error *error) {
    HS_RETURN_IF(dataset == NULL, error, HSTEP_ERROR_ARGUMENT, "dataset: it is NULL");
    HS_FORWARD(check_places(tokens, targets, sequences, error));
    const size_t all = all_windows(dataset, length);
    const size_t count = hstep_dataset_evaluation_windows(dataset, length, limit);
    HS_RETURN_IF(first > count || sequences > count - first, error, HSTEP_ERROR_ARGUMENT,
                 "evaluation windows %zu to %zu, but there are %zu", first, first + sequences, count);
    for (size_t i = 0; i < sequences; ++i) {
        /* (first + i) * all / count without a product that could overflow. */
        const size_t k = first + i;
        const size_t window = k * (all / count) + k * (all % count) / count;
        const size_t start = dataset->training + window * length;
        for (size_t t = 0; t < length; ++t) {
            const bool inside = start + t + 1 < dataset->size;
            tokens[i * length + t] = inside ? token_at(dataset, start + t) : HSTEP_TOKEN_EOS;
            targets[i * length + t] = inside ? token_at(dataset, start + t + 1) : -1;
        }
    }
    return HSTEP_OK;
}
