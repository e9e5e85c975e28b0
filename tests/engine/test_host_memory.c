/* Tensors where they stand, arrays of halves, and what a value of a graph is: what bindings of other languages need. */
#include <criterion/criterion.h>
#include <halfstep/halfstep.h>
#include <math.h>
#include <string.h>

#include "support/models.h"

Test(host_memory, weights_are_seen_and_changed_in_place) {
    hs_test_run run =
        hs_test_run_create(&(hs_test_setup){.precision = HSTEP_PRECISION_BF16, .backend = HSTEP_BACKEND_CPU});
    hstep_error error = {0};
    hstep_parameter before, after;
    double *values = NULL, copy[16];
    const size_t query = hstep_model_find_parameter(run.model, "blocks.0.attention.query.weight");
    hs_test_expect_ok(hstep_model_parameter(run.model, query, &before, &error), &error);
    hs_test_expect_ok(hstep_model_parameter_data(run.model, query, &values, &error), &error);
    hs_test_expect_ok(hstep_model_read_parameter(run.model, query, copy, &error), &error);
    cr_assert_eq(before.elements, 16);
    cr_assert_eq(memcmp(values, copy, sizeof copy), 0);

    /* The loss of changed weights is that of weights written the ordinary way: casts that were kept are made anew. */
    const hstep_batch batch = hs_test_fixture_batch();
    double old, marked, written, weight;
    hs_test_expect_ok(hstep_model_loss(run.model, &batch, &old, &weight, &error), &error);
    for (size_t i = 0; i < 16; i++)
        values[i] = copy[i] * 2;
    hs_test_expect_ok(hstep_model_mark_parameter(run.model, query, &error), &error);
    hs_test_expect_ok(hstep_model_parameter(run.model, query, &after, &error), &error);
    cr_assert_eq(after.revision, before.revision + 1);
    hs_test_expect_ok(hstep_model_loss(run.model, &batch, &marked, &weight, &error), &error);
    for (size_t i = 0; i < 16; i++)
        copy[i] *= 2;
    hs_test_expect_ok(hstep_model_write_parameter(run.model, query, copy, &error), &error);
    hs_test_expect_ok(hstep_model_loss(run.model, &batch, &written, &weight, &error), &error);
    cr_assert_neq(old, marked);
    cr_assert_eq(marked, written);

    values = NULL;
    cr_assert_eq(hstep_model_parameter_data(run.model, 20, &values, &error), HSTEP_ERROR_ARGUMENT);
    cr_assert_eq(hstep_model_mark_parameter(run.model, 20, &error), HSTEP_ERROR_ARGUMENT);
    cr_assert_null(values);
    hs_test_run_destroy(&run);
}

Test(host_memory, gradients_and_moments_are_seen_in_place) {
    hs_test_run run =
        hs_test_run_create(&(hs_test_setup){.precision = HSTEP_PRECISION_FP16, .backend = HSTEP_BACKEND_CPU});
    hstep_error error = {0};
    const hstep_batch batch = hs_test_fixture_batch();
    const double *gradient = NULL, *first = NULL, *second = NULL;
    double copy[2][16], loss;
    hs_test_expect_ok(hstep_trainer_gradient_data(run.trainer, 2, &gradient, &error), &error);
    hs_test_expect_ok(hstep_trainer_moments_data(run.trainer, 2, &first, &second, &error), &error);
    cr_assert_eq(gradient[3], 0);
    hs_test_expect_ok(hstep_trainer_record(run.trainer, &batch, &loss, &error), &error);
    hs_test_expect_ok(hstep_trainer_backward(run.trainer, &error), &error);
    hs_test_expect_ok(hstep_trainer_read_gradient(run.trainer, 2, copy[0], &error), &error);
    cr_assert_neq(gradient[3], 0);
    cr_assert_eq(memcmp(gradient, copy[0], sizeof copy[0]), 0);

    hstep_update update;
    hs_test_expect_ok(hstep_trainer_commit(run.trainer, &update, &error), &error);
    cr_assert_eq(update.outcome, HSTEP_APPLIED);
    cr_assert_eq(gradient[3], 0);
    hs_test_expect_ok(hstep_trainer_read_moments(run.trainer, 2, copy[0], copy[1], &error), &error);
    cr_assert_neq(first[3], 0);
    cr_assert_eq(memcmp(first, copy[0], sizeof copy[0]), 0);
    cr_assert_eq(memcmp(second, copy[1], sizeof copy[1]), 0);
    cr_assert_eq(hstep_trainer_gradient_data(run.trainer, 20, &gradient, &error), HSTEP_ERROR_ARGUMENT);
    cr_assert_eq(hstep_trainer_moments_data(run.trainer, 20, &first, NULL, &error), HSTEP_ERROR_ARGUMENT);
    hs_test_run_destroy(&run);
}

