/* What the operation that overflowed read and wrote: the attempt once more, without a verdict. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/error.h"
#include "engine/transaction/diagnose.h"
#include "engine/transaction/trainer.h"
#include "precision/format.h"

_Static_assert((int)HSTEP_MAX_OPERANDS == (int)HS_MAX_INPUTS + (int)HS_MAX_OUTPUTS, "a place for every operand");
_Static_assert((int)HSTEP_MAX_RANK >= (int)HS_MAX_RANK, "a place for every dimension");

/* ---- The numbers of an operand ---- */

/* What a number becomes when a product reads it. */
static void count_rounding(hstep_precision precision, double value, hstep_operand *operand) {
    if (precision == HSTEP_PRECISION_F64)
        return;
    const double rounded = fabs(hs_precision_round(precision, value));
    operand->to_zero += rounded == 0 && value != 0;
    operand->to_subnormal += rounded > 0 && rounded < hs_precision_smallest_normal(precision);
    operand->to_infinity += isinf(rounded) != 0;
}

/* `finite`: how many finite numbers there were, this one included. Means are moved so that no sum can overflow. */
static void count_finite(double value, uint64_t finite, hstep_operand *operand) {
    const double magnitude = fabs(value);
    operand->mean += (magnitude - operand->mean) / (double)finite;
    operand->zeros += magnitude == 0;
    if (magnitude > operand->largest)
        operand->largest = magnitude;
    if (magnitude > 0 && (operand->smallest == 0 || magnitude < operand->smallest))
        operand->smallest = magnitude;
}

static void count_number(hstep_precision precision, double value, uint64_t *finite, hstep_operand *operand) {
    operand->nans += isnan(value) != 0;
    operand->infinities += isinf(value) != 0;
    if (!isfinite(value))
        return;
    count_finite(value, ++*finite, operand);
    if (operand->dtype != HSTEP_DTYPE_I32)
        count_rounding(precision, value, operand);
}

/* How far an operand has been looked at. */
typedef struct hs_looked {
    uint64_t elements, finite;
} hs_looked;

static hstep_status count_numbers(hs_backend *backend, const hs_view *view, hstep_precision precision,
                                  hs_looked *looked, hstep_operand *operand, hstep_error *error) {
    enum { PART = 512 };
    double numbers[PART];
    const size_t elements = hs_view_elements(view);
    for (size_t first = 0; first < elements; first += PART) {
        const size_t count = elements - first < PART ? elements - first : PART;
        HS_FORWARD(hs_read_numbers(backend, view, first, count, numbers, error));
        for (size_t i = 0; i < count; i++) {
            int32_t integer;
            memcpy(&integer, (const char *)numbers + i * sizeof integer, sizeof integer);
            count_number(precision, view->dtype == HSTEP_DTYPE_I32 ? integer : numbers[i], &looked->finite, operand);
        }
    }
    looked->elements += elements;
    return HSTEP_OK;
}

/* Appends an operand of that name, type and shape whose numbers have not been looked at. */
static hstep_operand *append_operand(const char *name, const hs_view *view, bool is_output, bool is_adjoint,
                                     hstep_explanation *explanation) {
    hstep_operand *operand = &explanation->operands[explanation->operand_count++];
    *operand = (hstep_operand){.is_output = is_output,
                               .is_adjoint = is_adjoint,
                               .dtype = view->dtype,
                               .rank = view->rank,
                               .elements = hs_view_elements(view)};
    memcpy(operand->dims, view->dims, view->rank * sizeof view->dims[0]);
    (void)snprintf(operand->name, sizeof operand->name, "%s", name);
    return operand;
}

static hstep_status add_operand(hs_backend *backend, const char *name, const hs_view *view, bool is_output,
                                bool is_adjoint, hstep_explanation *explanation, hstep_error *error) {
    hs_looked looked = {0};
    hstep_operand *operand = append_operand(name, view, is_output, is_adjoint, explanation);
    return count_numbers(backend, view, explanation->precision, &looked, operand, error);
}

/* ---- A node, which is one call of a plan, or several in a divided head ---- */

