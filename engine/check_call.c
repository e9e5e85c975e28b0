#include "engine/check_call.h"

#include <string.h>

/*
 * One pattern for each operand, inputs before outputs. A letter is a dimension: it takes its value where it occurs
 * first, or from the attributes, and must have it everywhere. "*" is any shape, one for all operands that say so, "#"
 * marks an i32 operand. Behind the letters, "~" marks one whose rows may have a pitch, the others are contiguous, and
 * "=" one that may stand in 16 bits, and "?" one, the last of its kind, that may be missing.
 */
typedef struct pattern {
    uint8_t inputs, outputs;
    int8_t in_place; /* the input that output 0 may be, or -1 */
    const char *operands[HS_MAX_INPUTS + HS_MAX_OUTPUTS];
} pattern;

static const pattern patterns[HS_OP_COUNT] = {
    [HS_OP_MATMUL] = {2, 1, -1, {"mk~=", "kn~=", "mn~="}},
    [HS_OP_GATHER] = {2, 1, -1, {"Vd", "#R", "Rd"}},
    [HS_OP_GATHER_BACKWARD] = {3, 1, 2, {"Rd", "#R", "Vd?", "Vd"}},
    [HS_OP_STORE_ROWS] = {2, 1, -1, {"Rd=", "#R", "Sd="}},
    [HS_OP_RMSNORM] = {2, 1, -1, {"Rd~", "d", "Rd~="}},
    [HS_OP_RMSNORM_BACKWARD_INPUT] = {3, 1, -1, {"Rd~=", "Rd~", "d", "Rd~"}},
    [HS_OP_RMSNORM_BACKWARD_GAIN] = {2, 1, -1, {"Rd~=", "Rd~", "d"}},
    [HS_OP_ROTARY] = {4, 1, -1, {"Rd~=", "#R", "Ph", "Ph", "Rd~="}},
    [HS_OP_ROTARY_BACKWARD] = {4, 1, -1, {"Rd~=", "#R", "Ph", "Ph", "Rd~="}},
    [HS_OP_ATTENTION] = {4, 1, -1, {"Qd~=", "Ke~=", "Ke~=", "#Q", "Qd~="}},
    [HS_OP_ATTENTION_BACKWARD] = {5, 3, -1, {"Qd~=", "Qd~=", "Ke~=", "Ke~=", "#Q", "Qd~=", "Ke~=", "Ke~="}},
    [HS_OP_SWIGLU] = {2, 1, -1, {"*~=", "*~=", "*~="}},
    [HS_OP_SWIGLU_BACKWARD] = {3, 2, -1, {"*~=", "*~=", "*~=", "*~=", "*~="}},
    [HS_OP_ADD] = {2, 1, 0, {"*~=", "*~=", "*~="}},
    [HS_OP_CROSS_ENTROPY] = {2, 1, -1, {"RV=", "#R", "1"}},
    [HS_OP_CROSS_ENTROPY_BACKWARD] = {3, 1, 1, {"1", "RV=", "#R", "RV="}},
    [HS_OP_ADD_BIAS] = {2, 1, -1, {"Rd", "d", "Rd"}},
    [HS_OP_SUM_ROWS] = {1, 1, -1, {"Rd", "d"}},
    [HS_OP_MULTIPLY] = {2, 1, -1, {"*", "*", "*"}},
    [HS_OP_SCALE] = {1, 1, -1, {"*=", "*="}},
    [HS_OP_SUM] = {1, 1, -1, {"*", "1"}},
    [HS_OP_FILL] = {1, 1, -1, {"1", "*"}},
    [HS_OP_TRANSPOSE] = {1, 1, -1, {"mn", "nm"}},
    [HS_OP_SOFTMAX] = {1, 1, -1, {"Rd", "Rd"}},
    [HS_OP_SOFTMAX_BACKWARD] = {2, 1, -1, {"Rd", "Rd", "Rd"}},
    [HS_OP_LOG] = {1, 1, -1, {"*", "*"}},
    [HS_OP_LOG_BACKWARD] = {2, 1, -1, {"*", "*", "*"}},
    [HS_OP_SILU] = {1, 1, -1, {"*", "*"}},
    [HS_OP_SILU_BACKWARD] = {2, 1, -1, {"*", "*", "*"}},
    [HS_OP_SQUARE_SUM] = {2, 1, -1, {"*", "1", "1"}},
    [HS_OP_MEASURE] = {1, 1, -1, {"*=", "M"}},
    [HS_OP_ADAMW] = {2, 4, -1, {"*", "s", "*", "*", "*", "*=?"}},
};

