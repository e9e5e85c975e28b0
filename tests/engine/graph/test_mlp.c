/* A model that is no decoder, with a loss of its own: a two-layer perceptron that learns to tell inside from outside.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "precision/random.h"
#include "support/models.h"

enum { INPUTS = 2, HIDDEN = 24, POINTS = 64 };

/* scores = silu(x W1 + b1) W2 + b2; loss = sum((scores - wanted)^2): a squared error built from add, scale, multiply.
 */
static hstep_model *perceptron(hstep_context *context, hstep_precision precision) {
    hstep_graph *g = NULL;
    hstep_error e = {0};
    hstep_value x = 0, wanted = 0, w1 = 0, b1 = 0, w2 = 0, b2 = 0, h = 0, y = 0, d = 0, loss = 0;
    hs_test_expect_ok(hstep_graph_create(&g, &e), &e);
    hs_test_expect_ok(hstep_graph_input(g, "x", HSTEP_DTYPE_F64, 2, (int64_t[]){HSTEP_ROWS, INPUTS}, &x, &e), &e);
    hs_test_expect_ok(hstep_graph_input(g, "wanted", HSTEP_DTYPE_F64, 2, (int64_t[]){HSTEP_ROWS, 1}, &wanted, &e), &e);
    hs_test_expect_ok(hstep_graph_parameter(g, "hidden.weight", 2, (int64_t[]){INPUTS, HIDDEN}, &w1, &e), &e);
    hs_test_expect_ok(hstep_graph_parameter(g, "hidden.bias", 1, (int64_t[]){HIDDEN}, &b1, &e), &e);
    hs_test_expect_ok(hstep_graph_parameter(g, "output.weight", 2, (int64_t[]){HIDDEN, 1}, &w2, &e), &e);
    hs_test_expect_ok(hstep_graph_parameter(g, "output.bias", 1, (int64_t[]){1}, &b2, &e), &e);
    hs_test_expect_ok(hstep_graph_matmul(g, "hidden", precision, x, HSTEP_NO_TRANSPOSE, w1, HSTEP_NO_TRANSPOSE, &h, &e),
                      &e);
    hs_test_expect_ok(hstep_graph_add_bias(g, "hidden_bias", h, b1, &h, &e), &e);
    hs_test_expect_ok(hstep_graph_silu(g, "activation", h, &h, &e), &e);
    hs_test_expect_ok(hstep_graph_matmul(g, "output", precision, h, HSTEP_NO_TRANSPOSE, w2, HSTEP_NO_TRANSPOSE, &y, &e),
                      &e);
    hs_test_expect_ok(hstep_graph_add_bias(g, "output_bias", y, b2, &y, &e), &e);
    hs_test_expect_ok(hstep_graph_set_output(g, y, &e), &e);
    hs_test_expect_ok(hstep_graph_scale(g, "minus", wanted, -1, &d, &e), &e);
    hs_test_expect_ok(hstep_graph_add(g, "difference", y, d, &d, &e), &e);
    hs_test_expect_ok(hstep_graph_multiply(g, "square", d, d, &d, &e), &e);
    hs_test_expect_ok(hstep_graph_sum(g, "squared_error", d, &loss, &e), &e);
    hs_test_expect_ok(hstep_graph_set_loss(g, loss, &e), &e);
    hstep_model *model = NULL;
    hs_test_expect_ok(hstep_model_create(context, g, &model, &e), &e);
    return model;
}

static void make_points(hs_random *random, double *x, double *wanted) {
    for (size_t i = 0; i < POINTS; i++) {
        x[2 * i] = 4 * hs_random_uniform(random) - 2;
        x[2 * i + 1] = 4 * hs_random_uniform(random) - 2;
        wanted[i] = x[2 * i] * x[2 * i] + x[2 * i + 1] * x[2 * i + 1] < 2 ? 1 : -1;
    }
}

static void train(hstep_precision precision) {
    hs_test_run run = {0};
    hstep_error error = {0};
    const hstep_context_options options = {.backend = HSTEP_BACKEND_CPU, .threads = 1, .levers = "exact"};
    hs_test_expect_ok(hstep_context_create(&options, &run.context, &error), &error);
    run.model = perceptron(run.context, precision);
    hs_test_expect_ok(hstep_model_initialize(run.model, HSTEP_INIT_XAVIER, 1, &error), &error);
    hstep_trainer_config config = hstep_trainer_defaults(precision);
    config.schedule.learning_rate = 0.02;
    hs_test_expect_ok(hstep_trainer_create(run.model, &config, &run.trainer, &error), &error);
    hs_random random = {.state = 5};
    double x[2 * POINTS], wanted[POINTS], scores[POINTS];
    const hstep_feed feeds[] = {{.input = "x", .data = x}, {.input = "wanted", .data = wanted}};
    const hstep_batch batch = {.sequences = POINTS, .length = 1, .feeds = feeds, .feed_count = 2, .weight = POINTS};
    hstep_update update = {0};
    double first = 0;
    for (int step = 0; step < 400; step++) {
        make_points(&random, x, wanted);
        hs_test_expect_ok(hstep_trainer_update(run.trainer, &batch, 1, &update, &error), &error);
        first = step == 0 ? update.loss : first;
    }
    cr_expect_gt(first, 0.8);
    cr_expect_lt(update.loss, 0.3, "the squared error only fell from %g to %g", first, update.loss);
    make_points(&random, x, wanted);
    cr_expect_eq(hstep_model_output_size(run.model, POINTS, 1), POINTS);
    const hstep_batch inputs = {.sequences = POINTS, .length = 1, .feeds = feeds, .feed_count = 1};
    hs_test_expect_ok(hstep_model_output(run.model, &inputs, scores, &error), &error);
    size_t right = 0;
    for (size_t i = 0; i < POINTS; i++)
        right += (scores[i] > 0) == (wanted[i] > 0);
    cr_expect_geq(right, 56, "%zu of %d points told right", right, POINTS);
    hs_test_run_destroy(&run);
}

Test(mlp, learns_in_f64) { train(HSTEP_PRECISION_F64); }
Test(mlp, learns_in_fp16) { train(HSTEP_PRECISION_FP16); }
Test(mlp, learns_in_bf16) { train(HSTEP_PRECISION_BF16); }
