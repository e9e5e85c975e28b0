#include "support/calls.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "precision/format.h"
#include "precision/random.h"

static void *allocate(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    cr_assert_not_null(memory, "out of memory");
    return memory;
}

hs_test_description hs_test_describe(hs_operation operation) {
    return (hs_test_description){.operation = operation,
                                 .rows = 5,
                                 .columns = 7,
                                 .inner = 6,
                                 .table = 9,
                                 .sequences = 2,
                                 .queries = 5,
                                 .keys = 5,
                                 .heads = 4,
                                 .kv_heads = 2,
                                 .head_width = 6,
                                 .epsilon = 1e-5,
                                 .factor = 0.37};
}

hs_test_description hs_test_describe_matmul(hstep_precision precision, size_t rows, size_t columns, size_t inner) {
    hs_test_description d = hs_test_describe(HS_OP_MATMUL);
    d.precision = precision;
    d.rows = rows;
    d.columns = columns;
    d.inner = inner;
    return d;
}

/* Sets up one operand and the view of it in the call. */
static void add_operand(hs_test_operand *operand, hs_view *view, bool is_index, uint32_t rank, const size_t *dims,
                        size_t pitch) {
    operand->is_index = is_index;
    operand->view.dtype = is_index ? HSTEP_DTYPE_I32 : HSTEP_DTYPE_F64;
    operand->view.rank = rank;
    operand->elements = 1;
    for (uint32_t i = rank; i-- > 0;) {
        operand->view.dims[i] = dims[i];
        operand->view.strides[i] = i + 1 == rank ? 1 : dims[rank - 1] + pitch;
        operand->elements *= dims[i];
    }
    if (is_index)
        operand->i32 = allocate(operand->elements, sizeof(int32_t));
    else
        operand->f64 = allocate(operand->elements, sizeof(double));
    *view = operand->view;
}

static void matrix_in(hs_test_call *t, size_t rows, size_t columns, size_t pitch) {
    const uint32_t i = t->call.input_count++;
    add_operand(&t->inputs[i], &t->call.inputs[i], false, 2, (size_t[]){rows, columns}, pitch);
}

static void vector_in(hs_test_call *t, size_t count) {
    const uint32_t i = t->call.input_count++;
    add_operand(&t->inputs[i], &t->call.inputs[i], false, 1, &count, 0);
}

static void index_in(hs_test_call *t, size_t count) {
    const uint32_t i = t->call.input_count++;
    add_operand(&t->inputs[i], &t->call.inputs[i], true, 1, &count, 0);
}

static void matrix_out(hs_test_call *t, size_t rows, size_t columns, size_t pitch) {
    const uint32_t i = t->call.output_count++;
    add_operand(&t->outputs[i], &t->call.outputs[i], false, 2, (size_t[]){rows, columns}, pitch);
}

static void vector_out(hs_test_call *t, size_t count) {
    const uint32_t i = t->call.output_count++;
    add_operand(&t->outputs[i], &t->call.outputs[i], false, 1, &count, 0);
}

static void make_matmul(hs_test_call *t) {
    const hs_test_description *d = &t->description;
    if (d->a_form == HSTEP_NO_TRANSPOSE)
        matrix_in(t, d->rows, d->inner, d->pitch);
    else
        matrix_in(t, d->inner, d->rows, d->pitch);
    if (d->b_form == HSTEP_NO_TRANSPOSE)
        matrix_in(t, d->inner, d->columns, d->pitch);
    else
        matrix_in(t, d->columns, d->inner, d->pitch);
    matrix_out(t, d->rows, d->columns, d->pitch);
}

