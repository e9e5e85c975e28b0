/* Whole runs on the device: every update says what the reference's says, and the weights end with the same bits. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "cpu/cpu.h"
#include "engine/context.h"
#include "support/device.h"
#include "support/models.h"
#include "support/parity.h"
#include "support/traces.h"

static hstep_context *context_on(hs_backend *backend) {
    hstep_context *context = NULL;
    hstep_error error = {0};
    hs_test_expect_ok(hs_context_adopt(backend, NULL, &context, &error), &error);
    return context;
}

static hstep_context *reference_context(void) {
    hs_backend *backend = NULL;
    hstep_error error = {0};
    hs_test_expect_ok(hs_cpu_reference_create(&backend, &error), &error);
    return context_on(backend);
}

static void expect_same_update(const hstep_update *a, const hstep_update *b) {
    cr_assert_eq(a->outcome, b->outcome, "attempt %zu", (size_t)a->attempt);
    cr_assert_eq(a->step, b->step);
    cr_assert(hs_test_same_value(a->loss, b->loss), "losses %a and %a", a->loss, b->loss);
    cr_assert(hs_test_same_value(a->gradient_norm, b->gradient_norm), "norms %a and %a", a->gradient_norm,
              b->gradient_norm);
    cr_assert_eq(a->next_loss_scale, b->next_loss_scale);
    cr_assert_eq(a->clipped, b->clipped);
    cr_assert_str_eq(a->overflow.operation, b->overflow.operation);
    cr_assert_str_eq(a->overflow.tensor, b->overflow.tensor);
    cr_assert_eq(a->overflow.index, b->overflow.index);
}

static uint64_t checksum_of(const hs_test_run *run) {
    uint64_t checksum = 0;
    hstep_error error = {0};
    hs_test_expect_ok(hstep_model_checksum(run->model, &checksum, &error), &error);
    return checksum;
}

/* Trains on both until 20 updates are committed; returns how many attempts were skipped. */
static size_t train_both(const hs_test_setup *setup) {
    enum { WINDOW = 4, UPDATES = 20 };
    hs_test_setup whole = *setup;
    whole.head_rows = 0;
    hs_test_run expected = hs_test_run_create_in(reference_context(), &whole);
    hs_test_run found = hs_test_run_create_in(context_on(hs_test_device()), setup);
    const size_t window = (setup->replicas ? setup->replicas : 1) * (setup->micro_batches ? setup->micro_batches : 1);
    size_t skips = 0;
    hstep_error error = {0};
    cr_assert_leq(window, WINDOW);
    for (uint64_t i = 0; hstep_trainer_optimizer_step(expected.trainer) < UPDATES; i++) {
        hs_test_batch batches[WINDOW];
        hstep_batch parts[WINDOW];
        hstep_update a, b;
        for (size_t j = 0; j < window; j++) {
            batches[j] = hs_test_batch_create(3, 9, setup->vocabulary, true, i * WINDOW + j);
            parts[j] = batches[j].batch;
        }
        hs_test_expect_ok(hstep_trainer_update(expected.trainer, parts, window, &a, &error), &error);
        hs_test_expect_ok(hstep_trainer_update(found.trainer, parts, window, &b, &error), &error);
        expect_same_update(&a, &b);
        skips += a.outcome == HSTEP_SKIPPED;
        for (size_t j = 0; j < window; j++)
            hs_test_batch_destroy(&batches[j]);
    }
    cr_assert_eq(checksum_of(&expected), checksum_of(&found));
    hs_test_run_destroy(&expected);
    hs_test_run_destroy(&found);
    return skips;
}

/* A software device takes its time, so most of these have one layer; that with the skips has the fixture's two. */
static hs_test_setup setup_of(hstep_precision precision) {
    return (hs_test_setup){.precision = precision,
                           .vocabulary = 40,
                           .width = 24,
                           .layers = precision == HSTEP_PRECISION_FP16 ? 0 : 1,
                           .heads = 4,
                           .kv_heads = 2,
                           .feed_forward = 33,
                           .scaler = {.initial = 0x1p24, .minimum = 1, .maximum = 0x1p24, .growth_interval = 3}};
}

Test(runs, in_f64, .timeout = 300) {
    const hs_test_setup setup = setup_of(HSTEP_PRECISION_F64);
    cr_assert_eq(train_both(&setup), 0);
}

