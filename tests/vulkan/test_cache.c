/* What drivers made of the shaders, kept on disk: a help that may be missing, damaged or foreign. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/device.h"
#include "support/folder.h"
#include "vulkan/program/cache.h"

static const uint8_t uuid[VK_UUID_SIZE] = {0x0a, 0xb0, 3};
static const char place[] = "cache/halfstep/vulkan-0ab00300000000000000000000000000";
static const char kept[] = "what a driver made";

static void enter(void) {
    char path[4096];
    hs_test_enter_folder();
    cr_assert_not_null(getcwd(path, sizeof path - 8));
    cr_assert_eq(setenv("XDG_CACHE_HOME", strcat(path, "/cache"), 1), 0);
}

static void leave(void) { hs_test_leave_folder(); }

static bool loads(void) {
    size_t size = 1;
    void *data = hs_vk_cache_load(uuid, &size);
    const bool found = data != NULL;
    cr_assert(!found || (size == sizeof kept && memcmp(data, kept, size) == 0));
    free(data);
    return found;
}

Test(cache, is_missing_at_first_and_kept_then, .init = enter, .fini = leave) {
    cr_assert_not(loads());
    hs_vk_cache_save(uuid, kept, sizeof kept);
    cr_assert(loads());
    cr_assert(hs_test_exists(place));
}

/* One bit of any byte, and every length. */
Test(cache, is_left_alone_where_it_is_damaged, .init = enter, .fini = leave) {
    hs_vk_cache_save(uuid, kept, sizeof kept);
    hs_test_bytes bytes = hs_test_read_bytes(place);
    cr_assert_gt(bytes.size, sizeof kept);
    for (size_t i = 0; i < bytes.size; i++) {
        bytes.at[i] ^= 4;
        hs_test_write_bytes(place, bytes.at, bytes.size);
        cr_assert_not(loads(), "byte %zu", i);
        bytes.at[i] ^= 4;
        hs_test_write_bytes(place, bytes.at, i);
        cr_assert_not(loads(), "%zu bytes", i);
    }
    free(bytes.at);
}

Test(cache, is_left_alone_where_others_may_write_it, .init = enter, .fini = leave) {
    hs_vk_cache_save(uuid, kept, sizeof kept);
    cr_assert_eq(chmod(place, 0666), 0);
    cr_assert_not(loads());
}

/* A device must open whatever stands there, and where nothing can be kept. */
Test(cache, never_keeps_a_device_from_opening, .init = enter, .fini = leave) {
    hs_backend *backend = hs_test_device();
    backend->api->destroy(backend);
    cr_assert(hs_test_exists("cache/halfstep"));
    backend = hs_test_device();
    backend->api->destroy(backend);
    cr_assert_eq(setenv("XDG_CACHE_HOME", "/proc/nowhere", 1), 0);
    backend = hs_test_device();
    backend->api->destroy(backend);
}
