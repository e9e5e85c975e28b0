/* What became of every tensor of two files, or of two folders of them. */
#ifndef HS_TRAINER_COMPARE_ROWS_H
#define HS_TRAINER_COMPARE_ROWS_H

#include <stdbool.h>
#include <stddef.h>

#include <halfstep/compare.h>

#include "trainer/options/options.h"

/* What to compare, and how to judge. */
typedef struct hs_comparison_task {
    const char *ours, *theirs, *referee; /* files, or folders; referee NULL for none */
    int precision;                       /* of ours; -1: as its file says, or f64 */
    double target;                       /* negative: the policy's, which only f64 has to meet */
    hs_texts target_for;                 /* patterns of further tensors that the target is for */
} hs_comparison_task;

typedef enum hs_row_kind {
    HS_ROW_COMPARED,
    HS_ROW_NONFINITE, /* compared, and some number is infinite or NaN */
    HS_ROW_MISSING,   /* not in ours */
    HS_ROW_EXTRA,     /* not in theirs */
    HS_ROW_NO_REFEREE,
    HS_ROW_SHAPE,
    HS_ROW_TYPE,
    HS_ROW_KINDS
} hs_row_kind;

typedef struct hs_row {
    char *file;   /* its name in a folder; NULL where files were named */
    char *tensor; /* NULL: the whole file is meant */
    hs_row_kind kind;
    /* Of compared ones: */
    hstep_comparison figures;
    hstep_comparison_rule rule;
    double target;
    hstep_claim claim;
    bool logits;   /* flips of the largest element tell something */
    char why[200]; /* what is wrong, for all others */
} hs_row;

typedef struct hs_rows {
    hs_row *items;
    size_t count, capacity;
} hs_rows;

/* "missing" and the like; "" for compared ones. */
const char *hs_row_kind_name(hs_row_kind kind);

/* Whether the claim is one that lets a comparison pass. */
bool hs_row_passes(const hs_row *row);

/* Compares all. Returns HS_EXIT_DONE or reports; the rows are to be freed in either case. */
int hs_rows_collect(const hs_comparison_task *task, hs_rows *rows);

void hs_rows_free(hs_rows *rows);

/* A table for people, or one JSON object (docs/comparing.md). The second returns the program's exit status. */
void hs_rows_print(const hs_comparison_task *task, const hs_rows *rows);
int hs_rows_print_json(const hs_comparison_task *task, const hs_rows *rows);

#endif
