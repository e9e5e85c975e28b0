#include "engine/levers/product.h"

#include <math.h>
#include <stdlib.h>

const hstep_transpose hs_forms[HS_FORMS][2] = {{HSTEP_NO_TRANSPOSE, HSTEP_NO_TRANSPOSE},
                                               {HSTEP_NO_TRANSPOSE, HSTEP_TRANSPOSE},
                                               {HSTEP_TRANSPOSE, HSTEP_NO_TRANSPOSE}};

hstep_status hs_product_create(hs_backend *backend, hstep_precision precision, size_t m, size_t n, size_t k,
                               hs_product *product, hstep_error *error) {
    *product = (hs_product){.backend = backend, .precision = precision, .m = m, .n = n, .k = k};
    product->turned = malloc((m > n ? m : n) * k * sizeof *product->turned);
    hstep_status status = product->turned != NULL ? HSTEP_OK : hs_fail_memory(error, "the gate of a lever");
    const size_t counts[] = {m * k, k * n, m * n};
    hs_buffer **const buffers[] = {&product->a, &product->b, &product->y};
    for (size_t i = 0; i < 3 && status == HSTEP_OK; i++)
        status = backend->api->buffer_create(backend, counts[i] * sizeof(double), buffers[i], error);
    if (status != HSTEP_OK)
        hs_product_destroy(product);
    return status;
}

void hs_product_destroy(hs_product *product) {
    hs_buffer *const buffers[] = {product->a, product->b, product->y};
    for (size_t i = 0; i < 3; i++)
        if (buffers[i] != NULL)
            product->backend->api->buffer_destroy(product->backend, buffers[i]);
    free(product->turned);
    *product = (hs_product){0};
}

static hstep_status load(hs_product *p, hs_buffer *buffer, hstep_transpose form, size_t rows, size_t columns,
                         const double *x, hstep_error *error) {
    for (size_t i = 0; i < rows && form == HSTEP_TRANSPOSE; i++)
        for (size_t j = 0; j < columns; j++)
            p->turned[j * rows + i] = x[i * columns + j];
    return p->backend->api->write(p->backend, buffer, 0, form == HSTEP_TRANSPOSE ? p->turned : x,
                                  rows * columns * sizeof *x, error);
}

hstep_status hs_product_load(hs_product *product, size_t form, const double *a, const double *b, hstep_error *error) {
    HS_FORWARD(load(product, product->a, hs_forms[form][0], product->m, product->k, a, error));
    return load(product, product->b, hs_forms[form][1], product->k, product->n, b, error);
}

static hs_view view_of(hs_buffer *buffer, size_t rows, size_t columns, hstep_transpose form) {
    const size_t r = form == HSTEP_TRANSPOSE ? columns : rows, c = form == HSTEP_TRANSPOSE ? rows : columns;
    return (hs_view){.buffer = buffer, .dtype = HSTEP_DTYPE_F64, .rank = 2, .dims = {r, c}, .strides = {c, 1}};
}

hstep_status hs_product_program(const hs_product *product, size_t form, bool sums, hs_program **program,
                                hstep_error *error) {
    const hstep_transpose a_form = hs_forms[form][0], b_form = hs_forms[form][1];
    const hs_call call = {.operation = HS_OP_MATMUL,
                          .precision = product->precision,
                          .attributes = {.a_form = a_form, .b_form = b_form, .sums = sums},
                          .input_count = 2,
                          .output_count = 1,
                          .inputs = {view_of(product->a, product->m, product->k, a_form),
                                     view_of(product->b, product->k, product->n, b_form)},
                          .outputs = {view_of(product->y, product->m, product->n, HSTEP_NO_TRANSPOSE)}};
    return product->backend->api->program_create(product->backend, &call, 1, program, error);
}

hstep_status hs_product_run(const hs_product *product, hs_program *program, double *y, bool *nonfinite,
                            hstep_error *error) {
    const hs_backend_api *api = product->backend->api;
    const size_t count = product->m * product->n;
    uint32_t flag = 0;
    for (size_t i = 0; i < count; i++)
        y[i] = (double)NAN;
    HS_FORWARD(api->write(product->backend, product->y, 0, y, count * sizeof *y, error));
    HS_FORWARD(hs_run_and_wait(product->backend, program, 0, 1, &flag, error));
    *nonfinite = flag != 0;
    return api->read(product->backend, product->y, 0, y, count * sizeof *y, error);
}
