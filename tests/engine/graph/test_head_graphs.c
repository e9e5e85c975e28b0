/* Graphs of a caller's own: which of them have a head that may be divided, and that those that have keep their bits. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "engine/graph/graph.h"
#include "engine/transaction/trainer.h"
#include "support/models.h"

enum { ROWS = 5, UPDATES = 3 };

/* A graph up to what enters its head: rows of a table, squared. */
typedef struct trunk {
    hstep_graph *graph;
    hstep_value x, targets;
    int64_t width, vocabulary;
    hstep_precision precision;
    hstep_error error;
} trunk;

#define OK(call) hs_test_expect_ok((call), &t->error)

static void begin(trunk *t, bool block) {
    hstep_value table = 0, tokens = 0, rows = 0;
    OK(hstep_graph_create(&t->graph, &t->error));
    OK(hstep_graph_input(t->graph, "tokens", HSTEP_DTYPE_I32, 1, (int64_t[]){HSTEP_ROWS}, &tokens, &t->error));
    OK(hstep_graph_input(t->graph, "targets", HSTEP_DTYPE_I32, 1, (int64_t[]){HSTEP_ROWS}, &t->targets, &t->error));
    OK(hstep_graph_parameter(t->graph, "table", 2, (int64_t[]){t->vocabulary, t->width}, &table, &t->error));
    OK(hstep_graph_gather(t->graph, "rows", table, tokens, &rows, &t->error));
    if (block)
        OK(hstep_graph_begin_block(t->graph, &t->error));
    OK(hstep_graph_multiply(t->graph, "square", rows, rows, &t->x, &t->error));
    if (block)
        OK(hstep_graph_end_block(t->graph, &t->error));
}

/* Logits of a head that has a table of its own. */
static hstep_value add_product(trunk *t, const char *name, hstep_value x) {
    hstep_value w = 0, logits = 0;
    char weights[16];
    (void)snprintf(weights, sizeof weights, "%s.weight", name);
    OK(hstep_graph_parameter(t->graph, weights, 2, (int64_t[]){t->width, t->vocabulary}, &w, &t->error));
    OK(hstep_graph_matmul(t->graph, name, t->precision, x, HSTEP_NO_TRANSPOSE, w, HSTEP_NO_TRANSPOSE, &logits,
                          &t->error));
    return logits;
}

static hstep_value add_loss(trunk *t, const char *name, hstep_value logits) {
    hstep_value loss = 0;
    OK(hstep_graph_cross_entropy(t->graph, name, logits, t->targets, &loss, &t->error));
    return loss;
}

/* ---- Which may be divided ---- */

static hstep_value plain(trunk *t) { return add_loss(t, "loss", add_product(t, "head", t->x)); }

static hstep_value scaled_loss(trunk *t) {
    hstep_value loss = plain(t);
    OK(hstep_graph_scale(t->graph, "half", loss, 0.5, &loss, &t->error));
    return loss;
}

static hstep_value scaled_logits(trunk *t) {
    hstep_value logits = add_product(t, "head", t->x);
    OK(hstep_graph_scale(t->graph, "colder", logits, 4, &logits, &t->error));
    return add_loss(t, "loss", logits);
}

static hstep_value biased_logits(trunk *t) {
    hstep_value logits = add_product(t, "head", t->x), bias = 0;
    OK(hstep_graph_parameter(t->graph, "bias", 1, &t->vocabulary, &bias, &t->error));
    OK(hstep_graph_add_bias(t->graph, "biased", logits, bias, &logits, &t->error));
    return add_loss(t, "loss", logits);
}

static hstep_value two_losses(trunk *t) {
    hstep_value loss = plain(t), other = add_loss(t, "other_loss", add_product(t, "other", t->x));
    OK(hstep_graph_add(t->graph, "both", loss, other, &loss, &t->error));
    return loss;
}

/* The first head's logits enter the second one: its own may be divided. */
static hstep_value head_on_head(trunk *t) {
    hstep_value first = add_product(t, "first", t->x), w = 0, logits = 0;
    OK(hstep_graph_parameter(t->graph, "w", 2, (int64_t[]){t->vocabulary, t->vocabulary}, &w, &t->error));
    OK(hstep_graph_matmul(t->graph, "second", t->precision, first, HSTEP_NO_TRANSPOSE, w, HSTEP_TRANSPOSE, &logits,
                          &t->error));
    return add_loss(t, "loss", logits);
}

/* What is added to the loss reads what enters the head, not the logits; the loss is a sum then. */
static hstep_value penalised(trunk *t) {
    hstep_value loss = plain(t), sum = 0;
    OK(hstep_graph_sum(t->graph, "penalty", t->x, &sum, &t->error));
    OK(hstep_graph_add(t->graph, "total", loss, sum, &loss, &t->error));
    return loss;
}

/* Nothing learns in front of the head. */
static hstep_value on_an_input(trunk *t) {
    hstep_value features = 0;
    OK(hstep_graph_input(t->graph, "x", HSTEP_DTYPE_F64, 2, (int64_t[]){HSTEP_ROWS, t->width}, &features, &t->error));
    return add_loss(t, "loss", add_product(t, "head", features));
}

static hstep_value recomputed_logits(trunk *t) {
    OK(hstep_graph_begin_block(t->graph, &t->error));
    const hstep_value loss = plain(t);
    OK(hstep_graph_end_block(t->graph, &t->error));
    return loss;
}

