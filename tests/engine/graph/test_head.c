/* A head divided into rows holds fewer logits at a time and changes no bit, no verdict and no explanation. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"
#include "engine/context.h"
#include "engine/graph/graph.h"
#include "engine/transaction/trainer.h"
#include "support/models.h"
#include "support/parity.h"

/* 3 sequences of 9 positions: 27 rows. */
enum { UPDATES = 8, VOCABULARY = 40, SEQUENCES = 3, LENGTH = 9, ROWS = SEQUENCES * LENGTH };

static const size_t parts[] = {1, 7, ROWS - 1, ROWS, ROWS + 5};
enum { PARTS = sizeof parts / sizeof parts[0] };

static hs_test_setup setup_of(hstep_precision precision, size_t head_rows) {
    return (hs_test_setup){.backend = HSTEP_BACKEND_CPU,
                           .precision = precision,
                           .vocabulary = VOCABULARY,
                           .width = 24,
                           .heads = 4,
                           .kv_heads = 2,
                           .feed_forward = 33,
                           .micro_batches = 2,
                           .replicas = 2,
                           .head_rows = head_rows,
                           .scaler = {.initial = 0x1p24, .minimum = 1, .maximum = 0x1p24, .growth_interval = 2}};
}

enum { MOST_OPERANDS = 64 };

/* What a run says of itself. */
typedef struct story {
    hstep_update updates[UPDATES];
    uint64_t checksum;
    size_t skips;
    hstep_operand_trace operands[MOST_OPERANDS]; /* of the last update, whose statistics are taken */
    size_t operand_count;
} story;

/* A window of four batches of two shapes, of which the second may be smaller than a part. */
static void train(hs_test_run *run, story *told) {
    hstep_error error = {0};
    *told = (story){0};
    for (uint64_t i = 0; i < UPDATES; i++) {
        hs_test_batch batches[4];
        hstep_batch window[4];
        for (size_t j = 0; j < 4; j++) {
            batches[j] = j % 2 == 0 ? hs_test_batch_create(SEQUENCES, LENGTH, VOCABULARY, true, 4 * i + j)
                                    : hs_test_batch_create(2, 3, VOCABULARY, true, 4 * i + j);
            window[j] = batches[j].batch;
        }
        hs_test_expect_ok(hstep_trainer_set_trace(run->trainer, i + 1 == UPDATES, &error), &error);
        hs_test_expect_ok(hstep_trainer_update(run->trainer, window, 4, &told->updates[i], &error), &error);
        told->skips += told->updates[i].outcome == HSTEP_SKIPPED;
        for (size_t j = 0; j < 4; j++)
            hs_test_batch_destroy(&batches[j]);
    }
    hs_test_expect_ok(hstep_model_checksum(run->model, &told->checksum, &error), &error);
    hstep_trace trace = {0};
    hs_test_expect_ok(hstep_trainer_trace(run->trainer, &trace, &error), &error);
    cr_assert_leq(trace.operand_count, MOST_OPERANDS);
    told->operand_count = trace.operand_count;
    for (size_t i = 0; i < trace.operand_count; i++) {
        told->operands[i] = trace.operands[i];
        told->operands[i].operation = told->operands[i].tensor = NULL; /* they live as long as the model */
    }
}

/* On the reference where `lever` is NULL. */
static hs_test_run create_run(const hs_test_setup *setup, const char *lever, bool compact, unsigned threads) {
    hs_backend *backend = lever != NULL ? hs_test_exact(threads, lever) : NULL;
    hstep_context *context = NULL;
    hstep_error error = {0};
    if (lever == NULL)
        hs_test_expect_ok(hs_cpu_reference_create(&backend, &error), &error);
    else if (backend == NULL)
        return (hs_test_run){0};
    if (lever != NULL && !compact)
        hs_test_leave_compact_out(backend);
    hs_test_expect_ok(hs_context_adopt(backend, NULL, &context, &error), &error);
    return hs_test_run_create_in(context, setup);
}

static void expect_same_overflow(const hstep_overflow *a, const hstep_overflow *b) {
    cr_assert_str_eq(a->operation, b->operation);
    cr_assert_str_eq(a->tensor, b->tensor);
    cr_assert_eq(a->index, b->index);
    if (a->operation[0] == '\0')
        return;
    cr_assert_str_eq(a->phase, b->phase);
    cr_assert_str_eq(a->kind, b->kind);
}

