/* An infinity planted in each operation, one at a time: adjoints skip, forward values are errors, state keeps. */
#include <criterion/criterion.h>
#include <string.h>

#include "cpu/cpu.h"
#include "engine/context.h"
#include "engine/transaction/trainer.h"
#include "support/models.h"
#include "support/planting.h"

static const hs_test_setup setup = {.precision = HSTEP_PRECISION_BF16,
                                    .vocabulary = 12,
                                    .width = 8,
                                    .heads = 2,
                                    .kv_heads = 1,
                                    .feed_forward = 6,
                                    .scaler = {.initial = 64, .minimum = 1, .maximum = 64, .growth_interval = 3}};

/* A context whose backends plant what *plant says. */
static hstep_context *create_planted(hstep_backend backend, hs_plant *plant) {
    hs_backend *inner = NULL, *reference = NULL;
    hstep_context *context = NULL;
    hstep_error error = {0};
    hs_test_expect_ok(hs_cpu_reference_create(&reference, &error), &error);
    reference = hs_planting_backend_create(reference, plant);
    inner = reference;
    if (backend == HSTEP_BACKEND_CPU) {
        hs_test_expect_ok(hs_cpu_create(2, &inner, &error), &error);
        inner = hs_planting_backend_create(inner, plant);
    }
    hs_test_expect_ok(hs_context_adopt(inner, reference, &context, &error), &error);
    return context;
}

/* The training plan for batches of that shape. */
static const hs_plan *plan_of(const hs_test_run *run, const hstep_batch *batch) {
    hs_plan *plan = NULL;
    hstep_error error = {0};
    hs_test_expect_ok(hs_trainer_plan(run->trainer, batch->sequences, batch->length, &plan, &error), &error);
    return plan;
}

static void check_skip(const hs_test_run *run, const hstep_batch *batch, const hs_plan *plan, const hs_plant *plant) {
    const hs_node *node = hs_plan_call_node(plan, plant->call);
    hs_test_snapshot before = hs_test_snapshot_take(run->trainer);
    hstep_error error = {0};
    hstep_update update;
    hs_test_expect_ok(hstep_trainer_update(run->trainer, batch, 1, &update, &error), &error);
    cr_expect_eq(update.outcome, HSTEP_SKIPPED, "%s", node->name);
    cr_expect_str_eq(update.overflow.operation, node->name);
    cr_expect_str_eq(update.overflow.phase, "backward");
    if (plant->place == HS_PLANT_OUTPUT) {
        cr_expect_str_eq(update.overflow.tensor, hs_graph_value(plan->request.graph, node->outputs[0])->name);
        cr_expect_str_eq(update.overflow.kind, "inf");
        cr_expect_eq(update.overflow.index, 0);
    }
    cr_expect_eq(update.next_loss_scale, update.loss_scale > 1 ? update.loss_scale / 2 : 1);
    cr_expect_eq(update.finite_updates, 0);
    hs_test_snapshot after = hs_test_snapshot_take(run->trainer);
    cr_expect(hs_test_snapshot_equal(&before, &after), "%s changed state", node->name);
    hs_test_snapshot_free(&before);
    hs_test_snapshot_free(&after);
}

/* The infinity is planted once more, and the state still keeps. */
static void check_explanation(const hs_test_run *run, const hstep_batch *batch, const hs_plan *plan,
                              const hs_plant *plant) {
    const hs_node *node = hs_plan_call_node(plan, plant->call);
    hs_test_snapshot before = hs_test_snapshot_take(run->trainer);
    hstep_error error = {0};
    hstep_explanation explanation = {0};
    hs_test_expect_ok(hstep_trainer_explain(run->trainer, batch, 1, &explanation, &error), &error);
    cr_expect(explanation.overflowed);
    cr_expect_str_eq(explanation.overflow.operation, node->name);
    cr_expect_str_eq(explanation.operation, hs_operation_name(node->operation));
    cr_assert_eq(explanation.operand_count, node->input_count + node->output_count);
    uint64_t nonfinite = 0;
    for (size_t i = node->input_count; i < explanation.operand_count; i++) {
        const hstep_operand *output = &explanation.operands[i];
        cr_expect(output->is_output && output->is_adjoint, "%s: %s", node->name, output->name);
        nonfinite += output->infinities + output->nans;
    }
    cr_expect_gt(nonfinite, 0, "%s", node->name);
    hs_test_snapshot after = hs_test_snapshot_take(run->trainer);
    cr_expect(hs_test_snapshot_equal(&before, &after), "%s changed state", node->name);
    hs_test_snapshot_free(&before);
    hs_test_snapshot_free(&after);
}

