/* Precision by place: patterns, and products of several precisions against arithmetic written out here. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/models.h"

static hstep_error error;

static void expect_ok(hstep_status status) { hs_test_expect_ok(status, &error); }

static hstep_decoder_config small_decoder(hstep_precision precision) {
    hstep_decoder_config config = hstep_decoder_defaults();
    config.vocabulary = 11;
    config.width = 8;
    config.layers = 2;
    config.heads = 2;
    config.kv_heads = 1;
    config.feed_forward = 6;
    config.precision = precision;
    return config;
}

/* ---- Patterns ---- */

/* The letters f, h, b for the precisions of all products in their order. */
static void expect_precisions(const hstep_precision_rule *rules, size_t count, const char *expected) {
    hstep_decoder_config config = small_decoder(HSTEP_PRECISION_BF16);
    hstep_product products[17];
    char found[18] = "";
    size_t product_count = 0;
    config.rules = rules;
    config.rule_count = count;
    expect_ok(hstep_decoder_products(&config, products, 17, &product_count, &error));
    cr_assert_eq(product_count, 17);
    for (size_t i = 0; i < 17; i++)
        found[i] = "fhb"[products[i].precision];
    cr_expect_str_eq(found, expected, "first rule %s", rules[0].pattern);
}

#define EXPECT(expected, ...)                                                                                          \
    do {                                                                                                               \
        const hstep_precision_rule rules[] = {__VA_ARGS__};                                                            \
        expect_precisions(rules, sizeof rules / sizeof rules[0], expected);                                            \
    } while (0)

/* query key value attention output gate up down, twice, then head */
Test(places, patterns_fit_names) {
    const hstep_precision f = HSTEP_PRECISION_F64, h = HSTEP_PRECISION_FP16;
    EXPECT("bbbbbbbbbbbbbbbbf", {"head", f});
    EXPECT("hhhhhhhhbbbbbbbbb", {"blocks.0.*", h});
    EXPECT("bbbfbbbbbbbfbbbbb", {"*.attention", f});
    EXPECT("ffffffffffffffffh", {"*", f}, {"head", h});
    EXPECT("fffffffffffffffff", {"head", h}, {"*", f});
    EXPECT("bbbbbbbbffffffffb", {"blocks.1*", f});
    EXPECT("bbbbbbbfbbbbbbbfb", {"*do*wn", f});
    EXPECT("fffffbbbfffffbbbb", {"blocks.*.attention*", f});
    EXPECT("bbbbbhbbbbbbbhbbb", {"blocks.**gate**", h});
    EXPECT("bbbbbbbbbbbbbbbbf", {"*head*", f});
}

static void expect_refusal(const char *pattern, const char *words) {
    hstep_decoder_config config = small_decoder(HSTEP_PRECISION_BF16);
    hstep_precision_rule rule = {.precision = HSTEP_PRECISION_F64};
    size_t count = 77;
    strcpy(rule.pattern, pattern);
    config.rules = &rule;
    config.rule_count = 1;
    cr_assert_eq(hstep_decoder_products(&config, NULL, 0, &count, &error), HSTEP_ERROR_ARGUMENT, "%s", pattern);
    cr_expect_not_null(strstr(error.message, words), "%s: no '%s' in: %s", pattern, words, error.message);
    cr_expect_eq(count, 77);
}

Test(places, a_pattern_that_fits_nothing_is_an_error_with_names) {
    expect_refusal("haed", "the nearest is \"head\"");
    expect_refusal("haed", "there are blocks.0.attention.query, blocks.0.attention.key,");
    expect_refusal("haed", "(17)");
    expect_refusal("blocks.2.*", "the nearest is \"blocks.0.attention.query\"");
    expect_refusal("*.feedforward.down", "the nearest is \"blocks.0.feed_forward.down\"");
    expect_refusal("blocks.0", "the nearest is \"blocks.0.attention\"");
    expect_refusal("final_norm", "\"final_norm\" is no product, and all but products computes in f64");
    expect_refusal("*_rotary", "\"blocks.0.attention.query_rotary\" is no product");
    expect_refusal("*_rotary", "products are blocks.0.attention.query, ");
    expect_refusal("", "a pattern");
}

