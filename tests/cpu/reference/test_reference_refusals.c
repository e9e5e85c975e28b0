/* Every operation takes a well-formed call in buffers of just the right size, and refuses each way to spoil it. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "cpu/cpu.h"
#include "support/calls.h"

static hs_backend *backend;

static void setup(void) { cr_assert_eq(hs_cpu_reference_create(&backend, NULL), HSTEP_OK); }

static void teardown(void) { backend->api->destroy(backend); }

TestSuite(refusals, .init = setup, .fini = teardown);

/* Gives each view a buffer that ends where its last element ends. */
static void give_buffers(hs_view *views, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        const size_t size = views[i].dtype == HSTEP_DTYPE_I32 ? 4 : 8;
        size_t last = 0;
        for (uint32_t j = 0; j < views[i].rank; j++)
            last += (views[i].dims[j] - 1) * views[i].strides[j];
        cr_assert_eq(backend->api->buffer_create(backend, (last + 1) * size, &views[i].buffer, NULL), HSTEP_OK);
    }
}

static void take_buffers(hs_view *views, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        backend->api->buffer_destroy(backend, views[i].buffer);
}

static hstep_status try_call(const hs_call *call, hstep_error *error) {
    hs_program *program = NULL;
    *error = (hstep_error){0};
    const hstep_status status = backend->api->program_create(backend, call, 1, &program, error);
    if (status == HSTEP_OK)
        backend->api->program_destroy(backend, program);
    return status;
}

static void expect_refusal(const hs_call *call, const char *spoilt, unsigned operand) {
    const char *name = hs_operation_name(call->operation);
    hstep_error error;
    cr_expect_eq(try_call(call, &error), HSTEP_ERROR_SHAPE, "%s: %s, operand %u", name, spoilt, operand);
    cr_expect_str_eq(error.operation, name);
    cr_expect_gt(strlen(error.message), 0);
}

/* Spoils one view of a copy of the call in every way. */
static void spoil_view(const hs_call *good, bool output, uint32_t i, bool may_pitch) {
    hs_call call = *good;
    hs_view *view = output ? &call.outputs[i] : &call.inputs[i];
    const hs_view kept = *view;
    const unsigned operand = output ? 100 + i : i;
    for (uint32_t j = 0; j < kept.rank; j++) {
        view->dims[j]++;
        expect_refusal(&call, "a dimension more", operand);
        *view = kept;
        view->dims[j] = SIZE_MAX / 8;
        expect_refusal(&call, "a huge dimension", operand);
        *view = kept;
    }
    view->strides[kept.rank - 1] = 2;
    expect_refusal(&call, "innermost stride 2", operand);
    *view = kept;
    if (kept.rank == 2) {
        view->strides[0] = kept.dims[1] - 1;
        expect_refusal(&call, "rows that overlap", operand);
        *view = kept;
        view->strides[0]++;
        expect_refusal(&call, may_pitch ? "a pitch beyond the buffer" : "a pitch", operand);
        *view = kept;
    }
    view->offset = kept.dtype == HSTEP_DTYPE_I32 ? 4 : 8;
    expect_refusal(&call, "an offset beyond the buffer", operand);
    view->offset = SIZE_MAX - 7;
    expect_refusal(&call, "a huge offset", operand);
    *view = kept;
    view->dtype = kept.dtype == HSTEP_DTYPE_I32 ? HSTEP_DTYPE_F64 : HSTEP_DTYPE_I32;
    expect_refusal(&call, "another element type", operand);
    /* The reference computes in f64 slots alone, the operation may know others. */
    view->dtype = HSTEP_DTYPE_FP16;
    hstep_error error;
    const hstep_status status = try_call(&call, &error);
    cr_expect(status == HSTEP_ERROR_SHAPE || status == HSTEP_ERROR_UNSUPPORTED, "%s: 16 bits, operand %u",
              hs_operation_name(call.operation), operand);
    *view = kept;
    view->buffer = NULL;
    expect_refusal(&call, "no buffer", operand);
    *view = kept;
    view->rank = 0;
    expect_refusal(&call, "rank 0", operand);
    view->rank = HS_MAX_RANK + 1;
    expect_refusal(&call, "rank 5", operand);
    *view = kept;
    if (kept.rank == 2 && kept.dims[0] > 1) {
        hs_buffer *wide;
        cr_assert_eq(backend->api->buffer_create(backend, 4096, &wide, NULL), HSTEP_OK);
        view->buffer = wide;
        view->offset = 4;
        expect_refusal(&call, "a misaligned offset", operand);
        backend->api->buffer_destroy(backend, wide);
    }
}

