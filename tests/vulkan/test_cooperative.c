/*
 * Cooperative matrices on the test driver against an emulator of what it does. HALFSTEP_TEST_COOPERATIVE says what has
 * to be found: active, absent or not built; without it whatever the build and the driver say will do.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "support/choosing.h"
#include "support/device.h"
#include "support/device_product.h"
#include "support/emulator.h"
#include "vulkan/backend.h"

static const char NAME[] = "vulkan.cooperative-fp16";

TestSuite(cooperative, .timeout = 300);

/* The state follows from what glslang knew and what the device lists, and is what the surroundings promise. */
Test(cooperative, are_found_where_build_and_driver_have_them) {
    hs_backend *backend = hs_test_device();
    const hs_vk_device *device = &((hs_vk_backend *)backend)->device;
    const hs_lever_findings found = hs_device_find(backend, NAME);
    const bool built = hs_vk_shaders[HS_VK_SHADER_cooperative_fp16].count > 0;
    cr_expect_eq(found.state == HSTEP_LEVER_NOT_BUILT, !built);
    cr_expect_eq(found.state == HSTEP_LEVER_ABSENT, built && device->extras.fp16.refusal != NULL);
    cr_expect_eq(found.identity[0] != '\0', found.state == HSTEP_LEVER_ACTIVE);
    const char *promised = getenv("HALFSTEP_TEST_COOPERATIVE");
    if (promised)
        cr_expect_str_eq(hstep_lever_state_name(found.state), promised, "%s", found.reason);
    backend->api->destroy(backend);
}

/* The mirror serves then; who asks for what is not there is told why. */
Test(cooperative, are_left_out_where_they_are_not_there_or_not_wanted) {
    hs_backend *backend = hs_test_device();
    const hs_lever_findings found = hs_device_find(backend, NAME);
    const bool there = found.state == HSTEP_LEVER_ACTIVE;
    hs_lever_table table;
    hstep_error error = {0};
    const char *selection = there ? "-vulkan.fused-fp16,-vulkan.cooperative-fp16" : "-vulkan.fused-fp16";
    cr_assert_eq(hs_device_choose(backend, selection, true, &table, &error), HSTEP_OK, "%s", error.message);
    const hstep_lever *lever = &table.levers[hs_test_lever_index(backend, NAME)];
    cr_expect_eq(lever->state, there ? HSTEP_LEVER_DISABLED : found.state);
    cr_expect_null(lever->gate);
    if (!there) {
        cr_expect_str_eq(lever->reason, found.reason);
        hs_lever_table refused;
        cr_expect_eq(hs_device_choose(backend, "+vulkan.cooperative-fp16", true, &refused, &error),
                     HSTEP_ERROR_BACKEND_UNAVAILABLE);
        cr_expect_not_null(strstr(error.message, hstep_lever_state_name(found.state)), "%s", error.message);
    }
    hs_lever_table_free(&table);
    backend->api->destroy(backend);
}

Test(cooperative, give_the_bits_of_the_emulator) {
    hs_backend *backend = hs_device_with_matrices();
    hs_device_use(backend, NAME);
    cr_assert_gt(hs_device_check_products(backend, hs_emulate_blocks_fp16), 50000);
    backend->api->destroy(backend);
}

/* The emulator is not the policy's chain: the test above would tell the mirror from the matrices. */
Test(cooperative, add_in_another_order_than_the_policy) {
    uint16_t a[16], b[16];
    for (int i = 0; i < 16; i++) {
        a[i] = 0x3c00;                   /* 1 */
        b[i] = i == 0 ? 0x7800 : 0x1000; /* 2^15, then 2^-11, an eighth of a step there */
    }
    cr_assert_neq(hs_emulate_blocks_fp16(16, a, b), hs_emulate_chain_fp16(16, a, b));
}
