/* Products whose chains go on from one call to the next, on the device. */
#include <criterion/criterion.h>
#include <math.h>

#include "support/device.h"
#include "support/partial.h"

static void check_precision(hstep_precision precision) {
    static const hs_test_fill fills[] = {HS_TEST_SMALL, HS_TEST_SPECIAL, HS_TEST_WIDE, HS_TEST_HUGE};
    hs_parity parity;
    hs_parity_open_on(&parity, hs_test_device());
    for (size_t i = 0; i < sizeof fills / sizeof fills[0]; i++) {
        hs_test_description d = hs_test_describe_matmul(precision, 67, 33, 18);
        d.a_form = i & 1 ? HSTEP_TRANSPOSE : HSTEP_NO_TRANSPOSE;
        hs_parity_check_parts(&parity, &d, fills[i], 1);
    }
    cr_assert_gt(parity.raised, 0);
    hs_parity_close(&parity);
}

Test(partial_products, f64, .timeout = 120) { check_precision(HSTEP_PRECISION_F64); }
Test(partial_products, fp16, .timeout = 120) { check_precision(HSTEP_PRECISION_FP16); }
Test(partial_products, bf16, .timeout = 120) { check_precision(HSTEP_PRECISION_BF16); }

/* Sums among the least numbers of f32: they are converted to f64 and back between calls. */
Test(partial_products, subnormal_sums, .timeout = 120) {
    const hs_test_description d = hs_test_describe_matmul(HSTEP_PRECISION_BF16, 5, 9, 18);
    hs_parity parity;
    hs_parity_open_on(&parity, hs_test_device());
    for (int exponent = -72; exponent <= -60; exponent += 4)
        hs_parity_check_parts(&parity, &d, HS_TEST_UNIFORM, ldexp(1, exponent));
    hs_parity_close(&parity);
}
