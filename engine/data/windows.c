/* Windows: shuffled ones to train on, consecutive ones to evaluate. */
#include <string.h>

#include "engine/data/dataset.h"
#include "engine/data/shuffle.h"
#include "engine/error.h"

/* Tokens of one part that stand together, and how many windows of them come before. */
typedef struct stretch {
    size_t segment;
    size_t begin, end;
    size_t windows_before;
} stretch;

typedef enum data_part { TRAINING, HELD_OUT } data_part;

static stretch stretch_of(const hstep_dataset *dataset, data_part part, size_t segment) {
    stretch s = {.segment = segment};
    hs_dataset_segment(dataset, segment, &s.begin, &s.end);
    const size_t border = dataset->training;
    if (part == TRAINING)
        s.end = s.end < border ? s.end : border;
    else
        s.begin = s.begin > border ? s.begin : border;
    return s;
}

/* Training windows are whole; those to evaluate cover every token but the first, which nothing predicts. */
static size_t windows_of(const stretch *s, data_part part, size_t length) {
    if (s->end < s->begin + 2 || length == 0)
        return 0;
    const size_t targets = s->end - s->begin - 1;
    return part == TRAINING ? targets / length : (targets - 1) / length + 1;
}

static size_t count_windows(const hstep_dataset *dataset, data_part part, size_t length) {
    size_t count = 0;
    for (size_t i = 0; i < hs_dataset_segments(dataset); ++i) {
        const stretch s = stretch_of(dataset, part, i);
        count += windows_of(&s, part, length);
    }
    return count;
}

/* Where a window stands, which must be there. */
static stretch find_stretch(const hstep_dataset *dataset, data_part part, size_t length, size_t window) {
    size_t before = 0;
    for (size_t i = 0;; ++i) {
        stretch s = stretch_of(dataset, part, i);
        const size_t count = windows_of(&s, part, length);
        if (window - before < count) {
            s.windows_before = before;
            return s;
        }
        before += count;
    }
}

static hstep_status check_places(const int32_t *tokens, const int32_t *targets, size_t sequences, hstep_error *error) {
    HS_RETURN_IF((tokens == NULL || targets == NULL) && sequences > 0, error, HSTEP_ERROR_ARGUMENT,
                 "dataset: the place for tokens or targets is NULL");
    return HSTEP_OK;
}

/* The `count` tokens from `start` on, and the same moved by one. */
static void fill_row(const hstep_dataset *dataset, size_t start, size_t count, int32_t *tokens, int32_t *targets) {
    hs_dataset_copy(dataset, start, count, tokens);
    memcpy(targets, tokens + 1, (count - 1) * sizeof *targets);
    hs_dataset_copy(dataset, start + count, 1, targets + count - 1);
    hs_dataset_release(dataset, start, count + 1);
}

size_t hstep_dataset_training_windows(const hstep_dataset *dataset, size_t length) {
    return count_windows(dataset, TRAINING, length);
}

hstep_status hstep_dataset_check(const hstep_dataset *dataset, size_t length, hstep_error *error) {
    HS_RETURN_IF(dataset == NULL, error, HSTEP_ERROR_ARGUMENT, "dataset: it is NULL");
    HS_RETURN_IF(length == 0, error, HSTEP_ERROR_ARGUMENT, "a context of 0 tokens holds nothing: give at least 1");
    const size_t tokens = dataset->tokens, training = dataset->training;
    const char *what = dataset->type == HSTEP_TOKENS_BYTES ? "text" : "data";
    HS_RETURN_IF(hstep_dataset_training_windows(dataset, length) == 0, error, HSTEP_ERROR_INPUT_FILE,
                 "the %s has %zu token%s, of which %zu %s for training; a context of %zu needs at least %zu%s: give "
                 "more text, a shorter context or a smaller held-out share",
                 what, tokens, tokens == 1 ? "" : "s", training, training == 1 ? "is" : "are", length, length + 1,
                 hs_dataset_segments(dataset) > 1 ? " in one file" : "");
    HS_RETURN_IF(training < tokens && hstep_dataset_evaluation_windows(dataset, length, 0) == 0, error,
                 HSTEP_ERROR_INPUT_FILE,
                 "the %s has %zu tokens, of which only %zu %s held out; an evaluation needs 2%s: give more text or "
                 "another held-out share",
                 what, tokens, tokens - training, tokens - training == 1 ? "is" : "are",
                 hs_dataset_segments(dataset) > 1 ? " in one file" : "");
    return HSTEP_OK;
}

