/* What a dataset holds. Private to engine/data. */
#ifndef HS_ENGINE_DATA_DATASET_H
#define HS_ENGINE_DATA_DATASET_H

#include <stdbool.h>

#include <halfstep/data.h>

#include "engine/data/files/file.h"

/* What is held out unless told otherwise. */
#define HS_HELD_OUT_SHARE 0.1

struct hstep_dataset {
    hs_file *files;
    size_t file_count;
    size_t tokens;
    size_t training; /* tokens 0..training-1 are trained on, the others held out */
    size_t vocabulary;
    hstep_token_type type;
    bool fixed_split; /* the held-out part is files of its own */
    uint64_t checksum;
    size_t mapped; /* bytes of all mapped files */
};

/* A dataset without files, with room for `capacity` of them. */
hstep_status hs_dataset_allocate(size_t capacity, hstep_dataset **dataset, hstep_error *error);

/* Counts and reads the tokens of all files, each recognised before, and holds out nothing. */
hstep_status hs_dataset_examine(hstep_dataset *dataset, size_t vocabulary, hstep_error *error);

/* Copies tokens, which must be there; they may lie in several files. */
void hs_dataset_copy(const hstep_dataset *dataset, size_t first, size_t count, int32_t *tokens);

/*
 * Gives the memory back that copies of these tokens brought in, where the files are so large that a run would otherwise
 * fill the memory with them by and by.
 */
void hs_dataset_release(const hstep_dataset *dataset, size_t first, size_t count);

/* Tokens that stand together: all of a text, each file of several shards. Windows cross no border between them. */
size_t hs_dataset_segments(const hstep_dataset *dataset);
void hs_dataset_segment(const hstep_dataset *dataset, size_t index, size_t *begin, size_t *end);

#endif
