/*
 * Reverse mode: nodes are visited from last to first, and each appends the nodes of its adjoints. Inputs of a node are
 * served from last to first too, so that a value used in several places adds its contributions in the reverse of the
 * forward order of the uses (policy, section 3): the first is stored, the others are added.
 */
#include <string.h>

#include "engine/error.h"
#include "engine/graph/graph.h"

typedef struct differentiation {
    hstep_graph *graph;
    hstep_error *error;
} differentiation;

static bool wants(const differentiation *d, hstep_value value) {
    return hs_graph_value(d->graph, value)->needs_gradient;
}

/* Appends a backward node called `name` whose outputs are adjoints of `of`. */
static hstep_status emit(differentiation *d, const char *name, hs_node node, const hstep_value *of, uint32_t count) {
    node.phase = HS_PHASE_BACKWARD;
    node.output_count = count;
    for (uint32_t i = 0; i < count; i++) {
        const hs_value_info info = hs_value_like(hs_graph_value(d->graph, of[i]));
        HS_FORWARD(
            hs_graph_add_value(d->graph, hs_graph_value(d->graph, of[i])->name, &info, &node.outputs[i], d->error));
    }
    return hs_graph_add_node(d->graph, name, &node, d->error);
}

/* The output of the node that was appended last. */
static hstep_value emitted(const differentiation *d, uint32_t output) {
    return d->graph->nodes[d->graph->node_count - 1].outputs[output];
}

static hstep_status contribute(differentiation *d, hstep_value value, hstep_value adjoint) {
    if (!wants(d, value))
        return HSTEP_OK;
    const hstep_value present = hs_graph_value(d->graph, value)->adjoint;
    if (present != 0) {
        const hs_node add = {.operation = HS_OP_ADD, .input_count = 2, .inputs = {present, adjoint}};
        HS_FORWARD(emit(d, hs_graph_value(d->graph, value)->name, add, &value, 1));
        adjoint = emitted(d, 0);
    }
    hs_graph_value(d->graph, value)->adjoint = adjoint;
    return HSTEP_OK;
}

/* One node with one output, which is a contribution to `value`. */
static hstep_status emit_contribution(differentiation *d, const char *name, hs_node node, hstep_value value) {
    if (!wants(d, value))
        return HSTEP_OK;
    HS_FORWARD(emit(d, name, node, &value, 1));
    return contribute(d, value, emitted(d, 0));
}

static hs_node product(const hs_node *forward, hstep_value a, hstep_transpose a_form, hstep_value b,
                       hstep_transpose b_form) {
    return (hs_node){.operation = HS_OP_MATMUL,
                     .precision = forward->precision,
                     .attributes = {.a_form = a_form, .b_form = b_form},
                     .input_count = 2,
                     .inputs = {a, b}};
}

static hstep_transpose turned(hstep_transpose form) {
    return form == HSTEP_TRANSPOSE ? HSTEP_NO_TRANSPOSE : HSTEP_TRANSPOSE;
}

/* y = op(a) op(b): d op(b) = op(a)t dy and d op(a) = dy op(b)t, each turned over where the operand was. */
static hstep_status differentiate_matmul(differentiation *d, const hs_node *node, hstep_value dy) {
    const hstep_value a = node->inputs[0], b = node->inputs[1];
    const hstep_transpose a_form = node->attributes.a_form, b_form = node->attributes.b_form;
    const hs_node db = b_form == HSTEP_TRANSPOSE ? product(node, dy, HSTEP_TRANSPOSE, a, a_form)
                                                 : product(node, a, turned(a_form), dy, HSTEP_NO_TRANSPOSE);
    const hs_node da = a_form == HSTEP_TRANSPOSE ? product(node, b, b_form, dy, HSTEP_TRANSPOSE)
                                                 : product(node, dy, HSTEP_NO_TRANSPOSE, b, turned(b_form));
    HS_FORWARD(emit_contribution(d, node->name, db, b));
    return emit_contribution(d, node->name, da, a);
}