static void spoil_call(const hs_call *good, bool may_pitch) {
    hs_call call = *good;
    call.output_count--;
    expect_refusal(&call, "an output less", 0);
    call = *good;
    call.input_count++;
    call.inputs[call.input_count - 1] = call.inputs[0];
    expect_refusal(&call, "an input more", 0);
    call = *good;
    call.input_count -= good->operation == HS_OP_GATHER_BACKWARD ? 2 : 1;
    expect_refusal(&call, "too few inputs", 0);
    for (uint32_t i = 0; i < good->input_count; i++)
        spoil_view(good, false, i, may_pitch);
    for (uint32_t i = 0; i < good->output_count; i++)
        spoil_view(good, true, i, may_pitch);
}

static bool takes_pitch(hs_operation operation) {
    switch (operation) {
    case HS_OP_MATMUL:
    case HS_OP_RMSNORM:
    case HS_OP_RMSNORM_BACKWARD_INPUT:
    case HS_OP_RMSNORM_BACKWARD_GAIN:
    case HS_OP_ROTARY:
    case HS_OP_ROTARY_BACKWARD:
    case HS_OP_ATTENTION:
    case HS_OP_ATTENTION_BACKWARD:
    case HS_OP_SWIGLU:
    case HS_OP_SWIGLU_BACKWARD:
    case HS_OP_ADD:
        return true;
    default:
        return false;
    }
}

Test(refusals, every_operation_checks_every_operand) {
    for (int op = 0; op < HS_OP_COUNT; op++) {
        hs_test_description d = hs_test_describe((hs_operation)op);
        d.pitch = takes_pitch(d.operation) ? 3 : 0;
        hs_test_call *t = hs_test_call_create(&d);
        give_buffers(t->call.inputs, t->call.input_count);
        give_buffers(t->call.outputs, t->call.output_count);
        hstep_error error;
        cr_assert_eq(try_call(&t->call, &error), HSTEP_OK, "%s", error.message);
        spoil_call(&t->call, takes_pitch(d.operation));
        take_buffers(t->call.inputs, t->call.input_count);
        take_buffers(t->call.outputs, t->call.output_count);
        hs_test_call_destroy(t);
    }
}

/* Dimensions that nothing else decides: the rows of a table, and whatever is summed or filled. */
static bool is_free(hs_operation operation, bool output, uint32_t operand, uint32_t dimension) {
    switch (operation) {
    case HS_OP_GATHER:
    case HS_OP_SUM_ROWS:
        return !output && operand == 0 && dimension == 0;
    case HS_OP_CROSS_ENTROPY:
        return !output && operand == 0 && dimension == 1;
    case HS_OP_SUM:
    case HS_OP_SQUARE_SUM:
    case HS_OP_MEASURE:
        return !output && operand == 0;
    case HS_OP_FILL:
        return output;
    case HS_OP_STORE_ROWS:
        return output && dimension == 0;
    default:
        return false;
    }
}

