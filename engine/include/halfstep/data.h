/**
 * @file data.h
 * Training data: text under the byte vocabulary or token shards, batches that are a function of seed and position,
 * and evaluation batches over a held-out part.
 *
 * Intended usage:
 *  1. hstep_dataset_load for files, folders and patterns, or hstep_dataset_from_bytes. Unless the options name files
 *     to evaluate on, a tenth at the end is held out.
 *  2. hstep_dataset_check with the context that training will use.
 *  3. hstep_dataset_batch with the number of windows drawn before; nothing is consumed, so a retry asks again.
 *  4. hstep_dataset_save_position beside a checkpoint, hstep_dataset_restore_position to go on from it.
 *
 * Large files are mapped into memory and must not be shortened while the dataset lives: reading what is no longer there
 * ends the process.
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

/** Tokens, split into a training part and a held-out one. It never changes but by the split functions. */
typedef struct hstep_dataset hstep_dataset;

/** What a file's bytes are. */
typedef enum hstep_token_type {
    HSTEP_TOKENS_AUTO = 0,  /**< As the file says: a header of llm.c, or else text. */
    HSTEP_TOKENS_BYTES = 1, /**< Every byte is a token, whatever the file is. */
    HSTEP_TOKENS_UINT16 = 2,
    HSTEP_TOKENS_UINT32 = 3
} hstep_token_type;

/** "auto", "bytes", "uint16" or "uint32". */
HSTEP_API const char *hstep_token_type_name(hstep_token_type type);

/** A vocabulary that holds every token of the data and no more: to look at a shard, rather than to train on it. */
#define HSTEP_VOCABULARY_OF_DATA SIZE_MAX

/** Zeros are the defaults. */
typedef struct hstep_dataset_options {
    /**
     * AUTO takes a file with the header of llm.c for a shard (magic 20240520, version 1: uint16; magic 20240801,
     * version 7: uint32), refuses any other file whose name ends in .bin, and takes the rest for text. UINT16 and
     * UINT32 also take raw tokens without a header, little-endian, such as nanoGPT's.
     */
    hstep_token_type token_type;
    /**
     * Size of the vocabulary of token shards, below which every token must lie. 0: that of the format, 50257 for
     * llm.c's uint16 shards and 128256 for its uint32 ones; raw tokens need it. Text has HSTEP_BYTE_VOCABULARY.
     */
    size_t vocabulary;
    /** Files, folders and patterns to evaluate on: exactly they are held out. None may be trained on too. */
    const char *const *evaluation_paths;
    size_t evaluation_count; /**< How many there are. */
} hstep_dataset_options;

/**
 * Loads files, in the order of `paths`. A folder stands for the files in it and in its sub-folders, sorted by the bytes
 * of their names, without hidden and empty ones and without what is no regular file. A path that does not exist and has
 * one of the characters * ? [ is a pattern as shells have them; what it matches is sorted too. All files must be of one
 * token type. Text files are joined: windows go over their borders. Token shards are not: every window lies in one.
 *
 * Every token is read once, for its checksum and its range. Files of 64 KiB and more are mapped, so that memory does
 * not grow with them; smaller ones and pipes are read.
 * @param options  NULL for the defaults.
 * @return HSTEP_ERROR_INPUT_FILE naming the file, the place in it where there is one, and the reason: missing,
 * unreadable, a device, empty, truncated, of unknown or another type, a token outside the vocabulary, trained and
 * evaluated on; also when a signal whose handler does not restart calls comes while a pipe is waited for.
 */
HSTEP_API hstep_status hstep_dataset_load(const char *const *paths, size_t count, const hstep_dataset_options *options,
                                          hstep_dataset **dataset, hstep_error *error);

/** Copies a text that is in memory already. HSTEP_ERROR_ARGUMENT when it is empty. */
HSTEP_API hstep_status hstep_dataset_from_bytes(const void *bytes, size_t size, hstep_dataset **dataset,
                                                hstep_error *error);

/** NULL is ignored. */
HSTEP_API void hstep_dataset_destroy(hstep_dataset *dataset);

/**
 * Holds out the given share of the tokens at the end, in [0, 1). 0.1 from the start. HSTEP_ERROR_ARGUMENT where the
 * dataset has files of its own to evaluate on.
 */
HSTEP_API hstep_status hstep_dataset_hold_out(hstep_dataset *dataset, double share, hstep_error *error);

/** Trains on the first `training_tokens` and holds out all that follow: with 0 everything; errors as above. */
HSTEP_API hstep_status hstep_dataset_split_at(hstep_dataset *dataset, size_t training_tokens, hstep_error *error);

/** Tokens of all files. */
HSTEP_API size_t hstep_dataset_tokens(const hstep_dataset *dataset);

/** Tokens of the training part, which comes first. */
HSTEP_API size_t hstep_dataset_training_tokens(const hstep_dataset *dataset);

/** BYTES, UINT16 or UINT32. */
HSTEP_API hstep_token_type hstep_dataset_token_type(const hstep_dataset *dataset);

/** What a model of this data has to tell apart: HSTEP_BYTE_VOCABULARY for text. */
HSTEP_API size_t hstep_dataset_vocabulary(const hstep_dataset *dataset);

/** XXH3 (64 bits) of the bytes of all tokens, headers of shards left out. */
HSTEP_API uint64_t hstep_dataset_checksum(const hstep_dataset *dataset);

