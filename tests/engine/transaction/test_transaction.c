/* Structural errors have their own status and change nothing; scaling, clipping and decay do what the policy says. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/models.h"

static const hs_test_setup small = {.vocabulary = 12, .width = 8, .feed_forward = 6};

/* The status of an update that must fail and leave state and scale. */
static void expect_refused(const hs_test_run *run, const hstep_batch *window, size_t count, hstep_status expected) {
    hs_test_snapshot before = hs_test_snapshot_take(run->trainer);
    const double scale = hstep_trainer_loss_scale(run->trainer);
    const uint64_t attempts = hstep_trainer_attempts(run->trainer);
    hstep_error error = {0};
    hstep_update update, untouched;
    memset(&update, 0x5a, sizeof update);
    memset(&untouched, 0x5a, sizeof untouched);
    const hstep_status status = hstep_trainer_update(run->trainer, window, count, &update, &error);
    cr_expect_eq(status, expected, "%s instead of %s: %s", hstep_status_name(status), hstep_status_name(expected),
                 error.message);
    cr_expect_eq(error.status, expected);
    cr_expect_gt(strlen(error.message), 10);
    cr_expect(memcmp(&update, &untouched, sizeof update) == 0, "the outcome was written by a failing call");
    cr_expect_eq(hstep_trainer_loss_scale(run->trainer), scale);
    cr_expect_eq(hstep_trainer_attempts(run->trainer), attempts);
    hs_test_snapshot after = hs_test_snapshot_take(run->trainer);
    cr_expect(hs_test_snapshot_equal(&before, &after));
    hs_test_snapshot_free(&before);
    hs_test_snapshot_free(&after);
}

Test(transaction, refuses_bad_batches) {
    hs_test_run run = hs_test_run_create(&small);
    hs_test_batch good = hs_test_batch_create(2, 4, 12, false, 1);
    hstep_batch bad = good.batch;
    bad.tokens = NULL;
    expect_refused(&run, &bad, 1, HSTEP_ERROR_ARGUMENT);
    bad = good.batch;
    bad.targets = NULL;
    expect_refused(&run, &bad, 1, HSTEP_ERROR_ARGUMENT);
    bad = good.batch;
    bad.sequences = SIZE_MAX / 2;
    expect_refused(&run, &bad, 1, HSTEP_ERROR_SHAPE);
    bad = good.batch;
    bad.sequences = 0;
    expect_refused(&run, &bad, 1, HSTEP_ERROR_SHAPE);
    bad = good.batch;
    bad.length = 0;
    expect_refused(&run, &bad, 1, HSTEP_ERROR_SHAPE);
    bad = good.batch;
    bad.weight = -1;
    expect_refused(&run, &bad, 1, HSTEP_ERROR_ARGUMENT);
    bad.weight = NAN;
    expect_refused(&run, &bad, 1, HSTEP_ERROR_ARGUMENT);
    const hstep_feed unknown = {.input = "tokns", .data = good.tokens};
    bad = good.batch;
    bad.feeds = &unknown;
    bad.feed_count = 1;
    expect_refused(&run, &bad, 1, HSTEP_ERROR_ARGUMENT);
    const hstep_batch two[2] = {good.batch, good.batch};
    expect_refused(&run, two, 2, HSTEP_ERROR_SHAPE);
    expect_refused(&run, two, 0, HSTEP_ERROR_SHAPE);
    hs_test_batch_destroy(&good);
    hs_test_run_destroy(&run);
}

Test(transaction, refuses_tokens_outside_the_vocabulary) {
    hs_test_run run = hs_test_run_create(&small);
    hs_test_batch batch = hs_test_batch_create(2, 4, 12, false, 1);
    const int32_t bad[] = {12, -1, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const int32_t kept = batch.tokens[5];
        batch.tokens[5] = bad[i];
        expect_refused(&run, &batch.batch, 1, HSTEP_ERROR_TOKEN);
        batch.tokens[5] = kept;
        if (bad[i] == -1)
            continue; /* as a target it is allowed */
        const int32_t target = batch.targets[7];
        batch.targets[7] = bad[i];
        expect_refused(&run, &batch.batch, 1, HSTEP_ERROR_TOKEN);
        batch.targets[7] = target;
    }
    for (size_t i = 0; i < 8; i++)
        batch.targets[i] = -1;
    expect_refused(&run, &batch.batch, 1, HSTEP_ERROR_NO_TARGETS);
    hs_test_batch_destroy(&batch);
    hs_test_run_destroy(&run);
}

