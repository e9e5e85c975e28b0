/*
 * Products in fp16 on AMX tiles, numbers in two parts: the kernel's own source over emulated tiles against a scalar
 * emulator, as in test_gated_amx_bf16.c, and the policy's steps where a panel has an infinity or a NaN.
 */
#include "support/emulated_tiles.h"

#include "cpu/gated/kit_amx_fp16_32x32.c"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "precision/format.h"
#include "support/emulator.h"
#include "support/gated_product.h"

static void open_product(hs_gated_product *product) {
    hs_gated_open(product, "cpu.amx-fp16", HSTEP_PRECISION_FP16, hs_emulate_tiles_fp16);
}

Test(gated_amx_fp16, gives_the_bits_of_the_emulator, .timeout = 60) {
    hs_gated_product product;
    open_product(&product);
    hs_gated_check_shapes(&product, false);
    cr_assert_gt(product.cells, 50000);
    cr_expect_gt(hs_tiles_configured(), 0, "the emulated tiles were used");
    cr_expect_eq(hs_tiles_in_use(), 0, "every thread released its tiles");
    hs_gated_close(&product);
}

/* What a head by rows makes of its weights' gradient. */
Test(gated_amx_fp16, continues_sums_as_the_emulator_does, .timeout = 60) {
    hs_gated_product product;
    open_product(&product);
    hs_gated_check_parts(&product, false);
    hs_gated_close(&product);
}

static hs_test_call *make_call(size_t rows, size_t columns, size_t inner) {
    hs_test_description d = hs_test_describe_matmul(HSTEP_PRECISION_FP16, rows, columns, inner);
    return hs_test_call_create(&d);
}

/* All finite numbers, subnormal ones included, by one and by a number with all its bits. */
Test(gated_amx_fp16, every_finite_number_is_the_sum_of_its_parts, .timeout = 60) {
    enum { EXPONENTS = 31, COUNT = EXPONENTS << 8, PARTS = 8 }; /* 31 exponents of 2^10 fractions, and signs */
    hs_gated_product product;
    open_product(&product);
    hs_test_call *call = make_call(2, COUNT, 1);
    for (unsigned part = 0; part < PARTS; part++) {
        double *x = call->inputs[1].f64;
        for (size_t i = 0; i < COUNT; i++) {
            const unsigned bits = (unsigned)i + part % 4 * COUNT;
            x[i] = hs_decode(HSTEP_FP16, (uint16_t)(bits | part / 4 << 15));
        }
        call->inputs[0].f64[0] = 1.0;
        call->inputs[0].f64[1] = 0x1.ffcp-14;
        hs_test_result *result = hs_test_call_run_well(call, product.backends[0]);
        const double *y = result->outputs[0];
        for (size_t i = 0; i < COUNT; i++) {
            const double by = hs_decode(HSTEP_FP16, hs_encode(HSTEP_FP16, x[i] * 0x1.ffcp-14));
            cr_assert(y[i] == x[i] && y[COUNT + i] == by, "%a gives %a and %a", x[i], y[i], y[COUNT + i]);
        }
        hs_test_result_destroy(result);
    }
    hs_test_call_destroy(call);
    hs_gated_close(&product);
}

Test(gated_amx_fp16, infinities_and_nans_reach_the_same_cells, .timeout = 60) {
    hs_gated_product product;
    open_product(&product);
    hs_test_call *call = make_call(40, 40, 600);
    for (uint64_t seed = 1; seed < 4; seed++) {
        hs_test_call_fill(call, HS_TEST_UNIFORM, seed);
        call->inputs[0].f64[(seed * 12) * 600 + 3] = INFINITY;
        call->inputs[0].f64[(seed * 12 + 1) * 600 + 590] = -INFINITY;
        call->inputs[1].f64[550 * 40 + seed] = NAN;
        call->inputs[1].f64[3 * 40 + 35] = 0.0;
        hs_gated_check_nonfinite(&product, call, true);
    }
    hs_test_call_fill(call, HS_TEST_SPECIAL, 9);
    hs_gated_check_nonfinite(&product, call, true);
    hs_test_call_destroy(call);
    hs_gated_close(&product);
}

/* With an infinity in the first block of every panel of rows all tiles go the policy's way to the end of their chains,
 * to its very bits. Another order would show in few results once they are rounded, hence many. */
Test(gated_amx_fp16, beside_infinities_the_policy_is_followed, .timeout = 60) {
    hs_gated_product product;
    open_product(&product);
    hs_test_call *call = make_call(64, 45, 600);
    for (uint64_t seed = 1; seed <= 12; seed++) {
        hs_test_call_fill(call, seed % 2 ? HS_TEST_WIDE : HS_TEST_UNIFORM, seed);
        call->inputs[0].f64[5 * 600] = INFINITY;
        call->inputs[0].f64[40 * 600 + 7] = (double)NAN;
        char text[256];
        hs_test_result *expected = hs_test_call_run_well(call, product.reference),
                       *got = hs_test_call_run_well(call, product.backends[1]);
        cr_assert_eq(hs_test_differences(expected, got, text, sizeof text), 0, "%s", text);
        hs_test_result_destroy(expected);
        hs_test_result_destroy(got);
    }
    hs_test_call_destroy(call);
    hs_gated_close(&product);
}