static void make_attention(hs_test_call *t) {
    const hs_test_description *d = &t->description;
    const bool backward = d->operation == HS_OP_ATTENTION_BACKWARD;
    const size_t q_rows = d->sequences * d->queries, k_rows = d->sequences * d->keys;
    const size_t q_width = d->heads * d->head_width, k_width = d->kv_heads * d->head_width;
    if (backward)
        matrix_in(t, q_rows, q_width, d->pitch);
    matrix_in(t, q_rows, q_width, d->pitch);
    matrix_in(t, k_rows, k_width, d->pitch);
    matrix_in(t, k_rows, k_width, d->pitch);
    index_in(t, q_rows);
    matrix_out(t, q_rows, q_width, d->pitch);
    if (backward) {
        matrix_out(t, k_rows, k_width, d->pitch);
        matrix_out(t, k_rows, k_width, d->pitch);
    }
}

static void make_rotary(hs_test_call *t) {
    const hs_test_description *d = &t->description;
    matrix_in(t, d->rows, d->heads * d->head_width, d->pitch);
    index_in(t, d->rows);
    matrix_in(t, d->table, d->head_width / 2, 0);
    matrix_in(t, d->table, d->head_width / 2, 0);
    matrix_out(t, d->rows, d->heads * d->head_width, d->pitch);
}

static void make_rmsnorm(hs_test_call *t) {
    const hs_test_description *d = &t->description;
    matrix_in(t, d->rows, d->columns, d->pitch);
    if (d->operation != HS_OP_RMSNORM)
        matrix_in(t, d->rows, d->columns, d->pitch);
    if (d->operation == HS_OP_RMSNORM_BACKWARD_GAIN) {
        vector_out(t, d->columns);
        return;
    }
    vector_in(t, d->columns);
    matrix_out(t, d->rows, d->columns, d->pitch);
}

static void make_gather(hs_test_call *t) {
    const hs_test_description *d = &t->description;
    if (d->operation == HS_OP_GATHER) {
        matrix_in(t, d->table, d->columns, 0);
        index_in(t, d->rows);
        matrix_out(t, d->rows, d->columns, 0);
        return;
    }
    matrix_in(t, d->rows, d->columns, 0);
    index_in(t, d->rows);
    if (!d->without_base)
        matrix_in(t, d->table, d->columns, 0);
    matrix_out(t, d->table, d->columns, 0);
}

static void make_store_rows(hs_test_call *t) {
    const hs_test_description *d = &t->description;
    matrix_in(t, d->rows, d->columns, 0);
    index_in(t, d->rows);
    matrix_out(t, d->rows + d->table, d->columns, 0);
}

static void make_cross_entropy(hs_test_call *t) {
    const hs_test_description *d = &t->description;
    const bool backward = d->operation == HS_OP_CROSS_ENTROPY_BACKWARD;
    if (backward)
        vector_in(t, 1);
    matrix_in(t, d->rows, d->columns, 0);
    index_in(t, d->rows);
    if (backward)
        matrix_out(t, d->rows, d->columns, 0);
    else
        vector_out(t, 1);
}

static void make_adamw(hs_test_call *t) {
    const hs_test_description *d = &t->description;
    matrix_in(t, d->rows, d->columns, 0);
    vector_in(t, HS_ADAMW_SCALARS);
    for (int i = 0; i < 3; i++)
        matrix_out(t, d->rows, d->columns, 0);
}

static void make_add_bias(hs_test_call *t) {
    matrix_in(t, t->description.rows, t->description.columns, 0);
    vector_in(t, t->description.columns);
    matrix_out(t, t->description.rows, t->description.columns, 0);
}

static void make_sum_rows(hs_test_call *t) {
    matrix_in(t, t->description.rows, t->description.columns, 0);
    vector_out(t, t->description.columns);
}

static void make_sum(hs_test_call *t) {
    matrix_in(t, t->description.rows, t->description.columns, 0);
    if (t->description.operation == HS_OP_SQUARE_SUM)
        vector_in(t, 1);
    vector_out(t, 1);
}

static void make_measure(hs_test_call *t) {
    matrix_in(t, t->description.rows, t->description.columns, 0);
    vector_out(t, HS_MEASURES);
}

