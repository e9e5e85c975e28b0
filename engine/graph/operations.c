/* The public operations: each checks its operands, then appends one node and its output. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/error.h"
#include "engine/graph/graph.h"

/* ---- Shapes in words ---- */

enum { DIM_WORDS = 24 };

typedef struct dim_words {
    char text[DIM_WORDS];
} dim_words;

typedef struct shape_words {
    char text[HSTEP_MAX_RANK * DIM_WORDS + 3];
} shape_words;

static dim_words dim_in_words(int64_t dim) {
    dim_words w;
    if (dim == HSTEP_ROWS || dim == HSTEP_SEQUENCES || dim == HSTEP_LENGTH)
        strcpy(w.text, dim == HSTEP_ROWS ? "rows" : (dim == HSTEP_SEQUENCES ? "sequences" : "length"));
    else
        (void)snprintf(w.text, sizeof w.text, "%lld", (long long)dim);
    return w;
}

static shape_words shape_in_words(const hs_value_info *info) {
    shape_words w = {"["};
    for (uint32_t i = 0; i < info->rank; i++) {
        if (i > 0)
            strcat(w.text, ", ");
        strcat(w.text, dim_in_words(info->dims[i]).text);
    }
    strcat(w.text, "]");
    return w;
}

/* ---- Checks that every declaration makes ---- */

static hstep_status check_name(const hstep_graph *graph, const char *name, hstep_error *error) {
    HS_RETURN_IF(graph == NULL, error, HSTEP_ERROR_ARGUMENT, "no graph was given");
    HS_RETURN_IF(name == NULL || name[0] == '\0', error, HSTEP_ERROR_ARGUMENT,
                 "a value or operation needs a name; give one that is unique in the graph");
    HS_BLAME_IF(name[0] == '(' || strlen(name) > 95, error, HSTEP_ERROR_ARGUMENT, name,
                "name \"%.60s\" begins with a parenthesis or is longer than 95 bytes", name);
    HS_BLAME_IF(graph->loss != 0, error, HSTEP_ERROR_ARGUMENT, name,
                "\"%s\" comes after the graph's loss; declare everything before hstep_graph_set_loss", name);
    for (size_t i = 0; i < graph->value_count; i++)
        HS_BLAME_IF(strcmp(graph->values[i].name, name) == 0, error, HSTEP_ERROR_ARGUMENT, name,
                    "name \"%s\" stands in the graph already; names must be unique", name);
    return HSTEP_OK;
}

static hstep_status check_value(const hstep_graph *graph, const char *name, hstep_value value, hstep_dtype dtype,
                                size_t rank, hstep_error *error) {
    HS_BLAME_IF(value == 0 || value > graph->value_count, error, HSTEP_ERROR_ARGUMENT, name,
                "%s: value %u is not of this graph", name, (unsigned)value);
    const hs_value_info *info = hs_graph_value(graph, value);
    HS_BLAME_IF(info->dtype != dtype, error, HSTEP_ERROR_SHAPE, name, "%s: \"%s\" must be of type %s", name, info->name,
                dtype == HSTEP_DTYPE_I32 ? "i32" : "f64");
    HS_BLAME_IF(rank != 0 && info->rank != rank, error, HSTEP_ERROR_SHAPE, name,
                "%s: \"%s\" has shape %s; it must have %zu dimension%s", name, info->name, shape_in_words(info).text,
                rank, rank == 1 ? "" : "s");
    return HSTEP_OK;
}

static hstep_status check_equal_shapes(const hstep_graph *graph, const char *name, hstep_value a, hstep_value b,
                                       hstep_error *error) {
    const hs_value_info *x = hs_graph_value(graph, a), *y = hs_graph_value(graph, b);
    bool equal = x->rank == y->rank;
    for (uint32_t i = 0; equal && i < x->rank; i++)
        equal = x->dims[i] == y->dims[i];
    HS_BLAME_IF(!equal, error, HSTEP_ERROR_SHAPE, name, "%s: \"%s\" and \"%s\" differ in shape: %s and %s", name,
                x->name, y->name, shape_in_words(x).text, shape_in_words(y).text);
    return HSTEP_OK;
}

