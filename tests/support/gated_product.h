/*
 * Products of a gated lever in a mixed precision against a scalar emulator of its order, bit for bit: the sums, and
 * what they are rounded to, in f64 slots and in 16 bits, in one call and continued from call to call, with operands at
 * the edge of memory that may not be touched.
 *
 * Intended usage: open with the lever's name (NULL: it was not built, or packing cannot run here), check products,
 * close.
 */
#ifndef HS_TESTS_SUPPORT_GATED_PRODUCT_H
#define HS_TESTS_SUPPORT_GATED_PRODUCT_H

#include "support/calls.h"

enum { HS_GATED_THREADS = 3 };

/* The sum of one cell, which goes on over k = 0..steps-1; a and b are the bits of the operands. */
typedef float hs_gated_emulator(float sum, size_t steps, const uint16_t *a, const uint16_t *b);

typedef struct hs_gated_product {
    hs_backend *backends[HS_GATED_THREADS]; /* 1, 2 and 3 threads, with the lever and without a look at the machine */
    hs_backend *reference;
    size_t lever;
    hstep_precision precision;
    hs_gated_emulator *emulator;
    size_t runs, cells; /* compared so far */
} hs_gated_product;

/* Skips the running test where the lever cannot run. */
void hs_gated_open(hs_gated_product *product, const char *lever, hstep_precision precision,
                   hs_gated_emulator *emulator);
void hs_gated_close(hs_gated_product *product);

/* A call of the shape, forms, pitch and 16-bit operands of a description, with values in its inputs, on every number of
 * threads. */
void hs_gated_check(hs_gated_product *product, const hs_test_call *call, const char *what);

/* Many shapes, in every form that the lever takes, with ordinary and with special values;
 * `specials`: infinities and NaNs among them. */
void hs_gated_check_shapes(hs_gated_product *product, bool specials);

/* Products in calls of some steps, each of which goes on from the sums of the one before. */
void hs_gated_check_parts(hs_gated_product *product, bool specials);

/* Infinities and NaNs: the same cells as in the reference are nonfinite, and where `alike` the same are infinite. */
void hs_gated_check_nonfinite(hs_gated_product *product, const hs_test_call *call, bool alike);

#endif
