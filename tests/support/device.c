#include "support/device.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "vulkan/create.h"

hs_backend *hs_test_device(void) {
    const char *named = getenv("HALFSTEP_TEST_DEVICE");
    const hs_vulkan_choice choice = {.device = named ? named : "llvmpipe"};
    hs_backend *backend = NULL;
    hstep_error error = {0};
    cr_assert_eq(hs_vulkan_create(&choice, &backend, &error), HSTEP_OK, "%s", error.message);
    return backend;
}