/* The rows are added into what the table's later uses have left (policy, section 3). */
static hstep_status differentiate_gather(differentiation *d, const hs_node *node, hstep_value dy) {
    const hstep_value table = node->inputs[0];
    if (!wants(d, table))
        return HSTEP_OK;
    const hstep_value base = hs_graph_value(d->graph, table)->adjoint;
    hs_node scatter = {.operation = HS_OP_GATHER_BACKWARD, .input_count = 2, .inputs = {dy, node->inputs[1]}};
    if (base != 0)
        scatter.inputs[scatter.input_count++] = base;
    HS_FORWARD(emit(d, node->name, scatter, &table, 1));
    hs_graph_value(d->graph, table)->adjoint = emitted(d, 0);
    return HSTEP_OK;
}

static hstep_status differentiate_rmsnorm(differentiation *d, const hs_node *node, hstep_value dy) {
    const hstep_value x = node->inputs[0], gain = node->inputs[1];
    const hs_node to_gain = {
        .operation = HS_OP_RMSNORM_BACKWARD_GAIN, .attributes = node->attributes, .input_count = 2, .inputs = {dy, x}};
    const hs_node to_input = {.operation = HS_OP_RMSNORM_BACKWARD_INPUT,
                              .attributes = node->attributes,
                              .input_count = 3,
                              .inputs = {dy, x, gain}};
    HS_FORWARD(emit_contribution(d, node->name, to_gain, gain));
    return emit_contribution(d, node->name, to_input, x);
}

/* One backward node that gives the adjoints of the first `count` inputs, of dy and all the forward inputs. */
static hstep_status differentiate_jointly(differentiation *d, const hs_node *node, hstep_value dy,
                                          hs_operation operation, uint32_t count) {
    hs_node joint = {.operation = operation,
                     .precision = node->precision,
                     .attributes = node->attributes,
                     .input_count = node->input_count + 1,
                     .inputs = {dy}};
    memcpy(&joint.inputs[1], node->inputs, node->input_count * sizeof node->inputs[0]);
    HS_FORWARD(emit(d, node->name, joint, node->inputs, count));
    hstep_value outputs[HS_MAX_OUTPUTS];
    for (uint32_t i = 0; i < count; i++)
        outputs[i] = emitted(d, i);
    for (uint32_t i = count; i-- > 0;)
        HS_FORWARD(contribute(d, node->inputs[i], outputs[i]));
    return HSTEP_OK;
}

static hstep_status differentiate_multiply(differentiation *d, const hs_node *node, hstep_value dy) {
    const hstep_value a = node->inputs[0], b = node->inputs[1];
    const hs_node to_b = {.operation = HS_OP_MULTIPLY, .input_count = 2, .inputs = {dy, a}};
    const hs_node to_a = {.operation = HS_OP_MULTIPLY, .input_count = 2, .inputs = {dy, b}};
    HS_FORWARD(emit_contribution(d, node->name, to_b, b));
    return emit_contribution(d, node->name, to_a, a);
}

/* An operation of one differentiable input whose adjoint reads dy and up to one other value. */
static hstep_status differentiate_unary(differentiation *d, const hs_node *node, hstep_value dy, hs_operation operation,
                                        hstep_value other) {
    hs_node adjoint = {.operation = operation, .attributes = node->attributes, .input_count = 1, .inputs = {dy}};
    if (other != 0)
        adjoint.inputs[adjoint.input_count++] = other;
    return emit_contribution(d, node->name, adjoint, node->inputs[0]);
}

static hstep_status differentiate_rotary(differentiation *d, const hs_node *node, hstep_value dy) {
    hs_node adjoint = *node;
    adjoint.operation = HS_OP_ROTARY_BACKWARD;
    adjoint.inputs[0] = dy;
    return emit_contribution(d, node->name, adjoint, node->inputs[0]);
}

static hstep_status differentiate_add_bias(differentiation *d, const hs_node *node, hstep_value dy) {
    const hs_node to_bias = {.operation = HS_OP_SUM_ROWS, .input_count = 1, .inputs = {dy}};
    HS_FORWARD(emit_contribution(d, node->name, to_bias, node->inputs[1]));
    return contribute(d, node->inputs[0], dy);
}

static hstep_status differentiate_add(differentiation *d, const hs_node *node, hstep_value dy) {
    HS_FORWARD(contribute(d, node->inputs[1], dy));
    return contribute(d, node->inputs[0], dy);
}

