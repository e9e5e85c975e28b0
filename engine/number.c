/* Conversion and single products for callers. */
#include <halfstep/number.h>

#include "engine/context.h"
#include "engine/error.h"
#include "precision/format.h"
#include "precision/matmul.h"

uint16_t hstep_encode(hstep_format format, double value) { return hs_encode(format, value); }

double hstep_decode(hstep_format format, uint16_t bits) { return hs_decode(format, bits); }

static hstep_status check_arrays(hstep_format format, size_t count, const void *from, const void *to,
                                 hstep_error *error) {
    HS_RETURN_IF((unsigned)format > HSTEP_BF16, error, HSTEP_ERROR_ARGUMENT, "unknown format %d", (int)format);
    HS_RETURN_IF(count != 0 && (from == NULL || to == NULL), error, HSTEP_ERROR_ARGUMENT,
                 "%zu numbers to convert, and an array is missing", count);
    return HSTEP_OK;
}

hstep_status hstep_encode_array(hstep_format format, size_t count, const double *values, uint16_t *bits,
                                hstep_error *error) {
    HS_FORWARD(check_arrays(format, count, values, bits, error));
    for (size_t i = 0; i < count; i++)
        bits[i] = hs_encode(format, values[i]);
    return HSTEP_OK;
}

hstep_status hstep_decode_array(hstep_format format, size_t count, const uint16_t *bits, double *values,
                                hstep_error *error) {
    HS_FORWARD(check_arrays(format, count, bits, values, error));
    for (size_t i = 0; i < count; i++)
        values[i] = hs_decode(format, bits[i]);
    return HSTEP_OK;
}

typedef struct product {
    hstep_precision precision;
    hstep_transpose a_form, b_form;
    size_t m, n, k;
} product;

static hstep_status check_product(const product *p, const double *a, const double *b, const double *y,
                                  hstep_error *error) {
    HS_RETURN_IF((unsigned)p->precision > HSTEP_PRECISION_BF16, error, HSTEP_ERROR_ARGUMENT,
                 "hstep_matmul: unknown precision %d", (int)p->precision);
    HS_RETURN_IF((unsigned)p->a_form > 1 || (unsigned)p->b_form > 1, error, HSTEP_ERROR_ARGUMENT,
                 "hstep_matmul: unknown form of an operand");
    size_t a_count = 0, b_count = 0, y_count = 0;
    HS_RETURN_IF(__builtin_mul_overflow(p->m, p->k, &a_count) || __builtin_mul_overflow(p->k, p->n, &b_count) ||
                     __builtin_mul_overflow(p->m, p->n, &y_count) || a_count > SIZE_MAX / 16 ||
                     b_count > SIZE_MAX / 16 || y_count > SIZE_MAX / 16,
                 error, HSTEP_ERROR_SHAPE, "hstep_matmul: %zu x %zu x %zu is more than memory can hold", p->m, p->n,
                 p->k);
    HS_RETURN_IF((a == NULL && a_count != 0) || (b == NULL && b_count != 0) || (y == NULL && y_count != 0), error,
                 HSTEP_ERROR_ARGUMENT, "hstep_matmul: a matrix is missing");
    return HSTEP_OK;
}

static void multiply_on_reference(const product *p, const double *a, const double *b, double *y) {
    const bool a_turned = p->a_form == HSTEP_TRANSPOSE, b_turned = p->b_form == HSTEP_TRANSPOSE;
    const hs_matrix left = {a, a_turned ? 1 : p->k, a_turned ? p->m : 1};
    const hs_matrix right = {b, b_turned ? 1 : p->n, b_turned ? p->k : 1};
    hs_policy_matmul(p->precision, p->m, p->n, p->k, left, right, y, p->n, NULL);
}

static hs_view matrix_view(hs_buffer *buffer, size_t rows, size_t columns) {
    return (hs_view){
        .buffer = buffer, .dtype = HSTEP_DTYPE_F64, .rank = 2, .dims = {rows, columns}, .strides = {columns, 1}};
}

/* Runs the product as a program of one call on buffers {a, b, y}. */
static hstep_status run_product(hs_backend *backend, const product *p, hs_buffer *const *buffers, const double *a,
                                const double *b, double *y, hstep_error *error) {
    const bool a_turned = p->a_form == HSTEP_TRANSPOSE, b_turned = p->b_form == HSTEP_TRANSPOSE;
    const hs_call call = {.operation = HS_OP_MATMUL,
                          .precision = p->precision,
                          .attributes = {.a_form = p->a_form, .b_form = p->b_form},
                          .input_count = 2,
                          .output_count = 1,
                          .inputs = {matrix_view(buffers[0], a_turned ? p->k : p->m, a_turned ? p->m : p->k),
                                     matrix_view(buffers[1], b_turned ? p->n : p->k, b_turned ? p->k : p->n)},
                          .outputs = {matrix_view(buffers[2], p->m, p->n)}};
    HS_FORWARD(backend->api->write(backend, buffers[0], 0, a, p->m * p->k * sizeof *a, error));
    HS_FORWARD(backend->api->write(backend, buffers[1], 0, b, p->k * p->n * sizeof *b, error));
    hs_program *program = NULL;
    HS_FORWARD(backend->api->program_create(backend, &call, 1, &program, error));
    hstep_status status = hs_run_and_wait(backend, program, 0, 1, NULL, error);
    if (status == HSTEP_OK)
        status = backend->api->read(backend, buffers[2], 0, y, p->m * p->n * sizeof *y, error);
    backend->api->program_destroy(backend, program);
    return status;
}

static hstep_status multiply_on_backend(hs_backend *backend, const product *p, const double *a, const double *b,
                                        double *y, hstep_error *error) {
    const size_t elements[3] = {p->m * p->k, p->k * p->n, p->m * p->n};
    hs_buffer *buffers[3] = {NULL, NULL, NULL};
    hstep_status status = HSTEP_OK;
    for (int i = 0; i < 3 && status == HSTEP_OK; i++)
        status = backend->api->buffer_create(backend, elements[i] * sizeof(double), &buffers[i], error);
    if (status == HSTEP_OK)
        status = run_product(backend, p, buffers, a, b, y, error);
    for (int i = 0; i < 3; i++) {
        if (buffers[i] != NULL)
            backend->api->buffer_destroy(backend, buffers[i]);
    }
    return status;
}

hstep_status hstep_matmul(hstep_context *context, hstep_precision precision, hstep_transpose a_form,
                          hstep_transpose b_form, size_t m, size_t n, size_t k, const double *a, const double *b,
                          double *y, hstep_error *error) {
    const product p = {.precision = precision, .a_form = a_form, .b_form = b_form, .m = m, .n = n, .k = k};
    HS_FORWARD(check_product(&p, a, b, y, error));
    if (m == 0 || n == 0)
        return HSTEP_OK;
    if (context != NULL)
        return multiply_on_backend(context->backend, &p, a, b, y, error);
    multiply_on_reference(&p, a, b, y);
    return HSTEP_OK;
}