Test(places, rules_are_checked_in_themselves) {
    hstep_decoder_config config = small_decoder(HSTEP_PRECISION_BF16);
    hstep_precision_rule rule = {"head", (hstep_precision)3};
    size_t count;
    config.rule_count = 1;
    cr_assert_eq(hstep_decoder_products(&config, NULL, 0, &count, &error), HSTEP_ERROR_ARGUMENT);
    config.rules = &rule;
    cr_assert_eq(hstep_decoder_products(&config, NULL, 0, &count, &error), HSTEP_ERROR_ARGUMENT);
    cr_expect_not_null(strstr(error.message, "unknown precision 3"), "%s", error.message);
    rule.precision = HSTEP_PRECISION_F64;
    memset(rule.pattern, '*', sizeof rule.pattern);
    cr_assert_eq(hstep_decoder_products(&config, NULL, 0, &count, &error), HSTEP_ERROR_ARGUMENT);
    cr_expect_not_null(strstr(error.message, "does not end within 96 bytes"), "%s", error.message);
}

/* What a graph refuses leaves its products as they were, also where it has none yet or its loss already. */
Test(places, a_graph_refuses_what_fits_nothing) {
    hstep_graph *graph = NULL;
    hstep_value x = 0, w = 0, y = 0, loss = 0;
    hstep_product product = {.precision = HSTEP_PRECISION_F64};
    size_t count = 0;
    expect_ok(hstep_graph_create(&graph, &error));
    cr_assert_eq(hstep_graph_set_precision(graph, "*", HSTEP_PRECISION_F64, &error), HSTEP_ERROR_ARGUMENT);
    cr_expect_not_null(strstr(error.message, "no products"), "%s", error.message);
    expect_ok(hstep_graph_input(graph, "x", HSTEP_DTYPE_F64, 2, (int64_t[]){HSTEP_ROWS, 3}, &x, &error));
    expect_ok(hstep_graph_parameter(graph, "w", 2, (int64_t[]){3, 2}, &w, &error));
    expect_ok(hstep_graph_matmul(graph, "product", HSTEP_PRECISION_FP16, x, HSTEP_NO_TRANSPOSE, w, HSTEP_NO_TRANSPOSE,
                                 &y, &error));
    expect_ok(hstep_graph_sum(graph, "total", y, &loss, &error));
    cr_assert_eq(hstep_graph_set_precision(graph, "total", HSTEP_PRECISION_F64, &error), HSTEP_ERROR_ARGUMENT);
    cr_assert_eq(hstep_graph_set_precision(graph, "product", (hstep_precision)7, &error), HSTEP_ERROR_ARGUMENT);
    expect_ok(hstep_graph_products(graph, &product, 1, &count, &error));
    cr_assert(count == 1 && product.precision == HSTEP_PRECISION_FP16);
    cr_assert_str_eq(product.name, "product");
    expect_ok(hstep_graph_set_precision(graph, "pro*", HSTEP_PRECISION_BF16, &error));
    expect_ok(hstep_graph_set_loss(graph, loss, &error));
    cr_assert_eq(hstep_graph_set_precision(graph, "product", HSTEP_PRECISION_F64, &error), HSTEP_ERROR_ARGUMENT);
    expect_ok(hstep_graph_products(graph, &product, 1, &count, &error));
    cr_assert(count == 1 && product.precision == HSTEP_PRECISION_BF16, "adjoints are not counted");
    hstep_graph_destroy(graph);
}

