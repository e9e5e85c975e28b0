/*
 * The kinds of files that `trainer inspect` knows, one function each. It fills a JSON object with what it found, in the
 * order in which people should read it: --json prints it as it is, otherwise every field is a line. Objects in it give
 * fields with a dot, arrays a line with their elements, arrays of objects a line for each.
 */
#ifndef HS_TRAINER_INSPECT_KINDS_H
#define HS_TRAINER_INSPECT_KINDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include <halfstep/data.h>

/* The first bytes of the file, by which its kind is told. */
enum { HS_INSPECT_HEAD = 256 };

typedef struct hs_inspection {
    const char *path;
    hstep_token_type token_type; /* of a raw shard */
    unsigned char head[HS_INSPECT_HEAD];
    size_t head_size;
} hs_inspection;

typedef struct hs_inspect_kind {
    const char *name;
    bool (*recognizes)(const hs_inspection *inspection);
    /*
     * HSTEP_OK, or HSTEP_ERROR_INPUT_FILE with file and byte offset. A field without memory is missed by the caller.
     * What was found of a damaged file is printed all the same where it lists the "problems".
     */
    hstep_status (*describe)(const hs_inspection *inspection, json_t *found, hstep_error *error);
} hs_inspect_kind;

extern const hs_inspect_kind hs_inspect_records;

/* Checkpoints, and all other safetensors files. */
extern const hs_inspect_kind hs_inspect_tensors;

/* Text and token shards: what no other kind is. */
extern const hs_inspect_kind hs_inspect_data;

#endif
