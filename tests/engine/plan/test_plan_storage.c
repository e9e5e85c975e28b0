/* Which values of a decoder stand in 16 bits, and where: decided by the policy, not by what a kernel happens to do. */
#include <criterion/criterion.h>
#include <string.h>

#include "cpu/cpu.h"
#include "engine/context.h"
#include "engine/transaction/trainer.h"
#include "support/models.h"

static hs_test_run create_run(hstep_precision precision, bool reference, size_t kv_heads) {
    const hs_test_setup setup = {.precision = precision,
                                 .vocabulary = 40,
                                 .width = 24,
                                 .heads = 4,
                                 .kv_heads = kv_heads,
                                 .feed_forward = 33,
                                 .layers = 2,
                                 .scaler = {.initial = 1, .minimum = 1, .maximum = 1, .growth_interval = 1}};
    hs_backend *backend = NULL;
    hstep_context *context = NULL;
    hstep_error error = {0};
    if (reference)
        hs_test_expect_ok(hs_cpu_reference_create(&backend, &error), &error);
    else
        hs_test_expect_ok(hs_cpu_create(1, &backend, &error), &error);
    hs_test_expect_ok(hs_context_adopt(backend, NULL, &context, &error), &error);
    return hs_test_run_create_in(context, &setup);
}

static hs_plan *plan_of(hs_test_run *run) {
    hs_plan *plan = NULL;
    hstep_error error = {0};
    hs_test_expect_ok(hs_trainer_plan(run->trainer, 2, 5, &plan, &error), &error);
    return plan;
}

/* The type of the first output of call `operation` of the node called `name`. */
static hstep_dtype type_of(const hs_plan *plan, const char *name, hs_operation operation, uint32_t output) {
    for (size_t i = 0; i < plan->calls; i++) {
        const hs_call call = hs_plan_call(plan, i);
        if (call.operation == operation && strcmp(hs_plan_call_node(plan, i)->name, name) == 0)
            return call.outputs[output].dtype;
    }
    cr_assert_fail("no call %s", name);
    return HSTEP_DTYPE_I32;
}

Test(plan_storage, a_decoder_in_bf16) {
    const hstep_dtype half = HSTEP_DTYPE_BF16, wide = HSTEP_DTYPE_F64;
    const struct {
        const char *name;
        hs_operation operation;
        uint32_t output;
        hstep_dtype dtype;
    } expected[] = {
        {"token_embedding", HS_OP_GATHER, 0, wide},
        /* Read by products alone. */
        {"blocks.0.attention_norm", HS_OP_RMSNORM, 0, half},
        {"blocks.0.feed_forward.activation", HS_OP_SWIGLU, 0, half},
        {"loss", HS_OP_CROSS_ENTROPY_BACKWARD, 0, half},
        /* Made by products. */
        {"blocks.1.attention.query", HS_OP_MATMUL, 0, half},
        {"blocks.1.feed_forward.up", HS_OP_MATMUL, 0, half},
        {"head", HS_OP_MATMUL, 0, half},
        /* Sums stay wide. */
        {"blocks.0.attention_residual", HS_OP_ADD, 0, wide},
        {"blocks.0.feed_forward_norm", HS_OP_RMSNORM_BACKWARD_INPUT, 0, wide},
        {"loss", HS_OP_CROSS_ENTROPY, 0, wide},
    };
    hs_test_run run = create_run(HSTEP_PRECISION_BF16, false, 4);
    const hs_plan *plan = plan_of(&run);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        cr_expect_eq(type_of(plan, expected[i].name, expected[i].operation, expected[i].output), expected[i].dtype,
                     "%s", expected[i].name);
    hs_test_run_destroy(&run);
}

/* dk and dv of heads that share keys are sums in f64, and rounded once where only products read them. */
Test(plan_storage, parameters_have_casts_and_gradients_do_not) {
    hs_test_run run = create_run(HSTEP_PRECISION_FP16, false, 2);
    const hs_plan *plan = plan_of(&run);
    size_t casts = 0;
    for (size_t i = 0; i < run.model->parameter_count; i++) {
        const hs_value_info *info = hs_graph_value(run.model->graph, run.model->parameter_values[i]);
        cr_expect_eq(plan->views[info->adjoint - 1].dtype, HSTEP_DTYPE_F64, "gradient of %s", info->name);
        cr_expect_eq(run.model->casts[i].buffer != NULL, info->rank == 2, "%s", info->name);
        casts += run.model->casts[i].buffer != NULL;
    }
    cr_assert_eq(casts, run.model->cast_count);
    hs_test_run_destroy(&run);
}

static size_t compact_values(hs_test_run *run) {
    const hs_plan *plan = plan_of(run);
    size_t count = run->model->cast_count;
    for (size_t i = 0; i < run->model->graph->value_count; i++)
        count += hs_dtype_is_half(plan->views[i].dtype);
    return count;
}

Test(plan_storage, nothing_is_compact_in_f64_or_on_the_reference) {
    hs_test_run wide = create_run(HSTEP_PRECISION_F64, false, 4), reference = create_run(HSTEP_PRECISION_BF16, true, 4),
                mixed = create_run(HSTEP_PRECISION_BF16, false, 4);
    cr_assert_eq(compact_values(&wide), 0);
    cr_assert_eq(compact_values(&reference), 0);
    cr_assert_gt(compact_values(&mixed), 40);
    hs_test_run_destroy(&wide);
    hs_test_run_destroy(&reference);
    hs_test_run_destroy(&mixed);
}

/* Plans of one owner share their memory, and what was made for a smaller arena is made again. */
Test(plan_storage, one_arena_serves_all_shapes) {
    hs_test_run run = create_run(HSTEP_PRECISION_BF16, false, 4);
    hstep_error error = {0};
    hs_test_expect_ok(hstep_trainer_prepare(run.trainer, 4, 8, &error), &error);
    const size_t held = hstep_context_memory(run.context);
    for (size_t length = 1; length <= 8; length++)
        hs_test_expect_ok(hstep_trainer_prepare(run.trainer, 2, length, &error), &error);
    /* Tokens, targets and tables of the smaller shapes alone. */
    cr_assert_lt(hstep_context_memory(run.context) - held, 8000);
    uint64_t before = 0, after = 0;
    hs_test_batch small = hs_test_batch_create(1, 3, 40, false, 1), large = hs_test_batch_create(9, 8, 40, false, 2);
    hstep_update update;
    hs_test_expect_ok(hstep_trainer_update(run.trainer, &small.batch, 1, &update, &error), &error);
    hs_test_expect_ok(hstep_trainer_update(run.trainer, &large.batch, 1, &update, &error), &error);
    hs_test_expect_ok(hstep_trainer_update(run.trainer, &small.batch, 1, &update, &error), &error);
    hs_test_expect_ok(hstep_model_checksum(run.model, &before, &error), &error);
    hs_test_run other = create_run(HSTEP_PRECISION_BF16, true, 4);
    hs_test_expect_ok(hstep_trainer_update(other.trainer, &small.batch, 1, &update, &error), &error);
    hs_test_expect_ok(hstep_trainer_update(other.trainer, &large.batch, 1, &update, &error), &error);
    hs_test_expect_ok(hstep_trainer_update(other.trainer, &small.batch, 1, &update, &error), &error);
    hs_test_expect_ok(hstep_model_checksum(other.model, &after, &error), &error);
    cr_assert_eq(before, after);
    hs_test_batch_destroy(&small);
    hs_test_batch_destroy(&large);
    hs_test_run_destroy(&run);
    hs_test_run_destroy(&other);
}