static void make_fill(hs_test_call *t) {
    vector_in(t, 1);
    matrix_out(t, t->description.rows, t->description.columns, 0);
}

static void make_transpose(hs_test_call *t) {
    matrix_in(t, t->description.rows, t->description.columns, 0);
    matrix_out(t, t->description.columns, t->description.rows, 0);
}

/* How the operands of an operation are made. Without `make` they are matrices of rows x columns, all of one shape:
 * `inputs` and `outputs` of them, whose rows may have a pitch where the row says so. */
static const struct {
    void (*make)(hs_test_call *t);
    unsigned inputs, outputs;
    bool pitched;
} operands[HS_OP_COUNT] = {
    [HS_OP_MATMUL] = {.make = make_matmul},
    [HS_OP_GATHER] = {.make = make_gather},
    [HS_OP_GATHER_BACKWARD] = {.make = make_gather},
    [HS_OP_STORE_ROWS] = {.make = make_store_rows},
    [HS_OP_RMSNORM] = {.make = make_rmsnorm},
    [HS_OP_RMSNORM_BACKWARD_INPUT] = {.make = make_rmsnorm},
    [HS_OP_RMSNORM_BACKWARD_GAIN] = {.make = make_rmsnorm},
    [HS_OP_ROTARY] = {.make = make_rotary},
    [HS_OP_ROTARY_BACKWARD] = {.make = make_rotary},
    [HS_OP_ATTENTION] = {.make = make_attention},
    [HS_OP_ATTENTION_BACKWARD] = {.make = make_attention},
    [HS_OP_SWIGLU] = {.inputs = 2, .outputs = 1, .pitched = true},
    [HS_OP_SWIGLU_BACKWARD] = {.inputs = 3, .outputs = 2, .pitched = true},
    [HS_OP_ADD] = {.inputs = 2, .outputs = 1, .pitched = true},
    [HS_OP_CROSS_ENTROPY] = {.make = make_cross_entropy},
    [HS_OP_CROSS_ENTROPY_BACKWARD] = {.make = make_cross_entropy},
    [HS_OP_ADD_BIAS] = {.make = make_add_bias},
    [HS_OP_SUM_ROWS] = {.make = make_sum_rows},
    [HS_OP_MULTIPLY] = {.inputs = 2, .outputs = 1},
    [HS_OP_SCALE] = {.inputs = 1, .outputs = 1},
    [HS_OP_SUM] = {.make = make_sum},
    [HS_OP_FILL] = {.make = make_fill},
    [HS_OP_TRANSPOSE] = {.make = make_transpose},
    [HS_OP_SOFTMAX] = {.inputs = 1, .outputs = 1},
    [HS_OP_SOFTMAX_BACKWARD] = {.inputs = 2, .outputs = 1},
    [HS_OP_LOG] = {.inputs = 1, .outputs = 1},
    [HS_OP_LOG_BACKWARD] = {.inputs = 2, .outputs = 1},
    [HS_OP_SILU] = {.inputs = 1, .outputs = 1},
    [HS_OP_SILU_BACKWARD] = {.inputs = 2, .outputs = 1},
    [HS_OP_SQUARE_SUM] = {.make = make_sum},
    [HS_OP_MEASURE] = {.make = make_measure},
    [HS_OP_ADAMW] = {.make = make_adamw},
};

static void make_operands(hs_test_call *t) {
    const hs_test_description *d = &t->description;
    if (operands[d->operation].make != NULL) {
        operands[d->operation].make(t);
        return;
    }
    cr_assert_gt(operands[d->operation].outputs, 0, "%s has no row in the table of operands",
                 hs_operation_name(d->operation));
    const size_t pitch = operands[d->operation].pitched ? d->pitch : 0;
    for (unsigned i = 0; i < operands[d->operation].inputs; i++)
        matrix_in(t, d->rows, d->columns, pitch);
    for (unsigned i = 0; i < operands[d->operation].outputs; i++)
        matrix_out(t, d->rows, d->columns, pitch);
}