static void check_commit(const hs_test_run *run, const hstep_batch *batch) {
    hstep_error error = {0};
    hstep_update update;
    hs_test_expect_ok(hstep_trainer_update(run->trainer, batch, 1, &update, &error), &error);
    cr_expect_eq(update.outcome, HSTEP_APPLIED);
}

/* An operand that the attempt itself computes, so that the infinity does not stay in a weight. */
static size_t computed_operand(const hs_plan *plan, size_t call) {
    const hs_node *node = hs_plan_call_node(plan, call);
    size_t operand = 0;
    while (hs_graph_value(plan->request.graph, node->inputs[operand])->role == HS_ROLE_PARAMETER)
        operand++;
    return operand;
}

static void plant_in_every_adjoint(const hs_test_run *run, const hstep_batch *batch, hs_plant_place place,
                                   hs_plant *plant) {
    check_commit(run, batch);
    const hs_plan *plan = plan_of(run, batch);
    plant->calls = plan->calls;
    cr_assert_gt(plan->calls, plan->forward_calls + 10);
    for (size_t call = plan->forward_calls; call < plan->calls; call++) {
        plant->place = place;
        plant->call = call;
        plant->operand = computed_operand(plan, call);
        plant->seen = 0;
        check_skip(run, batch, plan, plant);
        check_explanation(run, batch, plan, plant);
        plant->place = HS_PLANT_NOWHERE;
    }
    check_commit(run, batch);
}

static void plant_in_decoder(hstep_backend backend, hs_plant_place place) {
    hs_plant plant = {.place = HS_PLANT_NOWHERE};
    hs_test_run run = hs_test_run_create_in(create_planted(backend, &plant), &setup);
    hs_test_batch batch = hs_test_batch_create(2, 5, setup.vocabulary, false, 3);
    plant_in_every_adjoint(&run, &batch.batch, place, &plant);
    hs_test_batch_destroy(&batch);
    hs_test_run_destroy(&run);
}

static void plant_in_general_operations(hstep_backend backend, hs_plant_place place) {
    hs_plant plant = {.place = HS_PLANT_NOWHERE};
    hs_test_run run = hs_test_general_run_create_in(create_planted(backend, &plant));
    const hstep_batch batch = hs_test_general_batch();
    plant_in_every_adjoint(&run, &batch, place, &plant);
    hs_test_run_destroy(&run);
}

Test(overflow, operand_of_every_adjoint_on_cpu) {
    plant_in_decoder(HSTEP_BACKEND_CPU, HS_PLANT_OPERAND);
    plant_in_general_operations(HSTEP_BACKEND_CPU, HS_PLANT_OPERAND);
}

Test(overflow, output_of_every_adjoint_on_cpu) {
    plant_in_decoder(HSTEP_BACKEND_CPU, HS_PLANT_OUTPUT);
    plant_in_general_operations(HSTEP_BACKEND_CPU, HS_PLANT_OUTPUT);
}

Test(overflow, operand_of_every_adjoint_on_reference) {
    plant_in_decoder(HSTEP_BACKEND_CPU_REFERENCE, HS_PLANT_OPERAND);
    plant_in_general_operations(HSTEP_BACKEND_CPU_REFERENCE, HS_PLANT_OPERAND);
}