static bool may_be_divided(hstep_value (*end)(trunk *), bool block, bool recompute) {
    trunk made = {.width = 3, .vocabulary = 7}, *t = &made;
    hstep_graph *recomputing = NULL;
    hs_head head;
    begin(t, block);
    OK(hstep_graph_set_loss(t->graph, end(t), &t->error));
    if (recompute)
        OK(hs_graph_recompute(t->graph, &recomputing, &t->error));
    const bool found = hs_graph_find_head(recompute ? recomputing : t->graph, &head);
    hstep_graph_destroy(recomputing);
    hstep_graph_destroy(t->graph);
    return found;
}

Test(head_graphs, whose_loss_is_not_the_plain_head_stay_whole) {
    cr_expect(may_be_divided(plain, false, false));
    cr_expect(may_be_divided(head_on_head, false, false));
    cr_expect_not(may_be_divided(scaled_loss, false, false));
    cr_expect_not(may_be_divided(scaled_logits, false, false));
    cr_expect_not(may_be_divided(biased_logits, false, false));
    cr_expect_not(may_be_divided(two_losses, false, false));
    cr_expect_not(may_be_divided(penalised, false, false));
    cr_expect_not(may_be_divided(on_an_input, false, false));
}

/* Logits that a block computes again have two lives, of which backward reads the second. What leaves a block has one.
 */
Test(head_graphs, that_compute_their_logits_again_stay_whole) {
    cr_expect(may_be_divided(recomputed_logits, false, false));
    cr_expect_not(may_be_divided(recomputed_logits, false, true));
    cr_expect(may_be_divided(plain, true, false));
    cr_expect(may_be_divided(plain, true, true));
}

/* ---- Bits ---- */

typedef struct story {
    double losses[UPDATES + 1];
    double norms[UPDATES];
    uint64_t checksum;
} story;

static void fill_parameters(hstep_model *model) {
    hstep_error error = {0};
    for (size_t i = 0; i < hstep_model_parameter_count(model); i++) {
        hstep_parameter parameter;
        double values[128];
        hs_test_expect_ok(hstep_model_parameter(model, i, &parameter, &error), &error);
        cr_assert_leq(parameter.elements, 128);
        for (size_t j = 0; j < parameter.elements; j++)
            values[j] = (double)((j * 37 + i * 11) % 41) / 29 - 0.6;
        hs_test_expect_ok(hstep_model_write_parameter(model, i, values, &error), &error);
    }
}

static hstep_model *create_model(hstep_context *context, hstep_value (*end)(trunk *), const trunk *like) {
    trunk made = *like, *t = &made;
    hstep_model *model = NULL;
    begin(t, false);
    OK(hstep_graph_set_loss(t->graph, end(t), &t->error));
    OK(hstep_model_create(context, t->graph, &model, &t->error));
    fill_parameters(model);
    return model;
}

/* Three updates and a loss alone; the first two rows count for nothing, and are parts of their own or not. */
static story train(hstep_value (*end)(trunk *), const trunk *like, size_t head_rows) {
    const hstep_context_options options = {.backend = HSTEP_BACKEND_CPU, .threads = 3, .levers = "exact"};
    hs_test_run run = {0};
    hstep_error error = {0};
    hs_test_expect_ok(hstep_context_create(&options, &run.context, &error), &error);
    run.model = create_model(run.context, end, like);
    hstep_trainer_config config = hstep_trainer_defaults(like->precision);
    config.head_rows = head_rows;
    hs_test_expect_ok(hstep_trainer_create(run.model, &config, &run.trainer, &error), &error);
    hs_test_batch batch = hs_test_batch_create(1, ROWS, (size_t)like->vocabulary, false, 8);
    batch.targets[0] = batch.targets[1] = -1;
    story told;
    double weight = 0;
    for (size_t i = 0; i < UPDATES; i++) {
        hstep_update update;
        hs_test_expect_ok(hstep_trainer_update(run.trainer, &batch.batch, 1, &update, &error), &error);
        told.losses[i] = update.loss;
        told.norms[i] = update.gradient_norm;
    }
    hs_test_expect_ok(hstep_model_loss(run.model, &batch.batch, &told.losses[UPDATES], &weight, &error), &error);
    hs_test_expect_ok(hstep_model_checksum(run.model, &told.checksum, &error), &error);
    hs_test_batch_destroy(&batch);
    hs_test_run_destroy(&run);
    return told;
}

static void compare(hstep_value (*end)(trunk *), int64_t width, int64_t vocabulary, hstep_precision precision) {
    const trunk like = {.width = width, .vocabulary = vocabulary, .precision = precision};
    const story whole = train(end, &like, ROWS);
    cr_assert_eq(whole.norms[0] > 0, vocabulary > 1, "one token has a loss of zero, and nothing to learn");
    for (size_t rows = 1; rows < ROWS; rows++) {
        const story divided = train(end, &like, rows);
        cr_assert_eq(memcmp(&whole, &divided, sizeof whole), 0, "%d x %d, %zu rows", (int)width, (int)vocabulary, rows);
    }
}

/* Widths and vocabularies from one on, odd ones, so that rows in 16 bits begin at odd places. */
static void compare_shapes(hstep_precision precision) {
    for (int64_t width = 1; width <= 5; width += 4)
        for (int64_t vocabulary = 1; vocabulary <= 9; vocabulary += vocabulary == 1 ? 1 : 7) {
            compare(plain, width, vocabulary, precision);
            compare(head_on_head, width, vocabulary, precision);
        }
    compare(two_losses, 3, 7, precision);
    compare(penalised, 3, 7, precision);
}

Test(head_graphs, keep_their_bits_in_f64, .timeout = 60) { compare_shapes(HSTEP_PRECISION_F64); }
Test(head_graphs, keep_their_bits_in_fp16, .timeout = 60) { compare_shapes(HSTEP_PRECISION_FP16); }
Test(head_graphs, keep_their_bits_in_bf16, .timeout = 60) { compare_shapes(HSTEP_PRECISION_BF16); }