static void make_compact(const hs_test_description *d, hs_test_operand *operand, hs_view *view) {
    cr_assert(d->precision != HSTEP_PRECISION_F64 && !operand->is_index, "only a value in a half format is compact");
    operand->compact = true;
    operand->format = hs_precision_format(d->precision);
    operand->view.dtype = view->dtype = operand->format == HSTEP_FP16 ? HSTEP_DTYPE_FP16 : HSTEP_DTYPE_BF16;
}

static void make_chosen_compact(hs_test_call *t) {
    for (uint32_t i = 0; i < t->call.input_count; i++)
        if (t->description.compact & HS_TEST_INPUT(i))
            make_compact(&t->description, &t->inputs[i], &t->call.inputs[i]);
    for (uint32_t i = 0; i < t->call.output_count; i++)
        if (t->description.compact & HS_TEST_OUTPUT(i))
            make_compact(&t->description, &t->outputs[i], &t->call.outputs[i]);
}

hs_test_call *hs_test_call_create(const hs_test_description *description) {
    hs_test_call *t = allocate(1, sizeof *t);
    t->description = *description;
    t->call.operation = description->operation;
    t->call.precision = description->precision;
    t->call.attributes = (hs_attributes){.a_form = description->a_form,
                                         .b_form = description->b_form,
                                         .sequences = description->sequences,
                                         .heads = description->heads,
                                         .kv_heads = description->kv_heads,
                                         .head_width = description->head_width,
                                         .epsilon = description->epsilon,
                                         .factor = description->factor,
                                         .decay = description->decay};
    make_operands(t);
    make_chosen_compact(t);
    hs_test_call_fill(t, HS_TEST_UNIFORM, 1);
    return t;
}

void hs_test_call_destroy(hs_test_call *t) {
    if (!t)
        return;
    for (uint32_t i = 0; i < t->call.input_count; i++) {
        free(t->inputs[i].f64);
        free(t->inputs[i].i32);
    }
    for (uint32_t i = 0; i < t->call.output_count; i++)
        free(t->outputs[i].f64);
    free(t);
}

static double signed_value(hs_random *random, double magnitude) {
    return hs_random_next(random) & 1 ? -magnitude : magnitude;
}

static double special_value(hs_random *random) {
    static const double mild[] = {0.0, -0.0, 0x1p-1074, 0x1p-24, -0x1p-25, 0x1p-133, -0x1p-134, 65519.0};
    static const double wild[] = {INFINITY, -INFINITY, NAN, 65520.0, 1e300, -1e300};
    const uint64_t choice = hs_random_next(random) % 128;
    if (choice < 16)
        return mild[choice % (sizeof mild / sizeof *mild)];
    if (choice == 16)
        return wild[hs_random_next(random) % (sizeof wild / sizeof *wild)];
    return 2.0 * hs_random_uniform(random) - 1.0;
}

static double draw(hs_random *random, hs_test_fill fill) {
    const double u = hs_random_uniform(random);
    switch (fill) {
    case HS_TEST_UNIFORM:
        return 2.0 * u - 1.0;
    case HS_TEST_SMALL:
        return 0.2 * (2.0 * u - 1.0);
    case HS_TEST_POWERS:
        return signed_value(random, ldexp(1.0, (int)(u * 7.0) - 3));
    case HS_TEST_WIDE:
        return signed_value(random, ldexp(1.0 + u, (int)(hs_random_next(random) % 56) - 40));
    case HS_TEST_HUGE:
        return signed_value(random, ldexp(1.0 + u, (int)(hs_random_next(random) % 90) - 20));
    case HS_TEST_SPECIAL:
        return special_value(random);
    }
    return u;
}

