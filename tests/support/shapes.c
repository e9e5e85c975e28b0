#include "support/shapes.h"

/* They sit on edges: 32 lanes, 64 rows of a block, 1024 elements of a span, 4096 of a row of a tensor sum, tiles and
 * groups of 256, and the sizes from which threads are used; the first four are the degenerate ones. */
const hs_test_shape hs_test_shapes[HS_TEST_SHAPES] = {
    {5, 7, 6, 9, 2, 5, 5, 4, 2, 6, 0},        {1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 0},
    {0, 7, 3, 9, 1, 0, 3, 2, 1, 2, 0},        {3, 1, 0, 2, 3, 2, 7, 2, 2, 4, 3},
    {13, 33, 17, 70, 2, 8, 9, 6, 3, 10, 5},   {65, 65, 33, 65, 3, 16, 16, 2, 2, 8, 7},
    {3, 259, 70, 17, 1, 33, 40, 2, 1, 12, 2}, {130, 5, 40, 20, 1, 17, 17, 2, 1, 4, 0},
    {4, 8, 5, 3, 1, 4, 4, 3, 1, 8, 5},        {7, 31, 9, 11, 2, 3, 8, 4, 1, 6, 1},
    {9, 32, 16, 8, 1, 9, 9, 2, 2, 16, 8},     {64, 17, 12, 40, 1, 17, 17, 2, 1, 4, 0},
    {129, 5, 40, 17, 1, 33, 40, 2, 1, 12, 2},
};

hs_test_description hs_test_describe_shape(hs_operation operation, hstep_precision precision,
                                           const hs_test_shape *shape) {
    hs_test_description d = hs_test_describe(operation);
    d.precision = precision;
    d.rows = shape->rows, d.columns = shape->columns, d.inner = shape->inner, d.table = shape->table;
    d.sequences = shape->sequences, d.queries = shape->queries, d.keys = shape->keys;
    d.heads = shape->heads, d.kv_heads = shape->kv_heads, d.head_width = shape->head_width;
    d.pitch = shape->pitch;
    return d;
}
