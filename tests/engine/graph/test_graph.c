/* Declarations that do not fit are refused with their reason and leave the graph usable. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "support/models.h"

typedef struct fixture {
    hstep_graph *graph;
    hstep_value x, w, v, indices, rows; /* [ROWS, 4], [4, 6], [4], i32 [ROWS], [ROWS, 6] */
} fixture;

static fixture make(void) {
    fixture f = {0};
    hstep_error e = {0};
    hs_test_expect_ok(hstep_graph_create(&f.graph, &e), &e);
    hs_test_expect_ok(hstep_graph_input(f.graph, "x", HSTEP_DTYPE_F64, 2, (int64_t[]){HSTEP_ROWS, 4}, &f.x, &e), &e);
    hs_test_expect_ok(hstep_graph_parameter(f.graph, "w", 2, (int64_t[]){4, 6}, &f.w, &e), &e);
    hs_test_expect_ok(hstep_graph_parameter(f.graph, "v", 1, (int64_t[]){4}, &f.v, &e), &e);
    hs_test_expect_ok(
        hstep_graph_input(f.graph, "indices", HSTEP_DTYPE_I32, 1, (int64_t[]){HSTEP_ROWS}, &f.indices, &e), &e);
    hs_test_expect_ok(hstep_graph_input(f.graph, "rows", HSTEP_DTYPE_F64, 2, (int64_t[]){HSTEP_ROWS, 6}, &f.rows, &e),
                      &e);
    return f;
}

