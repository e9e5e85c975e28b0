/*
 * Products in bf16 on AMX tiles: the kernel's own source over emulated tiles, which fault where a processor would,
 * against a scalar emulator of the order of its sums. The kernel that is compiled here stands in for the library's, so
 * that what the backend runs is this one.
 */
#include "support/emulated_tiles.h"

#include "cpu/gated/kit_amx_bf16_32x32.c"

#include <criterion/criterion.h>
#include <math.h>
#include <signal.h>

#include "support/emulator.h"
#include "support/gated_product.h"

static void open_product(hs_gated_product *product) {
    hs_gated_open(product, "cpu.amx-bf16", HSTEP_PRECISION_BF16, hs_emulate_tiles_bf16);
}

Test(gated_amx_bf16, gives_the_bits_of_the_emulator, .timeout = 60) {
    hs_gated_product product;
    open_product(&product);
    hs_gated_check_shapes(&product, true);
    cr_assert_gt(product.cells, 100000);
    cr_expect_gt(hs_tiles_configured(), 0, "the emulated tiles were used");
    cr_expect_eq(hs_tiles_in_use(), 0, "every thread released its tiles");
    hs_gated_close(&product);
}

/* What a head by rows makes of its weights' gradient. */
Test(gated_amx_bf16, continues_sums_as_the_emulator_does, .timeout = 60) {
    hs_gated_product product;
    open_product(&product);
    hs_gated_check_parts(&product, true);
    hs_gated_close(&product);
}

/* Subnormal operands, and chains that pass through subnormal sums. */
Test(gated_amx_bf16, flushes_what_the_processor_flushes, .timeout = 60) {
    hs_gated_product product;
    open_product(&product);
    hs_test_description d = hs_test_describe_matmul(HSTEP_PRECISION_BF16, 20, 37, 70);
    hs_test_call *call = hs_test_call_create(&d);
    static const double scales[][2] = {{0x1p-126, 1}, {1, 0x1p-130}, {0x1p-60, 0x1p-66}, {0x1p-63, 0x1p-63}};
    for (size_t s = 0; s < sizeof scales / sizeof *scales; s++) {
        hs_test_call_fill(call, HS_TEST_UNIFORM, 40 + s);
        for (uint32_t i = 0; i < 2; i++)
            for (size_t j = 0; j < call->inputs[i].elements; j++)
                call->inputs[i].f64[j] *= scales[s][i];
        hs_gated_check(&product, call, "small numbers");
    }
    hs_test_call_destroy(call);
    hs_gated_close(&product);
}

Test(gated_amx_bf16, infinities_and_nans_reach_the_same_cells, .timeout = 60) {
    hs_gated_product product;
    open_product(&product);
    hs_test_description d = hs_test_describe_matmul(HSTEP_PRECISION_BF16, 40, 70, 75);
    hs_test_call *call = hs_test_call_create(&d);
    for (uint64_t seed = 1; seed < 5; seed++) {
        hs_test_call_fill(call, HS_TEST_SPECIAL, seed);
        /* An infinity by a subnormal number is a NaN here. */
        hs_gated_check_nonfinite(&product, call, false);
    }
    hs_test_call_destroy(call);
    hs_gated_close(&product);
}

/* What the emulation is worth. */
Test(emulated_tiles, fault_without_a_configuration, .signal = SIGABRT) { hs_tile_zero(0); }

Test(emulated_tiles, fault_after_release, .signal = SIGABRT) {
    hs_amx_enter();
    hs_amx_leave();
    hs_tile_zero(0);
}

Test(emulated_tiles, fault_on_the_same_tile_twice, .signal = SIGABRT) {
    hs_amx_enter();
    hs_tile_multiply(0, 4, 4);
}

Test(emulated_tiles, fault_on_tiles_that_do_not_fit, .signal = SIGABRT) {
    hs_tiles_configuration c = hs_tiles_full_size;
    c.rows[6] = 15;
    hs_tiles_configure(&c);
    hs_tile_multiply(0, 4, 6);
}

Test(emulated_tiles, fault_on_a_reserved_byte, .signal = SIGABRT) {
    hs_tiles_configuration c = hs_tiles_full_size;
    c.reserved[13] = 1;
    hs_tiles_configure(&c);
}
