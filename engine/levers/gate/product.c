#include "engine/levers/gate/product.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "precision/format.h"

const hstep_transpose hs_forms[HS_FORMS][2] = {{HSTEP_NO_TRANSPOSE, HSTEP_NO_TRANSPOSE},
                                               {HSTEP_NO_TRANSPOSE, HSTEP_TRANSPOSE},
                                               {HSTEP_TRANSPOSE, HSTEP_NO_TRANSPOSE}};

/* Every operand meets both types and both pitches, and the inputs differ in type either way round. */
const hs_storage hs_storages[HS_STORAGES] = {
    {"f64", false, false, false, false},        {"16-bit", true, true, true, false},
    {"pitched f64", false, false, false, true}, {"pitched 16-bit", true, true, true, true},
    {"mixed", false, true, true, false},        {"pitched mixed", true, false, false, true}};

/* Elements of a gap, which moves rows off every alignment; rows that are uploaded at once; what stands in the gaps of a
 * result. */
enum { GAP = 5, ROWS = 16 };
#define MARK 3.0

/* A matrix as it stands in a buffer. */
typedef struct layout {
    size_t rows, columns, pitch;
    hstep_dtype dtype;
} layout;

static layout layout_of(const hs_product *p, size_t rows, size_t columns, hstep_transpose form, bool half) {
    const bool turned = form == HSTEP_TRANSPOSE;
    layout i = {.rows = turned ? columns : rows,
                .columns = turned ? rows : columns,
                .dtype = half ? hs_operand_dtype(p->precision) : HSTEP_DTYPE_F64};
    i.pitch = i.columns + (p->storage->pitched ? GAP : 0);
    return i;
}

static layout layout_of_a(const hs_product *p) {
    return layout_of(p, p->m, p->k, hs_forms[p->form][0], p->storage->a_half);
}

static layout layout_of_b(const hs_product *p) {
    return layout_of(p, p->k, p->n, hs_forms[p->form][1], p->storage->b_half);
}