/* Dimension `i` of `a` must be dimension `j` of `b`. */
static hstep_status check_same_dim(const hstep_graph *graph, const char *name, hstep_value a, uint32_t i, hstep_value b,
                                   uint32_t j, hstep_error *error) {
    const hs_value_info *x = hs_graph_value(graph, a), *y = hs_graph_value(graph, b);
    HS_BLAME_IF(x->dims[i] != y->dims[j], error, HSTEP_ERROR_SHAPE, name,
                "%s: dimension %u of \"%s\" (%s) is not dimension %u of \"%s\" (%s)", name, (unsigned)i, x->name,
                dim_in_words(x->dims[i]).text, (unsigned)j, y->name, dim_in_words(y->dims[j]).text);
    return HSTEP_OK;
}

/* Appends a forward node with one output of shape `info`. */
static hstep_status append(hstep_graph *graph, const char *name, hs_node *node, hs_value_info info, hstep_value *y,
                           hstep_error *error) {
    HS_BLAME_IF(y == NULL, error, HSTEP_ERROR_ARGUMENT, name, "%s: no place for the result", name);
    for (uint32_t i = 0; i < node->input_count; i++)
        info.needs_gradient |= hs_graph_value(graph, node->inputs[i])->needs_gradient;
    const hs_graph_mark mark = hs_graph_mark_here(graph);
    hstep_value value = 0;
    hstep_status status = hs_graph_add_value(graph, name, &info, &value, error);
    if (status == HSTEP_OK) {
        node->phase = HS_PHASE_FORWARD;
        node->block = graph->block;
        node->output_count = 1;
        node->outputs[0] = value;
        status = hs_graph_add_node(graph, name, node, error);
    }
    if (status != HSTEP_OK) {
        hs_graph_rewind(graph, mark);
        return status;
    }
    *y = value;
    return HSTEP_OK;
}

/* An operation on one f64 tensor that keeps its shape. */
static hstep_status append_unary(hstep_graph *graph, const char *name, hs_operation operation, hstep_value x,
                                 size_t rank, double factor, hstep_value *y, hstep_error *error) {
    HS_FORWARD(check_name(graph, name, error));
    HS_FORWARD(check_value(graph, name, x, HSTEP_DTYPE_F64, rank, error));
    hs_node node = {.operation = operation, .input_count = 1, .inputs = {x}, .attributes = {.factor = factor}};
    return append(graph, name, &node, hs_value_like(hs_graph_value(graph, x)), y, error);
}

/* An operation on two f64 tensors of one shape. */
static hstep_status append_binary(hstep_graph *graph, const char *name, hs_operation operation, hstep_value a,
                                  hstep_value b, hstep_value *y, hstep_error *error) {
    HS_FORWARD(check_name(graph, name, error));
    HS_FORWARD(check_value(graph, name, a, HSTEP_DTYPE_F64, 0, error));
    HS_FORWARD(check_value(graph, name, b, HSTEP_DTYPE_F64, 0, error));
    HS_FORWARD(check_equal_shapes(graph, name, a, b, error));
    hs_node node = {.operation = operation, .input_count = 2, .inputs = {a, b}};
    return append(graph, name, &node, hs_value_like(hs_graph_value(graph, a)), y, error);
}

/* ---- Declarations ---- */

