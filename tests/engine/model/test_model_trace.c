/* The values of a forward pass, one by one: all of them, in order, and with the bits of a pass as a whole. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/models.h"

enum { MOST = 64 };

typedef struct seen {
    struct {
        char name[96];
        size_t rank, dims[HSTEP_MAX_RANK], elements;
        hstep_dtype dtype;
        double *values;
    } items[MOST];
    size_t count;
} seen;

static void see(void *data, const hstep_traced_value *value) {
    seen *s = data;
    cr_assert_lt(s->count, MOST);
    snprintf(s->items[s->count].name, sizeof s->items[0].name, "%s", value->name);
    s->items[s->count].rank = value->rank;
    memcpy(s->items[s->count].dims, value->dims, sizeof value->dims);
    s->items[s->count].elements = value->elements;
    s->items[s->count].dtype = value->dtype;
    s->items[s->count].values = malloc(value->elements * sizeof(double));
    cr_assert_not_null(s->items[s->count].values);
    memcpy(s->items[s->count++].values, value->values, value->elements * sizeof(double));
}

static void forget(seen *s) {
    for (size_t i = 0; i < s->count; i++)
        free(s->items[i].values);
    *s = (seen){0};
}

/* A decoder of one block with grouped heads. */
static hs_test_run make(hstep_backend backend, hstep_precision precision) {
    return hs_test_run_create(&(hs_test_setup){.backend = backend,
                                               .precision = precision,
                                               .vocabulary = 20,
                                               .width = 16,
                                               .layers = 1,
                                               .heads = 4,
                                               .kv_heads = 2,
                                               .feed_forward = 24});
}

static seen trace(const hs_test_run *run, const hstep_batch *batch) {
    seen s = {0};
    hstep_error e = {0};
    hs_test_expect_ok(hstep_model_trace(run->model, batch, see, &s, &e), &e);
    return s;
}

static const struct {
    const char *name;
    size_t columns;
} expected[] = {{"token_embedding", 16},
                {"blocks.0.attention_norm", 16},
                {"blocks.0.attention.query", 16},
                {"blocks.0.attention.key", 8},
                {"blocks.0.attention.value", 8},
                {"blocks.0.attention.query_rotary", 16},
                {"blocks.0.attention.key_rotary", 8},
                {"blocks.0.attention", 16},
                {"blocks.0.attention.output", 16},
                {"blocks.0.attention_residual", 16},
                {"blocks.0.feed_forward_norm", 16},
                {"blocks.0.feed_forward.gate", 24},
                {"blocks.0.feed_forward.up", 24},
                {"blocks.0.feed_forward.activation", 24},
                {"blocks.0.feed_forward.down", 16},
                {"blocks.0.feed_forward_residual", 16},
                {"final_norm", 16},
                {"head", 20},
                {"loss", 0}};

Test(model_trace, every_operation_in_its_order_with_its_shape) {
    hs_test_batch batch = hs_test_batch_create(3, 5, 20, true, 1);
    hs_test_run run = make(HSTEP_BACKEND_CPU, HSTEP_PRECISION_BF16);
    seen s = trace(&run, &batch.batch);
    cr_assert_eq(s.count, sizeof expected / sizeof expected[0]);
    for (size_t i = 0; i < s.count; i++) {
        cr_expect_str_eq(s.items[i].name, expected[i].name);
        if (expected[i].columns == 0)
            cr_expect(s.items[i].rank == 1 && s.items[i].elements == 1);
        else
            cr_expect(s.items[i].rank == 2 && s.items[i].dims[0] == 15 && s.items[i].dims[1] == expected[i].columns &&
                          s.items[i].elements == 15 * expected[i].columns,
                      "%s", expected[i].name);
    }
    cr_expect_eq(s.items[1].dtype, HSTEP_DTYPE_BF16, "products alone read it");
    cr_expect_eq(s.items[9].dtype, HSTEP_DTYPE_F64);
    forget(&s);
    hs_test_run_destroy(&run);
    hs_test_batch_destroy(&batch);
}

