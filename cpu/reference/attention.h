/* What the forward and the backward kernel of attention share: shapes, and the probabilities of one query. */
#ifndef HS_CPU_REFERENCE_ATTENTION_H
#define HS_CPU_REFERENCE_ATTENTION_H

#include "cpu/kernel.h"
#include "precision/matmul.h"

/* Values inside the operation that can be nonfinite while the outputs are not, in the order of computation. */
typedef enum hs_reference_attention_part {
    HS_ATTENTION_SCORES,
    HS_ATTENTION_PROBABILITIES,
    HS_ATTENTION_PROBABILITIES_ADJOINT,
    HS_ATTENTION_SCORES_ADJOINT,
    HS_ATTENTION_PARTS
} hs_reference_attention_part;

/* The first nonfinite value of each part. */
typedef struct hs_reference_attention_faults {
    hs_fault first[HS_ATTENTION_PARTS];
} hs_reference_attention_faults;

typedef struct hs_reference_attention_shape {
    hstep_precision precision;
    size_t sequences, heads, group, width; /* group: query heads of one key head */
    size_t queries, keys;                  /* of one sequence */
    double factor;                         /* 1/sqrt(width) */
    const int32_t *positions;
    const double *q, *k, *v;
    size_t q_pitch, k_pitch, v_pitch;
} hs_reference_attention_shape;

/* q is input `first`; k, v and positions follow it. */
hs_reference_attention_shape hs_reference_attention_open(const hs_call *call, unsigned first);

/* Keys that a query sees, hence cells that are formed. */
size_t hs_reference_attention_formed(const hs_reference_attention_shape *a, size_t sequence, size_t query);

/* The head's columns of a row of q or dy, and of the first row of k or v of the sequence. */
const double *hs_reference_attention_query(const hs_reference_attention_shape *a, const double *x, size_t pitch,
                                           size_t sequence, size_t head, size_t query);
const double *hs_reference_attention_keys(const hs_reference_attention_shape *a, const double *x, size_t pitch,
                                          size_t sequence, size_t head);

/* p[formed]; returns how many are formed. */
size_t hs_reference_attention_probabilities(const hs_reference_attention_shape *a, size_t sequence, size_t head,
                                            size_t query, double *p, hs_reference_attention_faults *faults);

/* Notes the first nonfinite value of one query's row of a part. */
void hs_reference_attention_inspect(const hs_reference_attention_shape *a, size_t sequence, size_t head, size_t query,
                                    hs_reference_attention_part part, size_t count, const double *values,
                                    hs_reference_attention_faults *faults);

/* Hands the first fault of the earliest part to the run. */
void hs_reference_attention_report(const hs_reference_attention_faults *faults, hs_kernel_run *run);

#endif
