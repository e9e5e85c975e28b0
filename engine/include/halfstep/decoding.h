/**
 * @file decoding.h
 * Text from a decoder: passes that keep the keys and values of earlier positions, and the choice of a token.
 *
 * Intended usage, from the simple to the advanced:
 *  1. hstep_decoding_create for a number of sequences and the positions to look back on; then, as often as tokens are
 *     wanted, hstep_decoding_extend, which feeds what is new and appends one token to each sequence.
 *  2. hstep_decoding_feed for the logits alone, hstep_choose_token for one's own loop, hstep_decoding_rewind to go
 *     back to an earlier position.
 *
 * With exact levers the logits have the bits of the rows of hstep_model_output, whatever the parts in which the tokens
 * are fed.
 */
#ifndef HALFSTEP_DECODING_H
#define HALFSTEP_DECODING_H

#include <stddef.h>
#include <stdint.h>

#include <halfstep/model.h>
#include <halfstep/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Choosing a token ---- */

/**
 * How a token is chosen. Zeros are the defaults: the largest logit, the lowest token among equals. From logits x and
 * the tokens of a history to probabilities, in this order:
 *  1. Repetition penalty r, for tokens that the history has: x / r where x is above 0, else x * r (Keskar et al., 2019,
 *     who divide; a negative logit would grow by it).
 *  2. Temperature T: weights w = exp((x - largest x) / T).
 *  3. Top-k: the k largest x stay, lower tokens first among equals.
 *  4. Top-p: of those, the fewest of the largest stay whose w add up to p times the sum of all their w, or more: the
 *     nucleus (Holtzman et al., 2020). At least one.
 *  5. What stays is drawn in proportion to w.
 */
typedef struct hstep_sampling {
    double temperature;        /**< 0: no draw, the largest logit after the penalty. */
    size_t top_k;              /**< 0: all tokens. */
    double top_p;              /**< In (0, 1]; 0 and 1: all tokens. */
    double repetition_penalty; /**< Above 0, 1 for none, above 1 against repetition; 0 stands for 1. */
} hstep_sampling;

/** HSTEP_ERROR_ARGUMENT naming the field that is out of its range. */
HSTEP_API hstep_status hstep_sampling_check(const hstep_sampling *sampling, hstep_error *error);

/**
 * Chooses a token.
 * @param history  Tokens for the repetition penalty, of any order; those outside the vocabulary do not count.
 * @param uniform  In [0, 1). Tokens that stay are laid on it in ascending order.
 * A NaN logit is never chosen; with nothing else, token 0 is.
 */
HSTEP_API hstep_status hstep_choose_token(const hstep_sampling *sampling, const double *logits, size_t vocabulary,
                                          const int32_t *history, size_t history_count, double uniform, int32_t *token,
                                          hstep_error *error);

/* ---- Passes with a cache ---- */

/** Sequences of one length, with keys and values of their positions. */
typedef struct hstep_decoding hstep_decoding;

/**
 * Makes a decoding of a model that hstep_model_create_decoder made and that must outlive it. A model may have several.
 * @param sequences  Sequences that are fed together.
 * @param capacity   Positions that each of them has room for: the context. Memory for all of them is taken here.
 * @return HSTEP_ERROR_ARGUMENT for another model; HSTEP_ERROR_SHAPE for more positions than can be counted.
 */
HSTEP_API hstep_status hstep_decoding_create(hstep_model *model, size_t sequences, size_t capacity,
                                             hstep_decoding **decoding, hstep_error *error);

/** NULL is ignored. */
HSTEP_API void hstep_decoding_destroy(hstep_decoding *decoding);

/** Sequences that are fed together. */
HSTEP_API size_t hstep_decoding_sequences(const hstep_decoding *decoding);

/** Positions that each of them has room for. */
HSTEP_API size_t hstep_decoding_capacity(const hstep_decoding *decoding);

/** Positions that have been fed, of each sequence. */
HSTEP_API size_t hstep_decoding_length(const hstep_decoding *decoding);

/**
 * Feeds the next `count` tokens of every sequence, 1 at least, in one pass.
 * @param tokens  [sequences][count]
 * @param logits  [sequences][vocabulary] of the last position; NULL where they are not wanted.
 * @return HSTEP_ERROR_SHAPE when they do not fit behind what has been fed; HSTEP_ERROR_TOKEN;
 *         HSTEP_ERROR_STALE_TAPE when the model's parameters changed since the first position, after which only
 *         hstep_decoding_rewind to 0 helps; HSTEP_ERROR_NONFINITE_FORWARD. The length is then as it was.
 */
HSTEP_API hstep_status hstep_decoding_feed(hstep_decoding *decoding, const int32_t *tokens, size_t count,
                                           double *logits, hstep_error *error);

/** Forgets positions from `length` on; HSTEP_ERROR_ARGUMENT when fewer have been fed. */
HSTEP_API hstep_status hstep_decoding_rewind(hstep_decoding *decoding, size_t length, hstep_error *error);

/** The stream of hstep_random_at from which hstep_decoding_extend draws. */
#define HSTEP_STREAM_SAMPLE (UINT64_MAX - 2)

/**
 * Feeds what is new of every sequence, and appends one token to it. The context slides: when its capacity is full, it
 * begins anew with the last half of it, fed in one pass, so that a token is chosen from at least the last capacity / 2
 * tokens. Of a beginning that is longer than the capacity, the last `capacity` tokens are fed.
 *
 * Token `known` of sequence i is drawn with the upper 53 bits of hstep_random_at(seed, HSTEP_STREAM_SAMPLE, known *
 * sequences + i), which does not depend on the calls that came before.
 * @param tokens    [sequences][stride], of which `known` in each row are there, 1 at least; those that have been fed
 *                  must be as they were. Place `known` of each row is written.
 * @param sampling  The history is the row.
 */
HSTEP_API hstep_status hstep_decoding_extend(hstep_decoding *decoding, const hstep_sampling *sampling, uint64_t seed,
                                             int32_t *tokens, size_t stride, size_t known, hstep_error *error);

#ifdef __cplusplus
}
#endif
#endif