Test(places, defaults_of_a_trainer_are_those_of_fp16_where_any_is) {
    static const struct {
        hstep_precision base, head;
        double scale;
    } cases[] = {{HSTEP_PRECISION_BF16, HSTEP_PRECISION_FP16, 65536},
                 {HSTEP_PRECISION_F64, HSTEP_PRECISION_FP16, 65536},
                 {HSTEP_PRECISION_FP16, HSTEP_PRECISION_F64, 65536},
                 {HSTEP_PRECISION_F64, HSTEP_PRECISION_BF16, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const hstep_precision_rule rule = {"head", cases[i].head};
        const hs_test_setup setup = {.precision = cases[i].base, .rules = &rule, .rule_count = 1};
        hs_test_run run = hs_test_run_create(&setup);
        hstep_product products[17];
        size_t count = 0;
        cr_expect_eq(hstep_trainer_defaults_for(run.model).scaler.initial, cases[i].scale);
        expect_ok(hstep_model_products(run.model, products, 17, &count, &error));
        cr_expect(count == 17 && products[16].precision == cases[i].head && products[0].precision == cases[i].base);
        hs_test_run_destroy(&run);
    }
}

/* ---- The decoder once more, with every product's precision said where it is declared ---- */

typedef struct decoder {
    hstep_graph *graph;
    const char *precisions; /* of products in their order: f, h, b */
} decoder;

static hstep_precision next_precision(decoder *d) {
    const char letter = *d->precisions++;
    return letter == 'f' ? HSTEP_PRECISION_F64 : letter == 'h' ? HSTEP_PRECISION_FP16 : HSTEP_PRECISION_BF16;
}

static hstep_value linear(decoder *d, int layer, const char *part, hstep_value x, int64_t in, int64_t out) {
    char name[64], weight_name[80];
    hstep_value weight = 0, y = 0;
    (void)snprintf(name, sizeof name, "blocks.%d.%s", layer, part);
    (void)snprintf(weight_name, sizeof weight_name, "%s.weight", name);
    expect_ok(hstep_graph_parameter(d->graph, weight_name, 2, (int64_t[]){out, in}, &weight, &error));
    expect_ok(hstep_graph_matmul(d->graph, name, next_precision(d), x, HSTEP_NO_TRANSPOSE, weight, HSTEP_TRANSPOSE, &y,
                                 &error));
    return y;
}

static hstep_value norm(decoder *d, const char *name, hstep_value x, int64_t width) {
    char gain_name[80];
    hstep_value gain = 0, y = 0;
    (void)snprintf(gain_name, sizeof gain_name, "%s.gain", name);
    expect_ok(hstep_graph_parameter(d->graph, gain_name, 1, &width, &gain, &error));
    expect_ok(hstep_graph_rmsnorm(d->graph, name, x, gain, 1e-5, &y, &error));
    return y;
}

static const char *named(char text[64], int layer, const char *part) {
    (void)snprintf(text, 64, "blocks.%d.%s", layer, part);
    return text;
}

static hstep_value add_layer(decoder *d, int layer, hstep_value stream) {
    char name[64];
    hstep_graph *g = d->graph;
    hstep_value x = norm(d, named(name, layer, "attention_norm"), stream, 8), q, k, v, y = 0, gate, up;
    q = linear(d, layer, "attention.query", x, 8, 8);
    k = linear(d, layer, "attention.key", x, 8, 4);
    v = linear(d, layer, "attention.value", x, 8, 4);
    expect_ok(hstep_graph_rotary(g, named(name, layer, "q"), q, 4, 10000, &q, &error));
    expect_ok(hstep_graph_rotary(g, named(name, layer, "k"), k, 4, 10000, &k, &error));
    expect_ok(hstep_graph_attention(g, named(name, layer, "a"), next_precision(d), q, k, v, 2, 1, &y, &error));
    y = linear(d, layer, "attention.output", y, 8, 8);
    expect_ok(hstep_graph_add(g, named(name, layer, "r"), stream, y, &stream, &error));
    x = norm(d, named(name, layer, "feed_forward_norm"), stream, 8);
    gate = linear(d, layer, "feed_forward.gate", x, 8, 6);
    up = linear(d, layer, "feed_forward.up", x, 8, 6);
    expect_ok(hstep_graph_swiglu(g, named(name, layer, "s"), gate, up, &y, &error));
    y = linear(d, layer, "feed_forward.down", y, 6, 8);
    expect_ok(hstep_graph_add(g, named(name, layer, "t"), stream, y, &stream, &error));
    return stream;
}

static hs_test_run by_nodes(const char *precisions) {
    decoder d = {.precisions = precisions};
    hstep_value tokens = 0, targets = 0, table = 0, stream = 0, logits = 0, loss = 0;
    const int64_t rows = HSTEP_ROWS;
    expect_ok(hstep_graph_create(&d.graph, &error));
    expect_ok(hstep_graph_input(d.graph, "tokens", HSTEP_DTYPE_I32, 1, &rows, &tokens, &error));
    expect_ok(hstep_graph_parameter(d.graph, "token_embedding.weight", 2, (int64_t[]){11, 8}, &table, &error));
    expect_ok(hstep_graph_gather(d.graph, "token_embedding", table, tokens, &stream, &error));
    for (int layer = 0; layer < 2; layer++)
        stream = add_layer(&d, layer, stream);
    stream = norm(&d, "final_norm", stream, 8);
    expect_ok(hstep_graph_matmul(d.graph, "head", next_precision(&d), stream, HSTEP_NO_TRANSPOSE, table,
                                 HSTEP_TRANSPOSE, &logits, &error));
    expect_ok(hstep_graph_input(d.graph, "targets", HSTEP_DTYPE_I32, 1, &rows, &targets, &error));
    expect_ok(hstep_graph_cross_entropy(d.graph, "loss", logits, targets, &loss, &error));
    expect_ok(hstep_graph_set_loss(d.graph, loss, &error));
    hs_test_run run = {0};
    expect_ok(hstep_context_create(NULL, &run.context, &error));
    expect_ok(hstep_model_create(run.context, d.graph, &run.model, &error));
    return run;
}

static hs_test_run by_rules(const hstep_precision_rule *rules, size_t count) {
    hstep_decoder_config config = small_decoder(HSTEP_PRECISION_BF16);
    hs_test_run run = {0};
    config.rules = rules;
    config.rule_count = count;
    expect_ok(hstep_context_create(NULL, &run.context, &error));
    expect_ok(hstep_model_create_decoder(run.context, &config, &run.model, &error));
    return run;
}

static uint64_t train(hs_test_run *run) {
    uint64_t checksum = 0;
    expect_ok(hstep_model_initialize(run->model, HSTEP_INIT_XAVIER, 5, &error));
    const hstep_trainer_config config = hstep_trainer_defaults_for(run->model);
    expect_ok(hstep_trainer_create(run->model, &config, &run->trainer, &error));
    for (uint64_t i = 0; i < 12; i++) {
        hs_test_batch batch = hs_test_batch_create(2, 7, 11, true, i);
        hstep_update update;
        expect_ok(hstep_trainer_update(run->trainer, &batch.batch, 1, &update, &error));
        hs_test_batch_destroy(&batch);
    }
    expect_ok(hstep_model_checksum(run->model, &checksum, &error));
    hs_test_run_destroy(run);
    return checksum;
}

Test(places, rules_are_what_nodes_would_say) {
    static const hstep_precision_rule rules[] = {{"*", HSTEP_PRECISION_F64},
                                                 {"blocks.0.*", HSTEP_PRECISION_FP16},
                                                 {"*.attention", HSTEP_PRECISION_BF16},
                                                 {"blocks.1.feed_forward.down", HSTEP_PRECISION_FP16}};
    hs_test_run rule = by_rules(rules, 4), node = by_nodes("hhhbhhhhfffbfffhf"), other = by_nodes("hhhbhhhhfffbffffh");
    const uint64_t expected = train(&node);
    cr_assert_eq(train(&rule), expected);
    cr_assert_neq(train(&other), expected, "and another order of precisions is seen");
}

/* ---- One product of bf16 among f64, by hand ---- */

enum { ROWS = 3, IN = 4, INNER = 5, OUT = 6 };

static double round_bf16(double x) { return hstep_decode(HSTEP_BF16, hstep_encode(HSTEP_BF16, x)); }

/* c[m][n] = a[m][k] b[n][k], sums in f64 or, of operands rounded to bf16, in f32. */
static void multiply(bool bf16, size_t m, size_t n, size_t k, const double *a, const double *b, double *c) {
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            double wide = 0;
            float narrow = 0;
            for (size_t l = 0; l < k; l++) {
                wide += a[i * k + l] * b[j * k + l];
                narrow += (float)round_bf16(a[i * k + l]) * (float)round_bf16(b[j * k + l]);
            }
            c[i * n + j] = bf16 ? round_bf16((double)narrow) : wide;
        }
}