/* What the letters stand for so far. */
typedef struct binding {
    bool bound[128];
    size_t value[128];
    const hs_view *any; /* the shape of "*" */
} binding;

static void bind(binding *b, char letter, size_t value) {
    b->bound[(unsigned char)letter] = true;
    b->value[(unsigned char)letter] = value;
}

static bool agrees(binding *b, char letter, size_t value) {
    if (!b->bound[(unsigned char)letter])
        bind(b, letter, value);
    return b->value[(unsigned char)letter] == value;
}

/* Bytes from the first element to behind the last; false where they do not fit into a size_t. */
static bool view_extent(const hs_view *view, size_t element, size_t *extent) {
    size_t last = 0;
    *extent = 0;
    for (uint32_t i = 0; i < view->rank; i++)
        if (view->dims[i] == 0)
            return true;
    for (uint32_t i = 0; i < view->rank; i++) {
        size_t reach;
        if (__builtin_mul_overflow(view->dims[i] - 1, view->strides[i], &reach) ||
            __builtin_add_overflow(last, reach, &last))
            return false;
    }
    return !__builtin_add_overflow(last, 1, &last) && !__builtin_mul_overflow(last, element, extent);
}

/* Innermost stride 1, rows as the pattern allows, further dimensions without gaps. */
static bool strides_fit(const hs_view *view, bool may_pitch) {
    for (uint32_t i = view->rank; i-- > 0;) {
        size_t dense = 1;
        if (i + 1 < view->rank && __builtin_mul_overflow(view->dims[i + 1], view->strides[i + 1], &dense))
            return false;
        const bool row = view->rank >= 2 && i == view->rank - 2;
        if (row && may_pitch ? view->strides[i] < dense : view->strides[i] != dense)
            return false;
    }
    return true;
}

/* Whether the output of a product holds sums that are not rounded, before or after the call. */
static bool holds_sums(const hs_call *call) {
    return call->attributes.sums || call->attributes.continues || call->attributes.unfinished;
}

/* Whether an operand may be of the type that it is. */
static bool type_fits(const hs_call *call, const char *letters, hstep_dtype dtype, bool output) {
    if (*letters == '#' || !hs_dtype_is_half(dtype))
        return dtype == (*letters == '#' ? HSTEP_DTYPE_I32 : HSTEP_DTYPE_F64);
    if (!strchr(letters, '=') || (output && holds_sums(call)))
        return false;
    return !hs_has_products(call->operation) || dtype == hs_operand_dtype(call->precision);
}

/* The same for the operands that a call says it has. */
static bool types_fit(const hs_call *call) {
    const pattern *p = &patterns[call->operation];
    for (uint32_t i = 0; i < call->input_count; i++)
        if (i >= p->inputs || !type_fits(call, p->operands[i], call->inputs[i].dtype, false))
            return false;
    for (uint32_t i = 0; i < call->output_count; i++)
        if (i >= p->outputs || !type_fits(call, p->operands[p->inputs + i], call->outputs[i].dtype, true))
            return false;
    return true;
}

bool hs_check_types(const hs_call *call) {
    return (unsigned)call->operation < HS_OP_COUNT && (unsigned)call->precision <= HSTEP_PRECISION_BF16 &&
           types_fit(call);
}

/* Returns what is wrong with an operand by itself, or NULL. */
static const char *check_view(const hs_view *view, bool may_pitch) {
    const size_t element = hs_dtype_size(view->dtype);
    size_t extent;
    if (!view->buffer)
        return "has no buffer";
    if (view->rank == 0 || view->rank > HS_MAX_RANK)
        return "has the wrong rank";
    if (!strides_fit(view, may_pitch))
        return "has strides that the operation cannot follow";
    if (!view_extent(view, element, &extent) || view->offset > view->buffer->bytes ||
        extent > view->buffer->bytes - view->offset)
        return "reaches beyond its buffer";
    if (view->offset % element != 0)
        return "is not aligned to its elements";
    return NULL;
}

static bool same_dims(const hs_view *a, const hs_view *b) {
    return a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0;
}

/* Whether the dimensions are those of the pattern; a transposed matrix is given with its letters turned over. */
static bool dims_fit(binding *b, const char *letters, const hs_view *view, bool turned) {
    if (*letters == '*') {
        if (!b->any)
            b->any = view;
        return same_dims(b->any, view);
    }
    const size_t rank = strcspn(letters, "~=?");
    if (view->rank != rank)
        return false;
    for (size_t i = 0; i < rank; i++)
        if (!agrees(b, letters[turned ? rank - 1 - i : i], view->dims[i]))
            return false;
    return true;
}