Test(host_memory, arrays_of_halves_are_those_of_single_numbers) {
    const double values[] = {0, -0.0, 1 + 0x1p-11, 65520, 0x1p-25, -INFINITY, NAN, 0x1p-140};
    enum { COUNT = sizeof values / sizeof values[0] };
    hstep_error error = {0};
    for (int format = HSTEP_FP16; format <= HSTEP_BF16; format++) {
        uint16_t bits[COUNT];
        double back[COUNT];
        hs_test_expect_ok(hstep_encode_array((hstep_format)format, COUNT, values, bits, &error), &error);
        hs_test_expect_ok(hstep_decode_array((hstep_format)format, COUNT, bits, back, &error), &error);
        for (size_t i = 0; i < COUNT; i++) {
            const double one = hstep_decode((hstep_format)format, bits[i]);
            cr_assert_eq(bits[i], hstep_encode((hstep_format)format, values[i]));
            cr_assert_eq(memcmp(&back[i], &one, sizeof one), 0);
        }
    }
    uint16_t bits = 7;
    hs_test_expect_ok(hstep_encode_array(HSTEP_FP16, 0, NULL, NULL, &error), &error);
    cr_assert_eq(hstep_encode_array(HSTEP_FP16, 1, NULL, &bits, &error), HSTEP_ERROR_ARGUMENT);
    cr_assert_eq(hstep_decode_array(HSTEP_FP16, 1, &bits, NULL, &error), HSTEP_ERROR_ARGUMENT);
    cr_assert_eq(hstep_encode_array((hstep_format)2, 1, values, &bits, &error), HSTEP_ERROR_ARGUMENT);
    cr_assert_eq(bits, 7);
}

Test(host_memory, values_of_a_graph_say_what_they_are) {
    hstep_graph *graph = NULL;
    hstep_error error = {0};
    hstep_value x, i, weight, y;
    hs_test_expect_ok(hstep_graph_create(&graph, &error), &error);
    hs_test_expect_ok(hstep_graph_input(graph, "x", HSTEP_DTYPE_F64, 2, (int64_t[]){HSTEP_ROWS, 3}, &x, &error),
                      &error);
    hs_test_expect_ok(hstep_graph_input(graph, "i", HSTEP_DTYPE_I32, 1, (int64_t[]){HSTEP_ROWS}, &i, &error), &error);
    hs_test_expect_ok(hstep_graph_parameter(graph, "w", 2, (int64_t[]){5, 3}, &weight, &error), &error);
    hs_test_expect_ok(hstep_graph_matmul(graph, "y", HSTEP_PRECISION_BF16, x, HSTEP_NO_TRANSPOSE, weight,
                                         HSTEP_TRANSPOSE, &y, &error),
                      &error);
    hstep_dtype dtype;
    size_t rank;
    int64_t dims[HSTEP_MAX_RANK];
    hs_test_expect_ok(hstep_graph_describe(graph, y, &dtype, &rank, dims, &error), &error);
    cr_assert(dtype == HSTEP_DTYPE_F64 && rank == 2 && dims[0] == HSTEP_ROWS && dims[1] == 5 && dims[2] == 0);
    hs_test_expect_ok(hstep_graph_describe(graph, i, &dtype, &rank, NULL, &error), &error);
    cr_assert(dtype == HSTEP_DTYPE_I32 && rank == 1);
    cr_assert_eq(hstep_graph_describe(graph, 0, &dtype, &rank, dims, &error), HSTEP_ERROR_ARGUMENT);
    cr_assert_eq(hstep_graph_describe(graph, 1000, &dtype, &rank, dims, &error), HSTEP_ERROR_ARGUMENT);
    hstep_graph_destroy(graph);
}
