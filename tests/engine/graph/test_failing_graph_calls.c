/* Declarations that fail leave the graph and the place for the value as they were. */
#include <criterion/criterion.h>
#include <math.h>

#include "support/models.h"
#include "support/untouched.h"

enum { UNKNOWN = 77 };

static const int64_t MATRIX[2] = {HSTEP_ROWS, 8}, SQUARE[2] = {8, 8}, VECTOR[1] = {8}, OTHER[1] = {5},
                     ROWS[1] = {HSTEP_ROWS}, NEGATIVE[2] = {-9, 2};

static hstep_graph *g;
static hstep_value x, weight, gain, other, indices; /* [rows, 8], [8, 8], [8], [5], i32 [rows] */

static void start(void) {
    hstep_error error = {0};
    hs_test_expect_ok(hstep_graph_create(&g, &error), &error);
    hs_test_expect_ok(hstep_graph_input(g, "x", HSTEP_DTYPE_F64, 2, MATRIX, &x, &error), &error);
    hs_test_expect_ok(hstep_graph_input(g, "indices", HSTEP_DTYPE_I32, 1, ROWS, &indices, &error), &error);
    hs_test_expect_ok(hstep_graph_parameter(g, "weight", 2, SQUARE, &weight, &error), &error);
    hs_test_expect_ok(hstep_graph_parameter(g, "gain", 1, VECTOR, &gain, &error), &error);
    hs_test_expect_ok(hstep_graph_parameter(g, "other", 1, OTHER, &other, &error), &error);
    hs_test_out_fill();
    hs_test_watch(NULL, g);
}

static void stop(void) {
    hs_test_watch(NULL, NULL);
    hstep_graph_destroy(g);
}