static size_t row_bytes(const hs_view *view) {
    return view->rank == 2 ? view->strides[0] * hs_dtype_size(view->dtype) : 0;
}

/* Whether two views share an element; columns of one matrix, side by side, do not. */
static bool overlap(const hs_view *a, const hs_view *b) {
    size_t a_extent, b_extent;
    if (a->buffer != b->buffer || !view_extent(a, hs_dtype_size(a->dtype), &a_extent) ||
        !view_extent(b, hs_dtype_size(b->dtype), &b_extent) || a_extent == 0 || b_extent == 0)
        return false;
    if (a->offset + a_extent <= b->offset || b->offset + b_extent <= a->offset)
        return false;
    const size_t pitch = row_bytes(a);
    if (pitch == 0 || pitch != row_bytes(b))
        return true;
    const size_t shift = (b->offset % pitch + pitch - a->offset % pitch) % pitch;
    return shift < a->dims[1] * hs_dtype_size(a->dtype) || shift + b->dims[1] * hs_dtype_size(b->dtype) > pitch;
}

static bool same_view(const hs_view *a, const hs_view *b) {
    return a->buffer == b->buffer && a->offset == b->offset && a->dtype == b->dtype && same_dims(a, b) &&
           memcmp(a->strides, b->strides, a->rank * sizeof *a->strides) == 0;
}

static const char *check_overlap(const pattern *p, const hs_call *call) {
    for (uint32_t i = 0; i < call->output_count; i++) {
        for (uint32_t j = 0; j < call->input_count; j++) {
            if (call->inputs[j].dtype == HSTEP_DTYPE_I32 || !overlap(&call->outputs[i], &call->inputs[j]))
                continue;
            if (i != 0 || (int)j != p->in_place || !same_view(&call->outputs[i], &call->inputs[j]))
                return "an output overlaps an input";
        }
        for (uint32_t j = 0; j < i; j++)
            if (overlap(&call->outputs[i], &call->outputs[j]))
                return "two outputs overlap";
    }
    return NULL;
}

static const char *bind_attention(const hs_call *call, binding *b) {
    const hs_attributes *a = &call->attributes;
    size_t width, kv_width;
    if (a->sequences == 0 || a->heads == 0 || a->kv_heads == 0 || a->head_width == 0 || a->heads % a->kv_heads != 0)
        return "sequences, heads, kv_heads and head_width must be positive and kv_heads divide heads";
    if (__builtin_mul_overflow(a->heads, a->head_width, &width) ||
        __builtin_mul_overflow(a->kv_heads, a->head_width, &kv_width))
        return "the heads are too wide";
    bind(b, 'd', width);
    bind(b, 'e', kv_width);
    return NULL;
}

/* Sequences of more positions than this would overflow the index of a score. */
#define LONGEST_SEQUENCE ((size_t)1 << 24)

static const char *check_sequences(const hs_call *call, const binding *b) {
    const size_t sequences = call->attributes.sequences;
    const size_t q_rows = b->value['Q'], k_rows = b->value['K'];
    if (q_rows % sequences != 0 || k_rows % sequences != 0)
        return "the rows are no multiple of the sequences";
    if (q_rows / sequences > LONGEST_SEQUENCE || k_rows / sequences > LONGEST_SEQUENCE)
        return "a sequence is too long";
    return NULL;
}

/* Gives letters the values that attributes decide; returns what is wrong with the attributes, or NULL. */
static const char *bind_attributes(const hs_call *call, binding *b) {
    const hs_attributes *a = &call->attributes;
    bind(b, '1', 1);
    bind(b, 's', HS_ADAMW_SCALARS);
    bind(b, 'M', HS_MEASURES);
    switch (call->operation) {
    case HS_OP_MATMUL:
        if ((unsigned)a->a_form > HSTEP_TRANSPOSE || (unsigned)a->b_form > HSTEP_TRANSPOSE)
            return "an operand has an unknown form";
        return (unsigned)call->precision > HSTEP_PRECISION_BF16 ? "the precision is unknown" : NULL;
    case HS_OP_ROTARY:
    case HS_OP_ROTARY_BACKWARD:
        bind(b, 'h', a->head_width / 2);
        return a->head_width == 0 || a->head_width % 2 != 0 ? "head_width must be even and positive" : NULL;
    case HS_OP_ATTENTION:
    case HS_OP_ATTENTION_BACKWARD:
        return (unsigned)call->precision > HSTEP_PRECISION_BF16 ? "the precision is unknown" : bind_attention(call, b);
    default:
        return NULL;
    }
}

