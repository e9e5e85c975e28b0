#include "support/traces.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"
#include "engine/context.h"
#include "support/calls.h"
#include "support/parity.h"

const double hs_test_traced_x[HS_TEST_TRACED_ROWS * 3] = {
    1.5, -0.25, 0x1p-20, 0.0, 0x1p-26, 3.0, -0x1.8p-16, 2.0, -0x1p-3, 100.0, -7.0, 0.5, 0x1.ffcp-15, -1.0, 0x1p-24};
const double hs_test_traced_w1[12] = {0.5, -1.0, 0x1p-4, 0.0, 2.0, 0x1p-25, 1.0, -0.75, 0x1p-15, 0.125, -0.5, 3.0};
const double hs_test_traced_w2[8] = {1.0, 0x1p-24, -0.5, 0.0, 0x1p-10, 0.25, 0x1p-30, -2.0};

static hstep_graph *traced_graph(void) {
    hstep_graph *g = NULL;
    hstep_error e = {0};
    hstep_value x = 0, w1 = 0, w2 = 0, y = 0, loss = 0;
    hs_test_expect_ok(hstep_graph_create(&g, &e), &e);
    hs_test_expect_ok(hstep_graph_input(g, "x", HSTEP_DTYPE_F64, 2, (int64_t[]){HSTEP_ROWS, 3}, &x, &e), &e);
    hs_test_expect_ok(hstep_graph_parameter(g, "w1", 2, (int64_t[]){3, 4}, &w1, &e), &e);
    hs_test_expect_ok(hstep_graph_parameter(g, "w2", 2, (int64_t[]){4, 2}, &w2, &e), &e);
    hs_test_expect_ok(
        hstep_graph_matmul(g, "first", HSTEP_PRECISION_FP16, x, HSTEP_NO_TRANSPOSE, w1, HSTEP_NO_TRANSPOSE, &y, &e),
        &e);
    hs_test_expect_ok(hstep_graph_scale(g, "scaled", y, HS_TEST_TRACED_FACTOR, &y, &e), &e);
    hs_test_expect_ok(
        hstep_graph_matmul(g, "second", HSTEP_PRECISION_FP16, y, HSTEP_NO_TRANSPOSE, w2, HSTEP_NO_TRANSPOSE, &y, &e),
        &e);
    hs_test_expect_ok(hstep_graph_sum(g, "loss", y, &loss, &e), &e);
    hs_test_expect_ok(hstep_graph_set_loss(g, loss, &e), &e);
    return g;
}

hs_test_run hs_test_traced_run_create_in(hstep_context *context) {
    hs_test_run run = {.context = context};
    hstep_error error = {0};
    hstep_trainer_config config = hstep_trainer_defaults(HSTEP_PRECISION_FP16);
    config.scaler.initial = HS_TEST_TRACED_SCALE;
    hs_test_expect_ok(hstep_model_create(context, traced_graph(), &run.model, &error), &error);
    hs_test_expect_ok(hstep_model_write_parameter(run.model, 0, hs_test_traced_w1, &error), &error);
    hs_test_expect_ok(hstep_model_write_parameter(run.model, 1, hs_test_traced_w2, &error), &error);
    hs_test_expect_ok(hstep_trainer_create(run.model, &config, &run.trainer, &error), &error);
    return run;
}

hstep_batch hs_test_traced_batch(void) {
    static const hstep_feed feed = {.input = "x", .data = hs_test_traced_x};
    return (hstep_batch){.sequences = HS_TEST_TRACED_ROWS, .length = 1, .feeds = &feed, .feed_count = 1};
}

hstep_context *hs_test_wide_context(void) {
    hs_backend *backend = NULL;
    hstep_context *context = NULL;
    hstep_error error = {0};
    hs_test_expect_ok(hs_cpu_create(1, &backend, &error), &error);
    hs_test_leave_compact_out(backend);
    hs_test_expect_ok(hs_context_adopt(backend, NULL, &context, &error), &error);
    return context;
}

