/* Gradients of whole models against central differences in f64. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "support/models.h"

static double mean_loss(const hs_test_run *run, const hstep_batch *batch) {
    hstep_error error = {0};
    double sum = 0, weight = 0;
    hs_test_expect_ok(hstep_model_loss(run->model, batch, &sum, &weight, &error), &error);
    return sum / weight;
}

static double central_difference(const hs_test_run *run, const hstep_batch *batch, size_t parameter, double *values,
                                 size_t element) {
    const double step = 1e-5, kept = values[element];
    hstep_error error = {0};
    values[element] = kept + step;
    hs_test_expect_ok(hstep_model_write_parameter(run->model, parameter, values, &error), &error);
    const double above = mean_loss(run, batch);
    values[element] = kept - step;
    hs_test_expect_ok(hstep_model_write_parameter(run->model, parameter, values, &error), &error);
    const double below = mean_loss(run, batch);
    values[element] = kept;
    hs_test_expect_ok(hstep_model_write_parameter(run->model, parameter, values, &error), &error);
    return (above - below) / (2 * step);
}

/* Returns the largest difference relative to the tensor's largest gradient, over up to `most` elements a tensor. */
static double worst_difference(const hs_test_run *run, const hstep_batch *batch, size_t most) {
    hstep_error error = {0};
    hs_test_expect_ok(hstep_trainer_record(run->trainer, batch, NULL, &error), &error);
    hs_test_expect_ok(hstep_trainer_backward(run->trainer, &error), &error);
    double *gradients = hs_test_read_gradients(run), *at = gradients;
    double worst = 0;
    for (size_t i = 0; i < hstep_model_parameter_count(run->model); i++) {
        hstep_parameter parameter;
        hs_test_expect_ok(hstep_model_parameter(run->model, i, &parameter, &error), &error);
        double *values = malloc(parameter.elements * sizeof *values), largest = 0;
        hs_test_expect_ok(hstep_model_read_parameter(run->model, i, values, &error), &error);
        for (size_t j = 0; j < parameter.elements; j++)
            largest = fmax(largest, fabs(at[j]));
        cr_assert_gt(largest, 0, "%s has no gradient at all", parameter.name);
        const size_t stride = parameter.elements > most ? parameter.elements / most : 1;
        for (size_t j = 0; j < parameter.elements; j += stride) {
            const double difference = fabs(at[j] - central_difference(run, batch, i, values, j)) / largest;
            cr_expect_lt(difference, 1e-7, "%s[%zu] is off by %g of the tensor's largest", parameter.name, j,
                         difference);
            worst = fmax(worst, difference);
        }
        free(values);
        at += parameter.elements;
    }
    free(gradients);
    return worst;
}

static void check_decoder(hs_test_setup setup, size_t sequences, size_t length) {
    hs_test_run run = hs_test_run_create(&setup);
    hs_test_batch batch = hs_test_batch_create(sequences, length, setup.vocabulary, length > 3, 17);
    (void)worst_difference(&run, &batch.batch, 60);
    hs_test_batch_destroy(&batch);
    hs_test_run_destroy(&run);
}

Test(gradients, fixture_sized) { check_decoder((hs_test_setup){.vocabulary = 13}, 1, 3); }

Test(gradients, grouped_heads) {
    check_decoder((hs_test_setup){.vocabulary = 11, .width = 24, .heads = 6, .kv_heads = 2, .feed_forward = 10}, 2, 7);
}

Test(gradients, one_key_head) {
    check_decoder((hs_test_setup){.vocabulary = 9, .width = 16, .heads = 4, .kv_heads = 1, .feed_forward = 7}, 3, 5);
}

Test(gradients, uneven_sizes) {
    check_decoder((hs_test_setup){.vocabulary = 37, .width = 30, .heads = 3, .layers = 1, .feed_forward = 41}, 3, 11);
}

Test(gradients, one_position) {
    check_decoder((hs_test_setup){.vocabulary = 5, .width = 6, .heads = 1, .layers = 3, .feed_forward = 1}, 4, 2);
}

Test(gradients, every_general_operation) {
    hstep_context *context = NULL;
    hstep_error error = {0};
    const hstep_context_options options = {.backend = HSTEP_BACKEND_CPU, .threads = 1, .levers = "exact"};
    hs_test_expect_ok(hstep_context_create(&options, &context, &error), &error);
    hs_test_run run = hs_test_general_run_create_in(context);
    const hstep_batch batch = hs_test_general_batch();
    (void)worst_difference(&run, &batch, 100);
    hs_test_run_destroy(&run);
}