static layout layout_of_y(const hs_product *p, bool sums) {
    return layout_of(p, p->m, p->n, HSTEP_NO_TRANSPOSE, p->storage->y_half && !sums);
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

/* Elements of a matrix in either orientation, with gaps. */
static size_t room_for(size_t rows, size_t columns) { return larger(rows * (columns + GAP), columns * (rows + GAP)); }

hstep_status hs_product_create(hs_backend *backend, hstep_precision precision, size_t m, size_t n, size_t k,
                               hs_product *product, hstep_error *error) {
    const size_t widest = larger(larger(m, n), k) + GAP;
    *product =
        (hs_product){.backend = backend, .precision = precision, .m = m, .n = n, .k = k, .storage = &hs_storages[0]};
    HS_RETURN_IF(widest > SIZE_MAX / 4096, error, HSTEP_ERROR_MEMORY, "a product of depth %zu is too large", k);
    product->room = malloc(larger(ROWS * widest, room_for(m, n)) * sizeof(double));
    hstep_status status = product->room != NULL ? HSTEP_OK : hs_fail_memory(error, "the gate of a lever");
    const size_t counts[] = {room_for(m, k), room_for(k, n), room_for(m, n)};
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
    free(product->room);
    *product = (hs_product){0};
}

/* ---- Elements of a buffer ---- */

static void put(const layout *l, void *data, size_t i, double value) {
    if (l->dtype == HSTEP_DTYPE_F64)
        ((double *)data)[i] = value;
    else
        ((uint16_t *)data)[i] = hs_encode(hs_dtype_format(l->dtype), value);
}

static double get(const layout *l, const void *data, size_t i) {
    if (l->dtype == HSTEP_DTYPE_F64)
        return ((const double *)data)[i];
    return hs_decode(hs_dtype_format(l->dtype), ((const uint16_t *)data)[i]);
}

static void fill_gaps(const layout *l, void *data, size_t rows, double value) {
    for (size_t i = 0; i < rows; i++)
        for (size_t j = l->columns; j < l->pitch; j++)
            put(l, data, i * l->pitch + j, value);
}

/* Uploads dense x, `turned` where the layout has its columns as rows. A few rows at a time, so that turning them reads
 * whole lines of memory. */
static hstep_status upload(const hs_product *p, hs_buffer *buffer, const layout *l, bool turned, const double *x,
                           hstep_error *error) {
    const size_t row_bytes = l->pitch * hs_dtype_size(l->dtype);
    for (size_t first = 0; first < l->rows; first += ROWS) {
        const size_t rows = l->rows - first < ROWS ? l->rows - first : ROWS;
        for (size_t j = 0; j < l->columns && turned; j++)
            for (size_t i = 0; i < rows; i++)
                put(l, p->room, i * l->pitch + j, x[j * l->rows + first + i]);
        for (size_t i = 0; i < rows && !turned; i++)
            for (size_t j = 0; j < l->columns; j++)
                put(l, p->room, i * l->pitch + j, x[(first + i) * l->columns + j]);
        fill_gaps(l, p->room, rows, (double)NAN);
        HS_FORWARD(p->backend->api->write(p->backend, buffer, first * row_bytes, p->room, rows * row_bytes, error));
    }
    return HSTEP_OK;
}

hstep_status hs_product_load(hs_product *product, const hs_storage *storage, size_t form, const double *a,
                             const double *b, hstep_error *error) {
    product->storage = storage;
    product->form = form;
    const layout left = layout_of_a(product), right = layout_of_b(product);
    HS_FORWARD(upload(product, product->a, &left, hs_forms[form][0] == HSTEP_TRANSPOSE, a, error));
    return upload(product, product->b, &right, hs_forms[form][1] == HSTEP_TRANSPOSE, b, error);
}

/* ---- Calls ---- */

static hs_view view_of(hs_buffer *buffer, layout l) {
    return (hs_view){
        .buffer = buffer, .dtype = l.dtype, .rank = 2, .dims = {l.rows, l.columns}, .strides = {l.pitch, 1}};
}

static hs_call call_of(const hs_product *p, bool sums) {
    return (hs_call){.operation = HS_OP_MATMUL,
                     .precision = p->precision,
                     .attributes = {.a_form = hs_forms[p->form][0], .b_form = hs_forms[p->form][1], .sums = sums},
                     .input_count = 2,
                     .output_count = 1,
                     .inputs = {view_of(p->a, layout_of_a(p)), view_of(p->b, layout_of_b(p))},
                     .outputs = {view_of(p->y, layout_of_y(p, sums))}};
}

bool hs_product_can_stand(const hs_product *product, const hs_storage *storage) {
    if (product->precision == HSTEP_PRECISION_F64)
        return !(storage->a_half || storage->b_half || storage->y_half);
    hs_product so = *product;
    so.storage = storage;
    const hs_call call = call_of(&so, false);
    return product->backend->api->supports(product->backend, &call);
}

hstep_status hs_product_program(const hs_product *product, bool sums, size_t count, hs_program **program,
                                hstep_error *error) {
    hs_call calls[HS_PRODUCT_CALLS];
    for (size_t i = 0; i < count; i++)
        calls[i] = call_of(product, sums);
    return product->backend->api->program_create(product->backend, calls, count, program, error);
}

hstep_status hs_product_run(const hs_product *product, hs_program *program, bool sums, double *y,
                            hs_product_traces *traces, hstep_error *error) {
    const hs_backend_api *api = product->backend->api;
    const layout l = layout_of_y(product, sums);
    const size_t bytes = l.rows * l.pitch * hs_dtype_size(l.dtype);
    uint32_t flag = 0;
    for (size_t i = 0; i < l.rows * l.pitch; i++)
        put(&l, product->room, i, (double)NAN);
    fill_gaps(&l, product->room, l.rows, MARK);
    HS_FORWARD(api->write(product->backend, product->y, 0, product->room, bytes, error));
    HS_FORWARD(hs_run_and_wait(product->backend, program, 0, 1, &flag, error));
    HS_FORWARD(api->read(product->backend, product->y, 0, product->room, bytes, error));
    *traces = (hs_product_traces){.nonfinite = flag != 0};
    for (size_t i = 0; i < l.rows; i++) {
        for (size_t j = 0; j < l.columns; j++)
            y[i * l.columns + j] = get(&l, product->room, i * l.pitch + j);
        for (size_t j = l.columns; j < l.pitch; j++)
            traces->strays += !(get(&l, product->room, i * l.pitch + j) == MARK);
    }
    return HSTEP_OK;
}
