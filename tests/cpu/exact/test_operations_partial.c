/* Products whose chains go on from one call to the next, on every lever of the exact tier. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "support/partial.h"

static void check(hs_parity *parity, const size_t *shape, hstep_precision precision, int forms, hs_test_fill fill) {
    hs_test_description d = hs_test_describe_matmul(precision, shape[0], shape[1], shape[2]);
    d.a_form = forms & 1 ? HSTEP_TRANSPOSE : HSTEP_NO_TRANSPOSE;
    d.b_form = forms & 2 ? HSTEP_TRANSPOSE : HSTEP_NO_TRANSPOSE;
    hs_parity_check_parts(parity, &d, fill, 1);
}

static void check_precision(hstep_precision precision) {
    static const size_t shapes[][3] = {{5, 9, 40}, {1, 1, 3}, {29, 70, 65}, {15, 33, 801}};
    static const hs_test_fill fills[] = {HS_TEST_SMALL, HS_TEST_SPECIAL, HS_TEST_WIDE, HS_TEST_HUGE};
    hs_parity parity;
    hs_parity_open(&parity);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (size_t fill = 0; fill < sizeof fills / sizeof fills[0]; fill++)
            check(&parity, shapes[i], precision, (int)(i + fill) % 4, fills[fill]);
    cr_assert_gt(parity.raised, 0);
    hs_parity_close(&parity);
}

Test(partial_products, f64, .timeout = 60) { check_precision(HSTEP_PRECISION_F64); }
Test(partial_products, fp16, .timeout = 60) { check_precision(HSTEP_PRECISION_FP16); }
Test(partial_products, bf16, .timeout = 60) { check_precision(HSTEP_PRECISION_BF16); }

/* Sums among the least numbers of f32, which some instructions take for zero, at every place where a part may end. */
Test(partial_products, subnormal_sums_in_bf16, .timeout = 60) {
    const hs_test_description d = hs_test_describe_matmul(HSTEP_PRECISION_BF16, 15, 33, 40);
    hs_parity parity;
    hs_parity_open(&parity);
    for (int exponent = -72; exponent <= -48; exponent += 4)
        hs_parity_check_parts(&parity, &d, HS_TEST_UNIFORM, ldexp(1, exponent));
    hs_parity_close(&parity);
}

/*
 * The first part ends with the sum 3 * 2^-127, which is normal, and no multiple of 2^-126. The second adds products
 * that are such multiples, and ends with 2^-127: an instruction that takes subnormal numbers for zero would lose it.
 */
Test(partial_products, sums_that_become_subnormal_later) {
    static const struct {
        size_t k;
        double a, b;
    } steps[] = {{0, 0x1.8p-63, 0x1p-63}, {7, 0x1.04p-56, 0x1p-56}, {8, 0x1.02p-56, -0x1.02p-56}};
    hs_parity parity;
    hs_parity_open(&parity);
    hs_test_description d = hs_test_describe_matmul(HSTEP_PRECISION_BF16, 15, 33, 14);
    hs_test_call *call = hs_test_call_create(&d);
    memset(call->inputs[0].f64, 0, call->inputs[0].elements * sizeof(double));
    memset(call->inputs[1].f64, 0, call->inputs[1].elements * sizeof(double));
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        for (size_t row = 0; row < d.rows; row++)
            call->inputs[0].f64[row * d.inner + steps[i].k] = steps[i].a;
        for (size_t column = 0; column < d.columns; column++)
            call->inputs[1].f64[steps[i].k * d.columns + column] = steps[i].b;
    }
    hs_test_result *expected = hs_test_call_run_well(call, parity.reference);
    cr_assert_eq(expected->outputs[0][0], 0x1p-127);
    hs_test_result_destroy(expected);
    hs_parity_compare_parts(&parity, call, "a sum near the least normal number");
    hs_test_call_destroy(call);
    hs_parity_close(&parity);
}

/* Halves cannot hold the sums. */
Test(partial_products, need_f64_for_their_sums) {
    hs_backend *backend = hs_test_exact(1, "cpu.portable");
    hs_call call = {.operation = HS_OP_MATMUL,
                    .precision = HSTEP_PRECISION_BF16,
                    .output_count = 1,
                    .outputs = {{.dtype = HSTEP_DTYPE_BF16}}};
    cr_assert(backend->api->supports(backend, &call));
    call.attributes.unfinished = true;
    cr_assert_not(backend->api->supports(backend, &call));
    call.attributes = (hs_attributes){.continues = true};
    cr_assert_not(backend->api->supports(backend, &call));
    call.outputs[0].dtype = HSTEP_DTYPE_F64;
    cr_assert(backend->api->supports(backend, &call));
    backend->api->destroy(backend);
}