Test(runs, in_bf16, .timeout = 300) {
    const hs_test_setup setup = setup_of(HSTEP_PRECISION_BF16);
    cr_assert_eq(train_both(&setup), 0);
}

/* The scale begins where gradients overflow: the skips must name what the reference's name. */
Test(runs, in_fp16_with_skips, .timeout = 300) {
    const hs_test_setup setup = setup_of(HSTEP_PRECISION_FP16);
    cr_assert_gt(train_both(&setup), 4);
}

/* Casts and slots of several formats side by side, products of all precisions, and skips. */
Test(runs, in_a_mixture_by_place, .timeout = 300) {
    static const hstep_precision_rule rules[] = {{"head", HSTEP_PRECISION_F64},
                                                 {"*.attention.*", HSTEP_PRECISION_FP16},
                                                 {"*.attention", HSTEP_PRECISION_F64},
                                                 {"*.attention.value", HSTEP_PRECISION_BF16},
                                                 {"*.feed_forward.up", HSTEP_PRECISION_FP16}};
    hs_test_setup setup = setup_of(HSTEP_PRECISION_BF16);
    setup.rules = rules;
    setup.rule_count = sizeof rules / sizeof rules[0];
    cr_assert_gt(train_both(&setup), 0);
}

Test(runs, of_windows_with_recomputed_blocks, .timeout = 300) {
    hs_test_setup setup = setup_of(HSTEP_PRECISION_BF16);
    setup.replicas = 2;
    setup.micro_batches = 2;
    setup.recompute = HSTEP_RECOMPUTE_BLOCKS;
    (void)train_both(&setup);
}

/* Statistics of attempts, skips among them: one number like the other. */
Test(runs, are_traced_alike, .timeout = 300) {
    hs_test_setup setup = setup_of(HSTEP_PRECISION_FP16);
    setup.layers = 1;
    hs_test_run runs[2] = {hs_test_run_create_in(reference_context(), &setup),
                           hs_test_run_create_in(context_on(hs_test_device()), &setup)};
    hs_test_kept_trace traces[2] = {0};
    hs_test_batch batch = hs_test_batch_create(3, 9, setup.vocabulary, true, 1);
    hstep_error error = {0};
    for (bool applied = false; !applied;) {
        hstep_update updates[2];
        for (int i = 0; i < 2; i++) {
            hs_test_expect_ok(hstep_trainer_set_trace(runs[i].trainer, 1, &error), &error);
            hs_test_expect_ok(hstep_trainer_update(runs[i].trainer, &batch.batch, 1, &updates[i], &error), &error);
            hs_test_keep_trace(runs[i].trainer, &traces[i]);
        }
        expect_same_update(&updates[0], &updates[1]);
        hs_test_expect_same_trace(&traces[0], &traces[1]);
        applied = updates[0].outcome == HSTEP_APPLIED;
    }
    cr_assert_eq(checksum_of(&runs[0]), checksum_of(&runs[1]));
    hs_test_batch_destroy(&batch);
    for (int i = 0; i < 2; i++) {
        hs_test_free_trace(&traces[i]);
        hs_test_run_destroy(&runs[i]);
    }
}

/* The reference has all logits at once, the device seven rows of them. */
Test(runs, of_a_divided_head, .timeout = 300) {
    hs_test_setup setup = setup_of(HSTEP_PRECISION_FP16);
    setup.layers = 1;
    setup.head_rows = 7;
    cr_assert_gt(train_both(&setup), 0);
}

/* Every general operation, some values used more than once. */
Test(runs, of_a_model_of_general_operations, .timeout = 300) {
    hs_test_run expected = hs_test_general_run_create_in(reference_context());
    hs_test_run found = hs_test_general_run_create_in(context_on(hs_test_device()));
    hstep_error error = {0};
    for (int i = 0; i < 5; i++) {
        const hstep_batch batch = hs_test_general_batch();
        hstep_update a, b;
        hs_test_expect_ok(hstep_trainer_update(expected.trainer, &batch, 1, &a, &error), &error);
        hs_test_expect_ok(hstep_trainer_update(found.trainer, &batch, 1, &b, &error), &error);
        expect_same_update(&a, &b);
    }
    cr_assert_eq(checksum_of(&expected), checksum_of(&found));
    hs_test_run_destroy(&expected);
    hs_test_run_destroy(&found);
}
