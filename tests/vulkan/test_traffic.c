/* What a step moves between host and device, and of how many dispatches and barriers it is made. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "engine/context.h"
#include "support/device.h"
#include "support/models.h"
#include "vulkan/backend.h"

Test(traffic, of_a_step_is_tokens_in_and_a_few_hundred_bytes_out, .timeout = 120) {
    enum { SEQUENCES = 3, LENGTH = 9, ROWS = SEQUENCES * LENGTH };
    const hs_test_setup setup = {.precision = HSTEP_PRECISION_BF16,
                                 .vocabulary = 40,
                                 .width = 24,
                                 .heads = 4,
                                 .kv_heads = 2,
                                 .feed_forward = 33};
    hs_backend *backend = hs_test_device();
    const hs_vk_backend *vulkan = (const hs_vk_backend *)backend;
    hstep_context *context = NULL;
    hstep_error error = {0};
    hs_test_expect_ok(hs_context_adopt(backend, NULL, &context, &error), &error);
    hs_test_run run = hs_test_run_create_in(context, &setup);
    uint64_t up = 0, down = 0, submissions = 0, dispatches = 0, barriers = 0;
    for (uint64_t i = 0; i < 3; i++) {
        hs_test_batch batch = hs_test_batch_create(SEQUENCES, LENGTH, setup.vocabulary, false, i);
        hstep_update update;
        const uint64_t up_before = vulkan->transfer.bytes_up, down_before = vulkan->transfer.bytes_down;
        const uint64_t submitted_before = vulkan->device.submitted;
        const uint64_t dispatches_before = vulkan->dispatches, barriers_before = vulkan->barriers;
        hs_test_expect_ok(hstep_trainer_update(run.trainer, &batch.batch, 1, &update, &error), &error);
        up = vulkan->transfer.bytes_up - up_before;
        down = vulkan->transfer.bytes_down - down_before;
        submissions = vulkan->device.submitted - submitted_before;
        dispatches = vulkan->dispatches - dispatches_before;
        barriers = vulkan->barriers - barriers_before;
        hs_test_batch_destroy(&batch);
    }
    printf("%zu bytes to the device, %zu from it, %zu submissions, %zu dispatches, %zu barriers\n", (size_t)up,
           (size_t)down, (size_t)submissions, (size_t)dispatches, (size_t)barriers);
    /* Calls that do not touch each other's memory need none. */
    cr_assert_lt(barriers, dispatches);
    /* Tokens, targets and positions, and the small buffers of scales and rates. */
    cr_assert_lt(up, 3 * ROWS * sizeof(int32_t) + 256);
    /* One flag word for each call, loss and norm. */
    cr_assert_lt(down, 1000);
    hs_test_run_destroy(&run);
}
