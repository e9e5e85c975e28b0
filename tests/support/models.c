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
    config.rules = setup->rules;
    config.rule_count = setup->rule_count;
    return config;
}

hs_test_run hs_test_run_create_in(hstep_context *context, const hs_test_setup *setup) {
    hs_test_run run = {.context = context};
    hstep_error error = {0};
    const hstep_decoder_config config = decoder_config(setup);
    hs_test_expect_ok(hstep_model_create_decoder(run.context, &config, &run.model, &error), &error);
    hs_test_expect_ok(hstep_model_initialize(run.model, HSTEP_INIT_XAVIER, setup->seed != 0 ? setup->seed : 39, &error),
                      &error);
    hstep_trainer_config trainer = hstep_trainer_defaults_for(run.model);
    if (setup->scaler.initial > 0)
        trainer.scaler = setup->scaler;
    if (setup->learning_rate > 0)
        trainer.schedule.learning_rate = setup->learning_rate;
    if (setup->grad_clip > 0)
        trainer.adamw.grad_clip = setup->grad_clip;
    trainer.replicas = or_default(setup->replicas, 1);
    trainer.micro_batches = or_default(setup->micro_batches, 1);
    trainer.recompute = setup->recompute;
    trainer.head_rows = setup->head_rows;
    hs_test_expect_ok(hstep_trainer_create(run.model, &trainer, &run.trainer, &error), &error);
    return run;
}

hs_test_run hs_test_run_create(const hs_test_setup *setup) {
    hstep_context *context = NULL;
    hstep_error error = {0};
    const hstep_context_options options = {
        .backend = setup->backend, .threads = setup->threads != 0 ? setup->threads : 1, .levers = "exact"};
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

static hstep_model *general_model(hstep_context *context) {
    hstep_graph *g = NULL;
    hstep_error e = {0};
    hstep_value x = 0, w = 0, b = 0, h = 0, s = 0, q = 0, t = 0, p = 0, l = 0, sum = 0, loss = 0;
    hs_test_expect_ok(hstep_graph_create(&g, &e), &e);
    hs_test_expect_ok(hstep_graph_input(g, "x", HSTEP_DTYPE_F64, 2, (int64_t[]){HSTEP_ROWS, 3}, &x, &e), &e);
    hs_test_expect_ok(hstep_graph_parameter(g, "w", 2, (int64_t[]){3, 5}, &w, &e), &e);
    hs_test_expect_ok(hstep_graph_parameter(g, "b", 1, (int64_t[]){5}, &b, &e), &e);
    hs_test_expect_ok(
        hstep_graph_matmul(g, "product", HSTEP_PRECISION_F64, x, HSTEP_NO_TRANSPOSE, w, HSTEP_NO_TRANSPOSE, &h, &e),
        &e);
    hs_test_expect_ok(hstep_graph_add_bias(g, "biased", h, b, &h, &e), &e);
    hs_test_expect_ok(hstep_graph_silu(g, "activation", h, &s, &e), &e);
    hs_test_expect_ok(hstep_graph_multiply(g, "square", s, s, &q, &e), &e);
    hs_test_expect_ok(hstep_graph_add(g, "mixed", q, h, &q, &e), &e);
    hs_test_expect_ok(hstep_graph_softmax(g, "weights", q, &p, &e), &e);
    hs_test_expect_ok(hstep_graph_log(g, "surprise", p, &l, &e), &e);
    hs_test_expect_ok(hstep_graph_transpose(g, "turned", l, &t, &e), &e);
    hs_test_expect_ok(
        hstep_graph_matmul(g, "back", HSTEP_PRECISION_F64, t, HSTEP_TRANSPOSE, w, HSTEP_TRANSPOSE, &t, &e), &e);
    hs_test_expect_ok(hstep_graph_scale(g, "smaller", t, -0.75, &t, &e), &e);
    hs_test_expect_ok(hstep_graph_multiply(g, "weighted", t, x, &t, &e), &e);
    hs_test_expect_ok(hstep_graph_sum(g, "total", t, &sum, &e), &e);
    hs_test_expect_ok(hstep_graph_multiply(g, "loss", sum, sum, &loss, &e), &e);
    hs_test_expect_ok(hstep_graph_set_loss(g, loss, &e), &e);
    hstep_model *model = NULL;
    hs_test_expect_ok(hstep_model_create(context, g, &model, &e), &e);
    return model;
}

hs_test_run hs_test_general_run_create_in(hstep_context *context) {
    hs_test_run run = {.context = context, .model = general_model(context)};
    hstep_error error = {0};
    const hstep_trainer_config config = hstep_trainer_defaults(HSTEP_PRECISION_F64);
    hs_test_expect_ok(hstep_trainer_create(run.model, &config, &run.trainer, &error), &error);
    const double w[15] = {.3, -.2, .5, .1, -.4, .25, .35, -.15, .05, .45, -.3, .2, .1, -.5, .15}, b[5] = {.1, -.2, .3};
    hs_test_expect_ok(hstep_model_write_parameter(run.model, 0, w, &error), &error);
    hs_test_expect_ok(hstep_model_write_parameter(run.model, 1, b, &error), &error);
    return run;
}

hstep_batch hs_test_general_batch(void) {
    static const double x[12] = {.5, -1, .25, 1.5, .75, -.5, -.25, 1, 2, .1, .2, -.3};
    static const hstep_feed feed = {.input = "x", .data = x};
    return (hstep_batch){.sequences = 4, .length = 1, .feeds = &feed, .feed_count = 1};
}
