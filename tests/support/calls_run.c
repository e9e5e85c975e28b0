/* Running a test's call on a backend, with filler around and between the rows of every operand. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "precision/format.h"
#include "support/calls.h"

enum { GUARD = 64, FILLER = 0xff }; /* filler is a NaN in every type */

/* An operand as it stands in its buffer. */
typedef struct image {
    unsigned char *bytes;
    size_t size;
    hs_buffer *buffer;
} image;

static size_t element_size(const hs_test_operand *operand) { return hs_dtype_size(operand->view.dtype); }

static size_t row_stride(const hs_test_operand *operand) {
    return operand->view.rank == 2 ? operand->view.strides[0] : operand->view.dims[0];
}

/* Place of dense element i in the image. */
static size_t place(const hs_test_operand *operand, size_t i) {
    const size_t columns = operand->view.dims[operand->view.rank - 1];
    return GUARD + (i / columns * row_stride(operand) + i % columns) * element_size(operand);
}

/* What the half of a compact operand stands for. */
static double represented(const hs_test_operand *operand, double value) {
    return operand->compact ? hs_decode(operand->format, hs_encode(operand->format, value)) : value;
}

static void put(const hs_test_operand *operand, size_t i, unsigned char *at) {
    if (operand->is_index) {
        memcpy(at, &operand->i32[i], sizeof operand->i32[i]);
    } else if (operand->view.dtype == HSTEP_DTYPE_F64) {
        const double value = represented(operand, operand->f64[i]);
        memcpy(at, &value, sizeof value);
    } else {
        const uint16_t half = hs_encode(operand->format, operand->f64[i]);
        memcpy(at, &half, sizeof half);
    }
}

static double get(const hs_test_operand *operand, const unsigned char *at) {
    if (operand->view.dtype == HSTEP_DTYPE_F64) {
        double value;
        memcpy(&value, at, sizeof value);
        return represented(operand, value);
    }
    uint16_t half;
    memcpy(&half, at, sizeof half);
    const double value = hs_decode(operand->format, half);
    cr_assert(!isnan(value) || half == hs_encode(operand->format, (double)NAN), "%#x is not the quiet NaN", half);
    return value;
}

static image make_image(const hs_test_operand *operand, bool with_values) {
    const size_t rows = operand->view.rank == 2 ? operand->view.dims[0] : 1;
    image made = {.size = 2 * GUARD + rows * row_stride(operand) * element_size(operand)};
    made.bytes = malloc(made.size);
    cr_assert_not_null(made.bytes, "out of memory");
    memset(made.bytes, FILLER, made.size);
    for (size_t i = 0; with_values && i < operand->elements; i++)
        put(operand, i, made.bytes + place(operand, i));
    return made;
}

static void upload(hs_backend *backend, image *made) {
    hstep_error error = {0};
    cr_assert_eq(backend->api->buffer_create(backend, made->size, &made->buffer, &error), HSTEP_OK, "%s",
                 error.message);
    cr_assert_eq(backend->api->write(backend, made->buffer, 0, made->bytes, made->size, &error), HSTEP_OK, "%s",
                 error.message);
}

/* Takes an output's values out of `after` and puts filler there, so that what is left must be filler. */
static double *take_values(const hs_test_operand *operand, unsigned char *after) {
    double *values = calloc(operand->elements ? operand->elements : 1, sizeof *values);
    cr_assert_not_null(values, "out of memory");
    for (size_t i = 0; i < operand->elements; i++) {
        values[i] = get(operand, after + place(operand, i));
        memset(after + place(operand, i), FILLER, element_size(operand));
    }
    return values;
}

static size_t count_changed(const unsigned char *a, const unsigned char *b, size_t size) {
    size_t changed = 0;
    for (size_t i = 0; i < size; i++)
        changed += a[i] != b[i];
    return changed;
}

static unsigned char *read_back(hs_backend *backend, const image *made) {
    hstep_error error = {0};
    unsigned char *after = malloc(made->size);
    cr_assert_not_null(after, "out of memory");
    cr_assert_eq(backend->api->read(backend, made->buffer, 0, after, made->size, &error), HSTEP_OK, "%s",
                 error.message);
    return after;
}

/* Whether the operation reads its outputs, or leaves a part of them as it was. */
static bool keeps_outputs(const hs_test_call *t) {
    return t->description.operation == HS_OP_ADAMW || t->description.operation == HS_OP_STORE_ROWS;
}

/* The input that output 0 shares, or -1. */
static int shared_input(const hs_test_call *t) {
    if (!t->description.in_place)
        return -1;
    switch (t->description.operation) {
    case HS_OP_GATHER_BACKWARD:
        return 2;
    case HS_OP_CROSS_ENTROPY_BACKWARD:
        return 1;
    default:
        return 0;
    }
}

static void collect(const hs_test_call *t, hs_backend *backend, const image *inputs, const image *outputs,
                    hs_test_result *result) {
    for (uint32_t i = 0; i < t->call.input_count; i++) {
        if ((int)i == shared_input(t))
            continue;
        unsigned char *after = read_back(backend, &inputs[i]);
        if (t->description.operation == HS_OP_ADAMW && i == 0) {
            image filler = make_image(&t->inputs[0], false);
            result->gradient = take_values(&t->inputs[0], after);
            result->spoiled += count_changed(after, filler.bytes, filler.size);
            free(filler.bytes);
        } else {
            result->spoiled += count_changed(after, inputs[i].bytes, inputs[i].size);
        }
        free(after);
    }
    for (uint32_t i = 0; i < t->call.output_count; i++) {
        unsigned char *after = read_back(backend, &outputs[i]);
        image filler = make_image(&t->outputs[i], false);
        result->outputs[i] = take_values(&t->outputs[i], after);
        result->elements[i] = t->outputs[i].elements;
        result->spoiled += count_changed(after, filler.bytes, filler.size);
        free(filler.bytes);
        free(after);
    }
    result->output_count = t->call.output_count;
}