static void transpose(size_t rows, size_t columns, const double *x, double *y) {
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++)
            y[j * rows + i] = x[i * columns + j];
}

/* y = x W1t in f64, z = (y * y) W2t in bf16, loss = sum(z * z): numbers small enough that f64 is exact here. */
static void by_hand(const double *x, const double *w1, const double *w2, double *loss, double *d1, double *d2) {
    double y[ROWS * INNER], squares[ROWS * INNER], z[ROWS * OUT], dz[ROWS * OUT], turned[OUT * ROWS],
        w2_turned[INNER * OUT], squares_turned[INNER * ROWS], dsquares[ROWS * INNER], dy_turned[INNER * ROWS],
        x_turned[IN * ROWS];
    multiply(false, ROWS, INNER, IN, x, w1, y);
    for (size_t i = 0; i < ROWS * INNER; i++)
        squares[i] = y[i] * y[i];
    multiply(true, ROWS, OUT, INNER, squares, w2, z);
    *loss = 0;
    for (size_t i = 0; i < ROWS * OUT; i++) {
        *loss += z[i] * z[i];
        dz[i] = z[i] + z[i];
    }
    transpose(ROWS, OUT, dz, turned);
    transpose(ROWS, INNER, squares, squares_turned);
    multiply(true, OUT, INNER, ROWS, turned, squares_turned, d2);
    transpose(OUT, INNER, w2, w2_turned);
    multiply(true, ROWS, INNER, OUT, dz, w2_turned, dsquares);
    for (size_t i = 0; i < ROWS; i++)
        for (size_t j = 0; j < INNER; j++)
            dy_turned[j * ROWS + i] = 2 * y[i * INNER + j] * dsquares[i * INNER + j];
    transpose(ROWS, IN, x, x_turned);
    multiply(false, INNER, IN, ROWS, dy_turned, x_turned, d1);
}

