/* Cooperative matrices before the gate, on a device that has them; elsewhere it says so. */
#include <criterion/criterion.h>
#include <string.h>

#include "support/choosing.h"
#include "support/device_product.h"

TestSuite(cooperative_gate, .timeout = 600);

Test(cooperative_gate, lets_matrices_pass) {
    hs_backend *backend = hs_device_with_matrices();
    hs_lever_table table;
    hstep_error error = {0};
    cr_assert_eq(hs_device_choose(backend, "+vulkan.cooperative-fp16,-vulkan.fused-fp16", true, &table, &error),
                 HSTEP_OK, "%s", error.message);
    const size_t lever = hs_test_lever_index(backend, "vulkan.cooperative-fp16");
    const hstep_lever_gate *gate = table.levers[lever].gate;
    cr_assert_eq(table.levers[lever].state, HSTEP_LEVER_ACTIVE, "%s", table.levers[lever].reason);
    cr_expect(gate->worst.passed && gate->worst.max_abs > 0 && gate->speed > 0 && gate->timing_count == 6);
    cr_expect_not_null(strstr(table.pin, table.identities[lever]), "%s", table.pin);
    hs_lever_table_free(&table);
    backend->api->destroy(backend);
}

Test(cooperative_gate, rejects_crossed_operands) {
    hs_backend *backend = hs_device_with_matrices();
    hs_lever_table table =
        hs_device_reject(backend, "-vulkan.fused-fp16", "vulkan.cooperative-fp16", HS_DEVICE_CROSSED);
    hs_lever_table_free(&table);
    backend->api->destroy(backend);
}
