/* Every operation on the device against the reference, bit for bit, over shapes that sit on the edges of groups. */
#include <criterion/criterion.h>

#include "support/device.h"
#include "support/parity.h"
#include "support/shapes.h"

/* Whether the device computes the operation; those it lacks are refused when a plan is made. */
static bool computes(const hs_backend *backend, hs_operation operation) {
    const hs_call call = {.operation = operation};
    return backend->api->supports(backend, &call);
}

/* The operands that may stand in 16 bits, as far as the backend takes them. */
static unsigned compact_operands(const hs_backend *backend, const hs_test_description *description) {
    hs_test_call *call = hs_test_call_create(description);
    unsigned found = 0;
    const hstep_dtype half = description->precision == HSTEP_PRECISION_FP16 ? HSTEP_DTYPE_FP16 : HSTEP_DTYPE_BF16;
    for (uint32_t i = 0; i < call->call.input_count + call->call.output_count; i++) {
        const bool output = i >= call->call.input_count;
        hs_call one = call->call;
        hs_view *view = output ? &one.outputs[i - one.input_count] : &one.inputs[i];
        view->dtype = half;
        if (backend->api->supports(backend, &one))
            found |= output ? HS_TEST_OUTPUT(i - one.input_count) : HS_TEST_INPUT(i);
    }
    hs_test_call_destroy(call);
    return found;
}

static bool is_attention(hs_operation operation) {
    return operation == HS_OP_ATTENTION || operation == HS_OP_ATTENTION_BACKWARD;
}

/* A software device takes milliseconds for a call: the larger shapes and further forms get the two fills that tell
 * most, and so do most shapes of attention, which computes whole tiles however small a shape is. */
static hs_parity_depth depth(hs_operation operation, size_t shape, int form, bool compact) {
    if (is_attention(operation) && (shape > 0 || compact))
        return shape == 4 ? HS_PARITY_FULL : HS_PARITY_BRIEF;
    if (shape < 2 && form == 0 && !compact)
        return HS_PARITY_PLANTED;
    return shape < 5 && form == 0 ? HS_PARITY_FULL : HS_PARITY_BRIEF;
}

static void check_shapes(hs_parity *parity, hs_operation operation, hstep_precision precision, bool compact) {
    for (size_t i = 0; i < HS_TEST_SMALL_SHAPES; i++) {
        hs_test_description d = hs_test_describe_shape(operation, precision, &hs_test_shapes[i]);
        if (compact)
            d.compact = compact_operands(parity->exact[0][0], &d);
        if (compact && d.compact == 0)
            return;
        for (int form = 0; form < (operation == HS_OP_MATMUL ? 4 : 1); form++) {
            d.a_form = form & 1 ? HSTEP_TRANSPOSE : HSTEP_NO_TRANSPOSE;
            d.b_form = form & 2 ? HSTEP_TRANSPOSE : HSTEP_NO_TRANSPOSE;
            hs_parity_check(parity, &d, depth(operation, i, form, compact));
        }
    }
}

static void check_operation(hs_operation operation) {
    hs_parity parity;
    hs_parity_open_on(&parity, hs_test_device());
    if (computes(parity.exact[0][0], operation)) {
        const hstep_precision last = hs_parity_heeds_precision(operation) ? HSTEP_PRECISION_BF16 : HSTEP_PRECISION_F64;
        for (hstep_precision precision = HSTEP_PRECISION_F64; precision <= last; precision++)
            check_shapes(&parity, operation, precision, false);
        check_shapes(&parity, operation, HSTEP_PRECISION_FP16, true);
        check_shapes(&parity, operation, HSTEP_PRECISION_BF16, true);
        /* Both verdicts must have been seen, or equal flags would mean little. */
        cr_assert_eq(parity.raised > 0, hs_parity_can_flag(operation), "%s", hs_operation_name(operation));
        cr_assert_lt(parity.raised, parity.calls, "%s", hs_operation_name(operation));
    }
    hs_parity_close(&parity);
}

#define CHECK(operation)                                                                                               \
    Test(operations, operation, .timeout = 240) { check_operation(HS_OP_##operation); }
#define CHECK_ROW(id, name) CHECK(id)
HS_OPERATIONS(CHECK_ROW)