hstep_status hstep_dataset_batch(const hstep_dataset *dataset, uint64_t seed, uint64_t first, size_t sequences,
                                 size_t length, int32_t *tokens, int32_t *targets, hstep_error *error) {
    HS_FORWARD(check_places(tokens, targets, sequences, error));
    HS_FORWARD(hstep_dataset_check(dataset, length, error));
    HS_RETURN_IF(first > UINT64_MAX - sequences, error, HSTEP_ERROR_ARGUMENT, "there are not so many windows");
    const uint64_t windows = hstep_dataset_training_windows(dataset, length);
    hs_shuffle shuffle;
    for (size_t i = 0; i < sequences; ++i) {
        const uint64_t epoch = (first + i) / windows, place = (first + i) % windows;
        if (i == 0 || place == 0)
            shuffle = hs_shuffle_make(seed, epoch, windows);
        const size_t window = (size_t)hs_shuffle_at(&shuffle, place);
        const stretch s = find_stretch(dataset, TRAINING, length, window);
        const size_t surplus = (s.end - s.begin - 1) % length;
        const size_t phase = (size_t)hs_shuffle_phase(seed, epoch, s.segment, surplus + 1);
        fill_row(dataset, s.begin + phase + (window - s.windows_before) * length, length, tokens + i * length,
                 targets + i * length);
    }
    return HSTEP_OK;
}

size_t hstep_dataset_evaluation_windows(const hstep_dataset *dataset, size_t length, size_t limit) {
    const size_t all = count_windows(dataset, HELD_OUT, length);
    return limit == 0 || limit > all ? all : limit;
}

/* A window to evaluate; where its stretch ends, tokens of no meaning follow, which no target asks about. */
static void fill_evaluation_row(const hstep_dataset *dataset, size_t length, size_t window, int32_t *tokens,
                                int32_t *targets) {
    const stretch s = find_stretch(dataset, HELD_OUT, length, window);
    const size_t start = s.begin + (window - s.windows_before) * length;
    const size_t left = s.end - start - 1, count = left < length ? left : length;
    fill_row(dataset, start, count, tokens, targets);
    for (size_t t = count; t < length; ++t) {
        tokens[t] = dataset->type == HSTEP_TOKENS_BYTES ? HSTEP_TOKEN_EOS : 0;
        targets[t] = -1;
    }
}

hstep_status hstep_dataset_evaluation_batch(const hstep_dataset *dataset, size_t length, size_t limit, size_t first,
                                            size_t sequences, int32_t *tokens, int32_t *targets, hstep_error *error) {
    HS_RETURN_IF(dataset == NULL, error, HSTEP_ERROR_ARGUMENT, "dataset: it is NULL");
    HS_FORWARD(check_places(tokens, targets, sequences, error));
    const size_t all = count_windows(dataset, HELD_OUT, length);
    const size_t count = limit == 0 || limit > all ? all : limit;
    HS_RETURN_IF(first > count || sequences > count - first, error, HSTEP_ERROR_ARGUMENT,
                 "evaluation windows %zu to %zu, but there are %zu", first, first + sequences, count);
    for (size_t i = 0; i < sequences; ++i) {
        /* (first + i) * all / count without a product that could overflow. */
        const size_t k = first + i;
        const size_t window = k * (all / count) + k * (all % count) / count;
        fill_evaluation_row(dataset, length, window, tokens + i * length, targets + i * length);
    }
    return HSTEP_OK;
}
