/**
 * @file compare.h
 * Tensors beside those of another framework, and what may be claimed of them (docs/comparing.md).
 *
 * Intended usage:
 *  1. Open the files of both, and of a referee where there is one: a float64 run of the same weights and input.
 *  2. hstep_tensor_compare for each tensor; then hstep_comparison_judge by the rule that holds for it.
 */
#ifndef HALFSTEP_COMPARE_H
#define HALFSTEP_COMPARE_H

#include <stddef.h>
#include <stdint.h>

#include <halfstep/tensor_file.h>
#include <halfstep/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Figures of one tensor. A distance to or from NaN, or between unequal infinities, is infinite. */
typedef struct hstep_comparison {
    int has_referee;            /**< 1 where there was one. */
    double largest;             /**< Largest magnitude of the referee; without one, of theirs. */
    double f32_step;            /**< From there to the next number in f32. */
    double error;               /**< Largest |ours - theirs|. */
    double our_error;           /**< Largest |ours - referee|; NaN without one. */
    double their_error;         /**< Largest |theirs - referee|; NaN without one. */
    uint64_t elements;          /**< Of the tensor. */
    uint64_t different;         /**< Elements whose bits differ once both are widened to f64: +0 and -0 do. */
    uint64_t our_nonfinite;     /**< Infinities and NaNs in ours, ... */
    uint64_t their_nonfinite;   /**< ... in theirs, ... */
    uint64_t referee_nonfinite; /**< ... and in the referee. */
    uint64_t rows;              /**< Along the last dimension. */
    /** Rows whose largest element, the first of equals, stands elsewhere than in the referee; without one, than in
        theirs. */
    uint64_t argmax_flips;
} hstep_comparison;

/** What holds, from the strongest to nothing. They are different claims, and none implies a later one. */
typedef enum hstep_claim {
    HSTEP_CLAIM_EQUAL_BITS = 0,
    HSTEP_CLAIM_WITHIN_TARGET = 1, /**< No element is farther from theirs than the target. */
    HSTEP_CLAIM_NO_FARTHER = 2,    /**< No farther from the referee than theirs is, by the largest distances. */
    HSTEP_CLAIM_OUTSIDE = 3
} hstep_claim;

/** By what a tensor is judged that has not equal bits. */
typedef enum hstep_comparison_rule {
    HSTEP_RULE_TARGET = 0, /**< Gives WITHIN_TARGET or OUTSIDE. */
    HSTEP_RULE_REFEREE = 1 /**< Gives NO_FARTHER or OUTSIDE. */
} hstep_comparison_rule;

/** The target for outputs of blocks, logits and probabilities where halfstep computes in f64. */
#define HSTEP_COMPARISON_TARGET 1e-4

/** "equal bits", "within the target", "no farther than theirs" or "outside". */
HSTEP_API const char *hstep_claim_name(hstep_claim claim);

/** A nonfinite number anywhere is OUTSIDE, and so is the rule of the referee without one. */
HSTEP_API hstep_claim hstep_comparison_judge(const hstep_comparison *comparison, hstep_comparison_rule rule,
                                             double target);

/** A tensor in an open file. */
typedef struct hstep_tensor_place {
    const hstep_tensor_file *file; /**< The file. */
    size_t index;                  /**< Of the tensor in it. */
} hstep_tensor_place;

/**
 * Compares tensors of one shape, in pieces: they are never in memory as a whole.
 * @param referee  NULL for none.
 * @return HSTEP_ERROR_SHAPE; HSTEP_ERROR_ARGUMENT for a tensor that is not there or holds no floating-point numbers;
 *         HSTEP_ERROR_INPUT_FILE; HSTEP_ERROR_MEMORY. *comparison is then untouched.
 */
HSTEP_API hstep_status hstep_tensor_compare(const hstep_tensor_place *ours, const hstep_tensor_place *theirs,
                                            const hstep_tensor_place *referee, hstep_comparison *comparison,
                                            hstep_error *error);

#ifdef __cplusplus
}
#endif
#endif
