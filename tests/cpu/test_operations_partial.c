/*
 * Products whose chains go on from one call to the next: whatever the steps are cut into, the reference and every lever
 * of the exact tier end with the bits and the flag of one product, and flag nothing before the end.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/parity.h"

typedef struct shape {
    size_t m, n, k;
} shape;

/* One product, and the bits and the flag that it ends with. */
typedef struct example {
    shape s;
    hstep_precision precision;
    hstep_transpose a_form, b_form;
    const hs_test_call *call;
    const hs_test_result *expected;
} example;

static hs_buffer *upload(hs_backend *backend, const void *data, size_t bytes) {
    hs_buffer *buffer = NULL;
    cr_assert_eq(backend->api->buffer_create(backend, bytes, &buffer, NULL), HSTEP_OK);
    cr_assert_eq(backend->api->write(backend, buffer, 0, data, bytes, NULL), HSTEP_OK);
    return buffer;
}

/* Steps [first, first + count) of an operand that runs along them in its rows or in its columns. */
static hs_view steps_of(hs_buffer *buffer, size_t lines, size_t k, bool in_rows, size_t first, size_t count) {
    hs_view view = {.buffer = buffer, .dtype = HSTEP_DTYPE_F64, .rank = 2, .strides = {in_rows ? lines : k, 1}};
    view.dims[in_rows ? 0 : 1] = count;
    view.dims[in_rows ? 1 : 0] = lines;
    view.offset = first * view.strides[in_rows ? 0 : 1] * sizeof(double);
    return view;
}

/* The calls for parts of `part` steps. */
static size_t make_calls(const example *e, hs_buffer *const buffers[3], size_t part, hs_call *calls) {
    size_t count = 0;
    for (size_t first = 0; first < e->s.k; first += part) {
        const size_t steps = e->s.k - first < part ? e->s.k - first : part;
        calls[count++] =
            (hs_call){.operation = HS_OP_MATMUL,
                      .precision = e->precision,
                      .attributes = {.a_form = e->a_form,
                                     .b_form = e->b_form,
                                     .continues = first > 0,
                                     .unfinished = first + steps < e->s.k},
                      .input_count = 2,
                      .output_count = 1,
                      .inputs = {steps_of(buffers[0], e->s.m, e->s.k, e->a_form == HSTEP_TRANSPOSE, first, steps),
                                 steps_of(buffers[1], e->s.n, e->s.k, e->b_form == HSTEP_NO_TRANSPOSE, first, steps)},
                      .outputs = {{.buffer = buffers[2],
                                   .dtype = HSTEP_DTYPE_F64,
                                   .rank = 2,
                                   .dims = {e->s.m, e->s.n},
                                   .strides = {e->s.n, 1}}}};
    }
    return count;
}

static void check_parts(const example *e, hs_backend *backend, size_t part, const char *where) {
    const size_t cells = e->s.m * e->s.n;
    double *y = malloc(cells * sizeof *y);
    hs_call *calls = calloc(e->s.k, sizeof *calls);
    uint32_t *flags = calloc(e->s.k, sizeof *flags);
    cr_assert(y != NULL && calls != NULL && flags != NULL);
    for (size_t i = 0; i < cells; i++)
        y[i] = NAN; /* what stood there before is not read */
    hs_buffer *const buffers[] = {upload(backend, e->call->inputs[0].f64, e->s.m * e->s.k * sizeof(double)),
                                  upload(backend, e->call->inputs[1].f64, e->s.n * e->s.k * sizeof(double)),
                                  upload(backend, y, cells * sizeof *y)};
    const size_t count = make_calls(e, buffers, part, calls);
    hs_program *program = NULL;
    hstep_error error = {0};
    cr_assert(backend->api->supports(backend, &calls[0]));
    cr_assert_eq(backend->api->program_create(backend, calls, count, &program, &error), HSTEP_OK, "%s", error.message);
    cr_assert_eq(hs_run_and_wait(backend, program, 0, count, flags, NULL), HSTEP_OK);
    cr_assert_eq(backend->api->read(backend, buffers[2], 0, y, cells * sizeof *y, NULL), HSTEP_OK);
    for (size_t i = 0; i < cells; i++)
        cr_assert(hs_test_same_value(y[i], e->expected->outputs[0][i]), "%s, parts of %zu: cell %zu is %a, not %a",
                  where, part, i, y[i], e->expected->outputs[0][i]);
    for (size_t i = 0; i < count; i++)
        cr_assert_eq(flags[i], i + 1 < count ? 0 : e->expected->flag, "%s, parts of %zu: flag %zu", where, part, i);
    backend->api->program_destroy(backend, program);
    for (size_t i = 0; i < 3; i++)
        backend->api->buffer_destroy(backend, buffers[i]);
    free(y);
    free(calls);
    free(flags);
}

