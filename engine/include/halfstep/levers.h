/**
 * @file levers.h
 * Faster ways to compute, and what became of each on this machine (docs/levers.md).
 *
 * An exact lever gives the reference's bits. A gated one adds in another order, and is used only after its results
 * stayed within fixed bounds of the reference's and it was faster than the exact kernels.
 */
#ifndef HALFSTEP_LEVERS_H
#define HALFSTEP_LEVERS_H

#include <stddef.h>
#include <stdint.h>

#include <halfstep/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What became of a faster way to compute something on this machine. */
typedef enum hstep_lever_state {
    HSTEP_LEVER_ABSENT = 0,
    HSTEP_LEVER_NOT_BUILT = 1,
    HSTEP_LEVER_FAILED_TO_BUILD = 2,
    HSTEP_LEVER_REJECTED = 3, /**< Its results were out of bounds. */
    HSTEP_LEVER_SLOWER = 4,   /**< Its results were right, and the exact kernels are at least as fast. */
    HSTEP_LEVER_DISABLED = 5, /**< Not asked for, or a faster one does all its work. */
    HSTEP_LEVER_ACTIVE = 6
} hstep_lever_state;

/** How a lever fared at one shape and in one orientation: the worst over all inputs it was given. */
typedef struct hstep_gate_case {
    size_t m;                   /**< Rows of the result, ... */
    size_t n;                   /**< ... its columns, ... */
    size_t k;                   /**< ... and the inner dimension. */
    hstep_transpose a_form;     /**< How the left operand is read, ... */
    hstep_transpose b_form;     /**< ... and the right one. */
    int passed;                 /**< Nonzero: every input stayed within the bounds. */
    const char *failed_inputs;  /**< The first inputs that failed, such as "cancelling"; NULL when all passed. */
    const char *failed_storage; /**< How their operands stood in memory, such as "pitched f64"; NULL alike. */
    double max_abs;             /**< Largest |f - r|, f the lever's sum and r the reference's, ... */
    double max_abs_limit;       /**< ... and what it must stay below, both where they come nearest. */
    double mean_rel;            /**< Mean of |f - r| / max(|r|, 1% of mean |r|). */
    double mean_rel_limit;      /**< What it must stay below. */
    double max_rel;             /**< Largest of the same; decides nothing. */
    uint64_t cells;             /**< Cells that were held to a bound of their own, ... */
    uint64_t cells_beyond;      /**< ... and how many went beyond it. */
    /** Cells that were finite and must not be or the other way round, that were not the sum rounded once, or that stood
        outside the result and were written, and flags of nonfinite values that were missing or false. */
    uint64_t cells_wrong;
} hstep_gate_case;

/**
 * Judges a product that was computed another way by the bounds that gated levers have to keep (docs/policy.md, section
 * 7): the sums before the last rounding against those of the policy's order, in every cell and over all of them, and
 * what is left of them after the rounding. Matrices as in hstep_matmul.
 *
 * Passed means all bounds. The two over all cells are for ordinary numbers: a reference without one that is not 0, or
 * with one that is not finite, fails; cells_beyond and cells_wrong hold for any.
 * @param sums     [m][n], of operands rounded to the precision's format, if they are not of it already.
 * @param results  [m][n] after the rounding; NULL: they are not judged.
 * @param judged   Gets the figures; failed_inputs and failed_storage are NULL.
 * @return HSTEP_ERROR_ARGUMENT, HSTEP_ERROR_SHAPE and HSTEP_ERROR_MEMORY as with hstep_matmul.
 */
HSTEP_API hstep_status hstep_gate(hstep_precision precision, hstep_transpose a_form, hstep_transpose b_form, size_t m,
                                  size_t n, size_t k, const double *a, const double *b, const double *sums,
                                  const double *results, hstep_gate_case *judged, hstep_error *error);

/** One product, timed in turn with the exact kernels: medians of the repeats. */
typedef struct hstep_gate_timing {
    size_t m;               /**< Rows of the result, ... */
    size_t n;               /**< ... its columns, ... */
    size_t k;               /**< ... and the inner dimension. */
    hstep_transpose a_form; /**< How the left operand is read, ... */
    hstep_transpose b_form; /**< ... and the right one. */
    double exact_seconds;   /**< One product by the exact kernels, ... */
    double lever_seconds;   /**< ... and by the lever. */
    double speed;           /**< Of exact / lever seconds in neighbouring repeats, which others' work slows alike. */
} hstep_gate_timing;

/** What the gate measured of a lever. */
typedef struct hstep_lever_gate {
    hstep_precision precision; /**< The one that the lever serves. */
    /** Nonzero: the lever declares that operands which are subnormal in the half format count as zero, and was compared
        with a reference to which they do. */
    int flushes_subnormals;
    hstep_gate_case worst; /**< Over all cases: figures nearest to their limits, sums of the counts. */
    double speed;          /**< Geometric mean over the timings; 0 where a rejected lever was not timed. */
    double seconds;        /**< What judging it took. */
    int from_cache;        /**< Nonzero: an earlier process measured it, on the same machine with the same software. */
    size_t case_count;     /**< Shapes and orientations that were judged. */
    size_t timing_count;   /**< Those that were timed. */
    const hstep_gate_case *cases;     /**< [case_count], as long as the lever. */
    const hstep_gate_timing *timings; /**< [timing_count], alike. */
} hstep_lever_gate;

/** A lever of a context; see hstep_context_levers. */
typedef struct hstep_lever {
    const char *name;             /**< Such as "cpu.portable". */
    int exact;                    /**< Nonzero: gives the reference's bits. Zero: judged by the gate. */
    hstep_lever_state state;      /**< What became of it. */
    const char *reason;           /**< Why it is in that state. */
    const hstep_lever_gate *gate; /**< NULL: not judged. */
} hstep_lever;

/** "absent", "not built", "failed to build", "rejected", "slower", "disabled" or "active". */
HSTEP_API const char *hstep_lever_state_name(hstep_lever_state state);

/** 1 where every product of that precision keeps the reference's bits, as no gated lever for it is active; else 0. */
HSTEP_API int hstep_levers_exact(const hstep_lever *levers, size_t count, hstep_precision precision);

#ifdef __cplusplus
}
#endif
#endif
