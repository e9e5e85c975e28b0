/**
 * @file types.h
 * The words that every part of halfstep shares: formats, precisions, element types, statuses and errors.
 * Nothing here computes; the private rooms of the library include this header too.
 */
#ifndef HALFSTEP_TYPES_H
#define HALFSTEP_TYPES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Marks a function that the shared library exports. */
#if defined(__GNUC__)
#define HSTEP_API __attribute__((visibility("default")))
#else
#define HSTEP_API
#endif

/** A 16-bit floating-point format. */
typedef enum hstep_format {
    HSTEP_FP16 = 0, /**< IEEE binary16: 1 sign, 5 exponent, 10 fraction bits. */
    HSTEP_BF16 = 1  /**< bfloat16: 1 sign, 8 exponent, 7 fraction bits. */
} hstep_format;

/** How a matrix product rounds: its operands and result to a half format with f32 sums, or all in f64. */
typedef enum hstep_precision {
    HSTEP_PRECISION_F64 = 0,
    HSTEP_PRECISION_FP16 = 1, /**< fp16 operands and result, f32 sums ("fp16-fp32"). */
    HSTEP_PRECISION_BF16 = 2  /**< bf16 operands and result, f32 sums ("bf16-fp32"). */
} hstep_precision;

/** The form in which a product reads an operand. */
typedef enum hstep_transpose { HSTEP_NO_TRANSPOSE = 0, HSTEP_TRANSPOSE = 1 } hstep_transpose;

/** Element types of tensors. */
typedef enum hstep_dtype {
    HSTEP_DTYPE_F64 = 0,
    HSTEP_DTYPE_I32 = 1,
    HSTEP_DTYPE_FP16 = 2,
    HSTEP_DTYPE_BF16 = 3
} hstep_dtype;

/** What a function reports. Zero is success; the numbers stay as they are in later versions. */
typedef enum hstep_status {
    HSTEP_OK = 0,
    HSTEP_ERROR_ARGUMENT = 1,             /**< An argument or setting is outside what the function accepts. */
    HSTEP_ERROR_SHAPE = 2,                /**< Shapes or element types do not fit together. */
    HSTEP_ERROR_TOKEN = 3,                /**< A token or target lies outside the vocabulary. */
    HSTEP_ERROR_NO_TARGETS = 4,           /**< The window has nothing to learn from: N = 0. */
    HSTEP_ERROR_MISSING_GRADIENT = 5,     /**< A parameter has no gradient. */
    HSTEP_ERROR_DIRTY_GRADIENT = 6,       /**< Gradients of an earlier backward pass are still there. */
    HSTEP_ERROR_STALE_TAPE = 7,           /**< Parameters changed after the forward pass was recorded. */
    HSTEP_ERROR_NONFINITE_FORWARD = 8,    /**< A forward value is infinite or NaN; a smaller scale cannot mend it. */
    HSTEP_ERROR_UNSUPPORTED = 9,          /**< The backend lacks an operation of the graph. */
    HSTEP_ERROR_BACKEND_UNAVAILABLE = 10, /**< The backend or device asked for is not there. */
    HSTEP_ERROR_MEMORY = 11,              /**< Memory could not be had. */
    HSTEP_ERROR_INPUT_FILE = 12,          /**< A file is missing, unreadable, empty or malformed. */
    HSTEP_ERROR_OUTPUT_FILE = 13          /**< A file could not be written. */
} hstep_status;

/** What went wrong, in words. The caller owns it; functions fill it only when they fail. NULL is allowed everywhere. */
typedef struct hstep_error {
    hstep_status status; /**< What the function returned. */
    char operation[96];  /**< Name of the operation, or of the tensor of a graph, that is to blame; else empty. */
    char message[416];   /**< What, where, and what to do. */
} hstep_error;

/** A short fixed name of a status, such as "stale tape". */
HSTEP_API const char *hstep_status_name(hstep_status status);

/** "f64", "fp16-fp32" or "bf16-fp32": the name that records carry. */
HSTEP_API const char *hstep_precision_name(hstep_precision precision);

/**
 * Reads "f64", "fp16", "bf16", "fp16-fp32" or "bf16-fp32".
 * @return HSTEP_ERROR_ARGUMENT for any other text; then *precision is untouched.
 */
HSTEP_API hstep_status hstep_precision_parse(const char *text, hstep_precision *precision);

#ifdef __cplusplus
}
#endif
#endif
