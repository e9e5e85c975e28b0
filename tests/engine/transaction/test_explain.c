/* What an operation that overflowed read and wrote: against numbers counted by hand, and with no trace in the state. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "support/models.h"

static hstep_error error;

static void ok(hstep_status status) { hs_test_expect_ok(status, &error); }

/* ---- One product: loss = sum(x w), so that the adjoint of y is the loss scale everywhere ---- */

enum { K = 4, N = 3, ROWS = 2 };

typedef struct product_setup {
    const char *levers;
    double scale;
    size_t replicas, micro_batches;
} product_setup;

static hs_test_run product_run(const product_setup *setup) {
    hs_test_run run = {0};
    hstep_graph *g = NULL;
    hstep_value x = 0, w = 0, y = 0, loss = 0;
    const hstep_context_options options = {.threads = 1, .levers = setup->levers};
    ok(hstep_context_create(&options, &run.context, &error));
    ok(hstep_graph_create(&g, &error));
    ok(hstep_graph_input(g, "x", HSTEP_DTYPE_F64, 2, (int64_t[]){HSTEP_ROWS, K}, &x, &error));
    ok(hstep_graph_parameter(g, "w", 2, (int64_t[]){K, N}, &w, &error));
    ok(hstep_graph_matmul(g, "y", HSTEP_PRECISION_FP16, x, HSTEP_NO_TRANSPOSE, w, HSTEP_NO_TRANSPOSE, &y, &error));
    ok(hstep_graph_sum(g, "loss", y, &loss, &error));
    ok(hstep_graph_set_loss(g, loss, &error));
    ok(hstep_model_create(run.context, g, &run.model, &error));
    hstep_trainer_config config = hstep_trainer_defaults(HSTEP_PRECISION_FP16);
    config.scaler = (hstep_scaler){setup->scale, 1, 0x1p24, 2000};
    config.replicas = setup->replicas;
    config.micro_batches = setup->micro_batches;
    ok(hstep_trainer_create(run.model, &config, &run.trainer, &error));
    return run;
}

/* 1e-8 is 0 in fp16; 2^-20 and 2^-24 are subnormal there. */
static const double LARGE[ROWS * K] = {1e-8, 0x1p-20, 0, 65504, 0x1p-24, -3, 0x1p-10, 40000};
static const double SMALL[ROWS * K] = {1, 2, 3, 4, 5, 6, 7, 8};

static hstep_batch product_batch(const hstep_feed *feed) {
    return (hstep_batch){.sequences = ROWS, .length = 1, .feeds = feed, .feed_count = 1};
}

static const hstep_operand *find_operand(const hstep_explanation *e, const char *name, bool is_output,
                                         bool is_adjoint) {
    for (size_t i = 0; i < e->operand_count; i++)
        if (strcmp(e->operands[i].name, name) == 0 && e->operands[i].is_output == is_output &&
            e->operands[i].is_adjoint == is_adjoint)
            return &e->operands[i];
    cr_assert_fail("there is no operand %s among %zu", name, e->operand_count);
    return NULL;
}