static void run_program(hs_backend *backend, const hs_call *call, hs_test_result *result) {
    hs_program *program = NULL;
    result->status = backend->api->program_create(backend, call, 1, &program, &result->error);
    if (result->status != HSTEP_OK)
        return;
    result->status = backend->api->program_run(backend, program, 0, 1, &result->error);
    if (result->status == HSTEP_OK)
        result->status = backend->api->program_finish(backend, program, &result->flag, &result->error);
    if (result->status == HSTEP_OK && backend->api->locate)
        result->fault = backend->api->locate(backend, program, 0);
    backend->api->program_destroy(backend, program);
}

hs_test_result *hs_test_call_run(const hs_test_call *t, hs_backend *backend) {
    hs_test_result *result = calloc(1, sizeof *result);
    cr_assert_not_null(result, "out of memory");
    image inputs[HS_MAX_INPUTS] = {0}, outputs[HS_MAX_OUTPUTS] = {0};
    hs_call call = t->call;
    for (uint32_t i = 0; i < call.input_count; i++) {
        inputs[i] = make_image(&t->inputs[i], true);
        upload(backend, &inputs[i]);
        call.inputs[i].buffer = inputs[i].buffer;
        call.inputs[i].offset = GUARD;
    }
    for (uint32_t i = 0; i < call.output_count; i++) {
        if (i == 0 && shared_input(t) >= 0) {
            outputs[0] = inputs[shared_input(t)];
        } else {
            outputs[i] = make_image(&t->outputs[i], keeps_outputs(t));
            upload(backend, &outputs[i]);
        }
        call.outputs[i].buffer = outputs[i].buffer;
        call.outputs[i].offset = GUARD;
    }
    run_program(backend, &call, result);
    if (result->status == HSTEP_OK)
        collect(t, backend, inputs, outputs, result);
    for (uint32_t i = 0; i < call.output_count; i++) {
        if (i == 0 && shared_input(t) >= 0)
            continue;
        backend->api->buffer_destroy(backend, outputs[i].buffer);
        free(outputs[i].bytes);
    }
    for (uint32_t i = 0; i < call.input_count; i++) {
        backend->api->buffer_destroy(backend, inputs[i].buffer);
        free(inputs[i].bytes);
    }
    return result;
}

static void widen(hs_test_operand *operands, hs_view *views, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (operands[i].compact)
            operands[i].view.dtype = views[i].dtype = HSTEP_DTYPE_F64;
}

hs_test_result *hs_test_call_run_wide(const hs_test_call *t, hs_backend *backend) {
    hs_test_call wide = *t;
    widen(wide.inputs, wide.call.inputs, wide.call.input_count);
    widen(wide.outputs, wide.call.outputs, wide.call.output_count);
    return hs_test_call_run(&wide, backend);
}

hs_test_result *hs_test_call_run_well(const hs_test_call *t, hs_backend *backend) {
    hs_test_result *result = hs_test_call_run(t, backend);
    cr_assert_eq(result->status, HSTEP_OK, "%s", result->error.message);
    cr_assert_eq(result->spoiled, 0, "%s writes outside its outputs", hs_operation_name(t->call.operation));
    return result;
}

void hs_test_result_destroy(hs_test_result *result) {
    if (!result)
        return;
    for (size_t i = 0; i < result->output_count; i++)
        free(result->outputs[i]);
    free(result->gradient);
    free(result);
}

bool hs_test_same_value(double a, double b) { return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b)); }

/* Arrays of one operand in three results. */
typedef struct trio {
    const double *a, *other, *b;
} trio;

static size_t differences(trio values, size_t count, const char *name, size_t index, char *text, size_t size,
                          size_t found) {
    for (size_t i = 0; i < count; i++) {
        if (hs_test_same_value(values.a[i], values.b[i]) || hs_test_same_value(values.other[i], values.b[i]))
            continue;
        if (found++ == 0)
            snprintf(text, size, "%s %zu, element %zu: %a and %a", name, index, i, values.a[i], values.b[i]);
    }
    return found;
}

size_t hs_test_differences_from_both(const hs_test_result *a, const hs_test_result *other, const hs_test_result *b,
                                     char *text, size_t size) {
    size_t found = 0;
    if (size)
        text[0] = '\0';
    cr_assert_eq(a->output_count, b->output_count);
    for (size_t i = 0; i < a->output_count; i++) {
        const trio values = {a->outputs[i], other->outputs[i], b->outputs[i]};
        cr_assert_eq(a->elements[i], b->elements[i]);
        found = differences(values, a->elements[i], "output", i, text, size, found);
    }
    if (a->gradient && b->gradient) {
        const trio values = {a->gradient, other->gradient, b->gradient};
        found = differences(values, a->elements[0], "gradient", 0, text, size, found);
    }
    return found;
}

size_t hs_test_differences(const hs_test_result *a, const hs_test_result *b, char *text, size_t size) {
    return hs_test_differences_from_both(a, a, b, text, size);
}
