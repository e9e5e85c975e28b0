/* Every adjoint against central differences of its forward operation, in f64. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "cpu/cpu.h"
#include "support/calls.h"

static hs_backend *backend;

static void setup(void) { cr_assert_eq(hs_cpu_reference_create(&backend, NULL), HSTEP_OK); }

static void teardown(void) { backend->api->destroy(backend); }

TestSuite(gradients, .init = setup, .fini = teardown);

/* What an input of the adjoint is made of: an input of the forward call, or one of these. */
enum { NONE = -3, Y = -2, DY = -1 };

typedef struct adjoint {
    hs_operation forward;
    uint32_t wrt; /* the forward input that is differentiated */
    hs_operation backward;
    uint32_t output;
    int inputs[HS_MAX_INPUTS];
} adjoint;

static const adjoint adjoints[] = {
    {HS_OP_GATHER, 0, HS_OP_GATHER_BACKWARD, 0, {DY, 1, NONE}},
    {HS_OP_RMSNORM, 0, HS_OP_RMSNORM_BACKWARD_INPUT, 0, {DY, 0, 1, NONE}},
    {HS_OP_RMSNORM, 1, HS_OP_RMSNORM_BACKWARD_GAIN, 0, {DY, 0, NONE}},
    {HS_OP_ROTARY, 0, HS_OP_ROTARY_BACKWARD, 0, {DY, 1, 2, 3, NONE}},
    {HS_OP_ATTENTION, 0, HS_OP_ATTENTION_BACKWARD, 0, {DY, 0, 1, 2, 3, NONE}},
    {HS_OP_ATTENTION, 1, HS_OP_ATTENTION_BACKWARD, 1, {DY, 0, 1, 2, 3, NONE}},
    {HS_OP_ATTENTION, 2, HS_OP_ATTENTION_BACKWARD, 2, {DY, 0, 1, 2, 3, NONE}},
    {HS_OP_SWIGLU, 0, HS_OP_SWIGLU_BACKWARD, 0, {DY, 0, 1, NONE}},
    {HS_OP_SWIGLU, 1, HS_OP_SWIGLU_BACKWARD, 1, {DY, 0, 1, NONE}},
    {HS_OP_CROSS_ENTROPY, 0, HS_OP_CROSS_ENTROPY_BACKWARD, 0, {DY, 0, 1, NONE}},
    {HS_OP_ADD_BIAS, 1, HS_OP_SUM_ROWS, 0, {DY, NONE}},
    {HS_OP_MULTIPLY, 0, HS_OP_MULTIPLY, 0, {DY, 1, NONE}},
    {HS_OP_MULTIPLY, 1, HS_OP_MULTIPLY, 0, {DY, 0, NONE}},
    {HS_OP_SCALE, 0, HS_OP_SCALE, 0, {DY, NONE}},
    {HS_OP_SUM, 0, HS_OP_FILL, 0, {DY, NONE}},
    {HS_OP_FILL, 0, HS_OP_SUM, 0, {DY, NONE}},
    {HS_OP_TRANSPOSE, 0, HS_OP_TRANSPOSE, 0, {DY, NONE}},
    {HS_OP_SOFTMAX, 0, HS_OP_SOFTMAX_BACKWARD, 0, {DY, Y, NONE}},
    {HS_OP_LOG, 0, HS_OP_LOG_BACKWARD, 0, {DY, 0, NONE}},
    {HS_OP_SILU, 0, HS_OP_SILU_BACKWARD, 0, {DY, 0, NONE}},
};

/* The output adjoint: fixed values without pattern. */
static double weight(size_t i) { return 0.3 + 0.5 * (double)((i * 7 + 3) % 11) - 0.2 * (double)(i % 3); }

/* The scalar whose gradient is taken: the output weighed. */
static long double weighed_output(const hs_test_call *forward) {
    hs_test_result *result = hs_test_call_run_well(forward, backend);
    long double sum = 0;
    for (size_t i = 0; i < result->elements[0]; i++)
        sum += (long double)weight(i) * (long double)result->outputs[0][i];
    hs_test_result_destroy(result);
    return sum;
}

static hs_test_call *make_backward(const adjoint *a, const hs_test_call *forward, const hs_test_description *d) {
    hs_test_call *backward = hs_test_call_create(d);
    hs_test_result *y = hs_test_call_run_well(forward, backend);
    for (uint32_t i = 0; i < backward->call.input_count; i++) {
        hs_test_operand *to = &backward->inputs[i];
        if (a->inputs[i] == DY) {
            for (size_t j = 0; j < to->elements; j++)
                to->f64[j] = weight(j);
        } else if (a->inputs[i] == Y) {
            memcpy(to->f64, y->outputs[0], to->elements * sizeof *to->f64);
        } else {
            const hs_test_operand *from = &forward->inputs[a->inputs[i]];
            cr_assert_eq(from->elements, to->elements);
            if (to->is_index)
                memcpy(to->i32, from->i32, to->elements * sizeof *to->i32);
            else
                memcpy(to->f64, from->f64, to->elements * sizeof *to->f64);
        }
    }
    hs_test_result_destroy(y);
    return backward;
}

