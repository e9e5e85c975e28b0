/* The Vulkan device that tests run on: by default the first software driver, which is there on every machine that has
 * the test packages. HALFSTEP_TEST_DEVICE names another. */
#ifndef HS_TESTS_SUPPORT_DEVICE_H
#define HS_TESTS_SUPPORT_DEVICE_H

#include "engine/backend.h"

/* Fails the running test where there is none. */
hs_backend *hs_test_device(void);

/* Whether a backend is a device that the probe found to flush subnormals. */
bool hs_test_flushes_subnormals(const hs_backend *backend);

#endif
