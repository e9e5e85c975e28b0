#include "support/device.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "vulkan/create.h"

hs_backend *hs_test_device(void) {
    const char *named = getenv("HALFSTEP_TEST_DEVICE");
    const hs_vulkan_choice choice = {.device = named ? named : "llvmpipe"};
    hs_backend *backend = NULL;
    hstep_error error = {0};
    cr_assert_eq(hs_vulkan_create(&choice, &backend, &error), HSTEP_OK, "%s", error.message);
    return backend;
}

bool hs_test_flushes_subnormals(const hs_backend *backend) {
    const hstep_lever *levers;
    const size_t count = backend->api->levers(backend, &levers);
    return count > 0 && strcmp(levers[0].name, "vulkan.mirror") == 0 && strstr(levers[0].reason, "flushes") != NULL;
}