/* One dimension more and one less, in buffers that have room for either. */
static void resize_view(const hs_call *good, bool output, uint32_t i) {
    const hs_view *kept = output ? &good->outputs[i] : &good->inputs[i];
    for (uint32_t j = 0; j < kept->rank; j++)
        for (int more = 0; more < 2; more++) {
            hs_call call = *good;
            hs_view *view = output ? &call.outputs[i] : &call.inputs[i];
            view->dims[j] += more ? 1 : (size_t)-1;
            if (kept->rank == 2)
                view->strides[0] = view->dims[1];
            hstep_error error;
            const hstep_status expected = is_free(call.operation, output, i, j) ? HSTEP_OK : HSTEP_ERROR_SHAPE;
            cr_expect_eq(try_call(&call, &error), expected, "%s: %s %u, dimension %u",
                         hs_operation_name(call.operation), output ? "output" : "input", i, j);
        }
}

Test(refusals, dimensions_agree_even_where_there_is_room) {
    hs_buffer *buffers[HS_MAX_INPUTS + HS_MAX_OUTPUTS];
    for (int i = 0; i < HS_MAX_INPUTS + HS_MAX_OUTPUTS; i++)
        cr_assert_eq(backend->api->buffer_create(backend, 1 << 16, &buffers[i], NULL), HSTEP_OK);
    for (int op = 0; op < HS_OP_COUNT; op++) {
        const hs_test_description d = hs_test_describe((hs_operation)op);
        hs_test_call *t = hs_test_call_create(&d);
        for (int i = 0; i < HS_MAX_INPUTS; i++)
            t->call.inputs[i].buffer = buffers[i];
        for (int i = 0; i < HS_MAX_OUTPUTS; i++)
            t->call.outputs[i].buffer = buffers[HS_MAX_INPUTS + i];
        for (uint32_t i = 0; i < t->call.input_count; i++)
            resize_view(&t->call, false, i);
        for (uint32_t i = 0; i < t->call.output_count; i++)
            resize_view(&t->call, true, i);
        hs_test_call_destroy(t);
    }
    for (int i = 0; i < HS_MAX_INPUTS + HS_MAX_OUTPUTS; i++)
        backend->api->buffer_destroy(backend, buffers[i]);
}

/* Runs a description whose attributes were changed after the operands were made. */
static void expect_attributes_refused(hs_operation operation, const hs_attributes *attributes,
                                      hstep_precision precision, const char *what) {
    hs_test_description d = hs_test_describe(operation);
    hs_test_call *t = hs_test_call_create(&d);
    t->call.attributes = *attributes;
    t->call.precision = precision;
    hs_test_result *result = hs_test_call_run(t, backend);
    cr_expect_eq(result->status, HSTEP_ERROR_SHAPE, "%s: %s", hs_operation_name(operation), what);
    cr_expect_str_eq(result->error.operation, hs_operation_name(operation));
    hs_test_result_destroy(result);
    hs_test_call_destroy(t);
}

Test(refusals, attributes_must_fit) {
    const hs_attributes good = {.sequences = 2, .heads = 4, .kv_heads = 2, .head_width = 6};
    for (int i = 0; i < 2; i++) {
        const hs_operation operation = i ? HS_OP_ATTENTION_BACKWARD : HS_OP_ATTENTION;
        hs_attributes bad = good;
        bad.sequences = 0;
        expect_attributes_refused(operation, &bad, HSTEP_PRECISION_F64, "no sequences");
        bad.sequences = 3;
        expect_attributes_refused(operation, &bad, HSTEP_PRECISION_F64, "rows no multiple of the sequences");
        bad = good;
        bad.kv_heads = 0;
        expect_attributes_refused(operation, &bad, HSTEP_PRECISION_F64, "no key heads");
        bad.kv_heads = 3;
        expect_attributes_refused(operation, &bad, HSTEP_PRECISION_F64, "key heads that do not divide");
        bad = good;
        bad.head_width = 0;
        expect_attributes_refused(operation, &bad, HSTEP_PRECISION_F64, "width 0");
        bad.head_width = SIZE_MAX / 2;
        expect_attributes_refused(operation, &bad, HSTEP_PRECISION_F64, "width that overflows");
        expect_attributes_refused(operation, &good, (hstep_precision)3, "unknown precision");
    }
    expect_attributes_refused(HS_OP_MATMUL, &good, (hstep_precision)3, "unknown precision");
    const hs_attributes form = {.b_form = (hstep_transpose)2};
    expect_attributes_refused(HS_OP_MATMUL, &form, HSTEP_PRECISION_F64, "unknown form");
    for (size_t width = 0; width < 9; width++) {
        if (width == 6)
            continue;
        const hs_attributes rotary = {.head_width = width};
        expect_attributes_refused(HS_OP_ROTARY, &rotary, HSTEP_PRECISION_F64, "head width");
        expect_attributes_refused(HS_OP_ROTARY_BACKWARD, &rotary, HSTEP_PRECISION_F64, "head width");
    }
    const hs_call unknown = {.operation = HS_OP_COUNT};
    hstep_error error;
    cr_assert_eq(try_call(&unknown, &error), HSTEP_ERROR_ARGUMENT);
}

