/*
 * The shapes that every operation is tried on, whatever computes it. One list for all operations: each reads the fields
 * it knows, so none can be forgotten.
 */
#ifndef HS_TESTS_SUPPORT_SHAPES_H
#define HS_TESTS_SUPPORT_SHAPES_H

#include "support/calls.h"

typedef struct hs_test_shape {
    size_t rows, columns, inner, table;
    size_t sequences, queries, keys, heads, kv_heads, head_width;
    size_t pitch;
} hs_test_shape;

/* The first HS_TEST_SMALL_SHAPES are those that a slow device has time for. */
enum { HS_TEST_SHAPES = 13, HS_TEST_SMALL_SHAPES = 8 };
extern const hs_test_shape hs_test_shapes[HS_TEST_SHAPES];

hs_test_description hs_test_describe_shape(hs_operation operation, hstep_precision precision,
                                           const hs_test_shape *shape);

#endif