Test(explain, counts_what_a_product_read_and_wrote) {
    const product_setup setup = {"exact", 8, 1, 1};
    hs_test_run run = product_run(&setup);
    const hstep_feed feed = {"x", LARGE};
    const hstep_batch batch = product_batch(&feed);
    hstep_explanation e;
    ok(hstep_trainer_explain(run.trainer, &batch, 1, &e, &error));
    cr_assert(e.overflowed);
    cr_expect_str_eq(e.operation, "matmul");
    cr_expect_str_eq(e.overflow.operation, "y");
    cr_expect_str_eq(e.overflow.tensor, "w");
    cr_expect_str_eq(e.overflow.kind, "inf");
    cr_expect_eq(e.overflow.index, 3 * N, "8 * (65504 + 40000) is beyond 65504: the last row of dw");
    cr_expect_eq(e.precision, HSTEP_PRECISION_FP16);
    cr_expect_eq(e.batch, 0);
    cr_assert_eq(e.operand_count, 3);

    const hstep_operand *x = find_operand(&e, "x", false, false);
    cr_expect_eq(x->rank, 2);
    cr_expect(x->dims[0] == ROWS && x->dims[1] == K);
    cr_expect_eq(x->elements, ROWS * K);
    cr_expect_eq(x->dtype, HSTEP_DTYPE_F64);
    cr_expect_eq(x->smallest, 1e-8);
    cr_expect_eq(x->largest, 65504);
    const double mean = (1e-8 + 0x1p-20 + 65504 + 0x1p-24 + 3 + 0x1p-10 + 40000) / 8;
    cr_expect_float_eq(x->mean, mean, 1e-9);
    cr_expect_eq(x->zeros, 1);
    cr_expect_eq(x->to_zero, 1);
    cr_expect_eq(x->to_subnormal, 2);
    cr_expect_eq(x->to_infinity, 0);
    cr_expect_eq(x->infinities + x->nans, 0);

    const hstep_operand *dy = find_operand(&e, "y", false, true);
    cr_expect(dy->smallest == 8 && dy->largest == 8 && dy->mean == 8 && dy->zeros == 0);

    const hstep_operand *dw = find_operand(&e, "w", true, true);
    cr_expect_eq(dw->elements, K * N);
    cr_expect_eq(dw->infinities, N);
    cr_expect_eq(dw->nans, 0);
    cr_expect_eq(dw->largest, 24, "the other rows are finite: 8 * 3");
    cr_expect_eq(dw->zeros, 0);
    cr_expect_eq(dw->smallest, 8 * 0x1p-24, "1e-8 counted as 0");
    hs_test_run_destroy(&run);
}

/* An adjoint that is finite in f64 and infinite once a product reads it; in 16 bits it stands there infinite. */
Test(explain, says_what_rounds_to_infinity) {
    static const char *const levers[] = {"none", "exact"};
    for (size_t i = 0; i < 2; i++) {
        const product_setup setup = {levers[i], 0x1p17, 1, 1};
        hs_test_run run = product_run(&setup);
        const hstep_feed feed = {"x", SMALL};
        const hstep_batch batch = product_batch(&feed);
        hstep_explanation e;
        ok(hstep_trainer_explain(run.trainer, &batch, 1, &e, &error));
        cr_assert(e.overflowed);
        const hstep_operand *dy = find_operand(&e, "y", false, true);
        const bool compact = dy->dtype == HSTEP_DTYPE_FP16;
        cr_expect(dy->dtype == HSTEP_DTYPE_F64 || compact);
        cr_expect_eq(compact ? dy->infinities : dy->to_infinity, ROWS * N);
        cr_expect_eq(dy->largest, compact ? 0 : 0x1p17);
        hs_test_run_destroy(&run);
    }
}

/* Two replicas with two micro-batches: the third of the window overflows. */
Test(explain, names_the_batch_of_the_window) {
    const product_setup setup = {"exact", 32, 2, 2};
    hs_test_run run = product_run(&setup);
    const hstep_feed small = {"x", SMALL}, large = {"x", LARGE};
    const hstep_batch window[4] = {product_batch(&small), product_batch(&small), product_batch(&large),
                                   product_batch(&small)};
    hstep_explanation e;
    hstep_update update;
    ok(hstep_trainer_explain(run.trainer, window, 4, &e, &error));
    cr_assert(e.overflowed);
    cr_expect_eq(e.batch, 2);
    cr_expect_eq(find_operand(&e, "x", false, false)->largest, 65504);
    ok(hstep_trainer_update(run.trainer, window, 4, &update, &error));
    cr_expect_eq(update.outcome, HSTEP_SKIPPED);
    cr_expect_str_eq(update.overflow.tensor, e.overflow.tensor);
    cr_expect_eq(update.overflow.index, e.overflow.index);
    hs_test_run_destroy(&run);
}