static void check_everywhere(hs_parity *parity, const example *e, const char *what) {
    static const size_t parts[] = {1, 7, 33, 500, SIZE_MAX / 2};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const size_t part = parts[i] < e->s.k ? parts[i] : e->s.k > 1 ? e->s.k - 1 : 1;
        check_parts(e, parity->reference, part, what);
        for (size_t lever = 0; lever < HS_TEST_LEVERS; lever++)
            for (unsigned threads = 0; threads < 2; threads++)
                if (parity->exact[lever][threads] != NULL)
                    check_parts(e, parity->exact[lever][threads], part, what);
    }
}

static void check_fill(hs_parity *parity, const shape *s, int precision, int form, hs_test_fill fill, double scale) {
    hs_test_description d = hs_test_describe_matmul((hstep_precision)precision, s->m, s->n, s->k);
    d.a_form = form & 1 ? HSTEP_TRANSPOSE : HSTEP_NO_TRANSPOSE;
    d.b_form = form & 2 ? HSTEP_TRANSPOSE : HSTEP_NO_TRANSPOSE;
    hs_test_call *call = hs_test_call_create(&d);
    hs_test_call_fill(call, fill, 7 + (uint64_t)form);
    for (size_t i = 0; i < call->inputs[0].elements; i++)
        call->inputs[0].f64[i] *= scale;
    for (size_t i = 0; i < call->inputs[1].elements; i++)
        call->inputs[1].f64[i] *= scale;
    hs_test_result *expected = hs_test_call_run_well(call, parity->reference);
    const example e = {*s, d.precision, d.a_form, d.b_form, call, expected};
    parity->raised += expected->flag;
    check_everywhere(parity, &e, "a product");
    hs_test_result_destroy(expected);
    hs_test_call_destroy(call);
}

static void check_precision(hstep_precision precision) {
    static const shape shapes[] = {{5, 9, 40}, {1, 1, 3}, {29, 70, 65}, {15, 33, 801}};
    static const hs_test_fill fills[] = {HS_TEST_SMALL, HS_TEST_SPECIAL, HS_TEST_WIDE, HS_TEST_HUGE};
    hs_parity parity;
    hs_parity_open(&parity);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (size_t fill = 0; fill < sizeof fills / sizeof fills[0]; fill++)
            check_fill(&parity, &shapes[i], precision, (int)(i + fill) % 4, fills[fill], 1);
    cr_assert_gt(parity.raised, 0);
    hs_parity_close(&parity);
}

Test(partial_products, f64, .timeout = 60) { check_precision(HSTEP_PRECISION_F64); }
Test(partial_products, fp16, .timeout = 60) { check_precision(HSTEP_PRECISION_FP16); }
Test(partial_products, bf16, .timeout = 60) { check_precision(HSTEP_PRECISION_BF16); }

/* Sums among the least numbers of f32, which some instructions take for zero, at every place where a part may end. */
Test(partial_products, subnormal_sums_in_bf16, .timeout = 60) {
    static const shape s = {15, 33, 40};
    hs_parity parity;
    hs_parity_open(&parity);
    for (int exponent = -72; exponent <= -48; exponent += 4)
        check_fill(&parity, &s, HSTEP_PRECISION_BF16, exponent % 8 == 0 ? 0 : 2, HS_TEST_UNIFORM, ldexp(1, exponent));
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
    const example e = {{15, 33, 14}, HSTEP_PRECISION_BF16, d.a_form, d.b_form, call, expected};
    check_everywhere(&parity, &e, "a sum near the least normal number");
    hs_test_result_destroy(expected);
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