const hstep_operand_trace *hs_test_find_row(const hstep_trace *trace, const char *operation, const char *tensor,
                                            int is_adjoint) {
    for (size_t i = 0; i < trace->operand_count; i++) {
        const hstep_operand_trace *row = &trace->operands[i];
        if (strcmp(row->operation, operation) == 0 && strcmp(row->tensor, tensor) == 0 && row->is_adjoint == is_adjoint)
            return row;
    }
    return NULL;
}

void hs_test_free_trace(hs_test_kept_trace *kept) {
    for (size_t i = 0; i < kept->tensor_count; i++)
        free((void *)kept->tensors[i].name);
    for (size_t i = 0; i < kept->operand_count; i++) {
        free((void *)kept->operands[i].operation);
        free((void *)kept->operands[i].tensor);
    }
    free(kept->tensors);
    free(kept->operands);
    *kept = (hs_test_kept_trace){0};
}

void hs_test_keep_trace(const hstep_trainer *trainer, hs_test_kept_trace *kept) {
    hstep_trace trace;
    hstep_error error = {0};
    hs_test_expect_ok(hstep_trainer_trace(trainer, &trace, &error), &error);
    hs_test_free_trace(kept);
    *kept = (hs_test_kept_trace){calloc(trace.tensor_count + 1, sizeof *kept->tensors),
                                 calloc(trace.operand_count + 1, sizeof *kept->operands), trace.tensor_count,
                                 trace.operand_count};
    cr_assert(kept->tensors != NULL && kept->operands != NULL);
    for (size_t i = 0; i < trace.tensor_count; i++) {
        kept->tensors[i] = trace.tensors[i];
        kept->tensors[i].name = strdup(trace.tensors[i].name);
    }
    for (size_t i = 0; i < trace.operand_count; i++) {
        kept->operands[i] = trace.operands[i];
        kept->operands[i].operation = strdup(trace.operands[i].operation);
        kept->operands[i].tensor = strdup(trace.operands[i].tensor);
    }
}

static void expect_same_operand(const hstep_operand_trace *a, const hstep_operand_trace *b) {
    cr_assert(strcmp(a->operation, b->operation) == 0 && strcmp(a->tensor, b->tensor) == 0);
    cr_expect(a->is_adjoint == b->is_adjoint && a->precision == b->precision && a->elements == b->elements &&
                  a->largest == b->largest && a->to_zero == b->to_zero && a->to_subnormal == b->to_subnormal &&
                  a->to_infinity == b->to_infinity && a->nonfinite == b->nonfinite,
              "%s of %s", a->tensor, a->operation);
}

void hs_test_expect_same_trace(const hs_test_kept_trace *a, const hs_test_kept_trace *b) {
    cr_assert(a->tensor_count == b->tensor_count && a->operand_count == b->operand_count && a->operand_count > 0);
    for (size_t i = 0; i < a->operand_count; i++)
        expect_same_operand(&a->operands[i], &b->operands[i]);
    for (size_t i = 0; i < a->tensor_count; i++) {
        hstep_tensor_trace left = a->tensors[i], right = b->tensors[i];
        cr_assert_str_eq(left.name, right.name);
        left.name = right.name = NULL;
        cr_expect_eq(memcmp(&left, &right, sizeof left), 0, "%s", a->tensors[i].name);
    }
}

bool hs_test_same_update(const hstep_update *a, const hstep_update *b) {
    return a->outcome == b->outcome && a->step == b->step && a->attempt == b->attempt && a->loss == b->loss &&
           a->loss_scale == b->loss_scale && a->next_loss_scale == b->next_loss_scale &&
           hs_test_same_value(a->gradient_norm, b->gradient_norm) && a->clipped == b->clipped &&
           strcmp(a->overflow.operation, b->overflow.operation) == 0 &&
           strcmp(a->overflow.tensor, b->overflow.tensor) == 0 && a->overflow.index == b->overflow.index;
}