Test(explain, a_finite_attempt_has_nothing_to_explain) {
    const product_setup setup = {"exact", 8, 1, 1};
    hs_test_run run = product_run(&setup);
    const hstep_feed feed = {"x", SMALL};
    const hstep_batch batch = product_batch(&feed);
    hstep_explanation e;
    hstep_update update;
    ok(hstep_trainer_explain(run.trainer, &batch, 1, &e, &error));
    cr_expect(!e.overflowed);
    cr_expect_eq(e.operand_count, 0);
    cr_expect_str_empty(e.overflow.operation);
    ok(hstep_trainer_update(run.trainer, &batch, 1, &update, &error));
    cr_expect_eq(update.outcome, HSTEP_APPLIED);
    hs_test_run_destroy(&run);
}

Test(explain, refuses_what_an_update_refuses) {
    const product_setup setup = {"exact", 8, 1, 2};
    hs_test_run run = product_run(&setup);
    const hstep_feed feed = {"x", SMALL};
    const double infinite[ROWS * K] = {INFINITY};
    const hstep_feed bad = {"x", infinite};
    const hstep_batch batch = product_batch(&feed), window[2] = {batch, product_batch(&bad)};
    hstep_explanation e;
    cr_expect_eq(hstep_trainer_explain(run.trainer, &batch, 1, &e, &error), HSTEP_ERROR_SHAPE);
    cr_expect_eq(hstep_trainer_explain(NULL, &batch, 1, &e, &error), HSTEP_ERROR_ARGUMENT);
    cr_expect_eq(hstep_trainer_explain(run.trainer, &batch, 1, NULL, &error), HSTEP_ERROR_ARGUMENT);
    cr_expect_eq(hstep_trainer_explain(run.trainer, window, 2, &e, &error), HSTEP_ERROR_NONFINITE_FORWARD);
    cr_expect_str_eq(error.operation, "y");
    hs_test_run_destroy(&run);
}

/* ---- Overflows of the other kinds ---- */

/* Finite adjoints whose squares overflow. loss = sum(1e200 * w). */
Test(explain, the_norm) {
    hs_test_run run = {0};
    hstep_graph *g = NULL;
    hstep_value w = 0, scaled = 0, loss = 0;
    ok(hstep_context_create(NULL, &run.context, &error));
    ok(hstep_graph_create(&g, &error));
    ok(hstep_graph_parameter(g, "w", 2, (int64_t[]){3, 2}, &w, &error));
    ok(hstep_graph_scale(g, "scaled", w, 1e200, &scaled, &error));
    ok(hstep_graph_sum(g, "loss", scaled, &loss, &error));
    ok(hstep_graph_set_loss(g, loss, &error));
    ok(hstep_model_create(run.context, g, &run.model, &error));
    const hstep_trainer_config config = hstep_trainer_defaults(HSTEP_PRECISION_F64);
    ok(hstep_trainer_create(run.model, &config, &run.trainer, &error));
    const hstep_batch batch = {.sequences = 1, .length = 1};
    hstep_explanation e;
    ok(hstep_trainer_explain(run.trainer, &batch, 1, &e, &error));
    cr_assert(e.overflowed);
    cr_expect_str_eq(e.overflow.operation, "gradient_norm");
    cr_expect_str_eq(e.overflow.tensor, "w");
    cr_expect_str_eq(e.operation, "square_sum");
    cr_expect_eq(e.batch, 1);
    cr_assert_eq(e.operand_count, 3);
    const hstep_operand *gradient = find_operand(&e, "w", false, true);
    cr_expect(gradient->rank == 2 && gradient->dims[0] == 3 && gradient->dims[1] == 2);
    cr_expect(gradient->largest == 1e200 && gradient->smallest == 1e200 && gradient->infinities == 0);
    cr_expect_float_eq(gradient->mean, 1e200, 1e186);
    cr_expect(e.operands[2].is_output && e.operands[2].infinities == 1);
    double left[6];
    ok(hstep_trainer_read_gradient(run.trainer, 0, left, &error));
    for (size_t i = 0; i < 6; i++)
        cr_expect_eq(left[i], 0, "gradients are clear again");
    hs_test_run_destroy(&run);
}