static void check(const adjoint *a, const hs_test_description *forward_d, const hs_test_description *backward_d) {
    hs_test_call *forward = hs_test_call_create(forward_d);
    hs_test_call_fill(forward, HS_TEST_UNIFORM, 7);
    /* A logarithm bends too much near zero for a difference to follow. */
    for (size_t i = 0; a->forward == HS_OP_LOG && i < forward->inputs[0].elements; i++)
        forward->inputs[0].f64[i] += 0.5;
    hs_test_call *backward = make_backward(a, forward, backward_d);
    hs_test_result *result = hs_test_call_run_well(backward, backend);
    hs_test_operand *x = &forward->inputs[a->wrt];
    cr_assert_eq(result->elements[a->output], x->elements);
    double largest = 0.0, worst = 0.0;
    for (size_t i = 0; i < x->elements; i++) {
        const double kept = x->f64[i], h = 0x1p-17;
        x->f64[i] = kept + h;
        const long double above = weighed_output(forward);
        x->f64[i] = kept - h;
        const long double below = weighed_output(forward);
        x->f64[i] = kept;
        const double difference = (double)((above - below) / (2.0L * (long double)h));
        largest = fmax(largest, fabs(difference));
        worst = fmax(worst, fabs(difference - result->outputs[a->output][i]));
    }
    cr_expect_gt(largest, 0.1, "%s: nothing to compare", hs_operation_name(a->forward));
    cr_expect_lt(worst, 1e-8 * largest, "%s, input %u: %g of %g", hs_operation_name(a->forward), a->wrt, worst,
                 largest);
    hs_test_result_destroy(result);
    hs_test_call_destroy(backward);
    hs_test_call_destroy(forward);
}

static void check_with(const adjoint *a, const hs_test_description *shape) {
    hs_test_description forward = *shape, backward = *shape;
    forward.operation = a->forward;
    backward.operation = a->backward;
    backward.without_base = true;
    if (a->forward == HS_OP_TRANSPOSE) {
        backward.rows = shape->columns;
        backward.columns = shape->rows;
    }
    check(a, &forward, &backward);
}

Test(gradients, of_every_operation) {
    for (size_t i = 0; i < sizeof adjoints / sizeof *adjoints; i++) {
        hs_test_description shape = hs_test_describe(adjoints[i].forward);
        check_with(&adjoints[i], &shape);
    }
}

Test(gradients, of_wide_and_pitched_rows) {
    for (size_t i = 0; i < sizeof adjoints / sizeof *adjoints; i++) {
        hs_test_description shape = hs_test_describe(adjoints[i].forward);
        shape.rows = 3;
        shape.columns = 41;
        shape.pitch = 5; /* for the operands that may have one */
        shape.head_width = 4;
        check_with(&adjoints[i], &shape);
    }
}

/* One key head, as many key heads as heads, queries at any position of longer or shorter key rows. */
Test(gradients, of_attention_in_its_shapes) {
    static const size_t shapes[][5] = {/* queries, keys, heads, kv_heads, head_width */
                                       {3, 3, 3, 1, 2},
                                       {4, 4, 2, 2, 3},
                                       {2, 6, 4, 2, 1},
                                       {6, 3, 2, 1, 4},
                                       {1, 5, 1, 1, 5}};
    for (size_t s = 0; s < 2 * sizeof shapes / sizeof *shapes; s++) {
        const size_t *shape = shapes[s / 2];
        hs_test_description d = hs_test_describe(HS_OP_ATTENTION);
        d.queries = shape[0];
        d.keys = shape[1];
        d.heads = shape[2];
        d.kv_heads = shape[3];
        d.head_width = shape[4];
        d.random_positions = s % 2 != 0;
        for (size_t i = 0; i < sizeof adjoints / sizeof *adjoints; i++)
            if (adjoints[i].forward == HS_OP_ATTENTION)
                check_with(&adjoints[i], &d);
    }
}

/* dA and dB are products themselves, in forms that follow from the forward ones. */
Test(gradients, of_products_in_every_form) {
    for (int forms = 0; forms < 4; forms++) {
        hs_test_description forward = hs_test_describe(HS_OP_MATMUL);
        forward.rows = 3;
        forward.columns = 4;
        forward.inner = 5;
        forward.pitch = 2;
        const bool at = forms & 1, bt = forms & 2;
        forward.a_form = at ? HSTEP_TRANSPOSE : HSTEP_NO_TRANSPOSE;
        forward.b_form = bt ? HSTEP_TRANSPOSE : HSTEP_NO_TRANSPOSE;
        hs_test_description da = forward, db = forward;
        da.rows = at ? 5 : 3;
        da.columns = at ? 3 : 5;
        da.inner = 4;
        da.a_form = at && bt ? HSTEP_TRANSPOSE : HSTEP_NO_TRANSPOSE;
        da.b_form = at || !bt ? HSTEP_TRANSPOSE : HSTEP_NO_TRANSPOSE;
        db.rows = bt ? 4 : 5;
        db.columns = bt ? 5 : 4;
        db.inner = 3;
        db.a_form = bt || !at ? HSTEP_TRANSPOSE : HSTEP_NO_TRANSPOSE;
        db.b_form = at && bt ? HSTEP_TRANSPOSE : HSTEP_NO_TRANSPOSE;
        const adjoint of_a = {HS_OP_MATMUL, 0, HS_OP_MATMUL, 0, {at ? 1 : DY, at ? DY : 1, NONE}};
        const adjoint of_b = {HS_OP_MATMUL, 1, HS_OP_MATMUL, 0, {bt ? DY : 0, bt ? 0 : DY, NONE}};
        check(&of_a, &forward, &da);
        check(&of_b, &forward, &db);
    }
}
