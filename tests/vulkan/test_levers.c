/* The gated levers of a device: which shape of matrices is taken, and what fused steps give. */
#include <criterion/criterion.h>

#include "support/device.h"
#include "support/device_product.h"
#include "support/emulator.h"
#include "vulkan/backend.h"

TestSuite(levers, .timeout = 300);

/* ---- Shapes of matrices ---- */

enum { F16 = VK_COMPONENT_TYPE_FLOAT16_KHR, F32 = VK_COMPONENT_TYPE_FLOAT32_KHR, S8 = 3 };

static VkCooperativeMatrixPropertiesKHR shape(uint32_t m, uint32_t n, uint32_t k, int operands, int sums) {
    return (VkCooperativeMatrixPropertiesKHR){.MSize = m,
                                              .NSize = n,
                                              .KSize = k,
                                              .AType = (VkComponentTypeKHR)operands,
                                              .BType = (VkComponentTypeKHR)operands,
                                              .CType = (VkComponentTypeKHR)sums,
                                              .ResultType = (VkComponentTypeKHR)sums,
                                              .scope = VK_SCOPE_SUBGROUP_KHR};
}

static void expect_shape(const VkCooperativeMatrixPropertiesKHR *list, uint32_t count, uint32_t subgroup,
                         hs_vk_matrices expected) {
    hs_vk_matrices found;
    hs_vk_matrices_choose(list, count, VK_COMPONENT_TYPE_FLOAT16_KHR, subgroup, &found);
    cr_expect_null(found.refusal);
    cr_expect(found.m == expected.m && found.n == expected.n && found.k == expected.k, "%u x %u x %u", found.m, found.n,
              found.k);
    cr_expect(found.down == expected.down && found.across == expected.across, "%u down, %u across", found.down,
              found.across);
    /* All cells of a tile, once. */
    cr_expect_eq(found.m * found.down * found.n * found.across * (HS_VK_TILE_GROUP / subgroup),
                 (uint32_t)HS_VK_TILE * HS_VK_TILE);
}

Test(levers, the_largest_shape_that_fits_is_taken) {
    const VkCooperativeMatrixPropertiesKHR many[] = {shape(8, 8, 32, S8, 5), shape(16, 16, 16, F16, F16),
                                                     shape(16, 8, 16, F16, F32), shape(16, 16, 16, F16, F32),
                                                     shape(16, 8, 8, F16, F32)};
    expect_shape(many, 5, 32, (hs_vk_matrices){.m = 16, .n = 16, .k = 16, .down = 2, .across = 2});
    expect_shape(many, 3, 32, (hs_vk_matrices){.m = 16, .n = 8, .k = 16, .down = 2, .across = 4});
    expect_shape(many, 5, 64, (hs_vk_matrices){.m = 16, .n = 16, .k = 16, .down = 2, .across = 4});
    const VkCooperativeMatrixPropertiesKHR flat = shape(8, 16, 16, F16, F32);
    expect_shape(&flat, 1, 16, (hs_vk_matrices){.m = 8, .n = 16, .k = 16, .down = 2, .across = 2});
    const VkCooperativeMatrixPropertiesKHR small = shape(8, 8, 8, F16, F32);
    expect_shape(&small, 1, 8, (hs_vk_matrices){.m = 8, .n = 8, .k = 8, .down = 2, .across = 2});
}

static void expect_none(VkCooperativeMatrixPropertiesKHR list, uint32_t subgroup) {
    hs_vk_matrices found;
    hs_vk_matrices_choose(&list, 1, VK_COMPONENT_TYPE_FLOAT16_KHR, subgroup, &found);
    cr_expect_not_null(found.refusal);
    cr_expect_eq(found.m, 0);
}

Test(levers, what_the_shaders_cannot_use_is_refused) {
    VkCooperativeMatrixPropertiesKHR one = shape(16, 16, 16, F16, F32);
    expect_none(shape(16, 16, 16, F16, F16), 32);
    expect_none(shape(16, 16, 16, S8, F32), 32);
    expect_none(shape(12, 16, 16, F16, F32), 32);
    expect_none(shape(16, 16, 64, F16, F32), 32);
    expect_none(shape(4, 16, 16, F16, F32), 32);
    expect_none(one, 0);
    expect_none(one, 24);
    one.saturatingAccumulation = VK_TRUE;
    expect_none(one, 32);
    one.saturatingAccumulation = VK_FALSE;
    one.scope = (VkScopeKHR)2;
    expect_none(one, 32);
}

/* ---- Fused steps ---- */

/* Steps of fp16 numbers are rounded once, fused or not, so that the bits are those of the policy's own chain. */
Test(levers, fused_steps_have_the_bits_of_the_chain) {
    hs_backend *backend = hs_test_device();
    const hs_lever_findings found = hs_device_find(backend, "vulkan.fused-fp16");
    cr_assert_eq(found.state, HSTEP_LEVER_ACTIVE, "%s", found.reason);
    hs_device_use(backend, "vulkan.fused-fp16");
    cr_assert_gt(hs_device_check_products(backend, hs_emulate_chain_fp16), 50000);
    backend->api->destroy(backend);
}
