/* Gated levers of a device before the gate: what passes, what is kept of it, and what becomes of a wrong one. */
#include <criterion/criterion.h>
#include <string.h>

#include "engine/context.h"
#include "support/choosing.h"
#include "support/device.h"
#include "support/device_product.h"
#include "support/folder.h"
#include "support/models.h"
#include "vulkan/backend.h"

TestSuite(gate, .timeout = 600);

static hs_test_setup decoder(double scale) {
    return (hs_test_setup){.precision = HSTEP_PRECISION_FP16,
                           .vocabulary = 24,
                           .width = 16,
                           .layers = 1,
                           .heads = 2,
                           .feed_forward = 24,
                           .scaler = {.initial = scale, .minimum = 1, .maximum = 0x1p24, .growth_interval = 2000}};
}

static hstep_context *context_on(hs_backend *backend) {
    hstep_context *context = NULL;
    hstep_error error = {0};
    hs_test_expect_ok(hs_context_adopt(backend, NULL, &context, &error), &error);
    return context;
}

/* Two updates; the last one in *update. */
static uint64_t train(hstep_context *context, double scale, hstep_update *update) {
    const hs_test_setup setup = decoder(scale);
    hs_test_run run = hs_test_run_create_in(context, &setup);
    hs_test_batch batch = hs_test_batch_create(2, 7, setup.vocabulary, false, 5);
    uint64_t checksum = 0;
    hstep_error error = {0};
    for (int i = 0; i < 2; i++)
        hs_test_expect_ok(hstep_trainer_update(run.trainer, &batch.batch, 1, update, &error), &error);
    hs_test_expect_ok(hstep_model_checksum(run.model, &checksum, &error), &error);
    hs_test_batch_destroy(&batch);
    hs_test_run_destroy(&run);
    return checksum;
}

/* The gate says so, and training goes on with the mirror's bits. */
Test(gate, a_crossed_operand_is_rejected_and_the_mirror_goes_on) {
    hstep_update update;
    const uint64_t exact = train(context_on(hs_test_device()), 1024, &update);
    hs_backend *backend = hs_test_device();
    hs_lever_table table =
        hs_device_reject(backend, "-vulkan.cooperative-fp16", "vulkan.fused-fp16", HS_DEVICE_CROSSED);
    hs_lever_table_free(&table);
    cr_expect_eq(train(context_on(backend), 1024, &update), exact);
}

Test(gate, a_wrong_rounding_is_rejected_and_cannot_be_required) {
    hs_backend *backend = hs_test_device();
    hs_lever_table table =
        hs_device_reject(backend, "-vulkan.cooperative-fp16", "vulkan.fused-fp16", HS_DEVICE_MISROUNDED);
    hstep_error error = {0};
    hs_lever_table_free(&table);
    cr_expect_eq(hs_device_choose(backend, "+vulkan.fused-fp16,-vulkan.cooperative-fp16", false, &table, &error),
                 HSTEP_ERROR_BACKEND_UNAVAILABLE);
    cr_expect_not_null(strstr(error.message, "rejected"), "%s", error.message);
    backend->api->destroy(backend);
}

/* A run with the lever names an overflow as one without it does: the attempt is run again with the mirror. */
Test(gate, an_overflow_has_the_name_that_the_mirror_gives_it) {
    hstep_update expected, found;
    (void)train(context_on(hs_test_device()), 0x1p24, &expected);
    hs_backend *backend = hs_test_device();
    hs_device_use(backend, "vulkan.fused-fp16");
    (void)train(context_on(backend), 0x1p24, &found);
    cr_assert_eq(expected.outcome, HSTEP_SKIPPED);
    cr_assert_eq(found.outcome, HSTEP_SKIPPED);
    cr_expect_str_eq(found.overflow.operation, expected.overflow.operation);
    cr_expect_str_eq(found.overflow.tensor, expected.overflow.tensor);
    cr_expect_eq(found.overflow.index, expected.overflow.index);
}

/* The gate's own verdict is kept for the device and its driver, and the set can be pinned. */
Test(gate, a_set_is_kept_and_pinned, .init = hs_test_enter_cache, .fini = hs_test_leave_folder) {
    hs_backend *backend = hs_test_device();
    hs_lever_table table, pinned;
    hstep_error error = {0};
    cr_assert_eq(hs_device_choose(backend, "+vulkan.fused-fp16,-vulkan.cooperative-fp16", true, &table, &error),
                 HSTEP_OK, "%s", error.message);
    const size_t lever = hs_test_lever_index(backend, "vulkan.fused-fp16");
    cr_assert_eq(table.levers[lever].state, HSTEP_LEVER_ACTIVE);
    cr_expect(!table.levers[lever].gate->from_cache && table.levers[lever].gate->worst.passed);
    cr_expect_eq(table.levers[lever].gate->worst.max_abs, 0, "the same bits");
    cr_assert_eq(hs_device_choose(backend, table.pin, false, &pinned, &error), HSTEP_OK, "%s", error.message);
    cr_expect(pinned.levers[lever].gate->from_cache && pinned.levers[lever].state == HSTEP_LEVER_ACTIVE);
    cr_expect_str_eq(pinned.pin, table.pin);
    hs_lever_table_free(&pinned);
    /* Another driver stands behind it. */
    ((hs_vk_backend *)backend)->device.facts.driver_version++;
    cr_expect_eq(hs_device_choose(backend, table.pin, false, &pinned, &error), HSTEP_ERROR_BACKEND_UNAVAILABLE);
    cr_expect_not_null(strstr(error.message, "has changed"), "%s", error.message);
    hs_lever_table_free(&table);
    backend->api->destroy(backend);
}