static void expect_same_story(const story *a, const story *b, const char *what, size_t head_rows) {
    for (size_t i = 0; i < UPDATES; i++) {
        cr_assert_eq(memcmp(&a->updates[i].loss, &b->updates[i].loss, sizeof(double)), 0, "%s, %zu rows, loss %zu",
                     what, head_rows, i);
        cr_assert_eq(a->updates[i].outcome, b->updates[i].outcome, "%s, %zu rows, update %zu", what, head_rows, i);
        cr_assert_eq(memcmp(&a->updates[i].gradient_norm, &b->updates[i].gradient_norm, sizeof(double)), 0);
        expect_same_overflow(&a->updates[i].overflow, &b->updates[i].overflow);
    }
    cr_assert_eq(a->checksum, b->checksum, "%s, %zu rows", what, head_rows);
    cr_assert_eq(a->operand_count, b->operand_count);
    for (size_t i = 0; i < a->operand_count; i++) {
        cr_assert_eq(a->operands[i].elements, b->operands[i].elements, "%s, %zu rows, operand %zu", what, head_rows, i);
        cr_assert_eq(memcmp(&a->operands[i].largest, &b->operands[i].largest, sizeof(double)), 0);
        cr_assert_eq(memcmp(&a->operands[i].to_zero, &b->operands[i].to_zero, 4 * sizeof(uint64_t)), 0);
    }
}

static void compare_runs(hstep_precision precision) {
    story whole, divided;
    hs_test_setup setup = setup_of(precision, ROWS);
    hs_test_run run = create_run(&setup, NULL, false, 1);
    train(&run, &whole);
    hs_test_run_destroy(&run);
    cr_assert_eq(whole.skips > 0, precision == HSTEP_PRECISION_FP16);
    cr_assert_lt(whole.skips, UPDATES);
    for (size_t lever = 0; lever <= HS_TEST_LEVERS; lever++)
        for (size_t part = 0; part < PARTS; part++) {
            const char *name = lever > 0 ? hs_test_levers[lever - 1] : NULL;
            setup.head_rows = parts[part];
            run = create_run(&setup, name, part % 2 == 0, 1 + part % 2);
            if (run.trainer == NULL)
                continue;
            train(&run, &divided);
            expect_same_story(&whole, &divided, name != NULL ? name : "reference", parts[part]);
            hs_test_run_destroy(&run);
        }
}

Test(head, whole_runs_f64, .timeout = 60) { compare_runs(HSTEP_PRECISION_F64); }
Test(head, whole_runs_fp16, .timeout = 60) { compare_runs(HSTEP_PRECISION_FP16); }
Test(head, whole_runs_bf16, .timeout = 60) { compare_runs(HSTEP_PRECISION_BF16); }

/* ---- What is divided ---- */

static hs_plan *prepared_plan(const hs_test_run *run) {
    hs_plan *plan = NULL;
    hstep_error error = {0};
    hs_test_expect_ok(hs_trainer_plan(run->trainer, SEQUENCES, LENGTH, &plan, &error), &error);
    return plan;
}

static size_t largest_logits(const hs_plan *plan) {
    size_t largest = 0;
    for (size_t call = 0; call < plan->calls; call++) {
        const hs_call made = hs_plan_call(plan, call);
        if (made.operation == HS_OP_CROSS_ENTROPY && made.inputs[0].dims[0] > largest)
            largest = made.inputs[0].dims[0];
    }
    return largest;
}

Test(head, is_divided_where_it_has_more_rows) {
    for (size_t i = 0; i < PARTS; i++) {
        const hs_test_setup setup = setup_of(HSTEP_PRECISION_FP16, parts[i]);
        hs_test_run run = hs_test_run_create(&setup);
        hs_plan *plan = prepared_plan(&run);
        cr_expect_eq(plan->divided != NULL, parts[i] < ROWS, "%zu rows", parts[i]);
        cr_expect_eq(largest_logits(plan), parts[i] < ROWS ? parts[i] : ROWS, "%zu rows", parts[i]);
        hs_test_run_destroy(&run);
    }
}

Test(head, of_another_graph_stays_whole) {
    const hs_test_setup setup = {0};
    hs_test_run fixture = hs_test_run_create(&setup);
    hs_test_run run = hs_test_general_run_create_in(fixture.context);
    hs_head head;
    cr_assert(hs_graph_find_head(fixture.model->graph, &head));
    cr_assert_not(hs_graph_find_head(run.model->graph, &head));
    run.context = NULL;
    hs_test_run_destroy(&run);
    hs_test_run_destroy(&fixture);
}

