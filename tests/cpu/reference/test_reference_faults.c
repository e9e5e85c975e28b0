/* Nonfinite values: flagged, and located at the first part or output and the lowest index. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "cpu/cpu.h"
#include "support/calls.h"

static hs_backend *backend;

static void setup(void) { cr_assert_eq(hs_cpu_reference_create(&backend, NULL), HSTEP_OK); }

static void teardown(void) { backend->api->destroy(backend); }

TestSuite(faults, .init = setup, .fini = teardown);

/* The first nonfinite element of the outputs, looked for once more. */
static hs_fault first_in_outputs(const hs_test_result *result) {
    for (size_t i = 0; i < result->output_count; i++)
        for (size_t j = 0; j < result->elements[i]; j++)
            if (!isfinite(result->outputs[i][j]))
                return (hs_fault){true, (int)i, NULL, j, result->outputs[i][j]};
    return (hs_fault){0};
}

static bool same_fault(const hs_fault *a, const hs_fault *b) {
    if (!a->found || !b->found)
        return a->found == b->found;
    const bool same_part = a->part && b->part ? strcmp(a->part, b->part) == 0 : a->part == b->part;
    return a->output == b->output && same_part && a->index == b->index && hs_test_same_value(a->value, b->value);
}

static bool is_attention(hs_operation operation) {
    return operation == HS_OP_ATTENTION || operation == HS_OP_ATTENTION_BACKWARD;
}

/* Inputs that may be infinite without an infinite result: divisors, the optimizer's scalars, and what is counted. */
static bool may_hide(hs_operation operation, uint32_t input) {
    return (operation == HS_OP_LOG_BACKWARD && input == 1) || (operation == HS_OP_ADAMW && input == 1) ||
           operation == HS_OP_MEASURE;
}

/* Plants a value in one element of one input after another. */
static void plant(hs_test_call *t, uint32_t input, double value) {
    hs_test_operand *operand = &t->inputs[input];
    size_t flagged = 0;
    for (size_t i = 0; operand->f64 && i < operand->elements; i++) {
        const double kept = operand->f64[i];
        operand->f64[i] = value;
        hs_test_result *result = hs_test_call_run_well(t, backend);
        operand->f64[i] = kept;
        const hs_fault expected = first_in_outputs(result);
        flagged += result->flag;
        cr_expect_eq(result->flag, result->fault.found ? 1 : 0);
        if (result->fault.part == NULL)
            cr_expect(same_fault(&result->fault, &expected), "%s, input %u, element %zu",
                      hs_operation_name(t->call.operation), input, i);
        else
            cr_expect(is_attention(t->call.operation) && result->fault.output == -1 && !isfinite(result->fault.value));
        hs_test_result_destroy(result);
    }
    if (operand->f64 && !may_hide(t->call.operation, input))
        cr_expect_gt(flagged, 0, "%s, input %u", hs_operation_name(t->call.operation), input);
}

Test(faults, of_every_operation_and_input) {
    for (int op = 0; op < HS_OP_COUNT; op++) {
        hs_test_description d = hs_test_describe((hs_operation)op);
        d.rows = 4;
        d.columns = 5;
        d.queries = d.keys = 3;
        d.head_width = 2;
        d.pitch = 3; /* for the operands that may have one */
        hs_test_call *t = hs_test_call_create(&d);
        for (uint32_t i = 0; i < t->call.input_count; i++) {
            plant(t, i, INFINITY);
            plant(t, i, NAN);
        }
        hs_test_result *clean = hs_test_call_run_well(t, backend);
        cr_expect_eq(clean->flag, 0, "%s", hs_operation_name(d.operation));
        cr_expect_not(clean->fault.found);
        hs_test_result_destroy(clean);
        hs_test_call_destroy(t);
    }
}

Test(faults, of_products_that_overflow_the_half_and_of_logarithms) {
    hs_test_description d = hs_test_describe(HS_OP_MATMUL);
    d.precision = HSTEP_PRECISION_FP16;
    hs_test_call *t = hs_test_call_create(&d);
    hs_test_call_fill(t, HS_TEST_SMALL, 2);
    t->inputs[0].f64[2 * d.inner + 1] = 60000.0; /* row 2 */
    t->inputs[1].f64[1 * d.columns + 4] = -2.0;  /* column 4 */
    hs_test_result *result = hs_test_call_run_well(t, backend);
    const hs_fault expected = {true, 0, NULL, 2 * d.columns + 4, -INFINITY};
    cr_expect(same_fault(&result->fault, &expected) && result->flag == 1);
    hs_test_result_destroy(result);
    hs_test_call_destroy(t);
    d = hs_test_describe(HS_OP_LOG);
    t = hs_test_call_create(&d);
    t->inputs[0].f64[11] = 0.0;
    result = hs_test_call_run_well(t, backend);
    const hs_fault zero = {true, 0, NULL, 11, -INFINITY};
    cr_expect(same_fault(&result->fault, &zero));
    hs_test_result_destroy(result);
    hs_test_call_destroy(t);
}

/*
 * Attention of 2 sequences, 5 queries at positions 2 to 6 of 7 keys, 4 heads on 2 key heads, width 6: where each input
 * is felt first.
 */
typedef struct attention_case {
    unsigned input; /* 0 q, 1 k, 2 v, 3 dy */
    size_t sequence, row, head;
    const char *part; /* NULL for output 0 */
    size_t felt_head, query, key;
} attention_case;