Test(failing_graph_calls, declarations, .init = start, .fini = stop) {
    hs_test_places *o = &hs_test_out;
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_graph_create(NULL, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_graph_input(NULL, "n", HSTEP_DTYPE_F64, 2, MATRIX, &o->value, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_graph_input(g, "x", HSTEP_DTYPE_F64, 2, MATRIX, &o->value, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_graph_input(g, "", HSTEP_DTYPE_F64, 2, MATRIX, &o->value, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_graph_input(g, "n", HSTEP_DTYPE_F64, 2, MATRIX, NULL, e));
    hs_test_refuses(HSTEP_ERROR_SHAPE, hstep_graph_input(g, "n", HSTEP_DTYPE_FP16, 2, MATRIX, &o->value, e));
    hs_test_refuses(HSTEP_ERROR_SHAPE, hstep_graph_input(g, "n", HSTEP_DTYPE_F64, 2, NEGATIVE, &o->value, e));
    hs_test_refuses(HSTEP_ERROR_SHAPE, hstep_graph_input(g, "n", HSTEP_DTYPE_F64, 9, MATRIX, &o->value, e));
    hs_test_refuses(HSTEP_ERROR_SHAPE, hstep_graph_parameter(g, "n", 2, MATRIX, &o->value, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_graph_parameter(g, NULL, 2, SQUARE, &o->value, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_graph_parameter(g, "n", 2, SQUARE, NULL, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_graph_describe(g, UNKNOWN, &o->dtype, &o->rank, o->dims, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_graph_describe(NULL, x, &o->dtype, &o->rank, o->dims, e));
}

Test(failing_graph_calls, operations_on_shapes_that_do_not_fit, .init = start, .fini = stop) {
    hs_test_places *o = &hs_test_out;
    const hstep_transpose no = HSTEP_NO_TRANSPOSE;
    const hstep_precision f64 = HSTEP_PRECISION_F64;
    hs_test_refuses(HSTEP_ERROR_SHAPE, hstep_graph_matmul(g, "n", f64, weight, no, x, no, &o->value, e));
    hs_test_refuses(HSTEP_ERROR_SHAPE, hstep_graph_gather(g, "n", weight, x, &o->value, e));
    hs_test_refuses(HSTEP_ERROR_SHAPE, hstep_graph_rmsnorm(g, "n", x, other, 1e-5, &o->value, e));
    hs_test_refuses(HSTEP_ERROR_SHAPE, hstep_graph_rotary(g, "n", x, 3, 10000, &o->value, e));
    hs_test_refuses(HSTEP_ERROR_SHAPE, hstep_graph_attention(g, "n", f64, x, x, weight, 2, 2, &o->value, e));
    hs_test_refuses(HSTEP_ERROR_SHAPE, hstep_graph_swiglu(g, "n", x, weight, &o->value, e));
    hs_test_refuses(HSTEP_ERROR_SHAPE, hstep_graph_add(g, "n", x, weight, &o->value, e));
    hs_test_refuses(HSTEP_ERROR_SHAPE, hstep_graph_add_bias(g, "n", x, other, &o->value, e));
    hs_test_refuses(HSTEP_ERROR_SHAPE, hstep_graph_multiply(g, "n", x, weight, &o->value, e));
    hs_test_refuses(HSTEP_ERROR_SHAPE, hstep_graph_scale(g, "n", indices, 2, &o->value, e));
    hs_test_refuses(HSTEP_ERROR_SHAPE, hstep_graph_sum(g, "n", indices, &o->value, e));
    hs_test_refuses(HSTEP_ERROR_SHAPE, hstep_graph_transpose(g, "n", gain, &o->value, e));
    hs_test_refuses(HSTEP_ERROR_SHAPE, hstep_graph_softmax(g, "n", gain, &o->value, e));
    hs_test_refuses(HSTEP_ERROR_SHAPE, hstep_graph_log(g, "n", indices, &o->value, e));
    hs_test_refuses(HSTEP_ERROR_SHAPE, hstep_graph_silu(g, "n", indices, &o->value, e));
    hs_test_refuses(HSTEP_ERROR_SHAPE, hstep_graph_cross_entropy(g, "n", weight, indices, &o->value, e));
    hs_test_refuses(HSTEP_ERROR_SHAPE, hstep_graph_set_output(g, indices, e));
    hs_test_refuses(HSTEP_ERROR_SHAPE, hstep_graph_set_loss(g, x, e));
}

/* Settings outside their bounds, values that are none, names that are taken, and no place for the result. */
Test(failing_graph_calls, operations_on_bad_arguments, .init = start, .fini = stop) {
    hs_test_places *o = &hs_test_out;
    const hstep_transpose no = HSTEP_NO_TRANSPOSE;
    const hstep_precision f64 = HSTEP_PRECISION_F64, unknown = (hstep_precision)UNKNOWN;
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_graph_matmul(g, "n", unknown, x, no, weight, no, &o->value, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT,
                    hstep_graph_matmul(g, "n", f64, x, (hstep_transpose)UNKNOWN, weight, no, &o->value, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_graph_matmul(g, "n", f64, x, no, weight, no, NULL, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_graph_gather(g, "x", weight, indices, &o->value, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_graph_gather(g, "n", weight, indices, NULL, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_graph_rmsnorm(g, "n", x, gain, 0, &o->value, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_graph_rmsnorm(g, "n", x, gain, 1e-5, NULL, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_graph_rotary(g, "n", x, 4, -1, &o->value, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_graph_rotary(g, "n", x, 4, 10000, NULL, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_graph_attention(g, "n", unknown, x, x, x, 2, 2, &o->value, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_graph_attention(g, "n", f64, x, x, x, 2, 2, NULL, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_graph_swiglu(g, "n", UNKNOWN, x, &o->value, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_graph_add(g, "n", 0, x, &o->value, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_graph_add_bias(g, "n", x, UNKNOWN, &o->value, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_graph_multiply(g, "n", x, x, NULL, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_graph_scale(g, "n", x, INFINITY, &o->value, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_graph_sum(g, "n", x, NULL, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_graph_transpose(g, "(n)", x, &o->value, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_graph_softmax(g, "gain", x, &o->value, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_graph_log(g, "n", UNKNOWN, &o->value, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_graph_silu(NULL, "n", x, &o->value, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_graph_cross_entropy(g, "n", x, indices, NULL, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_graph_set_output(g, UNKNOWN, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_graph_set_loss(g, 0, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_graph_end_block(g, e));               /* none is open */
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_graph_set_precision(g, "*", f64, e)); /* there are no products */
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_graph_set_precision(g, "*", unknown, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_graph_products(g, o->products, 2, NULL, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_graph_products(NULL, o->products, 2, &o->count, e));

    hstep_error error = {0};
    hs_test_expect_ok(hstep_graph_begin_block(g, &error), &error);
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_graph_begin_block(g, e));
    hs_test_expect_ok(hstep_graph_end_block(g, &error), &error);

    hstep_value loss = 0;
    hs_test_expect_ok(hstep_graph_sum(g, "loss", weight, &loss, &error), &error);
    hs_test_expect_ok(hstep_graph_set_loss(g, loss, &error), &error);
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_graph_sum(g, "late", x, &o->value, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_graph_set_loss(g, loss, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_graph_set_output(g, loss, e));
}