static hstep_status declare(hstep_graph *graph, const char *name, hs_value_info info, size_t rank, const int64_t *dims,
                            bool symbols, hstep_value *value, hstep_error *error) {
    HS_FORWARD(check_name(graph, name, error));
    HS_BLAME_IF(value == NULL || dims == NULL, error, HSTEP_ERROR_ARGUMENT, name, "%s: no dimensions or no place",
                name);
    HS_BLAME_IF(rank < 1 || rank > HSTEP_MAX_RANK, error, HSTEP_ERROR_SHAPE, name, "%s: %zu dimensions; give 1 to %d",
                name, rank, HSTEP_MAX_RANK);
    info.rank = (uint32_t)rank;
    size_t elements = 1;
    for (size_t i = 0; i < rank; i++) {
        const bool symbol = symbols && dims[i] >= HSTEP_LENGTH && dims[i] <= HSTEP_ROWS;
        HS_BLAME_IF(dims[i] < 1 && !symbol, error, HSTEP_ERROR_SHAPE, name, "%s: dimension %zu is %s; give 1 or more%s",
                    name, i, dim_in_words(dims[i]).text,
                    symbols ? ", HSTEP_ROWS, HSTEP_SEQUENCES or HSTEP_LENGTH" : "");
        HS_BLAME_IF(!symbol && __builtin_mul_overflow(elements, (size_t)dims[i], &elements), error, HSTEP_ERROR_SHAPE,
                    name, "%s: more elements than memory can hold", name);
        info.dims[i] = dims[i];
    }
    HS_BLAME_IF(elements > SIZE_MAX / 64, error, HSTEP_ERROR_SHAPE, name, "%s: more elements than memory can hold",
                name);
    return hs_graph_add_value(graph, name, &info, value, error);
}

hstep_status hstep_graph_input(hstep_graph *graph, const char *name, hstep_dtype dtype, size_t rank,
                               const int64_t *dims, hstep_value *value, hstep_error *error) {
    HS_FORWARD(check_name(graph, name, error));
    HS_BLAME_IF(dtype != HSTEP_DTYPE_F64 && dtype != HSTEP_DTYPE_I32, error, HSTEP_ERROR_SHAPE, name,
                "%s: an input is f64 or i32", name);
    const hs_value_info info = {.role = HS_ROLE_INPUT, .dtype = dtype};
    return declare(graph, name, info, rank, dims, true, value, error);
}

hstep_status hstep_graph_parameter(hstep_graph *graph, const char *name, size_t rank, const int64_t *dims,
                                   hstep_value *value, hstep_error *error) {
    const hs_value_info info = {.role = HS_ROLE_PARAMETER, .dtype = HSTEP_DTYPE_F64, .needs_gradient = true};
    return declare(graph, name, info, rank, dims, false, value, error);
}

/* ---- Operations ---- */

hstep_status hstep_graph_matmul(hstep_graph *graph, const char *name, hstep_precision precision, hstep_value a,
                                hstep_transpose a_form, hstep_value b, hstep_transpose b_form, hstep_value *y,
                                hstep_error *error) {
    HS_FORWARD(check_name(graph, name, error));
    HS_FORWARD(hs_check_precision(name, precision, error));
    HS_FORWARD(check_value(graph, name, a, HSTEP_DTYPE_F64, 2, error));
    HS_FORWARD(check_value(graph, name, b, HSTEP_DTYPE_F64, 2, error));
    HS_BLAME_IF((unsigned)a_form > 1 || (unsigned)b_form > 1, error, HSTEP_ERROR_ARGUMENT, name, "%s: unknown form",
                name);
    const uint32_t a_inner = a_form == HSTEP_TRANSPOSE ? 0 : 1, b_inner = b_form == HSTEP_TRANSPOSE ? 1 : 0;
    HS_FORWARD(check_same_dim(graph, name, a, a_inner, b, b_inner, error));
    hs_value_info info = {.role = HS_ROLE_COMPUTED, .dtype = HSTEP_DTYPE_F64, .rank = 2};
    info.dims[0] = hs_graph_value(graph, a)->dims[1 - a_inner];
    info.dims[1] = hs_graph_value(graph, b)->dims[1 - b_inner];
    hs_node node = {.operation = HS_OP_MATMUL,
                    .precision = precision,
                    .attributes = {.a_form = a_form, .b_form = b_form},
                    .input_count = 2,
                    .inputs = {a, b}};
    return append(graph, name, &node, info, y, error);
}

/* Narrows what an i32 input may hold, so that a batch can be checked before it runs. */
static void limit_indices(hstep_graph *graph, hstep_value indices, int64_t minimum, int64_t limit) {
    hs_value_info *info = hs_graph_value(graph, indices);
    const bool first = info->index_limit == 0;
    if (first || limit < info->index_limit)
        info->index_limit = limit;
    if (first || minimum > info->index_minimum)
        info->index_minimum = minimum;
}