/* The logits are read by another operation too: nothing may divide them. */
Test(head, with_another_reader_stays_whole) {
    hstep_graph *g = NULL;
    hstep_error e = {0};
    hstep_value x = 0, w = 0, logits = 0, targets = 0, loss = 0, square = 0, sum = 0;
    hs_head head;
    hs_test_expect_ok(hstep_graph_create(&g, &e), &e);
    hs_test_expect_ok(hstep_graph_input(g, "x", HSTEP_DTYPE_F64, 2, (int64_t[]){HSTEP_ROWS, 3}, &x, &e), &e);
    hs_test_expect_ok(hstep_graph_input(g, "targets", HSTEP_DTYPE_I32, 1, (int64_t[]){HSTEP_ROWS}, &targets, &e), &e);
    hs_test_expect_ok(hstep_graph_parameter(g, "w", 2, (int64_t[]){3, 5}, &w, &e), &e);
    hs_test_expect_ok(
        hstep_graph_matmul(g, "head", HSTEP_PRECISION_F64, x, HSTEP_NO_TRANSPOSE, w, HSTEP_NO_TRANSPOSE, &logits, &e),
        &e);
    hs_test_expect_ok(hstep_graph_multiply(g, "square", logits, logits, &square, &e), &e);
    hs_test_expect_ok(hstep_graph_sum(g, "penalty", square, &sum, &e), &e);
    hs_test_expect_ok(hstep_graph_cross_entropy(g, "loss", logits, targets, &loss, &e), &e);
    hs_test_expect_ok(hstep_graph_add(g, "total", loss, sum, &loss, &e), &e);
    hs_test_expect_ok(hstep_graph_set_loss(g, loss, &e), &e);
    cr_assert_not(hs_graph_find_head(g, &head));
    hstep_graph_destroy(g);
}

static size_t working_memory(size_t sequences, size_t vocabulary, size_t head_rows, hstep_precision precision) {
    hs_test_setup setup = setup_of(precision, head_rows);
    setup.vocabulary = vocabulary;
    setup.micro_batches = setup.replicas = 1;
    hs_test_run run = hs_test_run_create(&setup);
    hstep_error error = {0};
    const size_t before = hstep_context_memory(run.context);
    hs_test_expect_ok(hstep_trainer_prepare(run.trainer, sequences, 64, &error), &error);
    hs_test_expect_ok(hstep_model_prepare_loss(run.model, sequences, 64, &error), &error);
    const size_t after = hstep_context_memory(run.context);
    hs_test_run_destroy(&run);
    return after - before;
}

Test(head, takes_the_memory_of_its_rows) {
    const size_t vocabulary = 20000, rows = (size_t)4 * 64;
    const size_t whole = working_memory(4, vocabulary, rows, HSTEP_PRECISION_BF16);
    const size_t divided = working_memory(4, vocabulary, 16, HSTEP_PRECISION_BF16);
    /* Evaluation has its logits in an arena of its own. */
    cr_assert_geq(whole - divided, 2 * (rows - 16) * vocabulary * 2 * 9 / 10, "%zu and %zu bytes", whole, divided);
}

/* 16,384 rows of 20,000 logits are 655 MB, above what is divided by itself; nothing of it is ever written here. */
Test(head, is_divided_by_itself_where_logits_are_many) {
    const size_t rows = (size_t)256 * 64, vocabulary = 20000;
    const size_t chosen = working_memory(256, vocabulary, 0, HSTEP_PRECISION_BF16);
    const size_t whole = working_memory(256, vocabulary, rows, HSTEP_PRECISION_BF16);
    cr_assert_gt(whole, rows * vocabulary * 2);
    cr_assert_lt(chosen, whole - 2 * ((rows * vocabulary * 2) - ((size_t)140 << 20)));
}

/* What was made ready for whole batches does for a smaller one, such as the last one of an evaluation. */
Test(head, takes_no_more_memory_for_fewer_rows) {
    size_t before = 0;
    for (size_t sequences = 30; sequences <= 160; sequences += 10) {
        const size_t memory = working_memory(sequences, 20000, 0, HSTEP_PRECISION_BF16);
        cr_assert_geq(memory, before, "%zu sequences", sequences);
        before = memory;
    }
}

