/*
 * Causal attention of one query head, made of the tiles of a kit. Both directions follow one rule: a cell (query, key)
 * is formed when key <= positions[query]; a chain runs over formed cells only, ascending, so an infinity that the mask
 * hides never meets a zero.
 */
#ifndef HS_CPU_EXACT_ATTENTION_HEAD_H
#define HS_CPU_EXACT_ATTENTION_HEAD_H

#include "cpu/exact/product/kit.h"
#include "cpu/exact/scratch.h"
#include "cpu/kernel.h"

typedef struct hs_exact_attention {
    const hs_kit *kit;
    size_t sequences, heads, group; /* group: query heads of one key head */
    size_t width;                   /* of a head */
    size_t queries, keys;           /* of a sequence */
    double scale;
} hs_exact_attention;

/* What one sequence sees. */
typedef struct hs_positions {
    const int32_t *last; /* of every query, the last key that it sees */
    size_t limit;        /* keys of the sequence */
    size_t keys;         /* how many of them any query sees */
} hs_positions;

/* first: which input is the queries. */
hs_exact_attention hs_exact_attention_of(const hs_call *call, const hs_kernel_run *run, unsigned first);

hs_positions hs_positions_of(const hs_exact_attention *attention, const int32_t *positions, size_t sequence);

/* How many keys a query sees: the cells 0..n-1 of its row are formed. */
static inline size_t hs_keys_of(const hs_positions *positions, size_t query) {
    const size_t keys = (size_t)positions->last[query] + 1;
    return keys < positions->limit ? keys : positions->limit;
}

/* The most and the fewest keys that queries [first, first + count) see. */
size_t hs_keys_seen(const hs_positions *positions, size_t first, size_t count);
size_t hs_keys_shared(const hs_positions *positions, size_t first, size_t count);

/* Packed panels, each `bytes` long whatever part of it is in use. */
typedef struct hs_packed {
    unsigned char *data;
    hs_range *ranges;
    size_t bytes;
} hs_packed;

/* Room for panels of `lines` lines of up to `depth` steps. */
hs_packed hs_carve_panels(unsigned char **scratch, const hs_kit *kit, const hs_side *side, size_t lines, size_t depth);

/* Packs all `count` lines. */
void hs_pack_panels(const hs_side *side, hs_lines lines, size_t count, size_t depth, const hs_packed *packed);

/*
 * y[r * pitch + j], r < count, j < keys seen by any of the queries: the products of a packed panel of queries (or of
 * their adjoints) with packed panels of keys (or values). Whole tiles are written: rows of y have room for them.
 */
void hs_query_key_products(const hs_exact_attention *attention, size_t count, size_t seen, const hs_packed *a,
                           const hs_packed *b, double *y, size_t pitch);

/*
 * y[r, c] = sum over keys of a packed panel of rows over keys, times packed panels of columns; queries first..
 * Returns whether a value stored is nonfinite.
 */
bool hs_sum_over_keys(const hs_exact_attention *attention, const hs_positions *positions, size_t first, size_t count,
                      const hs_packed *a, const hs_packed *b, double *y, size_t pitch);

/*
 * The same summed over queries, for panel `panel` of the keys, which are the lines of a. `added`: y gets the sum added,
 * in f64, rather than stored.
 */
bool hs_sum_over_queries(const hs_exact_attention *attention, const hs_positions *positions, size_t panel, size_t count,
                         const hs_packed *a, const hs_packed *b, double *y, size_t pitch, bool added);

#endif