hstep_status hstep_graph_gather(hstep_graph *graph, const char *name, hstep_value table, hstep_value indices,
                                hstep_value *y, hstep_error *error) {
    HS_FORWARD(check_name(graph, name, error));
    HS_FORWARD(check_value(graph, name, table, HSTEP_DTYPE_F64, 2, error));
    HS_FORWARD(check_value(graph, name, indices, HSTEP_DTYPE_I32, 1, error));
    hs_value_info info = {.role = HS_ROLE_COMPUTED, .dtype = HSTEP_DTYPE_F64, .rank = 2};
    const hs_value_info *rows = hs_graph_value(graph, indices), *source = hs_graph_value(graph, table);
    HS_BLAME_IF(source->dims[0] < 1, error, HSTEP_ERROR_SHAPE, name, "%s: \"%s\" needs a fixed number of rows", name,
                source->name);
    const int64_t limit = source->dims[0];
    info.dims[0] = rows->dims[0];
    info.dims[1] = source->dims[1];
    hs_node node = {.operation = HS_OP_GATHER, .input_count = 2, .inputs = {table, indices}};
    HS_FORWARD(append(graph, name, &node, info, y, error));
    limit_indices(graph, indices, 0, limit);
    return HSTEP_OK;
}

hstep_status hstep_graph_rmsnorm(hstep_graph *graph, const char *name, hstep_value x, hstep_value gain, double epsilon,
                                 hstep_value *y, hstep_error *error) {
    HS_FORWARD(check_name(graph, name, error));
    HS_FORWARD(check_value(graph, name, x, HSTEP_DTYPE_F64, 2, error));
    HS_FORWARD(check_value(graph, name, gain, HSTEP_DTYPE_F64, 1, error));
    HS_FORWARD(check_same_dim(graph, name, x, 1, gain, 0, error));
    HS_BLAME_IF(!(epsilon > 0) || !isfinite(epsilon), error, HSTEP_ERROR_ARGUMENT, name,
                "%s: epsilon must be finite and above 0", name);
    hs_node node = {
        .operation = HS_OP_RMSNORM, .attributes = {.epsilon = epsilon}, .input_count = 2, .inputs = {x, gain}};
    return append(graph, name, &node, hs_value_like(hs_graph_value(graph, x)), y, error);
}

hstep_status hstep_graph_rotary(hstep_graph *graph, const char *name, hstep_value x, size_t head_width, double base,
                                hstep_value *y, hstep_error *error) {
    HS_FORWARD(check_name(graph, name, error));
    HS_FORWARD(check_value(graph, name, x, HSTEP_DTYPE_F64, 2, error));
    const hs_value_info *info = hs_graph_value(graph, x);
    HS_BLAME_IF(info->dims[0] != HSTEP_ROWS, error, HSTEP_ERROR_SHAPE, name, "%s: \"%s\" must have HSTEP_ROWS rows",
                name, info->name);
    HS_BLAME_IF(head_width < 2 || head_width % 2 != 0 || info->dims[1] < 1 || (size_t)info->dims[1] % head_width != 0,
                error, HSTEP_ERROR_SHAPE, name, "%s: head width %zu must be even and divide the width of \"%s\"", name,
                head_width, info->name);
    HS_BLAME_IF(!(base > 1) || !isfinite(base), error, HSTEP_ERROR_ARGUMENT, name,
                "%s: the rotary base must be finite and above 1", name);
    const hs_graph_mark mark = hs_graph_mark_here(graph);
    hstep_value positions = 0, cosine = 0, sine = 0;
    hstep_status status = hs_graph_system_value(graph, HS_ROLE_POSITIONS, 0, 0, &positions, error);
    if (status == HSTEP_OK)
        status = hs_graph_system_value(graph, HS_ROLE_ROTARY_COSINE, base, head_width, &cosine, error);
    if (status == HSTEP_OK)
        status = hs_graph_system_value(graph, HS_ROLE_ROTARY_SINE, base, head_width, &sine, error);
    if (status == HSTEP_OK) {
        hs_node node = {.operation = HS_OP_ROTARY,
                        .attributes = {.head_width = head_width},
                        .input_count = 4,
                        .inputs = {x, positions, cosine, sine}};
        status = append(graph, name, &node, hs_value_like(hs_graph_value(graph, x)), y, error);
    }
    if (status != HSTEP_OK)
        hs_graph_rewind(graph, mark);
    return status;
}

