/* Conversion between f64, f32 and the half formats. hstep_encode and hstep_decode (halfstep/number.h) are made of it.
 */
#ifndef HS_PRECISION_FORMAT_H
#define HS_PRECISION_FORMAT_H

#include <halfstep/types.h>

/* One rounding from all 53 bits: nearest, ties to even (policy, section 1). */
uint16_t hs_fp16_from_f64(double value);
uint16_t hs_bf16_from_f64(double value);

/* One rounding from f32, for the result of a chain of f32 sums. */
uint16_t hs_fp16_from_f32(float value);
uint16_t hs_bf16_from_f32(float value);

/* Exact. */
float hs_fp16_to_f32(uint16_t bits);
float hs_bf16_to_f32(uint16_t bits);

uint16_t hs_encode(hstep_format format, double value);
double hs_decode(hstep_format format, uint16_t bits);

/* The half format of a mixed precision; precision must not be F64. */
hstep_format hs_precision_format(hstep_precision precision);

/* The format of a 16-bit type. */
hstep_format hs_dtype_format(hstep_dtype dtype);

/* A number as products of that precision read it, in f64: rounded once to the half format; F64 leaves it as it is. */
double hs_precision_round(hstep_precision precision, double value);

/* The smallest normal number of the format that products of that precision read. */
double hs_precision_smallest_normal(hstep_precision precision);

/* f64 to f32 by round to odd: a later rounding to a half then rounds as from the f64 itself. */
float hs_f32_round_to_odd(double value);

#endif