/* Reference and cpu name the same tensor, kind and index for an overflow that arises by itself. */
Test(overflow, tiers_name_the_same_element) {
    hstep_update updates[2];
    const hstep_backend backends[2] = {HSTEP_BACKEND_CPU_REFERENCE, HSTEP_BACKEND_CPU};
    for (double scale = 0x1p17; scale <= 0x1p40; scale *= 2) {
        for (size_t i = 0; i < 2; i++) {
            const hs_test_setup large = {
                .backend = backends[i],
                .precision = HSTEP_PRECISION_FP16,
                .width = 16,
                .heads = 4,
                .scaler = {.initial = scale, .minimum = 1, .maximum = 0x1p40, .growth_interval = 3}};
            hs_test_run run = hs_test_run_create(&large);
            hs_test_batch batch = hs_test_batch_create(2, 5, 258, false, 3);
            hstep_error error = {0};
            hs_test_expect_ok(hstep_trainer_update(run.trainer, &batch.batch, 1, &updates[i], &error), &error);
            hs_test_batch_destroy(&batch);
            hs_test_run_destroy(&run);
        }
        cr_assert_eq(updates[0].outcome, updates[1].outcome);
        cr_expect_str_eq(updates[0].overflow.operation, updates[1].overflow.operation);
        cr_expect_str_eq(updates[0].overflow.tensor, updates[1].overflow.tensor);
        cr_expect_eq(updates[0].overflow.index, updates[1].overflow.index);
        if (updates[0].outcome == HSTEP_SKIPPED)
            cr_expect_str_eq(updates[0].overflow.kind, updates[1].overflow.kind);
    }
    cr_expect_eq(updates[0].outcome, HSTEP_SKIPPED);
}

static void plant_in_every_forward_value(hstep_backend backend) {
    hs_plant plant = {.place = HS_PLANT_NOWHERE};
    hs_test_run run = hs_test_run_create_in(create_planted(backend, &plant), &setup);
    hs_test_batch batch = hs_test_batch_create(2, 5, setup.vocabulary, false, 3);
    check_commit(&run, &batch.batch);
    const hs_plan *plan = plan_of(&run, &batch.batch);
    plant.calls = plan->calls;
    for (size_t call = 0; call < plan->forward_calls; call++) {
        hs_test_snapshot before = hs_test_snapshot_take(run.trainer);
        const double scale = hstep_trainer_loss_scale(run.trainer);
        plant.place = HS_PLANT_OUTPUT;
        plant.call = call;
        plant.seen = 0;
        hstep_error error = {0};
        hstep_update update;
        const hstep_status status = hstep_trainer_update(run.trainer, &batch.batch, 1, &update, &error);
        plant.place = HS_PLANT_NOWHERE;
        cr_expect_eq(status, HSTEP_ERROR_NONFINITE_FORWARD);
        cr_expect_str_eq(error.operation, hs_plan_call_node(plan, call)->name);
        cr_expect(strstr(error.message, error.operation) != NULL);
        cr_expect_eq(hstep_trainer_loss_scale(run.trainer), scale);
        hs_test_snapshot after = hs_test_snapshot_take(run.trainer);
        cr_expect(hs_test_snapshot_equal(&before, &after), "%s changed state", error.operation);
        hs_test_snapshot_free(&before);
        hs_test_snapshot_free(&after);
    }
    check_commit(&run, &batch.batch);
    hs_test_batch_destroy(&batch);
    hs_test_run_destroy(&run);
}

Test(overflow, every_forward_value_on_cpu) { plant_in_every_forward_value(HSTEP_BACKEND_CPU); }

Test(overflow, every_forward_value_on_reference) { plant_in_every_forward_value(HSTEP_BACKEND_CPU_REFERENCE); }

