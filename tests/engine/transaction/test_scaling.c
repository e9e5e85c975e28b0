/* What the loss scale must not change, and what it may. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/models.h"

static hstep_update one_update(hstep_precision precision, double scale, double clip, double **weights) {
    const hs_test_setup setup = {
        .precision = precision,
        .grad_clip = clip,
        .scaler = {.initial = scale, .minimum = 1, .maximum = 0x1p24, .growth_interval = 2000}};
    hs_test_run run = hs_test_run_create(&setup);
    const hstep_batch batch = hs_test_fixture_batch();
    hstep_error error = {0};
    hstep_update update;
    hs_test_expect_ok(hstep_trainer_update(run.trainer, &batch, 1, &update, &error), &error);
    cr_assert_eq(update.outcome, HSTEP_APPLIED);
    if (weights != NULL) {
        *weights = calloc(hstep_model_scalar_count(run.model), sizeof **weights);
        double *at = *weights;
        for (size_t i = 0; i < hstep_model_parameter_count(run.model); i++) {
            hstep_parameter parameter;
            hs_test_expect_ok(hstep_model_parameter(run.model, i, &parameter, &error), &error);
            hs_test_expect_ok(hstep_model_read_parameter(run.model, i, at, &error), &error);
            at += parameter.elements;
        }
    }
    hs_test_run_destroy(&run);
    return update;
}

Test(scaling, bf16_norm_does_not_depend_on_the_scale) {
    const hstep_update plain = one_update(HSTEP_PRECISION_BF16, 1, 1, NULL);
    const hstep_update scaled = one_update(HSTEP_PRECISION_BF16, 0x1p16, 1, NULL);
    cr_expect_float_eq(plain.gradient_norm, scaled.gradient_norm, 1e-12 * plain.gradient_norm);
}

/* With S a power of two the f64 chain only shifts exponents: the weights agree to rounding, clipping included. */
Test(scaling, f64_scaled_update_equals_the_unscaled_clipped_one) {
    double *plain = NULL, *scaled = NULL;
    const hstep_update a = one_update(HSTEP_PRECISION_F64, 1, 0.5, &plain);
    const hstep_update b = one_update(HSTEP_PRECISION_F64, 0x1p16, 0.5, &scaled);
    cr_expect(a.clipped && b.clipped);
    cr_expect_float_eq(a.gradient_norm, b.gradient_norm, 1e-14 * a.gradient_norm);
    for (size_t i = 0; i < 1372; i++)
        cr_expect_float_eq(plain[i], scaled[i], 1e-14 * fabs(plain[i]), "weight %zu", i);
    free(plain);
    free(scaled);
}

/* One parameter tensor with loss = factor * sum(w), so that every gradient is the factor. */
static hs_test_run linear_run(double factor, int64_t rank2, const hstep_trainer_config *config) {
    hs_test_run run = {0};
    hstep_graph *graph = NULL;
    hstep_error error = {0};
    hstep_value w = 0, scaled = 0, loss = 0;
    hs_test_expect_ok(hstep_context_create(NULL, &run.context, &error), &error);
    hs_test_expect_ok(hstep_graph_create(&graph, &error), &error);
    hs_test_expect_ok(hstep_graph_parameter(graph, "w", 2, (int64_t[]){1, rank2}, &w, &error), &error);
    hs_test_expect_ok(hstep_graph_scale(graph, "scaled", w, factor, &scaled, &error), &error);
    hs_test_expect_ok(hstep_graph_sum(graph, "loss", scaled, &loss, &error), &error);
    hs_test_expect_ok(hstep_graph_set_loss(graph, loss, &error), &error);
    hs_test_expect_ok(hstep_model_create(run.context, graph, &run.model, &error), &error);
    hs_test_expect_ok(hstep_trainer_create(run.model, config, &run.trainer, &error), &error);
    return run;
}

/* Gradient 8 under scale 4 and limit 1: unscaling first clips 8 to 1; clipping first would leave 1/4. */
Test(scaling, clips_after_unscaling) {
    hstep_trainer_config config = hstep_trainer_defaults(HSTEP_PRECISION_F64);
    config.scaler = (hstep_scaler){.initial = 4, .minimum = 1, .maximum = 4, .growth_interval = 1};
    hs_test_run run = linear_run(8, 1, &config);
    const hstep_batch batch = {.sequences = 1, .length = 1};
    hstep_error error = {0};
    hstep_update update;
    hs_test_expect_ok(hstep_trainer_update(run.trainer, &batch, 1, &update, &error), &error);
    double moment = 0;
    hs_test_expect_ok(hstep_trainer_read_moments(run.trainer, 0, &moment, NULL, &error), &error);
    cr_expect(update.clipped);
    cr_expect_eq(update.gradient_norm, 8);
    cr_expect_eq(moment, (1 - 0.9) * 1.0, "the first moment is (1 - beta1) times the clipped gradient");
    hs_test_run_destroy(&run);
}

/* lr * wd = 1e-3 * 1e-2 moves a master of 1 by 1e-5, far below bf16's 2^-8; with a zero gradient only decay acts. */
Test(scaling, decay_below_a_bf16_ulp_moves_the_master) {
    hstep_trainer_config config = hstep_trainer_defaults(HSTEP_PRECISION_BF16);
    hs_test_run run = linear_run(0, 1, &config);
    hstep_error error = {0};
    const double one = 1;
    hs_test_expect_ok(hstep_model_write_parameter(run.model, 0, &one, &error), &error);
    const hstep_batch batch = {.sequences = 1, .length = 1};
    hstep_update update;
    hs_test_expect_ok(hstep_trainer_update(run.trainer, &batch, 1, &update, &error), &error);
    double master = 0;
    hs_test_expect_ok(hstep_model_read_parameter(run.model, 0, &master, &error), &error);
    cr_expect_eq(master, 1 - (1e-3 * 0.01));
    cr_expect_eq(hstep_encode(HSTEP_BF16, master), hstep_encode(HSTEP_BF16, 1));
    hs_test_run_destroy(&run);
}

Test(scaling, growth_interval_one_saturates) {
    hstep_trainer_config config = hstep_trainer_defaults(HSTEP_PRECISION_F64);
    config.scaler = (hstep_scaler){.initial = 1, .minimum = 1, .maximum = 0x1p1023, .growth_interval = 1};
    hs_test_run run = linear_run(0x1p-1020, 1, &config);
    const hstep_batch batch = {.sequences = 1, .length = 1};
    hstep_error error = {0};
    hstep_update update = {0};
    for (int i = 0; i < 1100; i++) {
        hs_test_expect_ok(hstep_trainer_update(run.trainer, &batch, 1, &update, &error), &error);
        cr_assert_eq(update.outcome, HSTEP_APPLIED);
        cr_assert(isfinite(update.next_loss_scale));
    }
    cr_expect_eq(update.next_loss_scale, 0x1p1023);
    hs_test_run_destroy(&run);
}
