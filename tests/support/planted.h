/*
 * Gated levers that are made for tests: each multiplies in plain loops with one fault, or none. The tier has the
 * exact levers too, so that a run has something to fall back on.
 */
#ifndef HS_TESTS_SUPPORT_PLANTED_H
#define HS_TESTS_SUPPORT_PLANTED_H

#include "cpu/kernel.h"

typedef enum hs_planted {
    HS_PLANTED_LOST_BIT,                     /* bf16: operands lose their last fraction bit */
    HS_PLANTED_BF16_SUMS,                    /* bf16: every partial sum is cut to bf16 */
    HS_PLANTED_FP16_SUMS,                    /* fp16: every partial sum is cut to fp16 */
    HS_PLANTED_TRUNCATED,                    /* bf16: right sums, the result loses its last fraction bit */
    HS_PLANTED_FLUSHED,                      /* bf16: subnormal operands count as zero */
    HS_PLANTED_LAST_STEP,                    /* f64: the last step of k is missing */
    HS_PLANTED_ODD_LAST_STEP,                /* f64: the same where k is odd */
    HS_PLANTED_F32_SUMS,                     /* f64: sums in f32 */
    HS_PLANTED_SKIPPED_ZEROS,                /* f64: zeros of the left operand are skipped, infinities they face too */
    HS_PLANTED_SILENT,                       /* f64: right, but the flag of a nonfinite result is never raised */
    HS_PLANTED_NEIGHBOUR,                    /* f64: A Bt takes its last column from the one before */
    HS_PLANTED_UNWRITTEN,                    /* f64: the last row is not written where there are more than 64 */
    HS_PLANTED_PITCH_BLIND,                  /* f64: the left operand is read as if it had no gaps */
    HS_PLANTED_SPILLED,                      /* f64: writes into the gaps of the result */
    HS_PLANTED_COMPACT_BLIND,                /* bf16: a left operand of 16 bits loses its last fraction bit */
    HS_PLANTED_NARROWED,                     /* f64: sums in f32 where an operand is nonfinite */
    HS_PLANTED_DEEP_FLUSHED,                 /* bf16: subnormal operands count as zero where k > 2048 */
    HS_PLANTED_DEEP_LAST_STEP,               /* f64: the last step is missing where k > 65536 */
    HS_PLANTED_FAULTS,                       /* so many are wrong */
    HS_PLANTED_REVERSED = HS_PLANTED_FAULTS, /* bf16: right, k descending, and slow */
    HS_PLANTED_DECLARED,                     /* bf16: subnormal operands count as zero, and it says so */
    HS_PLANTED_TURNED,                       /* f64: right, but At Bt gives zeros */
    HS_PLANTED_ABSENT,                       /* bf16: not there */
    HS_PLANTED_COUNT
} hs_planted;

/* "planted.lost-bit" and the like. */
const char *hs_planted_name(hs_planted planted);

/* The tier with one of them; lives as long as the process. */
const hs_cpu_tier *hs_planted_tier(hs_planted planted);

/* How often any of them was looked for in this process. */
size_t hs_planted_looks(void);

/* How often the kernel of any of them ran in this process. */
size_t hs_planted_runs(void);

/* What stands behind all of them from now on: a constant. */
void hs_planted_identify(const char *identity);

#endif