/* What holds between attributes and dimensions once all are known. */
static const char *check_attributes(const hs_call *call, const binding *b) {
    switch (call->operation) {
    case HS_OP_ROTARY:
    case HS_OP_ROTARY_BACKWARD:
        return b->value['d'] % call->attributes.head_width ? "the width is no multiple of head_width" : NULL;
    case HS_OP_ATTENTION:
    case HS_OP_ATTENTION_BACKWARD:
        return check_sequences(call, b);
    default:
        return NULL;
    }
}

static bool is_turned(const hs_call *call, bool output, uint32_t i) {
    if (call->operation != HS_OP_MATMUL || output)
        return false;
    return (i == 0 ? call->attributes.a_form : call->attributes.b_form) == HSTEP_TRANSPOSE;
}

static hstep_status check_operand(const hs_call *call, binding *b, const char *letters, bool output, uint32_t i,
                                  hstep_error *error) {
    const char *name = hs_operation_name(call->operation), *kind = output ? "output" : "input";
    const hs_view *view = output ? &call->outputs[i] : &call->inputs[i];
    const char *wrong = type_fits(call, letters, view->dtype, output) ? check_view(view, strchr(letters, '~') != NULL)
                                                                      : "has the wrong element type";
    if (!wrong && !dims_fit(b, letters + (*letters == '#' ? 1 : 0), view, is_turned(call, output, i)))
        wrong = "has dimensions that do not fit the others";
    if (wrong)
        return hs_fail_operation(error, HSTEP_ERROR_SHAPE, name, "%s: %s %u %s", name, kind, i, wrong);
    return HSTEP_OK;
}

/* The pattern of an output; unfinished cross-entropy gives the losses of rows. */
static const char *output_letters(const hs_call *call, const char *letters) {
    return call->operation == HS_OP_CROSS_ENTROPY && call->attributes.unfinished ? "R" : letters;
}

/* Whether there are as many operands as the pattern has from `operands` on. */
static bool count_fits(uint32_t count, uint32_t most, const char *const *operands) {
    return count == most || (count + 1 == most && strchr(operands[count], '?') != NULL);
}

hstep_status hs_check_call(const hs_call *call, hstep_error *error) {
    HS_RETURN_IF((unsigned)call->operation >= HS_OP_COUNT, error, HSTEP_ERROR_ARGUMENT, "there is no operation %u",
                 (unsigned)call->operation);
    const pattern *p = &patterns[call->operation];
    const char *name = hs_operation_name(call->operation);
    if (!count_fits(call->input_count, p->inputs, p->operands) ||
        !count_fits(call->output_count, p->outputs, p->operands + p->inputs))
        return hs_fail_operation(error, HSTEP_ERROR_SHAPE, name, "%s: takes %u inputs and %u outputs, not %u and %u",
                                 name, p->inputs, p->outputs, call->input_count, call->output_count);
    binding b = {0};
    const char *wrong = bind_attributes(call, &b);
    for (uint32_t i = 0; !wrong && i < call->input_count; i++)
        HS_FORWARD(check_operand(call, &b, p->operands[i], false, i, error));
    for (uint32_t i = 0; !wrong && i < call->output_count; i++)
        HS_FORWARD(check_operand(call, &b, output_letters(call, p->operands[p->inputs + i]), true, i, error));
    if (!wrong)
        wrong = check_attributes(call, &b);
    if (!wrong)
        wrong = check_overlap(p, call);
    if (wrong)
        return hs_fail_operation(error, HSTEP_ERROR_SHAPE, name, "%s: %s", name, wrong);
    return HSTEP_OK;
}

hstep_status hs_check_range(const hs_buffer *buffer, size_t offset, size_t bytes, hstep_error *error) {
    HS_RETURN_IF(offset > buffer->bytes || bytes > buffer->bytes - offset, error, HSTEP_ERROR_ARGUMENT,
                 "bytes %zu to %zu + %zu lie outside a buffer of %zu", offset, offset, bytes, buffer->bytes);
    return HSTEP_OK;
}

hstep_status hs_check_calls(size_t all, size_t first, size_t count, hstep_error *error) {
    HS_RETURN_IF(first > all || count > all - first, error, HSTEP_ERROR_ARGUMENT,
                 "calls %zu to %zu + %zu lie outside a program of %zu", first, first, count, all);
    return HSTEP_OK;
}