static hstep_status check_heads(const hstep_graph *graph, const char *name, const hstep_value *inputs, size_t heads,
                                size_t kv_heads, hstep_error *error) {
    for (int i = 0; i < 3; i++) {
        HS_FORWARD(check_value(graph, name, inputs[i], HSTEP_DTYPE_F64, 2, error));
        const hs_value_info *info = hs_graph_value(graph, inputs[i]);
        HS_BLAME_IF(info->dims[0] != HSTEP_ROWS, error, HSTEP_ERROR_SHAPE, name, "%s: \"%s\" must have HSTEP_ROWS rows",
                    name, info->name);
    }
    HS_FORWARD(check_equal_shapes(graph, name, inputs[1], inputs[2], error));
    const int64_t width = hs_graph_value(graph, inputs[0])->dims[1];
    const int64_t kv_width = hs_graph_value(graph, inputs[1])->dims[1];
    HS_BLAME_IF(heads == 0 || kv_heads == 0 || heads % kv_heads != 0, error, HSTEP_ERROR_SHAPE, name,
                "%s: %zu key heads do not divide %zu heads", name, kv_heads, heads);
    HS_BLAME_IF(width < 1 || kv_width < 1 || (size_t)width % heads != 0 ||
                    (size_t)kv_width != (size_t)width / heads * kv_heads,
                error, HSTEP_ERROR_SHAPE, name, "%s: widths %s and %s do not fit %zu heads and %zu key heads", name,
                dim_in_words(width).text, dim_in_words(kv_width).text, heads, kv_heads);
    return HSTEP_OK;
}

/* Where the graph has a cache, keys and values go there, and stand there. */
static hstep_status keep_keys_and_values(hstep_graph *graph, const char *name, hstep_value *key, hstep_value *value,
                                         hstep_error *error) {
    char cache[112];
    if (graph->cache_capacity == 0)
        return HSTEP_OK;
    (void)snprintf(cache, sizeof cache, "%s.keys", name);
    HS_FORWARD(hs_graph_keep_rows(graph, cache, *key, key, error));
    (void)snprintf(cache, sizeof cache, "%s.values", name);
    return hs_graph_keep_rows(graph, cache, *value, value, error);
}

hstep_status hstep_graph_attention(hstep_graph *graph, const char *name, hstep_precision precision, hstep_value query,
                                   hstep_value key, hstep_value value, size_t heads, size_t kv_heads, hstep_value *y,
                                   hstep_error *error) {
    HS_FORWARD(check_name(graph, name, error));
    HS_FORWARD(hs_check_precision(name, precision, error));
    HS_FORWARD(check_heads(graph, name, (hstep_value[]){query, key, value}, heads, kv_heads, error));
    const hs_graph_mark mark = hs_graph_mark_here(graph);
    hstep_value positions = 0;
    hstep_status status = hs_graph_system_value(graph, HS_ROLE_POSITIONS, 0, 0, &positions, error);
    if (status == HSTEP_OK)
        status = keep_keys_and_values(graph, name, &key, &value, error);
    if (status == HSTEP_OK) {
        const size_t head_width = (size_t)hs_graph_value(graph, query)->dims[1] / heads;
        hs_node node = {.operation = HS_OP_ATTENTION,
                        .precision = precision,
                        .attributes = {.heads = heads, .kv_heads = kv_heads, .head_width = head_width},
                        .input_count = 4,
                        .inputs = {query, key, value, positions}};
        status = append(graph, name, &node, hs_value_like(hs_graph_value(graph, query)), y, error);
    }
    if (status != HSTEP_OK)
        hs_graph_rewind(graph, mark);
    return status;
}