/* Instructions of 32 steps at once then cut the chains of the weights' gradient as in one product. The reference has
 * its logits in f64. */
Test(head, is_divided_by_itself_into_parts_of_32_rows) {
    static const char *const levers[] = {NULL, "cpu.portable"};
    hs_test_setup setup = setup_of(HSTEP_PRECISION_BF16, 0);
    setup.vocabulary = 20000;
    for (size_t i = 0; i < 2; i++) {
        hs_test_run run = create_run(&setup, levers[i], true, 1);
        hs_plan *plan = NULL;
        hstep_error error = {0};
        hs_test_expect_ok(hs_trainer_plan(run.trainer, 64, 67, &plan, &error), &error);
        const size_t rows = largest_logits(plan), bytes = rows * setup.vocabulary * (i == 0 ? 8 : 2);
        cr_expect_eq(rows % 32, 0);
        cr_expect_leq(bytes, (size_t)128 << 20);
        cr_expect_geq(bytes, (size_t)96 << 20);
        hs_test_run_destroy(&run);
    }
}

/* ---- Overflows ---- */

static void scale_parameter(hstep_model *model, const char *name, double factor) {
    const size_t index = hstep_model_find_parameter(model, name);
    hstep_error error = {0};
    double *values = NULL;
    hstep_parameter parameter;
    hs_test_expect_ok(hstep_model_parameter(model, index, &parameter, &error), &error);
    hs_test_expect_ok(hstep_model_parameter_data(model, index, &values, &error), &error);
    for (size_t i = 0; i < parameter.elements; i++)
        values[i] *= factor;
    hs_test_expect_ok(hstep_model_mark_parameter(model, index, &error), &error);
}

typedef struct found {
    hstep_update update;
    hstep_explanation explanation;
} found;

/* Targets begin in row 11, so that nothing is wrong in rows before. `gain`: factor of what enters the head. */
static found overflow_of(const char *lever, size_t head_rows, double table, double gain) {
    hs_test_setup setup = setup_of(HSTEP_PRECISION_FP16, head_rows);
    setup.micro_batches = setup.replicas = 1;
    setup.scaler = (hstep_scaler){.initial = 0x1p19, .minimum = 1, .maximum = 0x1p24, .growth_interval = 2};
    hs_test_run run = create_run(&setup, lever, true, 2);
    scale_parameter(run.model, "token_embedding.weight", table);
    scale_parameter(run.model, "final_norm.gain", gain);
    hs_test_batch batch = hs_test_batch_create(SEQUENCES, LENGTH, VOCABULARY, false, 3);
    for (size_t row = 0; row < 11; row++)
        batch.targets[row] = -1;
    found what = {0};
    hstep_error error = {0};
    hs_test_expect_ok(hstep_trainer_explain(run.trainer, &batch.batch, 1, &what.explanation, &error), &error);
    hs_test_expect_ok(hstep_trainer_update(run.trainer, &batch.batch, 1, &what.update, &error), &error);
    hs_test_batch_destroy(&batch);
    hs_test_run_destroy(&run);
    return what;
}

static void expect_same_explanation(const hstep_explanation *a, const hstep_explanation *b) {
    cr_assert_eq(a->overflowed, b->overflowed);
    expect_same_overflow(&a->overflow, &b->overflow);
    cr_assert_eq(a->batch, b->batch);
    cr_assert_str_eq(a->operation, b->operation);
    cr_assert_eq(a->precision, b->precision);
    cr_assert_eq(a->operand_count, b->operand_count);
    for (size_t i = 0; i < a->operand_count; i++) {
        const hstep_operand *x = &a->operands[i], *y = &b->operands[i];
        cr_assert_str_eq(x->name, y->name);
        cr_assert(x->is_output == y->is_output && x->is_adjoint == y->is_adjoint && x->dtype == y->dtype, "%s",
                  x->name);
        cr_assert(x->rank == y->rank && x->elements == y->elements, "%s", x->name);
        cr_assert_eq(memcmp(x->dims, y->dims, x->rank * sizeof x->dims[0]), 0, "%s", x->name);
        cr_assert_eq(memcmp(&x->smallest, &y->smallest, 3 * sizeof(double)), 0, "%s", x->name);
        cr_assert_eq(memcmp(&x->zeros, &y->zeros, 6 * sizeof(uint64_t)), 0, "%s", x->name);
    }
}