Test(model_trace, logits_and_loss_have_the_bits_of_a_whole_pass) {
    static const hstep_precision precisions[] = {HSTEP_PRECISION_F64, HSTEP_PRECISION_FP16, HSTEP_PRECISION_BF16};
    hs_test_batch batch = hs_test_batch_create(3, 5, 20, true, 1);
    for (size_t p = 0; p < 3; p++) {
        hs_test_run run = make(HSTEP_BACKEND_CPU, precisions[p]);
        double *logits = calloc(hstep_model_output_size(run.model, 3, 5), sizeof *logits), sum = 0, weight = 0;
        hstep_error e = {0};
        cr_assert_not_null(logits);
        hs_test_expect_ok(hstep_model_output(run.model, &batch.batch, logits, &e), &e);
        hs_test_expect_ok(hstep_model_loss(run.model, &batch.batch, &sum, &weight, &e), &e);
        seen s = trace(&run, &batch.batch);
        cr_expect_eq(memcmp(s.items[17].values, logits, 15 * 20 * sizeof *logits), 0);
        cr_expect_eq(s.items[18].values[0], sum);
        double again = 0;
        hs_test_expect_ok(hstep_model_loss(run.model, &batch.batch, &again, &weight, &e), &e);
        cr_expect_eq(again, sum, "a trace leaves nothing behind");
        forget(&s);
        free(logits);
        hs_test_run_destroy(&run);
    }
    hs_test_batch_destroy(&batch);
}

/* What stands in 16 bits is the reference's value, rounded; all else has its bits. */
Test(model_trace, values_of_both_tiers) {
    hs_test_batch batch = hs_test_batch_create(2, 7, 20, false, 2);
    hs_test_run fast = make(HSTEP_BACKEND_CPU, HSTEP_PRECISION_FP16),
                plain = make(HSTEP_BACKEND_CPU_REFERENCE, HSTEP_PRECISION_FP16);
    seen a = trace(&fast, &batch.batch), b = trace(&plain, &batch.batch);
    cr_assert_eq(a.count, b.count);
    for (size_t i = 0; i < a.count; i++) {
        cr_expect_eq(b.items[i].dtype, HSTEP_DTYPE_F64);
        for (size_t j = 0; j < a.items[i].elements; j++) {
            const double wide = b.items[i].values[j];
            const double right =
                a.items[i].dtype == HSTEP_DTYPE_F64 ? wide : hstep_decode(HSTEP_FP16, hstep_encode(HSTEP_FP16, wide));
            cr_assert_eq(a.items[i].values[j], right, "%s at %zu", a.items[i].name, j);
        }
    }
    forget(&a);
    forget(&b);
    hs_test_run_destroy(&fast);
    hs_test_run_destroy(&plain);
    hs_test_batch_destroy(&batch);
}

Test(model_trace, a_value_that_is_not_finite_is_shown_and_named) {
    hs_test_batch batch = hs_test_batch_create(1, 4, 20, false, 3);
    hs_test_run run = make(HSTEP_BACKEND_CPU, HSTEP_PRECISION_F64);
    hstep_error e = {0};
    double gain[16] = {[3] = INFINITY};
    const size_t index = hstep_model_find_parameter(run.model, "blocks.0.feed_forward_norm.gain");
    hs_test_expect_ok(hstep_model_write_parameter(run.model, index, gain, &e), &e);
    seen s = {0};
    cr_assert_eq(hstep_model_trace(run.model, &batch.batch, see, &s, &e), HSTEP_ERROR_NONFINITE_FORWARD);
    cr_expect_str_eq(e.operation, "blocks.0.feed_forward_norm");
    cr_assert_eq(s.count, 11, "and nothing behind it");
    cr_expect_str_eq(s.items[10].name, "blocks.0.feed_forward_norm");
    cr_expect(isinf(s.items[10].values[3]));
    forget(&s);
    hs_test_run_destroy(&run);
    hs_test_batch_destroy(&batch);
}

Test(model_trace, what_cannot_be_traced) {
    hs_test_batch batch = hs_test_batch_create(1, 4, 20, false, 3);
    hs_test_run run = make(HSTEP_BACKEND_CPU, HSTEP_PRECISION_F64);
    seen s = {0};
    hstep_error e = {0};
    cr_expect_eq(hstep_model_trace(NULL, &batch.batch, see, &s, &e), HSTEP_ERROR_ARGUMENT);
    cr_expect_eq(hstep_model_trace(run.model, NULL, see, &s, &e), HSTEP_ERROR_ARGUMENT);
    cr_expect_eq(hstep_model_trace(run.model, &batch.batch, NULL, &s, &e), HSTEP_ERROR_ARGUMENT);
    batch.tokens[2] = 20;
    cr_expect_eq(hstep_model_trace(run.model, &batch.batch, see, &s, &e), HSTEP_ERROR_TOKEN);
    cr_expect_eq(s.count, 0);
    hs_test_run_destroy(&run);
    hs_test_batch_destroy(&batch);
}
