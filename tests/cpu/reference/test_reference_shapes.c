/* Every operation on empty and odd shapes, and with values of every kind: it ends, and writes only its outputs. */
#include <criterion/criterion.h>
#include <math.h>

#include "cpu/cpu.h"
#include "support/calls.h"

static hs_backend *backend;

static void setup(void) { cr_assert_eq(hs_cpu_reference_create(&backend, NULL), HSTEP_OK); }

static void teardown(void) { backend->api->destroy(backend); }

TestSuite(shapes, .init = setup, .fini = teardown);

/* Runs the call; every output element must be written, which filler (a NaN) would show. */
static void run(const hs_test_description *d, bool expect_zero) {
    hs_test_call *t = hs_test_call_create(d);
    hs_test_result *result = hs_test_call_run_well(t, backend);
    cr_expect_eq(result->flag, 0, "%s", hs_operation_name(d->operation));
    for (size_t i = 0; i < result->output_count; i++)
        for (size_t j = 0; j < result->elements[i]; j++) {
            const double y = result->outputs[i][j];
            cr_expect(expect_zero ? y == 0.0 && !signbit(y) : isfinite(y), "%s, output %zu, element %zu: %a",
                      hs_operation_name(d->operation), i, j, y);
        }
    hs_test_result_destroy(result);
    hs_test_call_destroy(t);
}

Test(shapes, without_rows) {
    for (int op = 0; op < HS_OP_COUNT; op++) {
        hs_test_description d = hs_test_describe((hs_operation)op);
        d.rows = 0;
        d.queries = d.keys = 0;
        d.without_base = true;
        const bool keeps = op == HS_OP_STORE_ROWS;
        run(&d, !keeps);
        d.pitch = 2; /* for the operands that may have one */
        run(&d, !keeps);
    }
}

Test(shapes, without_columns) {
    for (int op = 0; op < HS_OP_COUNT; op++) {
        hs_test_description d = hs_test_describe((hs_operation)op);
        d.columns = 0;
        if (op == HS_OP_CROSS_ENTROPY || op == HS_OP_CROSS_ENTROPY_BACKWARD)
            d.rows = 0; /* an empty vocabulary has no targets */
        run(&d, op != HS_OP_ROTARY && op != HS_OP_ROTARY_BACKWARD && op != HS_OP_ATTENTION &&
                    op != HS_OP_ATTENTION_BACKWARD);
    }
}

Test(shapes, products_of_nothing_are_zero) {
    for (int precision = 0; precision <= HSTEP_PRECISION_BF16; precision++) {
        hs_test_description d = hs_test_describe(HS_OP_MATMUL);
        d.precision = (hstep_precision)precision;
        d.inner = 0;
        run(&d, true);
    }
}

Test(shapes, attention_without_keys_or_queries) {
    for (int i = 0; i < 2; i++) {
        hs_test_description d = hs_test_describe(i ? HS_OP_ATTENTION_BACKWARD : HS_OP_ATTENTION);
        d.keys = 0;
        run(&d, true);
        d.keys = 3;
        d.queries = 0;
        run(&d, true); /* no query sees a key: its adjoint is +0 */
    }
}

Test(shapes, of_one) {
    for (int op = 0; op < HS_OP_COUNT; op++) {
        hs_test_description d = hs_test_describe((hs_operation)op);
        d.rows = d.columns = d.inner = d.table = d.sequences = d.queries = d.keys = d.heads = d.kv_heads = 1;
        d.head_width = 2;
        run(&d, false);
    }
}

/* All targets ignored: loss and adjoint are +0. */
Test(shapes, without_targets) {
    for (int i = 0; i < 2; i++) {
        hs_test_description d = hs_test_describe(i ? HS_OP_CROSS_ENTROPY_BACKWARD : HS_OP_CROSS_ENTROPY);
        hs_test_call *t = hs_test_call_create(&d);
        for (size_t j = 0; j < d.rows; j++)
            t->inputs[i ? 2 : 1].i32[j] = -1;
        hs_test_result *result = hs_test_call_run_well(t, backend);
        for (size_t j = 0; j < result->elements[0]; j++)
            cr_expect(result->outputs[0][j] == 0.0 && !signbit(result->outputs[0][j]));
        hs_test_result_destroy(result);
        hs_test_call_destroy(t);
    }
}

/* The harness compares inputs and filler after each run. Every precision, fill and pitch passes through here. */
Test(shapes, nothing_but_outputs_is_written) {
    for (int op = 0; op < HS_OP_COUNT; op++)
        for (int precision = 0; precision <= HSTEP_PRECISION_BF16; precision++)
            for (int fill = HS_TEST_UNIFORM; fill <= HS_TEST_SPECIAL; fill++) {
                hs_test_description d = hs_test_describe((hs_operation)op);
                d.precision = (hstep_precision)precision;
                d.random_positions = fill % 2 != 0;
                d.pitch = 3; /* for the operands that may have one */
                hs_test_call *t = hs_test_call_create(&d);
                hs_test_call_fill(t, (hs_test_fill)fill, 9);
                hs_test_result *first = hs_test_call_run_well(t, backend);
                hs_test_result *second = hs_test_call_run_well(t, backend);
                char text[128];
                cr_expect_eq(hs_test_differences(first, second, text, sizeof text), 0, "%s", text);
                hs_test_result_destroy(first);
                hs_test_result_destroy(second);
                hs_test_call_destroy(t);
            }
}