/* The legal values of an index operand: `count` of them from `low`. */
static void index_range(const hs_test_description *d, int32_t *low, size_t *count) {
    const bool targets = d->operation == HS_OP_CROSS_ENTROPY || d->operation == HS_OP_CROSS_ENTROPY_BACKWARD;
    *low = targets ? -1 : 0;
    *count = targets ? d->columns + 1 : d->table;
}

static size_t common_divisor(size_t a, size_t b) { return b == 0 ? a : common_divisor(b, a % b); }

/* Places in the state, in no order and none twice. */
static void fill_places(hs_test_operand *operand, size_t places, hs_random *random) {
    size_t step = 1 + hs_random_next(random) % (places + 1);
    while (common_divisor(step, places) > 1)
        step++;
    const size_t first = hs_random_next(random) % (places + 1);
    for (size_t i = 0; i < operand->elements; i++)
        operand->i32[i] = (int32_t)((first + i * step) % places);
}

static void fill_index(hs_test_call *t, hs_test_operand *operand, hs_random *random) {
    const hs_test_description *d = &t->description;
    if (d->operation == HS_OP_STORE_ROWS) {
        fill_places(operand, d->rows + d->table, random);
        return;
    }
    if (d->operation == HS_OP_ATTENTION || d->operation == HS_OP_ATTENTION_BACKWARD) {
        for (size_t i = 0; i < operand->elements && d->keys > 0; i++) {
            size_t position = i % d->queries + (d->keys > d->queries ? d->keys - d->queries : 0);
            if (d->random_positions)
                position = hs_random_next(random) % d->keys;
            operand->i32[i] = (int32_t)(position < d->keys ? position : d->keys - 1);
        }
        return;
    }
    int32_t low;
    size_t count;
    index_range(d, &low, &count);
    for (size_t i = 0; i < operand->elements; i++)
        operand->i32[i] = low + (int32_t)(count ? hs_random_next(random) % count : 0);
}

static void fill_adamw(hs_test_call *t) {
    static const double scalars[HS_ADAMW_SCALARS] = {
        [HS_ADAMW_UNSCALE] = 0x1p-7, [HS_ADAMW_CLIP] = 0.75,  [HS_ADAMW_BETA1] = 0.9,    [HS_ADAMW_BETA2] = 0.999,
        [HS_ADAMW_RATE] = 3.69e-3,   [HS_ADAMW_ROOT] = 18.27, [HS_ADAMW_EPSILON] = 1e-8, [HS_ADAMW_DECAY] = 1e-5};
    memcpy(t->inputs[1].f64, scalars, sizeof scalars);
    for (size_t i = 0; i < t->outputs[2].elements; i++)
        t->outputs[2].f64[i] = fabs(t->outputs[2].f64[i]);
}

void hs_test_call_fill(hs_test_call *t, hs_test_fill fill, uint64_t seed) {
    hs_random random = {seed};
    for (uint32_t i = 0; i < t->call.input_count; i++) {
        hs_test_operand *operand = &t->inputs[i];
        if (operand->is_index)
            fill_index(t, operand, &random);
        for (size_t j = 0; operand->f64 && j < operand->elements; j++)
            operand->f64[j] = draw(&random, fill);
    }
    for (uint32_t i = 0; i < t->call.output_count; i++)
        for (size_t j = 0; j < t->outputs[i].elements; j++)
            t->outputs[i].f64[j] = draw(&random, fill);
    const hs_operation operation = t->description.operation;
    if (operation == HS_OP_ADAMW)
        fill_adamw(t);
    if (operation == HS_OP_LOG || operation == HS_OP_LOG_BACKWARD) {
        hs_test_operand *x = &t->inputs[operation == HS_OP_LOG ? 0 : 1];
        for (size_t j = 0; j < x->elements; j++)
            x->f64[j] = fabs(x->f64[j]) + 0x1p-10;
    }
}