hstep_status hstep_graph_swiglu(hstep_graph *graph, const char *name, hstep_value gate, hstep_value up, hstep_value *y,
                                hstep_error *error) {
    return append_binary(graph, name, HS_OP_SWIGLU, gate, up, y, error);
}

hstep_status hstep_graph_add(hstep_graph *graph, const char *name, hstep_value a, hstep_value b, hstep_value *y,
                             hstep_error *error) {
    return append_binary(graph, name, HS_OP_ADD, a, b, y, error);
}

hstep_status hstep_graph_multiply(hstep_graph *graph, const char *name, hstep_value a, hstep_value b, hstep_value *y,
                                  hstep_error *error) {
    return append_binary(graph, name, HS_OP_MULTIPLY, a, b, y, error);
}

hstep_status hstep_graph_add_bias(hstep_graph *graph, const char *name, hstep_value x, hstep_value bias, hstep_value *y,
                                  hstep_error *error) {
    HS_FORWARD(check_name(graph, name, error));
    HS_FORWARD(check_value(graph, name, x, HSTEP_DTYPE_F64, 2, error));
    HS_FORWARD(check_value(graph, name, bias, HSTEP_DTYPE_F64, 1, error));
    HS_FORWARD(check_same_dim(graph, name, x, 1, bias, 0, error));
    hs_node node = {.operation = HS_OP_ADD_BIAS, .input_count = 2, .inputs = {x, bias}};
    return append(graph, name, &node, hs_value_like(hs_graph_value(graph, x)), y, error);
}

hstep_status hstep_graph_scale(hstep_graph *graph, const char *name, hstep_value x, double factor, hstep_value *y,
                               hstep_error *error) {
    HS_FORWARD(check_name(graph, name, error));
    HS_BLAME_IF(!isfinite(factor), error, HSTEP_ERROR_ARGUMENT, name, "%s: the factor must be finite", name);
    return append_unary(graph, name, HS_OP_SCALE, x, 0, factor, y, error);
}

hstep_status hstep_graph_sum(hstep_graph *graph, const char *name, hstep_value x, hstep_value *y, hstep_error *error) {
    HS_FORWARD(check_name(graph, name, error));
    HS_FORWARD(check_value(graph, name, x, HSTEP_DTYPE_F64, 0, error));
    const hs_value_info info = {.role = HS_ROLE_COMPUTED, .dtype = HSTEP_DTYPE_F64, .rank = 1, .dims = {1}};
    hs_node node = {.operation = HS_OP_SUM, .input_count = 1, .inputs = {x}};
    return append(graph, name, &node, info, y, error);
}

hstep_status hstep_graph_transpose(hstep_graph *graph, const char *name, hstep_value x, hstep_value *y,
                                   hstep_error *error) {
    HS_FORWARD(check_name(graph, name, error));
    HS_FORWARD(check_value(graph, name, x, HSTEP_DTYPE_F64, 2, error));
    hs_value_info info = hs_value_like(hs_graph_value(graph, x));
    info.dims[0] = hs_graph_value(graph, x)->dims[1];
    info.dims[1] = hs_graph_value(graph, x)->dims[0];
    hs_node node = {.operation = HS_OP_TRANSPOSE, .input_count = 1, .inputs = {x}};
    return append(graph, name, &node, info, y, error);
}

hstep_status hstep_graph_softmax(hstep_graph *graph, const char *name, hstep_value x, hstep_value *y,
                                 hstep_error *error) {
    return append_unary(graph, name, HS_OP_SOFTMAX, x, 2, 0, y, error);
}

hstep_status hstep_graph_log(hstep_graph *graph, const char *name, hstep_value x, hstep_value *y, hstep_error *error) {
    return append_unary(graph, name, HS_OP_LOG, x, 0, 0, y, error);
}

hstep_status hstep_graph_silu(hstep_graph *graph, const char *name, hstep_value x, hstep_value *y, hstep_error *error) {
    return append_unary(graph, name, HS_OP_SILU, x, 0, 0, y, error);
}