Test(transaction, refuses_steps_out_of_order) {
    hs_test_run run = hs_test_run_create(&small);
    hs_test_batch batch = hs_test_batch_create(2, 4, 12, false, 1);
    hstep_error error = {0};
    hstep_update update;
    cr_expect_eq(hstep_trainer_commit(run.trainer, &update, &error), HSTEP_ERROR_MISSING_GRADIENT);
    cr_expect_eq(hstep_trainer_backward(run.trainer, &error), HSTEP_ERROR_STALE_TAPE, "there is no tape yet");
    hs_test_expect_ok(hstep_trainer_record(run.trainer, &batch.batch, NULL, &error), &error);
    cr_expect_eq(hstep_trainer_commit(run.trainer, &update, &error), HSTEP_ERROR_MISSING_GRADIENT);
    hs_test_expect_ok(hstep_trainer_backward(run.trainer, &error), &error);
    expect_refused(&run, &batch.batch, 1, HSTEP_ERROR_DIRTY_GRADIENT);
    cr_expect_eq(hstep_trainer_backward(run.trainer, &error), HSTEP_ERROR_DIRTY_GRADIENT);
    cr_expect_eq(hstep_trainer_record(run.trainer, &batch.batch, NULL, &error), HSTEP_ERROR_DIRTY_GRADIENT);
    hs_test_expect_ok(hstep_trainer_commit(run.trainer, &update, &error), &error);
    cr_expect_eq(update.outcome, HSTEP_APPLIED);
    cr_expect_eq(hstep_trainer_commit(run.trainer, &update, &error), HSTEP_ERROR_MISSING_GRADIENT);
    cr_expect_eq(hstep_trainer_backward(run.trainer, &error), HSTEP_ERROR_STALE_TAPE, "the tape went with the commit");
    hs_test_batch_destroy(&batch);
    hs_test_run_destroy(&run);
}