static hstep_status differentiate(differentiation *d, const hs_node *node, hstep_value dy) {
    const hstep_value x = node->inputs[0], y = node->outputs[0];
    switch (node->operation) {
    case HS_OP_MATMUL:
        return differentiate_matmul(d, node, dy);
    case HS_OP_GATHER:
        return differentiate_gather(d, node, dy);
    case HS_OP_RMSNORM:
        return differentiate_rmsnorm(d, node, dy);
    case HS_OP_ROTARY:
        return differentiate_rotary(d, node, dy);
    case HS_OP_ATTENTION:
        return differentiate_jointly(d, node, dy, HS_OP_ATTENTION_BACKWARD, 3);
    case HS_OP_SWIGLU:
        return differentiate_jointly(d, node, dy, HS_OP_SWIGLU_BACKWARD, 2);
    case HS_OP_CROSS_ENTROPY:
        return differentiate_jointly(d, node, dy, HS_OP_CROSS_ENTROPY_BACKWARD, 1);
    case HS_OP_ADD:
        return differentiate_add(d, node, dy);
    case HS_OP_ADD_BIAS:
        return differentiate_add_bias(d, node, dy);
    case HS_OP_MULTIPLY:
        return differentiate_multiply(d, node, dy);
    case HS_OP_SCALE:
        return differentiate_unary(d, node, dy, HS_OP_SCALE, 0);
    case HS_OP_SUM:
        return differentiate_unary(d, node, dy, HS_OP_FILL, 0);
    case HS_OP_TRANSPOSE:
        return differentiate_unary(d, node, dy, HS_OP_TRANSPOSE, 0);
    case HS_OP_SOFTMAX:
        return differentiate_unary(d, node, dy, HS_OP_SOFTMAX_BACKWARD, y);
    case HS_OP_LOG:
        return differentiate_unary(d, node, dy, HS_OP_LOG_BACKWARD, x);
    case HS_OP_SILU:
        return differentiate_unary(d, node, dy, HS_OP_SILU_BACKWARD, x);
    default:
        return hs_fail_operation(d->error, HSTEP_ERROR_UNSUPPORTED, node->name, "\"%s\" has no adjoint", node->name);
    }
}

/* A gradient that is also another parameter's, or the seed itself, gets a tensor of its own. */
static hstep_status separate_gradients(differentiation *d) {
    const size_t values = d->graph->value_count;
    for (hstep_value v = 1; v <= values; v++) {
        const hs_value_info *info = hs_graph_value(d->graph, v);
        if (info->role != HS_ROLE_PARAMETER || info->adjoint == 0)
            continue;
        bool shared = info->adjoint == d->graph->seed;
        for (hstep_value u = 1; u < v && !shared; u++) {
            const hs_value_info *other = hs_graph_value(d->graph, u);
            shared = other->role == HS_ROLE_PARAMETER && other->adjoint == info->adjoint;
        }
        if (!shared)
            continue;
        const hs_node copy = {
            .operation = HS_OP_SCALE, .attributes = {.factor = 1}, .input_count = 1, .inputs = {info->adjoint}};
        HS_FORWARD(emit(d, info->name, copy, &v, 1));
        hs_graph_value(d->graph, v)->adjoint = emitted(d, 0);
    }
    return HSTEP_OK;
}

static hstep_status differentiate_all(differentiation *d, hstep_value loss) {
    hstep_graph *graph = d->graph;
    hstep_value seed = 0;
    HS_FORWARD(hs_graph_system_value(graph, HS_ROLE_SEED, 0, 0, &seed, d->error));
    hs_graph_value(graph, loss)->adjoint = seed;
    for (size_t i = graph->forward_count; i-- > 0;) {
        const hs_node node = graph->nodes[i]; /* a copy: appending moves the array */
        const hstep_value dy = hs_graph_value(graph, node.outputs[0])->adjoint;
        if (dy != 0)
            HS_FORWARD(differentiate(d, &node, dy));
    }
    return separate_gradients(d);
}

hstep_status hs_graph_differentiate(hstep_graph *graph, hstep_value loss, hstep_error *error) {
    const hs_graph_mark mark = hs_graph_mark_here(graph);
    graph->forward_count = graph->node_count;
    differentiation d = {.graph = graph, .error = error};
    const hstep_status status = differentiate_all(&d, loss);
    if (status != HSTEP_OK) {
        hs_graph_rewind(graph, mark);
        for (size_t i = 0; i < graph->value_count; i++)
            graph->values[i].adjoint = 0;
        return status;
    }
    graph->loss = loss;
    return HSTEP_OK;
}