/* Finite adjoints whose squares overflow: the norm is to blame. loss = sum(1e200 * w). */
Test(overflow, gradient_norm) {
    hs_test_run run = {0};
    hstep_error error = {0};
    hstep_graph *graph = NULL;
    hstep_value w = 0, scaled = 0, loss = 0;
    hs_test_expect_ok(hstep_context_create(NULL, &run.context, &error), &error);
    hs_test_expect_ok(hstep_graph_create(&graph, &error), &error);
    hs_test_expect_ok(hstep_graph_parameter(graph, "w", 1, (int64_t[]){3}, &w, &error), &error);
    hs_test_expect_ok(hstep_graph_scale(graph, "scaled", w, 1e200, &scaled, &error), &error);
    hs_test_expect_ok(hstep_graph_sum(graph, "loss", scaled, &loss, &error), &error);
    hs_test_expect_ok(hstep_graph_set_loss(graph, loss, &error), &error);
    hs_test_expect_ok(hstep_model_create(run.context, graph, &run.model, &error), &error);
    const hstep_trainer_config config = hstep_trainer_defaults(HSTEP_PRECISION_F64);
    hs_test_expect_ok(hstep_trainer_create(run.model, &config, &run.trainer, &error), &error);
    hs_test_snapshot before = hs_test_snapshot_take(run.trainer);
    const hstep_batch batch = {.sequences = 1, .length = 1};
    hstep_update update;
    hs_test_expect_ok(hstep_trainer_update(run.trainer, &batch, 1, &update, &error), &error);
    cr_expect_eq(update.outcome, HSTEP_SKIPPED);
    cr_expect_str_eq(update.overflow.operation, "gradient_norm");
    cr_expect_str_eq(update.overflow.tensor, "w");
    cr_expect_str_eq(update.overflow.phase, "norm");
    cr_expect_str_eq(update.overflow.kind, "inf");
    cr_expect_eq(update.next_loss_scale, 1, "the scale must not fall below its minimum");
    hs_test_snapshot after = hs_test_snapshot_take(run.trainer);
    cr_expect(hs_test_snapshot_equal(&before, &after));
    hs_test_snapshot_free(&before);
    hs_test_snapshot_free(&after);
    hs_test_run_destroy(&run);
}

/* An overflow in the third of four micro-batches skips the whole window. */
Test(overflow, third_micro_batch_skips_the_window) {
    hs_plant plant = {.place = HS_PLANT_NOWHERE};
    hs_test_setup windowed = setup;
    windowed.micro_batches = 4;
    hs_backend *inner = NULL;
    hstep_context *context = NULL;
    hstep_error error = {0};
    hs_test_expect_ok(hs_cpu_create(1, &inner, &error), &error);
    hs_test_expect_ok(hs_context_adopt(hs_planting_backend_create(inner, &plant), NULL, &context, &error), &error);
    hs_test_run run = hs_test_run_create_in(context, &windowed);
    hs_test_batch batches[4];
    hstep_batch window[4];
    for (size_t i = 0; i < 4; i++) {
        batches[i] = hs_test_batch_create(1, 6, setup.vocabulary, false, i);
        window[i] = batches[i].batch;
    }
    const hs_plan *plan = plan_of(&run, &window[0]);
    plant = (hs_plant){.place = HS_PLANT_OPERAND, .calls = plan->calls, .call = plan->calls - 1, .skip_runs = 2};
    hs_test_snapshot before = hs_test_snapshot_take(run.trainer);
    hstep_update update;
    hs_test_expect_ok(hstep_trainer_update(run.trainer, window, 4, &update, &error), &error);
    cr_expect_eq(update.outcome, HSTEP_SKIPPED);
    cr_expect_str_eq(update.overflow.operation, hs_plan_call_node(plan, plant.call)->name);
    cr_expect_eq(plant.seen, 4, "two clean passes, the third, and once more to name it");
    hs_test_snapshot after = hs_test_snapshot_take(run.trainer);
    cr_expect(hs_test_snapshot_equal(&before, &after));
    plant.place = HS_PLANT_NOWHERE;
    hs_test_expect_ok(hstep_trainer_update(run.trainer, window, 4, &update, &error), &error);
    cr_expect_eq(update.outcome, HSTEP_APPLIED);
    hs_test_snapshot_free(&before);
    hs_test_snapshot_free(&after);
    for (size_t i = 0; i < 4; i++)
        hs_test_batch_destroy(&batches[i]);
    hs_test_run_destroy(&run);
}