/* Appends the operands of a node: their types are those that a call has, their shapes those of the whole values. */
static void append_operands(const hstep_model *model, const hs_plan *plan, const hs_node *node, const hs_call *call,
                            hstep_explanation *explanation) {
    for (uint32_t i = 0; i < node->input_count + node->output_count; i++) {
        const bool is_output = i >= node->input_count;
        const hstep_value value = is_output ? node->outputs[i - node->input_count] : node->inputs[i];
        const hs_value_info *info = hs_graph_value(plan->source, value);
        hs_view view = is_output ? call->outputs[i - node->input_count] : call->inputs[i];
        for (uint32_t j = 0; j < info->rank; j++)
            view.dims[j] = hs_resolve_dim(info->dims[j], plan->request.sequences, plan->request.length);
        (void)append_operand(info->name, &view, is_output, hs_graph_is_adjoint(model->graph, value), explanation);
    }
}

/* Looks at what a call is about to read: all, or its rows, or nothing where an earlier one read the same. */
static hstep_status count_inputs(hs_backend *backend, const hs_call *call, hs_looked *looked,
                                 hstep_explanation *explanation, hstep_error *error) {
    for (uint32_t i = 0; i < call->input_count; i++) {
        hstep_operand *operand = &explanation->operands[i];
        if (looked[i].elements < operand->elements)
            HS_FORWARD(count_numbers(backend, &call->inputs[i], explanation->precision, &looked[i], operand, error));
    }
    return HSTEP_OK;
}

/* Looks at what it has written, if that is finished. */
static hstep_status count_outputs(hs_backend *backend, const hs_call *call, hs_looked *looked,
                                  hstep_explanation *explanation, hstep_error *error) {
    for (uint32_t i = 0; i < call->output_count && !call->attributes.unfinished; i++) {
        const uint32_t at = call->input_count + i;
        HS_FORWARD(count_numbers(backend, &call->outputs[i], explanation->precision, &looked[at],
                                 &explanation->operands[at], error));
    }
    return HSTEP_OK;
}

static hstep_precision precision_of(const hstep_graph *graph, const hs_node *node) {
    return hs_has_products(node->operation) ? node->precision : hs_graph_scaled_precision(graph);
}

/* An output may stand where an input stood, so that inputs are looked at before the call. */
static hstep_status explain_call(hstep_model *model, hs_plan *plan, hs_diagnosis where, hstep_explanation *explanation,
                                 hstep_error *error) {
    hs_backend *backend = plan->request.backend;
    const hs_node *node = hs_plan_source_node(plan, where.call);
    const hs_call found = hs_plan_call(plan, where.call);
    hs_looked looked[HSTEP_MAX_OPERANDS] = {{0}};
    size_t done = 0;
    explanation->operation = hs_operation_name(node->operation);
    explanation->precision = precision_of(plan->source, node);
    append_operands(model, plan, node, &found, explanation);
    for (size_t i = 0; i < plan->calls; i++) {
        if (hs_plan_source_node(plan, i) != node || plan->measuring[i])
            continue;
        const hs_call call = hs_plan_call(plan, i);
        HS_FORWARD(hs_run_again(plan, where.exact, done, i - done, NULL));
        HS_FORWARD(count_inputs(backend, &call, looked, explanation, error));
        HS_FORWARD(hs_run_again(plan, where.exact, i, 1, NULL));
        HS_FORWARD(count_outputs(backend, &call, looked, explanation, error));
        done = i + 1;
    }
    return HSTEP_OK;
}

/* ---- The norm ---- */

static hs_view gradient_view(const hstep_trainer *trainer, size_t parameter) {
    const hs_value_info *info = hs_graph_value(trainer->model->graph, trainer->model->parameter_values[parameter]);
    hs_view view = hs_flat_view(trainer->gradients[parameter], hs_model_elements(trainer->model, parameter));
    view.rank = info->rank;
    for (uint32_t i = 0; i < info->rank; i++)
        view.dims[i] = (size_t)info->dims[i];
    return view;
}