static hs_view matrix(hs_buffer *buffer, size_t first, size_t rows, size_t columns, size_t pitch) {
    return (hs_view){buffer, first * sizeof(double), HSTEP_DTYPE_F64, 2, {rows, columns}, {pitch, 1}};
}

static hstep_status try_add(hs_view a, hs_view b, hs_view y) {
    const hs_call call = {
        .operation = HS_OP_ADD, .input_count = 2, .output_count = 1, .inputs = {a, b}, .outputs = {y}};
    hstep_error error;
    return try_call(&call, &error);
}

Test(refusals, outputs_overlap_no_input_but_the_one_in_place) {
    hs_buffer *buffer, *other;
    cr_assert_eq(backend->api->buffer_create(backend, 100 * sizeof(double), &buffer, NULL), HSTEP_OK);
    cr_assert_eq(backend->api->buffer_create(backend, 100 * sizeof(double), &other, NULL), HSTEP_OK);
    const hs_view a = matrix(buffer, 0, 3, 4, 10), b = matrix(other, 0, 3, 4, 4);
    cr_expect_eq(try_add(a, b, a), HSTEP_OK, "y may be a");
    cr_expect_eq(try_add(a, b, b), HSTEP_ERROR_SHAPE, "y may not be b");
    cr_expect_eq(try_add(a, a, matrix(buffer, 4, 3, 4, 10)), HSTEP_OK, "columns side by side");
    cr_expect_eq(try_add(a, a, matrix(buffer, 6, 3, 4, 10)), HSTEP_OK, "columns side by side");
    cr_expect_eq(try_add(a, b, matrix(buffer, 3, 3, 4, 10)), HSTEP_ERROR_SHAPE, "a shared column");
    cr_expect_eq(try_add(a, b, matrix(buffer, 7, 3, 4, 10)), HSTEP_ERROR_SHAPE, "columns that wrap into the next row");
    cr_expect_eq(try_add(a, b, matrix(buffer, 5, 3, 4, 9)), HSTEP_ERROR_SHAPE, "another pitch");
    cr_expect_eq(try_add(a, b, matrix(buffer, 40, 3, 4, 10)), HSTEP_OK, "behind it");
    cr_expect_eq(try_add(a, b, matrix(buffer, 10, 3, 4, 10)), HSTEP_ERROR_SHAPE, "a row later");
    hs_call twice = {.operation = HS_OP_SWIGLU_BACKWARD, .input_count = 3, .output_count = 2};
    twice.inputs[0] = twice.inputs[1] = twice.inputs[2] = a;
    twice.outputs[0] = twice.outputs[1] = b;
    hstep_error error;
    cr_expect_eq(try_call(&twice, &error), HSTEP_ERROR_SHAPE, "two outputs in one place");
    backend->api->buffer_destroy(backend, buffer);
    backend->api->buffer_destroy(backend, other);
}
