/**
 * @file number.h
 * Conversion to and from the half formats, and single matrix products under the numeric policy.
 */
#ifndef HALFSTEP_NUMBER_H
#define HALFSTEP_NUMBER_H

#include <stddef.h>

#include <halfstep/context.h>
#include <halfstep/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Rounds an f64 to a half format once: to nearest, ties to even, subnormals kept, overflow to infinity,
 * every NaN to one quiet NaN (0x7e00 in fp16, 0x7fc0 in bf16).
 */
HSTEP_API uint16_t hstep_encode(hstep_format format, double value);

/** The exact value of a half. */
HSTEP_API double hstep_decode(hstep_format format, uint16_t bits);

/**
 * hstep_encode for `count` numbers; the two arrays must not overlap.
 * @return HSTEP_ERROR_ARGUMENT for a missing array that has elements or an unknown format; `bits` is then untouched.
 */
HSTEP_API hstep_status hstep_encode_array(hstep_format format, size_t count, const double *values, uint16_t *bits,
                                          hstep_error *error);

/** hstep_decode for `count` numbers, as hstep_encode_array encodes them. */
HSTEP_API hstep_status hstep_decode_array(hstep_format format, size_t count, const uint16_t *bits, double *values,
                                          hstep_error *error);

/**
 * y = op(a) op(b) under the policy: p_k = RN32(Q(a_k) Q(b_k)), s_{k+1} = RN32(s_k + p_k) from +0 with k ascending,
 * y = Q(s_K) widened to f64; in f64 precision the same chain in f64 without the roundings to a half.
 *
 * Matrices are dense and row-major. With HSTEP_NO_TRANSPOSE a is [m][k] and b is [k][n]; with HSTEP_TRANSPOSE
 * a is [k][m] and b is [n][k]. y is [m][n] and must not overlap a or b. Any of m, n, k may be 0; k = 0 gives +0.
 *
 * @param context  Computes on this context's backend; NULL computes on the single-threaded reference.
 * @return HSTEP_ERROR_ARGUMENT for a null matrix that has elements or an unknown enumerator, HSTEP_ERROR_SHAPE when
 *         a size overflows the address space, HSTEP_ERROR_MEMORY. y is untouched on error.
 */
HSTEP_API hstep_status hstep_matmul(hstep_context *context, hstep_precision precision, hstep_transpose a_form,
                                    hstep_transpose b_form, size_t m, size_t n, size_t k, const double *a,
                                    const double *b, double *y, hstep_error *error);

#ifdef __cplusplus
}
#endif
#endif
