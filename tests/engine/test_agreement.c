/*
 * The reference and the exact tier, with every lever that this processor offers and with any number of threads, give
 * the same bits for a whole backward pass and for whole runs.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"
#include "engine/context.h"
#include "support/models.h"
#include "support/parity.h"

typedef struct shape {
    hs_test_setup setup;
    size_t sequences, length;
} shape;

static const shape shapes[] = {
    {{.vocabulary = 258, .width = 4, .heads = 2, .feed_forward = 8}, 1, 3},
    {{.vocabulary = 61, .width = 48, .heads = 6, .kv_heads = 2, .feed_forward = 70, .layers = 3}, 3, 19},
    {{.vocabulary = 33, .width = 18, .heads = 3, .kv_heads = 1, .feed_forward = 17, .layers = 1}, 5, 70},
    {{.vocabulary = 7, .width = 2, .heads = 1, .feed_forward = 1, .layers = 1}, 1, 1},
};

/* A run on the exact tier with a lever, or on the reference where `lever` is NULL. */
static hs_test_run create_run(const hs_test_setup *setup, const char *lever, bool compact, unsigned threads) {
    hs_backend *backend = NULL;
    hstep_context *context = NULL;
    hstep_error error = {0};
    if (lever)
        hs_test_expect_ok(hs_cpu_create_with_lever(threads, lever, &backend, &error), &error);
    else
        hs_test_expect_ok(hs_cpu_reference_create(&backend, &error), &error);
    if (lever && !compact)
        hs_test_leave_compact_out(backend);
    hs_test_expect_ok(hs_context_adopt(backend, NULL, &context, &error), &error);
    return hs_test_run_create_in(context, setup);
}

/* The levers that are there. */
static size_t available_levers(const char *levers[HS_TEST_LEVERS]) {
    size_t count = 0;
    for (size_t i = 0; i < HS_TEST_LEVERS; i++) {
        hs_backend *backend = hs_test_exact(1, hs_test_levers[i]);
        if (!backend)
            continue;
        backend->api->destroy(backend);
        levers[count++] = hs_test_levers[i];
    }
    return count;
}

static double *gradients_on(const shape *s, hstep_precision precision, const char *lever, unsigned threads,
                            double *loss) {
    hs_test_setup setup = s->setup;
    setup.precision = precision;
    setup.scaler = (hstep_scaler){.initial = 512, .minimum = 1, .maximum = 512, .growth_interval = 1};
    hs_test_run run = create_run(&setup, lever, true, threads);
    hs_test_batch batch = hs_test_batch_create(s->sequences, s->length, setup.vocabulary, false, 5);
    hstep_error error = {0};
    hs_test_expect_ok(hstep_trainer_record(run.trainer, &batch.batch, loss, &error), &error);
    hs_test_expect_ok(hstep_trainer_backward(run.trainer, &error), &error);
    double *gradients = hs_test_read_gradients(&run);
    hs_test_batch_destroy(&batch);
    hs_test_run_destroy(&run);
    return gradients;
}

static size_t scalars_of(const shape *s) {
    hs_test_run run = hs_test_run_create(&s->setup);
    const size_t count = hstep_model_scalar_count(run.model);
    hs_test_run_destroy(&run);
    return count;
}

static void compare_shape(hstep_precision precision, const shape *s) {
    const size_t bytes = scalars_of(s) * sizeof(double);
    const char *levers[HS_TEST_LEVERS];
    double loss = 0, other = 0;
    double *expected = gradients_on(s, precision, NULL, 1, &loss);
    for (size_t j = 0; j < bytes / sizeof *expected; j++)
        cr_assert(isfinite(expected[j]), "only finite gradients have one right pattern of bits");
    for (size_t lever = available_levers(levers); lever-- > 0;)
        for (unsigned threads = 1; threads <= 3; threads++) {
            double *actual = gradients_on(s, precision, levers[lever], threads, &other);
            cr_expect(memcmp(&loss, &other, sizeof loss) == 0, "loss of vocabulary %zu, %s, %u threads",
                      s->setup.vocabulary, levers[lever], threads);
            cr_expect(memcmp(expected, actual, bytes) == 0, "gradients of vocabulary %zu, %s, %u threads",
                      s->setup.vocabulary, levers[lever], threads);
            free(actual);
        }
    free(expected);
}

static void compare_backward(hstep_precision precision) {
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        compare_shape(precision, &shapes[i]);
}

Test(agreement, backward_f64) { compare_backward(HSTEP_PRECISION_F64); }
Test(agreement, backward_fp16) { compare_backward(HSTEP_PRECISION_FP16); }
Test(agreement, backward_bf16) { compare_backward(HSTEP_PRECISION_BF16); }

/*
 * Weights after 50 updates, skips under a large starting scale come on top. The heads come in groups, so that some
 * adjoints of attention are sums in f64.
 */
static uint64_t train(hstep_precision precision, const char *lever, bool compact, unsigned threads, uint64_t *skips) {
    const hs_test_setup setup = {.precision = precision,
                                 .vocabulary = 40,
                                 .width = 24,
                                 .heads = 4,
                                 .kv_heads = 2,
                                 .feed_forward = 33,
                                 .scaler = {.initial = 0x1p24, .minimum = 1, .maximum = 0x1p24, .growth_interval = 3}};
    hs_test_run run = create_run(&setup, lever, compact, threads);
    hstep_error error = {0};
    for (uint64_t i = 0; hstep_trainer_optimizer_step(run.trainer) < 50; i++) {
        hs_test_batch batch = hs_test_batch_create(3, 9, 40, true, i);
        hstep_update update;
        hs_test_expect_ok(hstep_trainer_update(run.trainer, &batch.batch, 1, &update, &error), &error);
        *skips += update.outcome == HSTEP_SKIPPED;
        hs_test_batch_destroy(&batch);
    }
    uint64_t checksum = 0;
    hs_test_expect_ok(hstep_model_checksum(run.model, &checksum, &error), &error);
    hs_test_run_destroy(&run);
    return checksum;
}

Test(agreement, whole_runs, .timeout = 60) {
    const char *levers[HS_TEST_LEVERS];
    const size_t lever_count = available_levers(levers);
    for (hstep_precision precision = HSTEP_PRECISION_F64; precision <= HSTEP_PRECISION_BF16; precision++) {
        uint64_t skips = 0, other_skips = 0;
        const uint64_t expected = train(precision, NULL, false, 1, &skips);
        cr_expect_eq(precision == HSTEP_PRECISION_FP16, skips > 0);
        for (size_t i = 0; i < lever_count * 2; i++)
            for (unsigned threads = 1; threads <= 3; threads++) {
                const char *lever = levers[i / 2];
                const bool compact = i % 2 == 0;
                other_skips = 0;
                cr_expect_eq(train(precision, lever, compact, threads, &other_skips), expected, "%s, %s, %u threads",
                             lever, compact ? "compact" : "f64 slots", threads);
                cr_expect_eq(other_skips, skips);
            }
    }
}
