/*
 * Products whose chains go on from one call to the next (hs_attributes: continues, unfinished): whatever the steps are
 * cut into, the reference and every backend of a parity end with the bits and the flag of one product on the reference,
 * and flag nothing before the end.
 */
#ifndef HS_TESTS_SUPPORT_PARTIAL_H
#define HS_TESTS_SUPPORT_PARTIAL_H

#include "support/parity.h"

/* Writes the calls that make a product in parts of up to `part` steps to `calls`, and returns how many they are. */
size_t hs_test_divide_product(const hs_call *product, size_t part, hs_call *calls);

/* A product that the test has filled itself, in f64 slots without a pitch. `what` says which, should it fail. */
void hs_parity_compare_parts(hs_parity *parity, const hs_test_call *call, const char *what);

/* One whose operands are filled so and multiplied by `scale`. */
void hs_parity_check_parts(hs_parity *parity, const hs_test_description *d, hs_test_fill fill, double scale);

#endif
