/*
 * A device that is lost, and one that has no memory left. The tables of functions belong to the backend, so a test can
 * put a failing function into the place of the driver's.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "engine/context.h"
#include "support/device.h"
#include "support/models.h"
#include "vulkan/backend.h"

/* Each test is a process of its own. */
static PFN_vkQueueSubmit submit;
static PFN_vkAllocateMemory allocate;
static unsigned calls_left;

static VKAPI_ATTR VkResult VKAPI_CALL losing_submit(VkQueue queue, uint32_t count, const VkSubmitInfo *infos,
                                                    VkFence fence) {
    if (calls_left == 0)
        return VK_ERROR_DEVICE_LOST;
    calls_left--;
    return submit(queue, count, infos, fence);
}

static VKAPI_ATTR VkResult VKAPI_CALL failing_allocate(VkDevice device, const VkMemoryAllocateInfo *info,
                                                       const VkAllocationCallbacks *callbacks, VkDeviceMemory *memory) {
    if (calls_left == 0)
        return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    calls_left--;
    return allocate(device, info, callbacks, memory);
}

static void lose_after(hs_backend *backend, unsigned submissions) {
    hs_vk_functions *vk = &((hs_vk_backend *)backend)->device.vk;
    submit = vk->QueueSubmit != losing_submit ? vk->QueueSubmit : submit;
    vk->QueueSubmit = losing_submit;
    calls_left = submissions;
}

static void expect_lost(hstep_status status, const hstep_error *error) {
    cr_assert_eq(status, HSTEP_ERROR_BACKEND_UNAVAILABLE);
    cr_assert_not_null(strstr(error->message, "lost"), "%s", error->message);
}

Test(faults, a_lost_device_is_reported_by_whatever_comes_next) {
    hs_backend *backend = hs_test_device();
    hs_buffer *buffer = NULL, *other = NULL;
    hs_program *program = NULL;
    char bytes[64] = {0};
    uint32_t flag;
    hstep_error error = {0};
    cr_assert_eq(backend->api->buffer_create(backend, 64, &buffer, NULL), HSTEP_OK);
    const hs_call call = {.operation = HS_OP_SCALE,
                          .input_count = 1,
                          .output_count = 1,
                          .inputs = {hs_flat_view(buffer, 2)},
                          .outputs = {{.buffer = buffer, .offset = 32, .rank = 1, .dims = {2}, .strides = {1}}}};
    cr_assert_eq(backend->api->program_create(backend, &call, 1, &program, &error), HSTEP_OK, "%s", error.message);
    lose_after(backend, 0);
    expect_lost(backend->api->program_run(backend, program, 0, 1, &error), &error);
    expect_lost(backend->api->program_finish(backend, program, &flag, &error), &error);
    expect_lost(backend->api->write(backend, buffer, 0, bytes, 8, &error), &error);
    expect_lost(backend->api->read(backend, buffer, 0, bytes, 8, &error), &error);
    expect_lost(backend->api->clear(backend, buffer, 0, 8, &error), &error);
    expect_lost(backend->api->buffer_create(backend, 8, &other, &error), &error);
    backend->api->program_destroy(backend, program);
    backend->api->buffer_destroy(backend, buffer);
    cr_assert_eq(backend->api->held(backend), 0);
    backend->api->destroy(backend);
}

/* Wherever in an update the device is lost: an error, and never a committed step. */
Test(faults, an_update_on_a_lost_device_does_not_count, .timeout = 60) {
    bool ended = false;
    for (unsigned submissions = 0; !ended; submissions++) {
        hs_backend *backend = hs_test_device();
        hstep_context *context = NULL;
        hstep_error error = {0};
        hs_test_expect_ok(hs_context_adopt(backend, NULL, &context, &error), &error);
        hs_test_run run = hs_test_general_run_create_in(context);
        const hstep_batch batch = hs_test_general_batch();
        hstep_update update;
        hs_test_expect_ok(hstep_trainer_update(run.trainer, &batch, 1, &update, &error), &error);
        lose_after(backend, submissions);
        const hstep_status status = hstep_trainer_update(run.trainer, &batch, 1, &update, &error);
        ended = status == HSTEP_OK;
        if (!ended)
            expect_lost(status, &error);
        cr_assert_eq(hstep_trainer_optimizer_step(run.trainer), ended ? 2 : 1, "lost after %u", submissions);
        hs_test_run_destroy(&run);
        cr_assert_lt(submissions, 100);
    }
}

Test(faults, memory_that_is_refused_leaves_nothing_behind) {
    hs_backend *backend = hs_test_device();
    hs_vk_functions *vk = &((hs_vk_backend *)backend)->device.vk;
    hs_buffer *buffer = NULL;
    hstep_error error = {0};
    const size_t large = (size_t)20 << 20;
    allocate = vk->AllocateMemory;
    vk->AllocateMemory = failing_allocate;
    calls_left = 0;
    cr_assert_eq(backend->api->buffer_create(backend, large, &buffer, &error), HSTEP_ERROR_MEMORY);
    cr_assert_not_null(strstr(error.message, "memory"));
    cr_assert_eq(backend->api->held(backend), 0);
    calls_left = 1;
    cr_assert_eq(backend->api->buffer_create(backend, large, &buffer, &error), HSTEP_OK);
    backend->api->buffer_destroy(backend, buffer);
    backend->api->destroy(backend);
}
