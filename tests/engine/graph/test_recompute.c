/* Recomputing blocks for the backward pass takes less memory and changes no bit. */
#include <criterion/criterion.h>
#include <string.h>

#include "engine/graph/graph.h"
#include "engine/model/model.h"
#include "support/models.h"

static hs_test_setup setup_of(hstep_precision precision, hstep_recompute recompute) {
    return (hs_test_setup){.backend = HSTEP_BACKEND_CPU,
                           .precision = precision,
                           .vocabulary = 40,
                           .width = 24,
                           .heads = 4,
                           .kv_heads = 2,
                           .feed_forward = 33,
                           .layers = 4,
                           .micro_batches = 2,
                           .recompute = recompute,
                           .scaler = {.initial = 0x1p24, .minimum = 1, .maximum = 0x1p24, .growth_interval = 3}};
}

/* 12 updates of a run; what each said goes to `updates`. */
static uint64_t train(hstep_precision precision, hstep_recompute recompute, hstep_update updates[12]) {
    const hs_test_setup setup = setup_of(precision, recompute);
    hs_test_run run = hs_test_run_create(&setup);
    hstep_error error = {0};
    for (uint64_t i = 0; i < 12; i++) {
        hs_test_batch first = hs_test_batch_create(3, 9, 40, true, i), second = hs_test_batch_create(2, 4, 40, true, i);
        const hstep_batch window[] = {first.batch, second.batch};
        hs_test_expect_ok(hstep_trainer_update(run.trainer, window, 2, &updates[i], &error), &error);
        hs_test_batch_destroy(&first);
        hs_test_batch_destroy(&second);
    }
    uint64_t checksum = 0;
    hs_test_expect_ok(hstep_model_checksum(run.model, &checksum, &error), &error);
    hs_test_run_destroy(&run);
    return checksum;
}

Test(recompute, changes_no_bit) {
    for (hstep_precision precision = HSTEP_PRECISION_F64; precision <= HSTEP_PRECISION_BF16; precision++) {
        hstep_update kept[12], again[12];
        size_t skips = 0;
        cr_assert_eq(train(precision, HSTEP_RECOMPUTE_NONE, kept), train(precision, HSTEP_RECOMPUTE_BLOCKS, again));
        for (size_t i = 0; i < 12; i++) {
            skips += kept[i].outcome == HSTEP_SKIPPED;
            cr_assert_eq(kept[i].loss, again[i].loss);
            cr_assert_eq(kept[i].outcome, again[i].outcome);
            cr_assert_str_eq(kept[i].overflow.operation, again[i].overflow.operation);
            cr_assert_str_eq(kept[i].overflow.tensor, again[i].overflow.tensor);
            cr_assert_eq(kept[i].overflow.index, again[i].overflow.index);
        }
        cr_assert_eq(skips > 0, precision == HSTEP_PRECISION_FP16);
    }
}

static size_t working_memory(size_t layers, hstep_recompute recompute) {
    hs_test_setup setup = setup_of(HSTEP_PRECISION_BF16, recompute);
    setup.layers = layers;
    hs_test_run run = hs_test_run_create(&setup);
    hstep_error error = {0};
    const size_t before = hstep_context_memory(run.context);
    hs_test_expect_ok(hstep_trainer_prepare(run.trainer, 8, 64, &error), &error);
    const size_t after = hstep_context_memory(run.context);
    hs_test_run_destroy(&run);
    return after - before;
}

/* Another layer costs the stream that enters it: one f64 tensor of rows x width. */
Test(recompute, keeps_one_tensor_for_each_block) {
    const size_t stream = (size_t)8 * 64 * 24 * sizeof(double);
    const size_t four = working_memory(4, HSTEP_RECOMPUTE_BLOCKS), twelve = working_memory(12, HSTEP_RECOMPUTE_BLOCKS);
    cr_assert_geq(twelve - four, 8 * stream);
    cr_assert_lt(twelve - four, 9 * stream);
    cr_assert_gt(working_memory(12, HSTEP_RECOMPUTE_NONE), 2 * twelve);
}

Test(recompute, leaves_a_graph_without_blocks_alone) {
    const hs_test_setup setup = {0};
    hs_test_run fixture = hs_test_run_create(&setup);
    hs_test_run run = hs_test_general_run_create_in(fixture.context);
    hstep_graph *graph = NULL;
    hstep_error error = {0};
    hs_test_expect_ok(hs_graph_recompute(run.model->graph, &graph, &error), &error);
    cr_assert_eq(graph->node_count, run.model->graph->node_count);
    cr_assert_eq(graph->value_count, run.model->graph->value_count);
    hstep_graph_destroy(graph);
    run.context = NULL;
    hs_test_run_destroy(&run);
    hs_test_run_destroy(&fixture);
}

Test(recompute, blocks_neither_nest_nor_end_twice) {
    hstep_graph *graph = NULL;
    hstep_error error = {0};
    hs_test_expect_ok(hstep_graph_create(&graph, &error), &error);
    cr_assert_eq(hstep_graph_end_block(graph, &error), HSTEP_ERROR_ARGUMENT);
    hs_test_expect_ok(hstep_graph_begin_block(graph, &error), &error);
    cr_assert_eq(hstep_graph_begin_block(graph, &error), HSTEP_ERROR_ARGUMENT);
    hs_test_expect_ok(hstep_graph_end_block(graph, &error), &error);
    hstep_graph_destroy(graph);
}