Test(transaction, refuses_a_stale_tape) {
    hs_test_run run = hs_test_run_create(&small);
    hs_test_batch batch = hs_test_batch_create(2, 4, 12, false, 1);
    hstep_error error = {0};
    hstep_update update;
    double gain[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    const size_t parameter = hstep_model_find_parameter(run.model, "final_norm.gain");
    hs_test_expect_ok(hstep_trainer_record(run.trainer, &batch.batch, NULL, &error), &error);
    hs_test_expect_ok(hstep_model_write_parameter(run.model, parameter, gain, &error), &error);
    hs_test_snapshot before = hs_test_snapshot_take(run.trainer);
    cr_expect_eq(hstep_trainer_backward(run.trainer, &error), HSTEP_ERROR_STALE_TAPE);
    hs_test_snapshot after = hs_test_snapshot_take(run.trainer);
    cr_expect(hs_test_snapshot_equal(&before, &after));
    hs_test_snapshot_free(&after);
    hs_test_expect_ok(hstep_trainer_record(run.trainer, &batch.batch, NULL, &error), &error);
    hs_test_expect_ok(hstep_trainer_backward(run.trainer, &error), &error);
    hs_test_expect_ok(hstep_model_write_parameter(run.model, parameter, gain, &error), &error);
    cr_expect_eq(hstep_trainer_commit(run.trainer, &update, &error), HSTEP_ERROR_STALE_TAPE);
    hs_test_expect_ok(hstep_trainer_clear(run.trainer, &error), &error);
    hs_test_expect_ok(hstep_trainer_update(run.trainer, &batch.batch, 1, &update, &error), &error);
    hs_test_snapshot_free(&before);
    hs_test_batch_destroy(&batch);
    hs_test_run_destroy(&run);
}

/* Refused batches of many shapes leave the tape, and so do good evaluations; many good shapes take turns with plans. */
Test(transaction, tape_survives_refused_batches) {
    hs_test_run run = hs_test_run_create(&small), plain = hs_test_run_create(&small);
    hs_test_batch batch = hs_test_batch_create(2, 4, 12, false, 1);
    hstep_error error = {0};
    hstep_update update, expected;
    hs_test_expect_ok(hstep_trainer_record(run.trainer, &batch.batch, NULL, &error), &error);
    int32_t outside[40] = {0};
    outside[0] = 12;
    for (size_t length = 1; length <= 40; length++) {
        const hstep_batch bad = {.sequences = 1, .length = length, .tokens = outside, .targets = outside};
        cr_expect_eq(hstep_trainer_record(run.trainer, &bad, NULL, &error), HSTEP_ERROR_TOKEN);
        cr_expect_eq(hstep_trainer_update(run.trainer, &bad, 1, &update, &error), HSTEP_ERROR_TOKEN);
    }
    hs_test_expect_ok(hstep_trainer_backward(run.trainer, &error), &error);
    hs_test_expect_ok(hstep_trainer_commit(run.trainer, &update, &error), &error);
    hs_test_expect_ok(hstep_trainer_update(plain.trainer, &batch.batch, 1, &expected, &error), &error);
    cr_expect_eq(update.gradient_norm, expected.gradient_norm);
    hs_test_batch_destroy(&batch);
    hs_test_run_destroy(&run);
    hs_test_run_destroy(&plain);
}

Test(transaction, more_shapes_than_plans) {
    hs_test_run run = hs_test_run_create(&small), again = hs_test_run_create(&small);
    hstep_error error = {0};
    hstep_update update;
    for (size_t i = 0; i < 24; i++) {
        hs_test_batch batch = hs_test_batch_create(1 + i % 12, 3, 12, false, i);
        double sum = 0, weight = 0;
        hs_test_expect_ok(hstep_trainer_update(run.trainer, &batch.batch, 1, &update, &error), &error);
        hs_test_expect_ok(hstep_model_loss(run.model, &batch.batch, &sum, &weight, &error), &error);
        hs_test_expect_ok(hstep_trainer_update(again.trainer, &batch.batch, 1, &update, &error), &error);
        hs_test_batch_destroy(&batch);
    }
    hs_test_snapshot x = hs_test_snapshot_take(run.trainer), y = hs_test_snapshot_take(again.trainer);
    cr_expect(hs_test_snapshot_equal(&x, &y), "evaluations in between changed training");
    hs_test_snapshot_free(&x);
    hs_test_snapshot_free(&y);
    hs_test_run_destroy(&run);
    hs_test_run_destroy(&again);
}

Test(transaction, weights_beyond_the_scale_are_refused) {
    hs_test_run run = hs_test_run_create(&small);
    hs_test_batch batch = hs_test_batch_create(2, 4, 12, false, 1);
    batch.batch.weight = 5e-324;
    expect_refused(&run, &batch.batch, 1, HSTEP_ERROR_ARGUMENT);
    hs_test_run_destroy(&run);
    hs_test_setup windowed = small;
    windowed.micro_batches = 2;
    run = hs_test_run_create(&windowed);
    batch.batch.weight = 1.7e308;
    const hstep_batch window[2] = {batch.batch, batch.batch};
    expect_refused(&run, window, 2, HSTEP_ERROR_ARGUMENT);
    hs_test_batch_destroy(&batch);
    hs_test_run_destroy(&run);
}

/* A loss that is an input or a parameter passes no operation that could flag it. */
Test(transaction, a_nonfinite_loss_that_nothing_computed_is_an_error) {
    hs_test_run run = {0};
    hstep_graph *graph = NULL;
    hstep_error error = {0};
    hstep_value w = 0;
    hs_test_expect_ok(hstep_context_create(NULL, &run.context, &error), &error);
    hs_test_expect_ok(hstep_graph_create(&graph, &error), &error);
    hs_test_expect_ok(hstep_graph_parameter(graph, "w", 1, (int64_t[]){1}, &w, &error), &error);
    hs_test_expect_ok(hstep_graph_set_loss(graph, w, &error), &error);
    hs_test_expect_ok(hstep_model_create(run.context, graph, &run.model, &error), &error);
    const hstep_trainer_config config = hstep_trainer_defaults(HSTEP_PRECISION_F64);
    hs_test_expect_ok(hstep_trainer_create(run.model, &config, &run.trainer, &error), &error);
    const double nan = NAN;
    hs_test_expect_ok(hstep_model_write_parameter(run.model, 0, &nan, &error), &error);
    const hstep_batch batch = {.sequences = 1, .length = 1};
    double sum = 0, weight = 0;
    expect_refused(&run, &batch, 1, HSTEP_ERROR_NONFINITE_FORWARD);
    cr_expect_eq(hstep_model_loss(run.model, &batch, &sum, &weight, &error), HSTEP_ERROR_NONFINITE_FORWARD);
    hs_test_run_destroy(&run);
}

/* A weight for the loss does not make targets out of none. */
Test(transaction, no_targets_with_a_weight_are_refused) {
    hs_test_run run = hs_test_run_create(&small);
    hs_test_batch batch = hs_test_batch_create(2, 4, 12, false, 1);
    for (size_t i = 0; i < 8; i++)
        batch.targets[i] = -1;
    batch.batch.weight = 3;
    expect_refused(&run, &batch.batch, 1, HSTEP_ERROR_NO_TARGETS);
    hs_test_batch_destroy(&batch);
    hs_test_run_destroy(&run);
}

Test(transaction, an_absurd_learning_rate_is_told) {
    hs_test_setup absurd = small;
    absurd.learning_rate = 1e308;
    hs_test_run run = hs_test_run_create(&absurd);
    hs_test_batch batch = hs_test_batch_create(2, 4, 12, false, 1);
    hstep_error error = {0};
    hstep_update update = {0};
    for (int i = 0; i < 3 && !update.nonfinite_weights; i++)
        hs_test_expect_ok(hstep_trainer_update(run.trainer, &batch.batch, 1, &update, &error), &error);
    cr_expect_eq(update.outcome, HSTEP_APPLIED);
    cr_expect_eq(update.nonfinite_weights, 1);
    expect_refused(&run, &batch.batch, 1, HSTEP_ERROR_NONFINITE_FORWARD);
    hs_test_batch_destroy(&batch);
    hs_test_run_destroy(&run);
}

Test(transaction, step_by_step_equals_update) {
    hs_test_run whole = hs_test_run_create(&small), stepwise = hs_test_run_create(&small);
    hstep_error error = {0};
    for (uint64_t i = 0; i < 3; i++) {
        hs_test_batch batch = hs_test_batch_create(2, 4, 12, true, i);
        hstep_update a, b;
        hs_test_expect_ok(hstep_trainer_update(whole.trainer, &batch.batch, 1, &a, &error), &error);
        hs_test_expect_ok(hstep_trainer_record(stepwise.trainer, &batch.batch, NULL, &error), &error);
        hs_test_expect_ok(hstep_trainer_backward(stepwise.trainer, &error), &error);
        hs_test_expect_ok(hstep_trainer_commit(stepwise.trainer, &b, &error), &error);
        cr_expect_eq(a.loss, b.loss);
        cr_expect_eq(a.gradient_norm, b.gradient_norm);
        hs_test_batch_destroy(&batch);
    }
    hs_test_snapshot x = hs_test_snapshot_take(whole.trainer), y = hs_test_snapshot_take(stepwise.trainer);
    cr_expect(hs_test_snapshot_equal(&x, &y));
    hs_test_snapshot_free(&x);
    hs_test_snapshot_free(&y);
    hs_test_run_destroy(&whole);
    hs_test_run_destroy(&stepwise);
}

Test(transaction, refuses_bad_settings) {
    hs_test_run run = hs_test_run_create(&small);
    hstep_error error = {0};
    hstep_trainer *second = NULL;
    hstep_trainer_config config = hstep_trainer_defaults(HSTEP_PRECISION_F64);
    cr_expect_eq(hstep_trainer_create(run.model, &config, &second, &error), HSTEP_ERROR_ARGUMENT,
                 "one trainer a model");
    hstep_trainer_destroy(run.trainer);
    run.trainer = NULL;
    const hstep_scaler scalers[] = {{3, 1, 4, 1},   {.5, .25, 4, 1}, {4, 1, 2, 1},
                                    {1, 2, 4, 1},   {2, 1, 4, 0},    {2, 1, 6, 1},
                                    {2, 1.5, 4, 1}, {0, 0, 4, 1},    {INFINITY, 1, INFINITY, 1},
                                    {NAN, 1, 4, 1}, {-2, -4, 2, 1}};
    for (size_t i = 0; i < sizeof scalers / sizeof scalers[0]; i++) {
        config = hstep_trainer_defaults(HSTEP_PRECISION_F64);
        config.scaler = scalers[i];
        cr_expect_eq(hstep_trainer_create(run.model, &config, &second, &error), HSTEP_ERROR_ARGUMENT);
        cr_expect(strstr(error.message, "scale") != NULL || strstr(error.message, "growth") != NULL, "%s",
                  error.message);
    }
    const double bad[] = {0, -1, NAN, INFINITY};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        config = hstep_trainer_defaults(HSTEP_PRECISION_F64);
        config.adamw.epsilon = bad[i];
        cr_expect_eq(hstep_trainer_create(run.model, &config, &second, &error), HSTEP_ERROR_ARGUMENT);
        config = hstep_trainer_defaults(HSTEP_PRECISION_F64);
        config.adamw.grad_clip = bad[i];
        cr_expect_eq(hstep_trainer_create(run.model, &config, &second, &error), HSTEP_ERROR_ARGUMENT);
    }
    config = hstep_trainer_defaults(HSTEP_PRECISION_F64);
    config.micro_batches = 0;
    cr_expect_eq(hstep_trainer_create(run.model, &config, &second, &error), HSTEP_ERROR_ARGUMENT);
    cr_expect_null(second);
    hs_test_run_destroy(&run);
}