static hs_test_run make_two_products(hstep_backend backend) {
    hs_test_run run = {0};
    hstep_graph *g = NULL;
    hstep_value x = 0, w1 = 0, w2 = 0, y = 0, squares = 0, z = 0, loss = 0;
    expect_ok(hstep_graph_create(&g, &error));
    expect_ok(hstep_graph_input(g, "x", HSTEP_DTYPE_F64, 2, (int64_t[]){HSTEP_ROWS, IN}, &x, &error));
    expect_ok(hstep_graph_parameter(g, "w1", 2, (int64_t[]){INNER, IN}, &w1, &error));
    expect_ok(hstep_graph_parameter(g, "w2", 2, (int64_t[]){OUT, INNER}, &w2, &error));
    expect_ok(
        hstep_graph_matmul(g, "first", HSTEP_PRECISION_FP16, x, HSTEP_NO_TRANSPOSE, w1, HSTEP_TRANSPOSE, &y, &error));
    expect_ok(hstep_graph_multiply(g, "squares", y, y, &squares, &error));
    expect_ok(hstep_graph_matmul(g, "second", HSTEP_PRECISION_FP16, squares, HSTEP_NO_TRANSPOSE, w2, HSTEP_TRANSPOSE,
                                 &z, &error));
    expect_ok(hstep_graph_set_precision(g, "*", HSTEP_PRECISION_F64, &error));
    expect_ok(hstep_graph_set_precision(g, "second", HSTEP_PRECISION_BF16, &error));
    expect_ok(hstep_graph_multiply(g, "z2", z, z, &y, &error));
    expect_ok(hstep_graph_sum(g, "loss", y, &loss, &error));
    expect_ok(hstep_graph_set_loss(g, loss, &error));
    const hstep_context_options options = {.backend = backend, .threads = 2};
    expect_ok(hstep_context_create(&options, &run.context, &error));
    expect_ok(hstep_model_create(run.context, g, &run.model, &error));
    const hstep_trainer_config config = hstep_trainer_defaults_for(run.model);
    expect_ok(hstep_trainer_create(run.model, &config, &run.trainer, &error));
    return run;
}

/* Whole numbers of a few bits: sums in f64 are exact, so that their order is nobody's business. */
static void fill(double *x, size_t count, int seed) {
    for (size_t i = 0; i < count; i++)
        x[i] = (double)((int)(i * 7 + (size_t)seed * 5) % 11 - 5) / 4;
}

