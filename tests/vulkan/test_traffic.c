/* What a step moves between host and device, and of how many dispatches and barriers it is made. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "engine/context.h"
#include "support/device.h"
#include "support/models.h"

Test(traffic, of_a_step_is_tokens_in_and_a_few_hundred_bytes_out, .timeout = 120) {
    enum { SEQUENCES = 3, LENGTH = 9, ROWS = SEQUENCES * LENGTH };
    const hs_test_setup setup = {.precision = HSTEP_PRECISION_BF16,
                                 .vocabulary = 40,
                                 .width = 24,
                                 .heads = 4,
                                 .kv_heads = 2,
                                 .feed_forward = 33};
    hstep_context *context = NULL;
    hstep_error error = {0};
    hs_test_expect_ok(hs_context_adopt(hs_test_device(), NULL, &context, &error), &error);
    hs_test_run run = hs_test_run_create_in(context, &setup);
    hstep_work before, after;
    for (uint64_t i = 0; i < 3; i++) {
        hs_test_batch batch = hs_test_batch_create(SEQUENCES, LENGTH, setup.vocabulary, false, i);
        hstep_update update;
        cr_assert_eq(hstep_context_work(context, &before), 1);
        hs_test_expect_ok(hstep_trainer_update(run.trainer, &batch.batch, 1, &update, &error), &error);
        cr_assert_eq(hstep_context_work(context, &after), 1);
        hs_test_batch_destroy(&batch);
    }
    const uint64_t up = after.bytes_up - before.bytes_up, down = after.bytes_down - before.bytes_down;
    const uint64_t submissions = after.submissions - before.submissions,
                   dispatches = after.dispatches - before.dispatches, barriers = after.barriers - before.barriers;
    printf("%zu bytes to the device, %zu from it, %zu submissions, %zu dispatches, %zu barriers\n", (size_t)up,
           (size_t)down, (size_t)submissions, (size_t)dispatches, (size_t)barriers);
    /* Calls that do not touch each other's memory need none. */
    cr_assert_lt(barriers, dispatches);
    /* Tokens, targets and positions, and the small buffers of scales and rates. */
    cr_assert_lt(up, 3 * ROWS * sizeof(int32_t) + 256);
    /* The loss, the sum of the gradients' squares, and a bit for each of fewer than 160 calls. */
    cr_assert_lt(down, 2 * sizeof(double) + 160 / 8);
    cr_assert_gt(submissions, 0);
    hs_test_run_destroy(&run);
}
