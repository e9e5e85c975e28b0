/* What the probe finds out about a device, and what it makes of wrong results. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/device.h"
#include "vulkan/probe.h"

static hs_vk_probe *prepared(void) {
    hs_vk_probe *probe = calloc(1, sizeof *probe);
    cr_assert_not_null(probe);
    hs_vk_probe_prepare(probe);
    return probe;
}

static bool is_subnormal(const hs_vk_probe *probe, size_t i) {
    bool any = false;
    for (size_t j = 0; j < HS_VK_PROBE_OPERANDS; j++)
        any =
            any || fpclassify(probe->given[i][j]) == FP_SUBNORMAL || fpclassify(probe->given_f32[i][j]) == FP_SUBNORMAL;
    for (size_t j = 0; j < HS_VK_PROBE_OPERATIONS; j++)
        any =
            any || fpclassify(probe->found[i][j]) == FP_SUBNORMAL || fpclassify(probe->found_f32[i][j]) == FP_SUBNORMAL;
    return any;
}

/* The numbers must reach what is asked of them. */
Test(probe, tries_subnormals_and_ordinary_numbers) {
    hs_vk_probe *probe = prepared();
    size_t subnormal = 0, infinite = 0, rounded = 0;
    for (size_t i = 0; i < HS_VK_PROBE_CASES; i++) {
        subnormal += is_subnormal(probe, i);
        infinite += isinf(probe->found[i][1]) || isinf(probe->found_f32[i][1]);
        /* A fused multiply-add would give other bits. */
        rounded +=
            fmaf(probe->given_f32[i][0], probe->given_f32[i][1], probe->given_f32[i][2]) != probe->found_f32[i][4];
    }
    cr_assert_gt(subnormal, HS_VK_PROBE_CASES / 4);
    cr_assert_lt(subnormal, HS_VK_PROBE_CASES * 3 / 4);
    cr_assert_gt(infinite, 100);
    cr_assert_gt(rounded, 20);
    free(probe);
}

Test(probe, judges_wrong_bits) {
    hs_vk_probe *expected = prepared(), *found = prepared();
    char text[192];
    cr_assert_eq(hs_vk_probe_judge(found, expected, text, sizeof text), HS_VK_MIRROR);
    for (size_t op = 0; op < HS_VK_PROBE_OPERATIONS; op++)
        for (size_t i = 0; i < HS_VK_PROBE_CASES; i++) {
            const double before = found->found[i][op];
            if (!isfinite(before) || i % 64 != 0)
                continue;
            found->found[i][op] = nextafter(before, 1.0e300);
            const hs_vk_verdict verdict = hs_vk_probe_judge(found, expected, text, sizeof text);
            cr_assert(verdict == HS_VK_MIRROR_OFF ||
                      (verdict == HS_VK_MIRROR_WITHOUT_SUBNORMALS && is_subnormal(expected, i)));
            found->found[i][op] = before;
        }
    /* A division in f32 is none of the mirror's. */
    found->found_f32[0][2] = 0;
    cr_assert_eq(hs_vk_probe_judge(found, expected, text, sizeof text), HS_VK_MIRROR);
    found->found_f32[0][2] = expected->found_f32[0][2];
    free(expected);
    free(found);
}

/* What a driver that flushes subnormals gives. */
Test(probe, tells_flushed_subnormals_from_wrong_bits) {
    hs_vk_probe *expected = prepared(), *found = prepared();
    char text[192];
    for (size_t i = 0; i < HS_VK_PROBE_CASES; i++)
        for (size_t op = 0; op < HS_VK_PROBE_OPERATIONS; op++) {
            if (fpclassify(found->found[i][op]) == FP_SUBNORMAL)
                found->found[i][op] = copysign(0.0, found->found[i][op]);
            if (fpclassify(found->found_f32[i][op]) == FP_SUBNORMAL)
                found->found_f32[i][op] = copysignf(0.0F, found->found_f32[i][op]);
        }
    cr_assert_eq(hs_vk_probe_judge(found, expected, text, sizeof text), HS_VK_MIRROR_WITHOUT_SUBNORMALS);
    cr_assert_not_null(strstr(text, "subnormals"));
    found->found_f32[5][4] += 1.0F;
    cr_assert_eq(hs_vk_probe_judge(found, expected, text, sizeof text), HS_VK_MIRROR_OFF);
    cr_assert_not_null(strstr(text, "multiply then add in f32"));
    free(expected);
    free(found);
}

Test(probe, finds_the_mirror_on_this_device) {
    hs_backend *backend = hs_test_device();
    const hstep_lever *levers;
    cr_assert_gt(backend->api->levers(backend, &levers), 0);
    cr_assert_str_eq(levers[0].name, "vulkan.mirror");
    cr_assert_eq(levers[0].state, HSTEP_LEVER_ACTIVE);
    cr_assert_not_null(strstr(levers[0].reason, "the reference's bits"));
    backend->api->destroy(backend);
}
