/**
 * @file data.h
 * Text as tokens: the byte vocabulary, training batches that are a function of seed and step, evaluation batches over
 * a held-out tail, and the choice of a token from logits.
 *
 * Intended usage:
 *  1. hstep_dataset_load for files, or hstep_dataset_from_bytes. A tenth at the end is held out.
 *  2. hstep_dataset_check with the context that training will use.
 *  3. hstep_dataset_batch for every scheduled step; nothing is consumed, so a retry and a resume need no state.
 */
#ifndef HALFSTEP_DATA_H
#define HALFSTEP_DATA_H

#include <stddef.h>

#include <halfstep/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The byte vocabulary: begin and end of a text, then byte b as token b + HSTEP_TOKEN_FIRST_BYTE. */
enum { HSTEP_TOKEN_BOS = 0, HSTEP_TOKEN_EOS = 1, HSTEP_TOKEN_FIRST_BYTE = 2, HSTEP_BYTE_VOCABULARY = 258 };

/** A text in memory, split into a training part and a held-out tail. It never changes but by the split functions. */
typedef struct hstep_dataset hstep_dataset;

/**
 * Reads files of any bytes and joins them in order.
 * @return HSTEP_ERROR_INPUT_FILE naming the file and the reason: missing, unreadable, a directory, or empty; also when
 * a signal whose handler does not restart calls comes while a pipe is waited for.
 */
HSTEP_API hstep_status hstep_dataset_load(const char *const *paths, size_t count, hstep_dataset **dataset,
                                          hstep_error *error);

/** Copies a text that is in memory already. HSTEP_ERROR_ARGUMENT when it is empty. */
HSTEP_API hstep_status hstep_dataset_from_bytes(const void *bytes, size_t size, hstep_dataset **dataset,
                                                hstep_error *error);

/** NULL is ignored. */
HSTEP_API void hstep_dataset_destroy(hstep_dataset *dataset);

/** Holds out the given share of the tokens at the end, in [0, 1). 0.1 from the start. */
HSTEP_API hstep_status hstep_dataset_hold_out(hstep_dataset *dataset, double share, hstep_error *error);

/** Trains on the first `training_tokens`, 1 at least, and holds out all that follow. */
HSTEP_API hstep_status hstep_dataset_split_at(hstep_dataset *dataset, size_t training_tokens, hstep_error *error);

/** Tokens of the whole text, and of its training part. */
HSTEP_API size_t hstep_dataset_tokens(const hstep_dataset *dataset);
HSTEP_API size_t hstep_dataset_training_tokens(const hstep_dataset *dataset);

/** XXH3 (64 bits) of the text's bytes. */
HSTEP_API uint64_t hstep_dataset_checksum(const hstep_dataset *dataset);

/**
 * Whether windows of `length` tokens can be drawn, with a target for each, and whether a held-out tail has a target.
 * @return HSTEP_ERROR_INPUT_FILE with the figures when the text is too short; HSTEP_ERROR_ARGUMENT for length 0.
 */
HSTEP_API hstep_status hstep_dataset_check(const hstep_dataset *dataset, size_t length, hstep_error *error);

/**
 * Mean loss, in nats per token, of a model that knows only how often each byte stands in the training part (with one
 * added to each of the 256 counts), over the held-out tail or, where nothing is held out, over the training part.
 */
HSTEP_API double hstep_dataset_unigram_loss(const hstep_dataset *dataset);

/**
 * Fills tokens and targets, [sequences][length] each, with random windows of the training part. They depend on seed,
 * step and the row number micro_batch * sequences + sequence alone, so that splitting a window of the same size into
 * other micro-batches keeps its data.
 */
HSTEP_API hstep_status hstep_dataset_batch(const hstep_dataset *dataset, uint64_t seed, uint64_t step,
                                           uint64_t micro_batch, size_t sequences, size_t length, int32_t *tokens,
                                           int32_t *targets, hstep_error *error);

/**
 * Number of windows of `length` tokens that evaluation uses: consecutive ones that cover the held-out tail, or `limit`
 * of them, evenly spaced, when limit is neither 0 nor above their number. 0 where nothing is held out.
 */
HSTEP_API size_t hstep_dataset_evaluation_windows(const hstep_dataset *dataset, size_t length, size_t limit);

/**
 * Fills tokens and targets with evaluation windows first .. first + sequences - 1 of those that the function above
 * counts. Where the tail ends within its last window the targets are -1.
 * @return HSTEP_ERROR_ARGUMENT for a window that does not exist.
 */
HSTEP_API hstep_status hstep_dataset_evaluation_batch(const hstep_dataset *dataset, size_t length, size_t limit,
                                                      size_t first, size_t sequences, int32_t *tokens, int32_t *targets,
                                                      hstep_error *error);

/** 64 random bits that are a function of three numbers (SplitMix64): a random source without state. */
HSTEP_API uint64_t hstep_random_at(uint64_t seed, uint64_t stream, uint64_t index);

/**
 * Chooses a token. Temperature 0 takes the largest logit, the lowest token among equals; above 0 it draws from
 * softmax(logits / temperature) with `uniform` in [0, 1). A NaN logit is never chosen; with nothing else, token 0 is.
 */
HSTEP_API int32_t hstep_choose_token(const double *logits, size_t vocabulary, double temperature, double uniform);

#ifdef __cplusplus
}
#endif
#endif