#define EXPECT(call, expected)                                                                                         \
    do {                                                                                                               \
        hstep_error e = {0};                                                                                           \
        hstep_value y = 4711;                                                                                          \
        const hstep_status status = (call);                                                                            \
        cr_expect_eq(status, (expected), "%s gave %s", #call, hstep_status_name(status));                              \
        cr_expect_eq(e.status, (expected));                                                                            \
        cr_expect_gt(strlen(e.message), 5);                                                                            \
        cr_expect(strstr(e.message, "-1") == NULL, "%s", e.message);                                                   \
        cr_expect_eq(y, 4711, "a failing call wrote its result");                                                      \
    } while (0)

Test(graph, refuses_shapes_that_do_not_fit) {
    const fixture f = make();
    hstep_graph *g = f.graph;
    const hstep_transpose n = HSTEP_NO_TRANSPOSE, t = HSTEP_TRANSPOSE;
    EXPECT(hstep_graph_matmul(g, "y", HSTEP_PRECISION_F64, f.x, n, f.w, t, &y, &e), HSTEP_ERROR_SHAPE);
    EXPECT(hstep_graph_matmul(g, "y", HSTEP_PRECISION_F64, f.x, n, f.v, n, &y, &e), HSTEP_ERROR_SHAPE);
    EXPECT(hstep_graph_matmul(g, "y", HSTEP_PRECISION_F64, f.x, n, f.indices, n, &y, &e), HSTEP_ERROR_SHAPE);
    EXPECT(hstep_graph_matmul(g, "y", (hstep_precision)9, f.x, n, f.w, n, &y, &e), HSTEP_ERROR_ARGUMENT);
    EXPECT(hstep_graph_matmul(g, "y", HSTEP_PRECISION_F64, 0, n, f.w, n, &y, &e), HSTEP_ERROR_ARGUMENT);
    EXPECT(hstep_graph_matmul(g, "y", HSTEP_PRECISION_F64, 99, n, f.w, n, &y, &e), HSTEP_ERROR_ARGUMENT);
    EXPECT(hstep_graph_gather(g, "y", f.w, f.x, &y, &e), HSTEP_ERROR_SHAPE);
    EXPECT(hstep_graph_gather(g, "y", f.x, f.indices, &y, &e), HSTEP_ERROR_SHAPE);
    EXPECT(hstep_graph_rmsnorm(g, "y", f.rows, f.v, 1e-5, &y, &e), HSTEP_ERROR_SHAPE);
    EXPECT(hstep_graph_rmsnorm(g, "y", f.x, f.v, 0, &y, &e), HSTEP_ERROR_ARGUMENT);
    EXPECT(hstep_graph_rmsnorm(g, "y", f.x, f.v, NAN, &y, &e), HSTEP_ERROR_ARGUMENT);
    EXPECT(hstep_graph_rotary(g, "y", f.x, 3, 1e4, &y, &e), HSTEP_ERROR_SHAPE);
    EXPECT(hstep_graph_rotary(g, "y", f.rows, 4, 1e4, &y, &e), HSTEP_ERROR_SHAPE);
    EXPECT(hstep_graph_rotary(g, "y", f.w, 2, 1e4, &y, &e), HSTEP_ERROR_SHAPE);
    EXPECT(hstep_graph_attention(g, "y", HSTEP_PRECISION_F64, f.x, f.rows, f.x, 2, 2, &y, &e), HSTEP_ERROR_SHAPE);
    EXPECT(hstep_graph_attention(g, "y", HSTEP_PRECISION_F64, f.x, f.x, f.x, 3, 3, &y, &e), HSTEP_ERROR_SHAPE);
    EXPECT(hstep_graph_attention(g, "y", HSTEP_PRECISION_F64, f.x, f.x, f.x, 2, 0, &y, &e), HSTEP_ERROR_SHAPE);
    EXPECT(hstep_graph_attention(g, "y", HSTEP_PRECISION_F64, f.x, f.x, f.x, SIZE_MAX, SIZE_MAX, &y, &e),
           HSTEP_ERROR_SHAPE);
    EXPECT(hstep_graph_rotary(g, "y", f.x, SIZE_MAX - 1, 1e4, &y, &e), HSTEP_ERROR_SHAPE);
    EXPECT(hstep_graph_swiglu(g, "y", f.x, f.rows, &y, &e), HSTEP_ERROR_SHAPE);
    EXPECT(hstep_graph_add(g, "y", f.x, f.rows, &y, &e), HSTEP_ERROR_SHAPE);
    EXPECT(hstep_graph_add_bias(g, "y", f.rows, f.v, &y, &e), HSTEP_ERROR_SHAPE);
    EXPECT(hstep_graph_scale(g, "y", f.x, INFINITY, &y, &e), HSTEP_ERROR_ARGUMENT);
    EXPECT(hstep_graph_softmax(g, "y", f.v, &y, &e), HSTEP_ERROR_SHAPE);
    EXPECT(hstep_graph_transpose(g, "y", f.v, &y, &e), HSTEP_ERROR_SHAPE);
    EXPECT(hstep_graph_cross_entropy(g, "y", f.w, f.indices, &y, &e), HSTEP_ERROR_SHAPE);
    hstep_value y = 0;
    hstep_error error = {0};
    hs_test_expect_ok(hstep_graph_matmul(g, "y", HSTEP_PRECISION_F64, f.x, n, f.w, n, &y, &error), &error);
    hstep_graph_destroy(g);
}

Test(graph, errors_name_the_operation_and_show_shapes_in_words) {
    const fixture f = make();
    hstep_graph *g = f.graph;
    const hstep_transpose n = HSTEP_NO_TRANSPOSE;
    hstep_value y = 0;
    hstep_error e = {0};
    hstep_graph_matmul(g, "product", HSTEP_PRECISION_F64, f.x, n, f.rows, n, &y, &e);
    cr_expect_str_eq(e.operation, "product");
    cr_expect(strstr(e.message, "(4)") != NULL && strstr(e.message, "(rows)") != NULL, "%s", e.message);
    hstep_graph_add(g, "together", f.x, f.rows, &y, &e);
    cr_expect_str_eq(e.operation, "together");
    cr_expect(strstr(e.message, "[rows, 4] and [rows, 6]") != NULL, "%s", e.message);
    hstep_graph_silu(g, "w", f.x, &y, &e);
    cr_expect_str_eq(e.operation, "w");
    hstep_graph_parameter(g, "p", 2, (int64_t[]){4, HSTEP_ROWS}, &y, &e);
    cr_expect_str_eq(e.operation, "p");
    cr_expect(strstr(e.message, "dimension 1 is rows") != NULL, "%s", e.message);
    hstep_graph_scale(g, "s", f.x, NAN, &y, &e);
    cr_expect_str_eq(e.operation, "s");
    hstep_graph_silu(g, NULL, f.x, &y, &e);
    cr_expect_str_empty(e.operation);
    hstep_graph_set_loss(g, f.x, &e);
    cr_expect_str_eq(e.operation, "x");
    cr_expect(strstr(e.message, "[rows, 4]") != NULL && strstr(e.message, "[1]") != NULL &&
                  strstr(e.message, "hstep_graph_sum") != NULL,
              "%s", e.message);
    hstep_graph_destroy(g);
}

Test(graph, refuses_names_and_dimensions) {
    const fixture f = make();
    hstep_graph *g = f.graph;
    EXPECT(hstep_graph_silu(g, NULL, f.x, &y, &e), HSTEP_ERROR_ARGUMENT);
    EXPECT(hstep_graph_silu(g, "", f.x, &y, &e), HSTEP_ERROR_ARGUMENT);
    EXPECT(hstep_graph_silu(g, "w", f.x, &y, &e), HSTEP_ERROR_ARGUMENT);
    EXPECT(hstep_graph_silu(g, "(seed)", f.x, &y, &e), HSTEP_ERROR_ARGUMENT);
    EXPECT(hstep_graph_parameter(g, "p", 0, (int64_t[]){1}, &y, &e), HSTEP_ERROR_SHAPE);
    EXPECT(hstep_graph_parameter(g, "p", 5, (int64_t[]){1, 1, 1, 1, 1}, &y, &e), HSTEP_ERROR_SHAPE);
    EXPECT(hstep_graph_parameter(g, "p", 1, (int64_t[]){0}, &y, &e), HSTEP_ERROR_SHAPE);
    EXPECT(hstep_graph_parameter(g, "p", 1, (int64_t[]){HSTEP_ROWS}, &y, &e), HSTEP_ERROR_SHAPE);
    EXPECT(hstep_graph_parameter(g, "p", 2, (int64_t[]){INT64_MAX, 16}, &y, &e), HSTEP_ERROR_SHAPE);
    EXPECT(hstep_graph_parameter(g, "p", 1, NULL, &y, &e), HSTEP_ERROR_ARGUMENT);
    EXPECT(hstep_graph_input(g, "p", HSTEP_DTYPE_FP16, 1, (int64_t[]){4}, &y, &e), HSTEP_ERROR_SHAPE);
    hstep_graph_destroy(g);
}

Test(graph, loss_must_be_one_number_and_the_last) {
    const fixture f = make();
    hstep_graph *g = f.graph;
    hstep_error error = {0};
    hstep_value sum = 0;
    cr_expect_eq(hstep_graph_set_loss(g, f.x, &error), HSTEP_ERROR_SHAPE);
    cr_expect_eq(hstep_graph_set_loss(g, f.v, &error), HSTEP_ERROR_SHAPE);
    cr_expect_eq(hstep_graph_set_loss(g, 0, &error), HSTEP_ERROR_ARGUMENT);
    hs_test_expect_ok(hstep_graph_sum(g, "sum", f.w, &sum, &error), &error);
    hs_test_expect_ok(hstep_graph_set_loss(g, sum, &error), &error);
    cr_expect_eq(hstep_graph_set_loss(g, sum, &error), HSTEP_ERROR_ARGUMENT);
    cr_expect_eq(hstep_graph_set_output(g, f.x, &error), HSTEP_ERROR_ARGUMENT);
    EXPECT(hstep_graph_silu(g, "late", f.x, &y, &e), HSTEP_ERROR_ARGUMENT);
    hstep_graph_destroy(g);
}

Test(graph, decoder_settings_that_contradict_are_named) {
    hstep_context *context = NULL;
    hstep_error e = {0};
    hs_test_expect_ok(hstep_context_create(NULL, &context, &e), &e);
    const struct {
        size_t vocabulary, width, layers, heads, kv_heads, feed_forward;
        const char *word;
    } bad[] = {{0, 8, 1, 2, 0, 8, "vocabulary"},   {9, 0, 1, 2, 0, 8, "width"},
               {9, 8, 0, 2, 0, 8, "layers"},       {9, 8, 1, 0, 0, 8, "heads"},
               {9, 8, 1, 2, 0, 0, "feed_forward"}, {9, 8, 1, 3, 0, 8, "divide"},
               {9, 6, 1, 2, 0, 8, "even"},         {9, 8, 1, 2, 4, 8, "kv_heads"},
               {9, 24, 1, 6, 4, 8, "kv_heads"},    {SIZE_MAX, 8, 1, 2, 0, 8, "vocabulary"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        hstep_decoder_config config = hstep_decoder_defaults();
        config.vocabulary = bad[i].vocabulary;
        config.width = bad[i].width;
        config.layers = bad[i].layers;
        config.heads = bad[i].heads;
        config.kv_heads = bad[i].kv_heads;
        config.feed_forward = bad[i].feed_forward;
        hstep_model *model = NULL;
        cr_expect_eq(hstep_model_create_decoder(context, &config, &model, &e), HSTEP_ERROR_ARGUMENT);
        cr_expect(strstr(e.message, bad[i].word) != NULL, "%s", e.message);
        cr_expect_null(model);
    }
    hstep_context_destroy(context);
}