/*
 * Inside attention: two keys of opposite values, so that the second row of y is 0 and everything before is small, while
 * the adjoint of the probabilities is 4 * 30000.
 */
static hs_test_run attention_run(hstep_backend backend, unsigned threads) {
    hs_test_run run = {0};
    hstep_graph *g = NULL;
    hstep_value q = 0, k = 0, v = 0, weights = 0, b = 0, y = 0, loss = 0;
    const int64_t shape[] = {HSTEP_ROWS, 2};
    const hstep_context_options options = {.backend = backend, .threads = threads};
    ok(hstep_context_create(&options, &run.context, &error));
    ok(hstep_graph_create(&g, &error));
    ok(hstep_graph_input(g, "q", HSTEP_DTYPE_F64, 2, shape, &q, &error));
    ok(hstep_graph_input(g, "k", HSTEP_DTYPE_F64, 2, shape, &k, &error));
    ok(hstep_graph_input(g, "v", HSTEP_DTYPE_F64, 2, shape, &v, &error));
    ok(hstep_graph_input(g, "weights", HSTEP_DTYPE_F64, 2, shape, &weights, &error));
    ok(hstep_graph_parameter(g, "b", 1, (int64_t[]){2}, &b, &error));
    ok(hstep_graph_add_bias(g, "value", v, b, &v, &error));
    ok(hstep_graph_attention(g, "attention", HSTEP_PRECISION_FP16, q, k, v, 1, 1, &y, &error));
    ok(hstep_graph_multiply(g, "weighted", y, weights, &y, &error));
    ok(hstep_graph_sum(g, "loss", y, &loss, &error));
    ok(hstep_graph_set_loss(g, loss, &error));
    ok(hstep_model_create(run.context, g, &run.model, &error));
    hstep_trainer_config config = hstep_trainer_defaults(HSTEP_PRECISION_FP16);
    config.scaler = (hstep_scaler){4, 1, 4, 2000};
    ok(hstep_trainer_create(run.model, &config, &run.trainer, &error));
    return run;
}

Test(explain, a_part_inside_attention) {
    static const struct {
        hstep_backend backend;
        unsigned threads;
    } tiers[] = {{HSTEP_BACKEND_CPU_REFERENCE, 1}, {HSTEP_BACKEND_CPU, 1}, {HSTEP_BACKEND_CPU, 2}};
    static const double zeros[4] = {0}, values[4] = {30000, 0, -30000, 0}, weights[4] = {0, 0, 1, 0};
    const hstep_feed feeds[] = {{"q", zeros}, {"k", zeros}, {"v", values}, {"weights", weights}};
    const hstep_batch batch = {.sequences = 1, .length = 2, .feeds = feeds, .feed_count = 4};
    for (size_t i = 0; i < sizeof tiers / sizeof tiers[0]; i++) {
        hs_test_run run = attention_run(tiers[i].backend, tiers[i].threads);
        hstep_explanation e;
        ok(hstep_trainer_explain(run.trainer, &batch, 1, &e, &error));
        cr_assert(e.overflowed);
        cr_expect_str_eq(e.operation, "attention_backward");
        cr_expect_str_eq(e.overflow.operation, "attention");
        cr_expect_str_eq(e.overflow.tensor, "probabilities_adjoint");
        cr_expect_eq(e.overflow.index, 2, "the second query's first key");
        cr_assert_eq(e.operand_count, 8, "dy, q, k, v, positions; dq, dk, dv");
        const hstep_operand *v = find_operand(&e, "value", false, false);
        cr_expect(v->largest == 30000 && v->smallest == 30000 && v->mean == 15000 && v->zeros == 2);
        const hstep_operand *dy = find_operand(&e, "attention", false, true);
        cr_expect(dy->largest == 4 && dy->mean == 1 && dy->zeros == 3);
        const hstep_operand *positions = find_operand(&e, "(positions)", false, false);
        cr_expect(positions->dtype == HSTEP_DTYPE_I32 && positions->largest == 1 && positions->to_subnormal == 0);
        hs_test_run_destroy(&run);
    }
}