static void check_case(const attention_case *c, hs_operation operation) {
    const bool backward = operation == HS_OP_ATTENTION_BACKWARD, of_keys = c->input == 1 || c->input == 2;
    hs_test_description d = hs_test_describe(operation);
    d.keys = 7;
    hs_test_call *t = hs_test_call_create(&d);
    const unsigned input = c->input == 3 ? 0 : c->input + (backward ? 1 : 0);
    const size_t row = c->sequence * (of_keys ? 7 : 5) + c->row;
    t->inputs[input].f64[row * t->inputs[input].view.dims[1] + c->head * 6 + 2] = INFINITY;
    hs_test_result *result = hs_test_call_run_well(t, backend);
    cr_expect_eq(result->flag, 1);
    if (c->part) {
        cr_expect_eq(result->fault.output, -1);
        cr_expect_str_eq(result->fault.part, c->part);
        cr_expect_eq(result->fault.index, ((c->sequence * 4 + c->felt_head) * 5 + c->query) * 7 + c->key,
                     "input %u, row %zu: %llu", c->input, c->row, (unsigned long long)result->fault.index);
    } else {
        const hs_fault expected = first_in_outputs(result);
        cr_expect(same_fault(&result->fault, &expected));
        cr_expect_eq(result->fault.index, (c->sequence * 5 + c->query) * 24 + c->felt_head * 6 + 2);
    }
    hs_test_result_destroy(result);
    hs_test_call_destroy(t);
}

Test(faults, of_attention_name_the_part_and_the_cell) {
    static const attention_case forward[] = {
        {0, 0, 3, 2, "scores", 2, 3, 0}, /* query 3 of head 2: its first key */
        {0, 1, 2, 0, "scores", 0, 2, 0},
        {1, 0, 4, 1, "scores", 2, 2, 4}, /* key 4 of key head 1: query 2 of head 2 sees it first */
        {1, 1, 0, 0, "scores", 0, 0, 0},
        {2, 0, 3, 1, NULL, 2, 1, 0}, /* y of the first query that sees the value */
        {2, 1, 6, 0, NULL, 0, 4, 0},
    };
    static const attention_case backward[] = {
        {0, 0, 3, 2, "scores", 2, 3, 0},
        {1, 1, 5, 1, "scores", 2, 3, 5},
        {2, 0, 2, 1, "probabilities_adjoint", 2, 0, 2},
        {3, 1, 1, 3, "probabilities_adjoint", 3, 1, 0},
        {3, 0, 0, 0, "probabilities_adjoint", 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof forward / sizeof *forward; i++)
        check_case(&forward[i], HS_OP_ATTENTION);
    for (size_t i = 0; i < sizeof backward / sizeof *backward; i++)
        check_case(&backward[i], HS_OP_ATTENTION_BACKWARD);
}

/* One query, two keys, width 1. */
static hs_test_result *run_pair(hs_operation operation, hstep_precision precision, const double *q, const double *k,
                                const double *v, const double *dy) {
    hs_test_description d = hs_test_describe(operation);
    d.precision = precision;
    d.sequences = d.heads = d.kv_heads = d.head_width = d.queries = 1;
    d.keys = 2;
    hs_test_call *t = hs_test_call_create(&d);
    const unsigned first = operation == HS_OP_ATTENTION_BACKWARD ? 1 : 0;
    if (first)
        t->inputs[0].f64[0] = dy[0];
    t->inputs[first].f64[0] = q[0];
    for (int i = 0; i < 2; i++) {
        t->inputs[first + 1].f64[i] = k[i];
        t->inputs[first + 2].f64[i] = v[i];
    }
    hs_test_result *result = hs_test_call_run_well(t, backend);
    hs_test_call_destroy(t);
    return result;
}

/* A score of -infinity would only look like a key of no weight: the output is finite, the flag must rise. */
Test(faults, of_scores_that_softmax_would_hide) {
    const double q[1] = {1000.0}, k[2] = {1.0, -1000.0}, v[2] = {3.0, 4.0};
    hs_test_result *result = run_pair(HS_OP_ATTENTION, HSTEP_PRECISION_FP16, q, k, v, NULL);
    cr_expect(result->outputs[0][0] == 3.0);
    cr_expect_eq(result->flag, 1);
    const hs_fault expected = {true, -1, "scores", 1, -INFINITY};
    cr_expect(same_fault(&result->fault, &expected));
    hs_test_result_destroy(result);
    result = run_pair(HS_OP_ATTENTION, HSTEP_PRECISION_BF16, q, k, v, NULL);
    cr_expect(result->outputs[0][0] == 3.0 && result->flag == 0, "bf16 holds the score");
    hs_test_result_destroy(result);
}

/* Finite adjoints of probabilities whose difference overflows: p about (1, 0), g = (1.7e308, -1.7e308). */
Test(faults, of_adjoints_of_scores) {
    const double q[1] = {1.0}, k[2] = {9.0, 0.0}, v[2] = {1.7e308, -1.7e308}, dy[1] = {1.0};
    hs_test_result *result = run_pair(HS_OP_ATTENTION_BACKWARD, HSTEP_PRECISION_F64, q, k, v, dy);
    const hs_fault expected = {true, -1, "scores_adjoint", 1, -INFINITY};
    cr_expect(same_fault(&result->fault, &expected) && result->flag == 1);
    hs_test_result_destroy(result);
}