Test(transaction, set_scaler_refuses_and_keeps) {
    hs_test_run run = hs_test_run_create(&small);
    hstep_error error = {0};
    const hstep_scaler good = {.initial = 32, .minimum = 1, .maximum = 64, .growth_interval = 2}, bad = {3, 1, 4, 1};
    hs_test_expect_ok(hstep_trainer_set_scaler(run.trainer, &good, &error), &error);
    cr_expect_eq(hstep_trainer_set_scaler(run.trainer, &bad, &error), HSTEP_ERROR_ARGUMENT);
    cr_expect_eq(hstep_trainer_loss_scale(run.trainer), 32);
    hs_test_run_destroy(&run);
}

Test(transaction, parameter_without_gradient_is_named) {
    hstep_context *context = NULL;
    hstep_graph *graph = NULL;
    hstep_model *model = NULL;
    hstep_trainer *trainer = NULL;
    hstep_error error = {0};
    hstep_value used = 0, idle = 0, loss = 0;
    hs_test_expect_ok(hstep_context_create(NULL, &context, &error), &error);
    hs_test_expect_ok(hstep_graph_create(&graph, &error), &error);
    hs_test_expect_ok(hstep_graph_parameter(graph, "used", 1, (int64_t[]){2}, &used, &error), &error);
    hs_test_expect_ok(hstep_graph_parameter(graph, "idle", 1, (int64_t[]){2}, &idle, &error), &error);
    hs_test_expect_ok(hstep_graph_sum(graph, "loss", used, &loss, &error), &error);
    hs_test_expect_ok(hstep_graph_set_loss(graph, loss, &error), &error);
    hs_test_expect_ok(hstep_model_create(context, graph, &model, &error), &error);
    const hstep_trainer_config config = hstep_trainer_defaults(HSTEP_PRECISION_F64);
    cr_expect_eq(hstep_trainer_create(model, &config, &trainer, &error), HSTEP_ERROR_MISSING_GRADIENT);
    cr_expect_str_eq(error.operation, "idle");
    hstep_model_destroy(model);
    hstep_context_destroy(context);
}

Test(transaction, unavailable_backend) {
    hstep_context *context = NULL;
    hstep_error error = {0};
    /* Without a driver, whatever the machine has. */
    cr_assert_eq(setenv("VK_ICD_FILENAMES", "/nowhere", 1), 0);
    hstep_context_options options = {.backend = HSTEP_BACKEND_VULKAN};
    cr_expect_eq(hstep_context_create(&options, &context, &error), HSTEP_ERROR_BACKEND_UNAVAILABLE);
    cr_expect(strstr(error.message, "Vulkan") != NULL);
    options.backend = (hstep_backend)77;
    cr_expect_eq(hstep_context_create(&options, &context, &error), HSTEP_ERROR_ARGUMENT);
    options = (hstep_context_options){.backend = HSTEP_BACKEND_CPU, .threads = 100000};
    cr_expect_eq(hstep_context_create(&options, &context, &error), HSTEP_ERROR_ARGUMENT);
    cr_expect_null(context);
}