static hstep_status explain_norm(hstep_trainer *trainer, hstep_explanation *explanation, hstep_error *error) {
    const hs_node none = {.operation = HS_OP_SQUARE_SUM};
    const char *name = explanation->overflow.tensor;
    const size_t parameter = hstep_model_find_parameter(trainer->model, name);
    hs_backend *backend = trainer->model->context->backend;
    const hs_view gradient = gradient_view(trainer, parameter), unscale = hs_flat_view(trainer->unscale, 1);
    hs_view sum = hs_flat_view(trainer->square_sums, 1);
    sum.offset = parameter * sizeof(double);
    explanation->operation = hs_operation_name(none.operation);
    explanation->precision = precision_of(trainer->model->graph, &none);
    HS_FORWARD(add_operand(backend, name, &gradient, false, true, explanation, error));
    HS_FORWARD(add_operand(backend, "(1 / loss scale)", &unscale, false, false, explanation, error));
    return add_operand(backend, "(sum of squares)", &sum, true, false, explanation, error);
}

static hstep_status check_norm(hstep_trainer *trainer, hstep_explanation *explanation, hstep_error *error) {
    double norm = 0;
    bool overflowed = false;
    HS_FORWARD(
        hs_trainer_norm(trainer, 1.0 / trainer->scaler.scale, &norm, &overflowed, &explanation->overflow, error));
    explanation->overflowed = overflowed;
    return overflowed ? explain_norm(trainer, explanation, error) : HSTEP_OK;
}

/* ---- The attempt ---- */

static hstep_status check_batch(hstep_trainer *trainer, const hstep_batch *batch, double seed,
                                hstep_explanation *explanation, hstep_error *error) {
    hs_plan *plan = NULL;
    size_t flagged = 0;
    double loss = 0;
    HS_FORWARD(hs_trainer_submit(trainer, batch, seed, true, &plan, error));
    HS_FORWARD(hs_plan_finish(plan, &flagged, error));
    if (hs_plan_is_forward(plan, flagged))
        return hs_trainer_forward_failure(trainer, plan, flagged, error);
    HS_FORWARD(hs_plan_read_loss(plan, &loss, error));
    if (flagged == plan->calls)
        return HSTEP_OK;
    explanation->overflowed = 1;
    const hs_diagnosis where = hs_diagnose(trainer->model, plan, flagged, &explanation->overflow);
    return explain_call(trainer->model, plan, where, explanation, error);
}

static hstep_status check_attempt(hstep_trainer *trainer, const hstep_batch *window, size_t count, double seed,
                                  hstep_explanation *explanation, hstep_error *error) {
    for (size_t i = 0; i < count; i++) {
        const size_t replica = i / trainer->config.micro_batches, batch = i % trainer->config.micro_batches;
        explanation->batch = i;
        HS_FORWARD(check_batch(trainer, &window[i], seed, explanation, error));
        if (explanation->overflowed)
            return HSTEP_OK;
        HS_FORWARD(hs_reduction_take(&trainer->reduction, replica, batch, error));
    }
    explanation->batch = count;
    return check_norm(trainer, explanation, error);
}

hstep_status hstep_trainer_explain(hstep_trainer *trainer, const hstep_batch *window, size_t count,
                                   hstep_explanation *explanation, hstep_error *error) {
    HS_RETURN_IF(trainer == NULL || window == NULL || explanation == NULL, error, HSTEP_ERROR_ARGUMENT,
                 "hstep_trainer_explain needs a trainer, a window and a place for what it finds");
    HS_FORWARD(hs_trainer_check_state(trainer, error));
    hs_attempt attempt = {0};
    hstep_explanation found = {0};
    HS_FORWARD(hs_trainer_check_window(trainer, window, count, &attempt, error));
    trainer->tape = (hs_tape){0};
    hstep_status status = check_attempt(trainer, window, count, trainer->scaler.scale / attempt.weight, &found, error);
    const hstep_status cleared = hs_trainer_clear_gradients(trainer, status == HSTEP_OK ? error : NULL);
    if (status == HSTEP_OK)
        status = cleared;
    if (status == HSTEP_OK)
        *explanation = found.overflowed ? found : (hstep_explanation){0};
    return status;
}
