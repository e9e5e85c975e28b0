/* A window of replicas and micro-batches is one update over all its tokens. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/models.h"

enum { VOCABULARY = 20, SEQUENCES = 12, LENGTH = 6 };

/* One update over the same twelve sequences, cut into replicas x micro_batches equal parts. */
static hs_test_run updated(hstep_precision precision, size_t replicas, size_t micro_batches, hstep_update *update) {
    const hs_test_setup setup = {.precision = precision,
                                 .vocabulary = VOCABULARY,
                                 .width = 12,
                                 .heads = 3,
                                 .feed_forward = 9,
                                 .replicas = replicas,
                                 .micro_batches = micro_batches};
    hs_test_run run = hs_test_run_create(&setup);
    hs_test_batch all = hs_test_batch_create(SEQUENCES, LENGTH, VOCABULARY, true, 8);
    hstep_batch window[SEQUENCES];
    const size_t parts = replicas * micro_batches, sequences = SEQUENCES / parts;
    for (size_t i = 0; i < parts; i++)
        window[i] = (hstep_batch){.sequences = sequences,
                                  .length = LENGTH,
                                  .tokens = all.tokens + i * sequences * LENGTH,
                                  .targets = all.targets + i * sequences * LENGTH};
    hstep_error error = {0};
    hs_test_expect_ok(hstep_trainer_update(run.trainer, window, parts, update, &error), &error);
    hs_test_batch_destroy(&all);
    return run;
}

static double largest_moment_difference(const hs_test_run *a, const hs_test_run *b) {
    double worst = 0;
    hstep_error error = {0};
    for (size_t i = 0; i < hstep_model_parameter_count(a->model); i++) {
        hstep_parameter parameter;
        hs_test_expect_ok(hstep_model_parameter(a->model, i, &parameter, &error), &error);
        double *m = malloc(2 * parameter.elements * sizeof *m), *n = m + parameter.elements;
        hs_test_expect_ok(hstep_trainer_read_moments(a->trainer, i, m, NULL, &error), &error);
        hs_test_expect_ok(hstep_trainer_read_moments(b->trainer, i, n, NULL, &error), &error);
        for (size_t j = 0; j < parameter.elements; j++)
            worst = fmax(worst, fabs(m[j] - n[j]));
        free(m);
    }
    return worst;
}

Test(window, splits_agree_to_rounding_in_f64) {
    const size_t splits[][2] = {{1, 4}, {4, 1}, {2, 3}, {3, 2}, {1, 12}};
    hstep_update whole, split;
    hs_test_run expected = updated(HSTEP_PRECISION_F64, 1, 1, &whole);
    for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++) {
        hs_test_run run = updated(HSTEP_PRECISION_F64, splits[i][0], splits[i][1], &split);
        cr_expect_float_eq(split.loss, whole.loss, 1e-13);
        cr_expect_float_eq(split.gradient_norm, whole.gradient_norm, 1e-13);
        cr_expect_eq(split.tokens, whole.tokens);
        cr_expect_lt(largest_moment_difference(&expected, &run), 1e-14);
        hs_test_run_destroy(&run);
    }
    hs_test_run_destroy(&expected);
}

/* Micro-batches within replicas, then replicas: ((g0 + g1) + (g2 + g3)), computed here from single gradients. */
Test(window, sums_in_the_order_of_the_policy) {
    const hs_test_setup setup = {.vocabulary = VOCABULARY, .width = 12, .heads = 3, .feed_forward = 9};
    hs_test_batch all = hs_test_batch_create(4, LENGTH, VOCABULARY, false, 8);
    hs_test_run single = hs_test_run_create(&setup);
    hstep_error error = {0};
    double *g[4];
    for (size_t i = 0; i < 4; i++) {
        const hstep_batch batch = {.sequences = 1,
                                   .length = LENGTH,
                                   .tokens = all.tokens + i * LENGTH,
                                   .targets = all.targets + i * LENGTH,
                                   .weight = 4 * LENGTH};
        hs_test_expect_ok(hstep_trainer_record(single.trainer, &batch, NULL, &error), &error);
        hs_test_expect_ok(hstep_trainer_backward(single.trainer, &error), &error);
        g[i] = hs_test_read_gradients(&single);
        hs_test_expect_ok(hstep_trainer_clear(single.trainer, &error), &error);
    }
    hs_test_setup windowed = setup;
    windowed.replicas = 2;
    windowed.micro_batches = 2;
    windowed.grad_clip = 1e6;
    hs_test_run run = hs_test_run_create(&windowed);
    hstep_batch window[4];
    for (size_t i = 0; i < 4; i++)
        window[i] = (hstep_batch){
            .sequences = 1, .length = LENGTH, .tokens = all.tokens + i * LENGTH, .targets = all.targets + i * LENGTH};
    hstep_update update;
    hs_test_expect_ok(hstep_trainer_update(run.trainer, window, 4, &update, &error), &error);
    size_t at = 0;
    for (size_t i = 0; i < hstep_model_parameter_count(run.model); i++) {
        hstep_parameter parameter;
        hs_test_expect_ok(hstep_model_parameter(run.model, i, &parameter, &error), &error);
        double *moments = malloc(parameter.elements * sizeof *moments);
        hs_test_expect_ok(hstep_trainer_read_moments(run.trainer, i, moments, NULL, &error), &error);
        for (size_t j = 0; j < parameter.elements; j++, at++) {
            const double sum = (g[0][at] + g[1][at]) + (g[2][at] + g[3][at]);
            const double expected = 0.9 * 0.0 + (1 - 0.9) * sum;
            cr_expect_eq(moments[j], expected, "%s[%zu]", parameter.name, j);
        }
        free(moments);
    }
    for (size_t i = 0; i < 4; i++)
        free(g[i]);
    hs_test_batch_destroy(&all);
    hs_test_run_destroy(&single);
    hs_test_run_destroy(&run);
}