hstep_status hstep_graph_cross_entropy(hstep_graph *graph, const char *name, hstep_value logits, hstep_value targets,
                                       hstep_value *loss, hstep_error *error) {
    HS_FORWARD(check_name(graph, name, error));
    HS_FORWARD(check_value(graph, name, logits, HSTEP_DTYPE_F64, 2, error));
    HS_FORWARD(check_value(graph, name, targets, HSTEP_DTYPE_I32, 1, error));
    HS_FORWARD(check_same_dim(graph, name, logits, 0, targets, 0, error));
    const int64_t classes = hs_graph_value(graph, logits)->dims[1];
    HS_BLAME_IF(classes < 1, error, HSTEP_ERROR_SHAPE, name, "%s: \"%s\" needs a fixed number of columns", name,
                hs_graph_value(graph, logits)->name);
    const hs_value_info info = {.role = HS_ROLE_COMPUTED, .dtype = HSTEP_DTYPE_F64, .rank = 1, .dims = {1}};
    hs_node node = {.operation = HS_OP_CROSS_ENTROPY, .input_count = 2, .inputs = {logits, targets}};
    HS_FORWARD(append(graph, name, &node, info, loss, error));
    limit_indices(graph, targets, -1, classes);
    return HSTEP_OK;
}

/* ---- Blocks ---- */

hstep_status hstep_graph_begin_block(hstep_graph *graph, hstep_error *error) {
    HS_RETURN_IF(graph == NULL, error, HSTEP_ERROR_ARGUMENT, "no graph was given");
    HS_RETURN_IF(graph->block != 0, error, HSTEP_ERROR_ARGUMENT,
                 "a block is open already; call hstep_graph_end_block first");
    graph->block = ++graph->block_count;
    return HSTEP_OK;
}

hstep_status hstep_graph_end_block(hstep_graph *graph, hstep_error *error) {
    HS_RETURN_IF(graph == NULL, error, HSTEP_ERROR_ARGUMENT, "no graph was given");
    HS_RETURN_IF(graph->block == 0, error, HSTEP_ERROR_ARGUMENT, "no block is open");
    graph->block = 0;
    return HSTEP_OK;
}

/* ---- The ends of a graph ---- */

static hstep_status check_end(const hstep_graph *graph, const char *end, hstep_value value, hstep_error *error) {
    HS_RETURN_IF(value == 0 || value > graph->value_count, error, HSTEP_ERROR_ARGUMENT,
                 "the %s: value %u is not of this graph", end, (unsigned)value);
    const hs_value_info *info = hs_graph_value(graph, value);
    HS_BLAME_IF(info->dtype != HSTEP_DTYPE_F64, error, HSTEP_ERROR_SHAPE, info->name,
                "the %s \"%s\" must be of type f64", end, info->name);
    return HSTEP_OK;
}

hstep_status hstep_graph_set_output(hstep_graph *graph, hstep_value value, hstep_error *error) {
    HS_RETURN_IF(graph == NULL, error, HSTEP_ERROR_ARGUMENT, "no graph was given");
    HS_RETURN_IF(graph->loss != 0, error, HSTEP_ERROR_ARGUMENT,
                 "the output comes after the graph's loss; call hstep_graph_set_output before hstep_graph_set_loss");
    HS_FORWARD(check_end(graph, "output", value, error));
    graph->output = value;
    return HSTEP_OK;
}

hstep_status hstep_graph_set_loss(hstep_graph *graph, hstep_value loss, hstep_error *error) {
    HS_RETURN_IF(graph == NULL, error, HSTEP_ERROR_ARGUMENT, "no graph was given");
    HS_RETURN_IF(graph->loss != 0, error, HSTEP_ERROR_ARGUMENT, "the graph has its loss already");
    HS_FORWARD(check_end(graph, "loss", loss, error));
    const hs_value_info *info = hs_graph_value(graph, loss);
    HS_BLAME_IF(info->rank != 1 || info->dims[0] != 1, error, HSTEP_ERROR_SHAPE, info->name,
                "the loss \"%s\" has shape %s; it must have shape [1], such as from hstep_graph_sum", info->name,
                shape_in_words(info).text);
    return hs_graph_differentiate(graph, loss, error);
}
