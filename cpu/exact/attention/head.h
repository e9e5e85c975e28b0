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
    bool half;                      /* whether the kit's numbers have 16 bits */
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

/* What stands in a view from row `row` and column `column` on: lines that are rows, and cells to store into. */
hs_lines hs_head_of(const hs_view *view, size_t row, size_t column);
hs_cells hs_head_into(const hs_view *view, size_t row, size_t column);

/* The same numbers as lines that run along k, and across it. */
static inline hs_lines hs_along(hs_cells cells) { return (hs_lines){cells.data, cells.pitch, 1, cells.half}; }
static inline hs_lines hs_across(hs_lines lines) {
    return (hs_lines){lines.data, lines.k_stride, lines.line_stride, lines.half};
}

/*
 * Rows of numbers of the kit, for a panel of queries, one row for each: room for whole tiles over all keys. A row is
 * computed with in f64: hs_take_row gives it, in `buffer` or where it stands, and hs_give_row rounds it back.
 */
hs_cells hs_carve_rows(unsigned char **scratch, const hs_exact_attention *attention);
double *hs_take_row(const hs_exact_attention *attention, hs_cells rows, size_t row, size_t count, double *buffer);
void hs_give_row(const hs_exact_attention *attention, hs_cells rows, size_t row, size_t count, const double *values);

/*
 * y[r, j], r < count, j < keys seen by any of the queries: the products of a packed panel of queries (or of their
 * adjoints) with packed panels of keys (or values). Whole tiles are written: rows of y have room for them.
 */
void hs_query_key_products(const hs_exact_attention *attention, size_t count, size_t seen, const hs_packed *a,
                           const hs_packed *b, hs_cells y);

/*
 * y[r, c] = the sum over keys of a packed panel of rows (of the queries [first, first + count)) times packed panels of
 * columns. Returns whether a value stored is nonfinite.
 */
bool hs_sum_over_keys(const hs_exact_attention *attention, const hs_positions *positions, size_t first, size_t count,
                      const hs_packed *a, const hs_packed *b, hs_cells y);

/* Queries in a row that see as many of some keys: the first `rows` of them. */
typedef struct hs_run {
    size_t query, count, rows;
} hs_run;

/* The runs of all queries for the keys [first, first + count): at most one for each query. Returns how many. */
size_t hs_runs_of(const hs_positions *positions, size_t queries, size_t first, size_t count, hs_run *runs);

/*
 * The same summed over queries, for panel `panel` of the keys, which are the lines of a, with the runs of its `count`
 * keys. `added`: y, which is f64, gets the sum added rather than stored.
 */
bool hs_sum_over_queries(const hs_exact_attention *attention, const hs_run *runs, size_t run_count, size_t panel,
                         size_t count, const hs_packed *a, const hs_packed *b, hs_cells y, bool added);

#endif