/* The overflow must be the one that is expected, and the same for every lever and every division. */
static void compare_overflows(double table, double gain, const char *tensor, uint64_t least_index) {
    for (size_t lever = 0; lever <= HS_TEST_LEVERS; lever++) {
        const char *name = lever > 0 ? hs_test_levers[lever - 1] : NULL;
        hs_backend *there = name != NULL ? hs_test_exact(1, name) : NULL;
        if (name != NULL && there == NULL)
            continue;
        if (there != NULL)
            there->api->destroy(there);
        const found whole = overflow_of(name, ROWS, table, gain);
        cr_assert_eq(whole.update.outcome, HSTEP_SKIPPED);
        cr_assert_str_eq(whole.update.overflow.operation, "head");
        cr_assert_str_eq(whole.update.overflow.tensor, tensor);
        cr_assert_geq(whole.update.overflow.index, least_index);
        for (size_t part = 0; part < PARTS; part++) {
            const found divided = overflow_of(name, parts[part], table, gain);
            cr_assert_eq(divided.update.outcome, HSTEP_SKIPPED);
            expect_same_overflow(&whole.update.overflow, &divided.update.overflow);
            expect_same_explanation(&whole.explanation, &divided.explanation);
        }
    }
}

/* A seed of 2^19 / 16: adjoints of logits stay below 65504, sums of them times what enters the head do not. The rows'
 * own adjoints overflow too, in earlier calls of a divided head, and must not be named. */
Test(head, overflow_of_the_weights_gradient, .timeout = 60) { compare_overflows(40, 20, "token_embedding.weight", 0); }

/* Tables that are large beside what enters the head: the rows' adjoints overflow, from row 11 on. */
Test(head, overflow_of_the_rows_adjoint, .timeout = 60) {
    compare_overflows(40, 0x1p-9, "final_norm", (uint64_t)11 * 24);
}

/* ---- Step by step ---- */

static double *step_by_step(size_t head_rows, hstep_recompute recompute, double scale, double *loss) {
    hs_test_setup setup = setup_of(HSTEP_PRECISION_BF16, head_rows);
    setup.micro_batches = setup.replicas = 1;
    setup.recompute = recompute;
    hs_test_run run = hs_test_run_create(&setup);
    hs_test_batch batch = hs_test_batch_create(SEQUENCES, LENGTH, VOCABULARY, true, 4);
    hstep_error error = {0};
    hs_test_snapshot before = hs_test_snapshot_take(run.trainer);
    hs_test_expect_ok(hstep_trainer_record(run.trainer, &batch.batch, loss, &error), &error);
    hs_test_snapshot recorded = hs_test_snapshot_take(run.trainer);
    cr_assert(hs_test_snapshot_equal(&before, &recorded), "a forward pass leaves no gradients");
    const hstep_scaler scaler = {.initial = scale, .minimum = 1, .maximum = 0x1p24, .growth_interval = 2};
    hs_test_expect_ok(hstep_trainer_set_scaler(run.trainer, &scaler, &error), &error);
    hs_test_expect_ok(hstep_trainer_backward(run.trainer, &error), &error);
    double *gradients = hs_test_read_gradients(&run);
    hs_test_snapshot_free(&before);
    hs_test_snapshot_free(&recorded);
    hs_test_batch_destroy(&batch);
    hs_test_run_destroy(&run);
    return gradients;
}

Test(head, step_by_step_with_another_scale_and_recomputed_blocks) {
    const hs_test_setup setup = setup_of(HSTEP_PRECISION_BF16, 0);
    hs_test_run run = hs_test_run_create(&setup);
    const size_t bytes = hstep_model_scalar_count(run.model) * sizeof(double);
    hs_test_run_destroy(&run);
    double loss = 0, other = 0;
    double *whole = step_by_step(ROWS, HSTEP_RECOMPUTE_NONE, 8, &loss);
    for (size_t part = 0; part < PARTS; part++)
        for (int recompute = 0; recompute <= HSTEP_RECOMPUTE_BLOCKS; recompute++) {
            double *divided = step_by_step(parts[part], (hstep_recompute)recompute, 8, &other);
            cr_assert_eq(memcmp(&loss, &other, sizeof loss), 0);
            cr_assert_eq(memcmp(whole, divided, bytes), 0, "%zu rows", parts[part]);
            free(divided);
        }
    free(whole);
}

