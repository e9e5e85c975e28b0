#include "support/models.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "precision/random.h"

void hs_test_expect_ok(hstep_status status, const hstep_error *error) {
    cr_assert_eq(status, HSTEP_OK, "%s: %s", hstep_status_name(status), error->message);
}

static size_t or_default(size_t value, size_t otherwise) { return value != 0 ? value : otherwise; }

static hstep_decoder_config decoder_config(const hs_test_setup *setup) {
    hstep_decoder_config config = hstep_decoder_defaults();
    config.vocabulary = or_default(setup->vocabulary, 258);
    config.width = or_default(setup->width, 4);
    config.layers = or_default(setup->layers, 2);
    config.heads = or_default(setup->heads, 2);
    config.kv_heads = setup->kv_heads;
    config.feed_forward = or_default(setup->feed_forward, 8);
    config.precision = setup->precision;
    return config;
}

hs_test_run hs_test_run_create_in(hstep_context *context, const hs_test_setup *setup) {
    hs_test_run run = {.context = context};
    hstep_error error = {0};
    const hstep_decoder_config config = decoder_config(setup);
    hs_test_expect_ok(hstep_model_create_decoder(run.context, &config, &run.model, &error), &error);
    hs_test_expect_ok(hstep_model_initialize(run.model, HSTEP_INIT_XAVIER, setup->seed != 0 ? setup->seed : 39, &error),
                      &error);
    hstep_trainer_config trainer = hstep_trainer_defaults(setup->precision);
    if (setup->scaler.initial > 0)
        trainer.scaler = setup->scaler;
    if (setup->learning_rate > 0)
        trainer.schedule.learning_rate = setup->learning_rate;
    if (setup->grad_clip > 0)
        trainer.adamw.grad_clip = setup->grad_clip;
    trainer.replicas = or_default(setup->replicas, 1);
    trainer.micro_batches = or_default(setup->micro_batches, 1);
    hs_test_expect_ok(hstep_trainer_create(run.model, &trainer, &run.trainer, &error), &error);
    return run;
}

hs_test_run hs_test_run_create(const hs_test_setup *setup) {
    hstep_context *context = NULL;
    hstep_error error = {0};
    const hstep_context_options options = {.backend = setup->backend,
                                           .threads = setup->threads != 0 ? setup->threads : 1};
    hs_test_expect_ok(hstep_context_create(&options, &context, &error), &error);
    return hs_test_run_create_in(context, setup);
}

void hs_test_run_destroy(hs_test_run *run) {
    hstep_trainer_destroy(run->trainer);
    hstep_model_destroy(run->model);
    hstep_context_destroy(run->context);
}

hstep_batch hs_test_fixture_batch(void) {
    static const int32_t tokens[] = {0, 'a' + 2, 'b' + 2}, targets[] = {'a' + 2, 'b' + 2, 1};
    return (hstep_batch){.sequences = 1, .length = 3, .tokens = tokens, .targets = targets};
}

hs_test_batch hs_test_batch_create(size_t sequences, size_t length, size_t vocabulary, bool holes, uint64_t seed) {
    const size_t rows = sequences * length;
    hs_test_batch made = {.tokens = malloc((rows + 1) * sizeof(int32_t)),
                          .targets = malloc((rows + 1) * sizeof(int32_t))};
    cr_assert(made.tokens != NULL && made.targets != NULL);
    hs_random random = {.state = seed};
    for (size_t i = 0; i < rows; i++) {
        made.tokens[i] = (int32_t)(hs_random_next(&random) % vocabulary);
        made.targets[i] = (int32_t)(hs_random_next(&random) % vocabulary);
        if (holes && hs_random_next(&random) % 8 == 0)
            made.targets[i] = -1;
    }
    made.batch =
        (hstep_batch){.sequences = sequences, .length = length, .tokens = made.tokens, .targets = made.targets};
    return made;
}

void hs_test_batch_destroy(hs_test_batch *batch) {
    free(batch->tokens);
    free(batch->targets);
}

hs_test_snapshot hs_test_snapshot_take(hstep_trainer *trainer) {
    hs_test_snapshot snapshot = {0};
    hstep_error error = {0};
    hs_test_expect_ok(hstep_trainer_snapshot(trainer, NULL, &snapshot.size, &error), &error);
    snapshot.bytes = malloc(snapshot.size);
    cr_assert_not_null(snapshot.bytes);
    hs_test_expect_ok(hstep_trainer_snapshot(trainer, snapshot.bytes, &snapshot.size, &error), &error);
    return snapshot;
}

bool hs_test_snapshot_equal(const hs_test_snapshot *a, const hs_test_snapshot *b) {
    return a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}

void hs_test_snapshot_free(hs_test_snapshot *snapshot) { free(snapshot->bytes); }

double *hs_test_read_gradients(const hs_test_run *run) {
    double *all = malloc(hstep_model_scalar_count(run->model) * sizeof *all);
    cr_assert_not_null(all);
    hstep_error error = {0};
    size_t at = 0;
    for (size_t i = 0; i < hstep_model_parameter_count(run->model); i++) {
        hstep_parameter parameter;
        hs_test_expect_ok(hstep_model_parameter(run->model, i, &parameter, &error), &error);
        hs_test_expect_ok(hstep_trainer_read_gradient(run->trainer, i, all + at, &error), &error);
        at += parameter.elements;
    }
    return all;
}