Test(places, one_product_of_bf16_among_f64_by_hand) {
    double x[ROWS * IN], w1[INNER * IN], w2[OUT * INNER], expected_loss, d1[INNER * IN], d2[OUT * INNER];
    double found1[INNER * IN], found2[OUT * INNER], loss;
    fill(x, ROWS * IN, 1);
    fill(w1, INNER * IN, 2);
    fill(w2, OUT * INNER, 3);
    by_hand(x, w1, w2, &expected_loss, d1, d2);
    for (hstep_backend backend = HSTEP_BACKEND_CPU; backend <= HSTEP_BACKEND_CPU_REFERENCE; backend++) {
        hs_test_run run = make_two_products(backend);
        const hstep_feed feed = {"x", x};
        const hstep_batch batch = {.sequences = ROWS, .length = 1, .feeds = &feed, .feed_count = 1};
        expect_ok(hstep_model_write_parameter(run.model, 0, w1, &error));
        expect_ok(hstep_model_write_parameter(run.model, 1, w2, &error));
        expect_ok(hstep_trainer_record(run.trainer, &batch, &loss, &error));
        cr_assert_eq(loss, expected_loss, "%a and %a", loss, expected_loss);
        expect_ok(hstep_trainer_backward(run.trainer, &error));
        expect_ok(hstep_trainer_read_gradient(run.trainer, 0, found1, &error));
        expect_ok(hstep_trainer_read_gradient(run.trainer, 1, found2, &error));
        cr_assert_arr_eq(found1, d1, sizeof d1);
        cr_assert_arr_eq(found2, d2, sizeof d2);
        hs_test_run_destroy(&run);
    }
}

/* ---- Values and parameters that products of several formats read ---- */

/* One value and one weight, read in fp16, bf16 and f64. */
static hs_test_run make_readers(hstep_backend backend) {
    static const char *const names[] = {"in_f64", "in_fp16", "in_bf16"};
    hs_test_run run = {0};
    hstep_graph *g = NULL;
    hstep_value x = 0, w = 0, y = 0, total = 0, z = 0, loss = 0;
    expect_ok(hstep_graph_create(&g, &error));
    expect_ok(hstep_graph_input(g, "x", HSTEP_DTYPE_F64, 2, (int64_t[]){HSTEP_ROWS, 6}, &x, &error));
    expect_ok(hstep_graph_parameter(g, "w", 2, (int64_t[]){6, 6}, &w, &error));
    expect_ok(
        hstep_graph_matmul(g, "first", HSTEP_PRECISION_BF16, x, HSTEP_NO_TRANSPOSE, w, HSTEP_TRANSPOSE, &y, &error));
    for (hstep_precision p = HSTEP_PRECISION_F64; p <= HSTEP_PRECISION_BF16; p++) {
        char sum[32];
        (void)snprintf(sum, sizeof sum, "sum_%d", (int)p);
        expect_ok(hstep_graph_matmul(g, names[p], p, y, HSTEP_NO_TRANSPOSE, w, HSTEP_TRANSPOSE, &z, &error));
        if (total == 0)
            total = z;
        else
            expect_ok(hstep_graph_add(g, sum, total, z, &total, &error));
    }
    expect_ok(hstep_graph_silu(g, "activation", total, &z, &error));
    expect_ok(hstep_graph_multiply(g, "squares", z, z, &y, &error));
    expect_ok(hstep_graph_sum(g, "loss", y, &loss, &error));
    expect_ok(hstep_graph_set_loss(g, loss, &error));
    const hstep_context_options options = {.backend = backend, .threads = 2};
    expect_ok(hstep_context_create(&options, &run.context, &error));
    expect_ok(hstep_model_create(run.context, g, &run.model, &error));
    return run;
}

static uint64_t train_readers(hstep_backend backend) {
    hs_test_run run = make_readers(backend);
    double x[5 * 6];
    uint64_t checksum = 0;
    expect_ok(hstep_model_initialize(run.model, HSTEP_INIT_XAVIER, 3, &error));
    const hstep_trainer_config config = hstep_trainer_defaults_for(run.model);
    cr_assert_eq(config.scaler.initial, 65536);
    expect_ok(hstep_trainer_create(run.model, &config, &run.trainer, &error));
    for (int i = 0; i < 10; i++) {
        for (size_t j = 0; j < 30; j++)
            x[j] = sin((double)j + i);
        const hstep_feed feed = {"x", x};
        const hstep_batch batch = {.sequences = 5, .length = 1, .feeds = &feed, .feed_count = 1};
        hstep_update update;
        expect_ok(hstep_trainer_update(run.trainer, &batch, 1, &update, &error));
    }
    expect_ok(hstep_model_checksum(run.model, &checksum, &error));
    hs_test_run_destroy(&run);
    return checksum;
}

Test(places, readers_of_several_formats_share_a_value_and_a_weight) {
    cr_assert_eq(train_readers(HSTEP_BACKEND_CPU), train_readers(HSTEP_BACKEND_CPU_REFERENCE));
}