/** One file of a dataset. */
typedef struct hstep_data_file {
    const char *name;      /**< Its path; "memory" for hstep_dataset_from_bytes. Lives as long as the dataset. */
    const char *format;    /**< "text", "llm.c" or "raw". */
    hstep_token_type type; /**< BYTES, UINT16 or UINT32. */
    size_t tokens;         /**< In this file. */
    size_t first;          /**< Tokens of the files before it. */
    uint32_t largest;      /**< The largest token; of text the largest byte. */
    uint64_t checksum;     /**< XXH3 (64 bits) of the tokens' bytes. */
} hstep_data_file;

/** Number of files: 1 for hstep_dataset_from_bytes. */
HSTEP_API size_t hstep_dataset_file_count(const hstep_dataset *dataset);

/** HSTEP_ERROR_ARGUMENT where there is no such file. Files to evaluate on come last. */
HSTEP_API hstep_status hstep_dataset_file(const hstep_dataset *dataset, size_t index, hstep_data_file *file,
                                          hstep_error *error);

/** Copies tokens first .. first + count - 1 out. HSTEP_ERROR_ARGUMENT where the dataset ends before. */
HSTEP_API hstep_status hstep_dataset_read(const hstep_dataset *dataset, size_t first, size_t count, int32_t *tokens,
                                          hstep_error *error);

/**
 * Whether there is a window of `length` tokens with a target for each, and whether a held-out part has a target.
 * @return HSTEP_ERROR_INPUT_FILE with the figures when there are too few tokens; HSTEP_ERROR_ARGUMENT for length 0.
 */
HSTEP_API hstep_status hstep_dataset_check(const hstep_dataset *dataset, size_t length, hstep_error *error);

/**
 * Mean loss, in nats per token, of a model that knows only how often each token (of text: each byte) stands in the
 * training part, with one added to each count, over the held-out part or, where nothing is held out, over the training
 * part. Reads all of it.
 */
HSTEP_API hstep_status hstep_dataset_unigram_loss(const hstep_dataset *dataset, double *loss, hstep_error *error);

/**
 * Windows of `length` tokens in the training part: (n - 1) / length, rounded down, where n tokens stand together (all
 * of a text, each of several shards). An epoch draws each of them once.
 */
HSTEP_API size_t hstep_dataset_training_windows(const hstep_dataset *dataset, size_t length);

/**
 * Fills tokens and targets, [sequences][length] each, with the windows first .. first + sequences - 1 of an endless
 * row: epoch after epoch, each with all training windows in an order of its own, a function of seed and epoch. Windows
 * lie end to end, the target of one's last token being the next one's first, so that an epoch learns a token once. The
 * tokens that do not fill a window, fewer than `length` of those that stand together, are left out before the first
 * window and behind the last; how many on which side changes with the epoch.
 * @param first  Windows drawn before. A batch at the end of an epoch goes on in the next one.
 */
HSTEP_API hstep_status hstep_dataset_batch(const hstep_dataset *dataset, uint64_t seed, uint64_t first,
                                           size_t sequences, size_t length, int32_t *tokens, int32_t *targets,
                                           hstep_error *error);

/** All that decides what is drawn next, beside the dataset. */
typedef struct hstep_data_position {
    uint64_t seed;    /**< Of the order of windows. */
    size_t length;    /**< Tokens in a window. */
    uint64_t windows; /**< Drawn so far: `first` of the next batch. */
} hstep_data_position;

/**
 * Writes the position and what the dataset is (token type, vocabulary, counts, checksums, files) as one JSON object.
 * With buffer NULL only *size is set; otherwise *size says how much room there is, and becomes what was written. No
 * zero is appended.
 */
HSTEP_API hstep_status hstep_dataset_save_position(const hstep_dataset *dataset, const hstep_data_position *position,
                                                   char *buffer, size_t *size, hstep_error *error);

/**
 * Reads a position back. The dataset must draw the same windows as the one that it was saved with; files may have moved
 * or have other names.
 * @return HSTEP_ERROR_INPUT_FILE with every difference, as far as the message has room, or where the text is no such
 * position; *position is then untouched.
 */
HSTEP_API hstep_status hstep_dataset_restore_position(const hstep_dataset *dataset, const char *text, size_t size,
                                                      hstep_data_position *position, hstep_error *error);

/**
 * Number of windows of `length` tokens that evaluation uses: consecutive ones that cover the held-out part, or `limit`
 * of them, evenly spaced, when limit is neither 0 nor above their number. 0 where nothing is held out. Like training
 * windows they cross no border of a shard.
 */
HSTEP_API size_t hstep_dataset_evaluation_windows(const hstep_dataset *dataset, size_t length, size_t limit);

/**
 * Fills tokens and targets with evaluation windows first .. first + sequences - 1 of those that the function above
 * counts. Where what stands together ends within its last window the targets are -1.
 * @return HSTEP_ERROR_ARGUMENT for a window that does not exist.
 */
HSTEP_API hstep_status hstep_dataset_evaluation_batch(const hstep_dataset *dataset, size_t length, size_t limit,
                                                      size_t first, size_t sequences, int32_t *tokens, int32_t *targets,
                                                      hstep_error *error);

/** 64 random bits that are a function of three numbers (SplitMix64): a random source without state. */
HSTEP_API uint64_t hstep_random_at(uint64_t seed, uint64_t stream, uint64_t index);

#ifdef __cplusplus
}
#endif
#endif
