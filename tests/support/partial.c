#include "support/partial.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

/* One product, and the bits and the flag that it ends with: the reference's, and those of one that flushes subnormals,
 * for a device that does (else the same). */
typedef struct example {
    const hs_test_description *d;
    const hs_test_call *call;
    const hs_test_result *expected, *flushed;
} example;

static hs_buffer *upload(hs_backend *backend, const void *data, size_t bytes) {
    hs_buffer *buffer = NULL;
    cr_assert_eq(backend->api->buffer_create(backend, bytes, &buffer, NULL), HSTEP_OK);
    cr_assert_eq(backend->api->write(backend, buffer, 0, data, bytes, NULL), HSTEP_OK);
    return buffer;
}

/* Steps [first, first + count) of an operand whose steps are its rows, or its columns. */
static hs_view steps_of(hs_view view, bool rows, size_t first, size_t count) {
    view.offset += first * view.strides[rows ? 0 : 1] * hs_dtype_size(view.dtype);
    view.dims[rows ? 0 : 1] = count;
    return view;
}

size_t hs_test_divide_product(const hs_call *product, size_t part, hs_call *calls) {
    const bool a_rows = product->attributes.a_form == HSTEP_TRANSPOSE,
               b_rows = product->attributes.b_form == HSTEP_NO_TRANSPOSE;
    const size_t steps = product->inputs[0].dims[a_rows ? 0 : 1];
    size_t count = 0;
    for (size_t first = 0; first < steps; first += part, count++) {
        const size_t here = steps - first < part ? steps - first : part;
        calls[count] = *product;
        calls[count].attributes.continues = first > 0;
        calls[count].attributes.unfinished = first + here < steps;
        calls[count].inputs[0] = steps_of(product->inputs[0], a_rows, first, here);
        calls[count].inputs[1] = steps_of(product->inputs[1], b_rows, first, here);
    }
    return count;
}

static void check_parts(const example *e, hs_backend *backend, size_t part, const char *where) {
    const size_t cells = e->d->rows * e->d->columns;
    double *y = malloc(cells * sizeof *y);
    hs_call *calls = calloc(e->d->inner, sizeof *calls);
    uint32_t *flags = calloc(e->d->inner, sizeof *flags);
    cr_assert(y != NULL && calls != NULL && flags != NULL);
    for (size_t i = 0; i < cells; i++)
        y[i] = NAN; /* what stood there before is not read */
    hs_buffer *const buffers[] = {upload(backend, e->call->inputs[0].f64, e->d->rows * e->d->inner * sizeof(double)),
                                  upload(backend, e->call->inputs[1].f64, e->d->columns * e->d->inner * sizeof(double)),
                                  upload(backend, y, cells * sizeof *y)};
    hs_call whole = e->call->call;
    whole.inputs[0].buffer = buffers[0];
    whole.inputs[1].buffer = buffers[1];
    whole.outputs[0].buffer = buffers[2];
    const size_t count = hs_test_divide_product(&whole, part, calls);
    hs_program *program = NULL;
    hstep_error error = {0};
    cr_assert(backend->api->supports(backend, &calls[0]));
    cr_assert_eq(backend->api->program_create(backend, calls, count, &program, &error), HSTEP_OK, "%s", error.message);
    cr_assert_eq(hs_run_and_wait(backend, program, 0, count, flags, NULL), HSTEP_OK);
    cr_assert_eq(backend->api->read(backend, buffers[2], 0, y, cells * sizeof *y, NULL), HSTEP_OK);
    for (size_t i = 0; i < cells; i++)
        cr_assert(hs_test_same_value(y[i], e->expected->outputs[0][i]) ||
                      hs_test_same_value(y[i], e->flushed->outputs[0][i]),
                  "%s, parts of %zu: cell %zu is %a, not %a", where, part, i, y[i], e->expected->outputs[0][i]);
    for (size_t i = 0; i + 1 < count; i++)
        cr_assert_eq(flags[i], 0, "%s, parts of %zu: flag %zu", where, part, i);
    cr_assert(flags[count - 1] == e->expected->flag || flags[count - 1] == e->flushed->flag,
              "%s, parts of %zu: the last flag", where, part);
    backend->api->program_destroy(backend, program);
    for (size_t i = 0; i < 3; i++)
        backend->api->buffer_destroy(backend, buffers[i]);
    free(y);
    free(calls);
    free(flags);
}

static void check_everywhere(hs_parity *parity, const example *e, const char *what) {
    const example strict = {e->d, e->call, e->expected, e->expected};
    static const size_t parts[] = {1, 7, 33, 500, SIZE_MAX / 2};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const size_t part = parts[i] < e->d->inner ? parts[i] : e->d->inner > 1 ? e->d->inner - 1 : 1;
        check_parts(&strict, parity->reference, part, what);
        for (size_t lever = 0; lever < HS_TEST_LEVERS; lever++)
            for (unsigned threads = 0; threads < 2; threads++)
                if (parity->exact[lever][threads] != NULL)
                    check_parts(e, parity->exact[lever][threads], part, what);
    }
}

void hs_parity_compare_parts(hs_parity *parity, const hs_test_call *call, const char *what) {
    hs_test_result *expected = hs_test_call_run_well(call, parity->reference);
    hs_test_result *flushed = parity->flushing ? hs_test_call_run_well(call, parity->flushing) : expected;
    const example e = {&call->description, call, expected, flushed};
    check_everywhere(parity, &e, what);
    parity->calls++;
    parity->raised += expected->flag;
    if (flushed != expected)
        hs_test_result_destroy(flushed);
    hs_test_result_destroy(expected);
}

void hs_parity_check_parts(hs_parity *parity, const hs_test_description *d, hs_test_fill fill, double scale) {
    hs_test_call *call = hs_test_call_create(d);
    hs_test_call_fill(call, fill, 7 + d->rows);
    for (uint32_t i = 0; i < 2; i++)
        for (size_t j = 0; j < call->inputs[i].elements; j++)
            call->inputs[i].f64[j] *= scale;
    hs_parity_compare_parts(parity, call, "a product");
    hs_test_call_destroy(call);
}