/* ---- The decoder, on every tier ---- */

typedef struct state {
    hs_test_snapshot snapshot;
    double scale;
    uint64_t attempts, finite_updates;
} state;

static state state_of(hstep_trainer *trainer) {
    return (state){hs_test_snapshot_take(trainer), hstep_trainer_loss_scale(trainer), hstep_trainer_attempts(trainer),
                   hstep_trainer_finite_updates(trainer)};
}

static void expect_same_state(const state *before, hstep_trainer *trainer) {
    state after = state_of(trainer);
    cr_expect(hs_test_snapshot_equal(&before->snapshot, &after.snapshot));
    cr_expect_eq(before->scale, after.scale);
    cr_expect_eq(before->attempts, after.attempts);
    cr_expect_eq(before->finite_updates, after.finite_updates);
    hs_test_snapshot_free(&after.snapshot);
}

/* One committed update, then the same scale again as a probe: what explain says is what an update then records. */
static hstep_explanation explain_decoder(const hs_test_setup *setup) {
    hs_test_run run = hs_test_run_create(setup);
    const hstep_batch batch = hs_test_fixture_batch();
    const hstep_scaler high = {0x1p24, 1, 0x1p24, 2000};
    hstep_explanation e = {0};
    hstep_update update;
    ok(hstep_trainer_update(run.trainer, &batch, 1, &update, &error));
    cr_assert_eq(update.outcome, HSTEP_APPLIED);
    ok(hstep_trainer_set_scaler(run.trainer, &high, &error));
    state before = state_of(run.trainer);
    ok(hstep_trainer_explain(run.trainer, &batch, 1, &e, &error));
    expect_same_state(&before, run.trainer);
    ok(hstep_trainer_update(run.trainer, &batch, 1, &update, &error));
    cr_assert(e.overflowed && update.outcome == HSTEP_SKIPPED);
    cr_expect_str_eq(e.overflow.operation, update.overflow.operation);
    cr_expect_str_eq(e.overflow.tensor, update.overflow.tensor);
    cr_expect_str_eq(e.overflow.phase, update.overflow.phase);
    cr_expect_str_eq(e.overflow.kind, update.overflow.kind);
    cr_expect_eq(e.overflow.index, update.overflow.index);
    hs_test_snapshot_free(&before.snapshot);
    hs_test_run_destroy(&run);
    return e;
}

Test(explain, every_tier_tells_the_same) {
    const hs_test_setup reference = {
        .backend = HSTEP_BACKEND_CPU_REFERENCE, .precision = HSTEP_PRECISION_FP16, .scaler = {128, 1, 0x1p24, 2000}};
    const hstep_explanation first = explain_decoder(&reference);
    cr_assert_gt(first.operand_count, 2);
    for (unsigned variant = 0; variant < 4; variant++) {
        hs_test_setup setup = reference;
        setup.backend = HSTEP_BACKEND_CPU;
        setup.threads = 1 + variant % 2;
        setup.recompute = variant < 2 ? HSTEP_RECOMPUTE_NONE : HSTEP_RECOMPUTE_BLOCKS;
        const hstep_explanation e = explain_decoder(&setup);
        cr_assert_eq(e.operand_count, first.operand_count);
        cr_expect_str_eq(e.overflow.operation, first.overflow.operation);
        cr_expect_str_eq(e.overflow.tensor, first.overflow.tensor);
        cr_expect_eq(e.overflow.index, first.overflow.index);
        for (size_t i = 0; i < e.operand_count; i++) {
            const hstep_operand *ours = &e.operands[i], *theirs = &first.operands[i];
            cr_expect_str_eq(ours->name, theirs->name);
            cr_expect_eq(ours->elements, theirs->elements);
            cr_expect_eq(ours->is_adjoint, theirs->is_adjoint);
            if (ours->dtype == theirs->dtype)
                cr_expect(ours->largest == theirs->largest && ours->smallest == theirs->smallest &&
                              ours->mean == theirs->mean && ours->infinities == theirs->infinities,
                          "%s", ours->name);
        }
    }
}