/* A forward value that is not finite is named as without parts, and leaves no trace: gradients stay clear, and with
 * mended weights the run goes on. Returns what it comes to. */
static uint64_t forward_failure(size_t head_rows, hstep_error *error) {
    hs_test_setup setup = setup_of(HSTEP_PRECISION_FP16, head_rows);
    setup.micro_batches = setup.replicas = 1;
    hs_test_run run = hs_test_run_create(&setup);
    scale_parameter(run.model, "token_embedding.weight", 0x1p13);
    scale_parameter(run.model, "final_norm.gain", 0x1p5);
    hs_test_batch batch = hs_test_batch_create(SEQUENCES, LENGTH, VOCABULARY, false, 3);
    hstep_update update;
    hs_test_snapshot before = hs_test_snapshot_take(run.trainer);
    cr_assert_eq(hstep_trainer_record(run.trainer, &batch.batch, NULL, error), HSTEP_ERROR_NONFINITE_FORWARD);
    cr_assert_eq(hstep_trainer_update(run.trainer, &batch.batch, 1, &update, error), HSTEP_ERROR_NONFINITE_FORWARD);
    hs_test_snapshot after = hs_test_snapshot_take(run.trainer);
    cr_assert(hs_test_snapshot_equal(&before, &after));
    scale_parameter(run.model, "token_embedding.weight", 0x1p-13);
    scale_parameter(run.model, "final_norm.gain", 0x1p-5);
    hstep_error mended = {0};
    uint64_t checksum = 0;
    for (int i = 0; i < 16; i++) /* skips among them */
        hs_test_expect_ok(hstep_trainer_update(run.trainer, &batch.batch, 1, &update, &mended), &mended);
    cr_assert_eq(update.outcome, HSTEP_APPLIED);
    hs_test_expect_ok(hstep_model_checksum(run.model, &checksum, &mended), &mended);
    hs_test_snapshot_free(&before);
    hs_test_snapshot_free(&after);
    hs_test_batch_destroy(&batch);
    hs_test_run_destroy(&run);
    return checksum;
}

Test(head, forward_values_that_are_not_finite) {
    hstep_error whole = {0}, divided = {0};
    const uint64_t checksum = forward_failure(ROWS, &whole);
    cr_assert_str_eq(whole.operation, "head");
    for (size_t part = 0; part < PARTS; part++) {
        cr_assert_eq(checksum, forward_failure(parts[part], &divided));
        cr_assert_str_eq(whole.message, divided.message);
    }
}

/* The loss alone. */
Test(head, evaluation_is_divided_too) {
    const hs_test_setup setup = setup_of(HSTEP_PRECISION_BF16, 0);
    hs_test_run run = hs_test_run_create(&setup);
    hs_test_batch batch = hs_test_batch_create(SEQUENCES, LENGTH, VOCABULARY, true, 4);
    hs_plan *plans[2] = {NULL, NULL};
    hs_arena arena = {0};
    double losses[2] = {0};
    hstep_error error = {0};
    hs_test_expect_ok(hs_model_refresh_casts(run.model, &error), &error);
    for (size_t i = 0; i < 2; i++) {
        const hs_plan_request request = {.backend = run.context->backend,
                                         .graph = run.model->graph,
                                         .mode = HS_MODE_LOSS,
                                         .sequences = SEQUENCES,
                                         .length = LENGTH,
                                         .parameters = run.model->parameters,
                                         .casts = run.model->casts,
                                         .arena = &arena,
                                         .head_rows = i == 0 ? ROWS : 4};
        hs_test_expect_ok(hs_plan_create(&request, &plans[i], &error), &error);
        cr_assert_eq(plans[i]->divided != NULL, i == 1);
        hs_test_expect_ok(hs_plan_feed(plans[i], &batch.batch, &error), &error);
        hs_test_expect_ok(hs_plan_evaluate(plans[i], &error), &error);
        hs_test_expect_ok(hs_plan_read_loss(plans[i], &losses[i], &error), &error);
        hs_plan_destroy(plans[i]);
        hs_arena_destroy(&arena);
    }
    cr_assert_eq(memcmp(&losses[0], &losses[1], sizeof losses[0]), 0);
    hs_test_batch_destroy(&batch);
    hs_test_run_destroy(&run);
}
