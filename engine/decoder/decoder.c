/*
 * The decoder, written once against the graph: pre-norm residual blocks of rotary grouped-query attention and SwiGLU,
 * a final norm, and a head that shares the embedding's table. Every operation's name is what records carry. For
 * decoding the graph keeps keys and values of earlier positions, ends with the logits of the last one, and learns
 * nothing.
 */
#include "engine/decoder/decoder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/error.h"
#include "engine/model/model.h"

typedef struct builder {
    hstep_graph *graph;
    const hstep_decoder_config *config;
    size_t kv_heads, head_width;
    size_t layer;
    hstep_error *error;
} builder;

typedef char hs_name[96];

/* "blocks.3.attention.query" out of "attention.query". */
static const char *block_name(const builder *b, hs_name name, const char *part) {
    (void)snprintf(name, sizeof(hs_name), "blocks.%zu.%s", b->layer, part);
    return name;
}

static hstep_status rmsnorm(const builder *b, const char *name, hstep_value x, hstep_value *y) {
    hs_name gain_name;
    (void)snprintf(gain_name, sizeof gain_name, "%.80s.gain", name);
    hstep_value gain = 0;
    HS_FORWARD(hstep_graph_parameter(b->graph, gain_name, 1, (int64_t[]){(int64_t)b->config->width}, &gain, b->error));
    return hstep_graph_rmsnorm(b->graph, name, x, gain, b->config->rms_epsilon, y, b->error);
}

/* y = x Wt with a weight [out, in] of the name's own. */
static hstep_status linear(const builder *b, const char *part, hstep_value x, size_t in, size_t out, bool residual,
                           hstep_value *y) {
    hs_name name, weight_name;
    (void)block_name(b, name, part);
    (void)snprintf(weight_name, sizeof weight_name, "%.80s.weight", name);
    hstep_value weight = 0;
    HS_FORWARD(
        hstep_graph_parameter(b->graph, weight_name, 2, (int64_t[]){(int64_t)out, (int64_t)in}, &weight, b->error));
    if (residual) /* as GPT-2 does (Radford et al., 2019) */
        hs_graph_value(b->graph, weight)->init_divisor = sqrt(2.0 * (double)b->config->layers);
    return hstep_graph_matmul(b->graph, name, b->config->precision, x, HSTEP_NO_TRANSPOSE, weight, HSTEP_TRANSPOSE, y,
                              b->error);
}

static hstep_status attention(const builder *b, hstep_value stream, hstep_value *next) {
    const size_t width = b->config->width, kv_width = b->kv_heads * b->head_width;
    hs_name name;
    hstep_value x = 0, query = 0, key = 0, value = 0, mixed = 0, projected = 0;
    HS_FORWARD(rmsnorm(b, block_name(b, name, "attention_norm"), stream, &x));
    HS_FORWARD(linear(b, "attention.query", x, width, width, false, &query));
    HS_FORWARD(linear(b, "attention.key", x, width, kv_width, false, &key));
    HS_FORWARD(linear(b, "attention.value", x, width, kv_width, false, &value));
    HS_FORWARD(hstep_graph_rotary(b->graph, block_name(b, name, "attention.query_rotary"), query, b->head_width,
                                  b->config->rotary_base, &query, b->error));
    HS_FORWARD(hstep_graph_rotary(b->graph, block_name(b, name, "attention.key_rotary"), key, b->head_width,
                                  b->config->rotary_base, &key, b->error));
    HS_FORWARD(hstep_graph_attention(b->graph, block_name(b, name, "attention"), b->config->precision, query, key,
                                     value, b->config->heads, b->kv_heads, &mixed, b->error));
    HS_FORWARD(linear(b, "attention.output", mixed, width, width, true, &projected));
    return hstep_graph_add(b->graph, block_name(b, name, "attention_residual"), stream, projected, next, b->error);
}

static hstep_status feed_forward(const builder *b, hstep_value stream, hstep_value *next) {
    const size_t width = b->config->width, inner = b->config->feed_forward;
    hs_name name;
    hstep_value x = 0, gate = 0, up = 0, activation = 0, down = 0;
    HS_FORWARD(rmsnorm(b, block_name(b, name, "feed_forward_norm"), stream, &x));
    HS_FORWARD(linear(b, "feed_forward.gate", x, width, inner, false, &gate));
    HS_FORWARD(linear(b, "feed_forward.up", x, width, inner, false, &up));
    HS_FORWARD(
        hstep_graph_swiglu(b->graph, block_name(b, name, "feed_forward.activation"), gate, up, &activation, b->error));
    HS_FORWARD(linear(b, "feed_forward.down", activation, inner, width, true, &down));
    return hstep_graph_add(b->graph, block_name(b, name, "feed_forward_residual"), stream, down, next, b->error);
}

static hstep_status build_loss(const builder *b, hstep_value logits) {
    hstep_value targets = 0, loss = 0;
    HS_FORWARD(hstep_graph_input(b->graph, "targets", HSTEP_DTYPE_I32, 1, (int64_t[]){HSTEP_ROWS}, &targets, b->error));
    HS_FORWARD(hstep_graph_cross_entropy(b->graph, "loss", logits, targets, &loss, b->error));
    return hstep_graph_set_loss(b->graph, loss, b->error);
}

/* From tokens to logits. */
static hstep_status build(builder *b, hstep_value *logits) {
    hstep_graph *graph = b->graph;
    hstep_value tokens = 0, table = 0, stream = 0;
    HS_FORWARD(hstep_graph_input(graph, "tokens", HSTEP_DTYPE_I32, 1, (int64_t[]){HSTEP_ROWS}, &tokens, b->error));
    HS_FORWARD(hstep_graph_parameter(graph, "token_embedding.weight", 2,
                                     (int64_t[]){(int64_t)b->config->vocabulary, (int64_t)b->config->width}, &table,
                                     b->error));
    HS_FORWARD(hstep_graph_gather(graph, "token_embedding", table, tokens, &stream, b->error));
    for (b->layer = 0; b->layer < b->config->layers; b->layer++) {
        HS_FORWARD(hstep_graph_begin_block(graph, b->error));
        HS_FORWARD(attention(b, stream, &stream));
        HS_FORWARD(feed_forward(b, stream, &stream));
        HS_FORWARD(hstep_graph_end_block(graph, b->error));
    }
    if (graph->cache_capacity != 0)
        HS_FORWARD(hs_graph_last_rows(graph, "last_position", stream, &stream, b->error));
    HS_FORWARD(rmsnorm(b, "final_norm", stream, &stream));
    HS_FORWARD(hstep_graph_matmul(graph, "head", b->config->precision, stream, HSTEP_NO_TRANSPOSE, table,
                                  HSTEP_TRANSPOSE, logits, b->error));
    HS_FORWARD(hs_graph_apply_rules(graph, b->config->rules, b->config->rule_count, b->error));
    return hstep_graph_set_output(graph, *logits, b->error);
}

static builder make_builder(const hstep_decoder_config *config, hstep_error *error) {
    return (builder){.config = config,
                     .kv_heads = config->kv_heads != 0 ? config->kv_heads : config->heads,
                     .head_width = config->width / config->heads,
                     .error = error};
}

hstep_decoder_config hstep_decoder_defaults(void) {
    return (hstep_decoder_config){.rotary_base = 10000, .rms_epsilon = 1e-5, .precision = HSTEP_PRECISION_BF16};
}

/* Sizes are bounded so that their products stay inside 64 bits. */
static hstep_status check_config(const hstep_decoder_config *config, size_t kv_heads, hstep_error *error) {
    const struct {
        const char *name;
        size_t value, limit;
    } sizes[] = {{"vocabulary", config->vocabulary, 1u << 24},
                 {"width", config->width, 1u << 20},
                 {"layers", config->layers, 1024},
                 {"heads", config->heads, 1u << 20},
                 {"feed_forward", config->feed_forward, 1u << 22}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        HS_RETURN_IF(sizes[i].value == 0 || sizes[i].value > sizes[i].limit, error, HSTEP_ERROR_ARGUMENT,
                     "decoder: %s is %zu; give 1 to %zu", sizes[i].name, sizes[i].value, sizes[i].limit);
    HS_RETURN_IF(config->width % config->heads != 0, error, HSTEP_ERROR_ARGUMENT,
                 "decoder: %zu heads do not divide width %zu", config->heads, config->width);
    HS_RETURN_IF(config->width / config->heads % 2 != 0, error, HSTEP_ERROR_ARGUMENT,
                 "decoder: the width of a head, %zu / %zu, must be even for rotary embedding", config->width,
                 config->heads);
    HS_RETURN_IF(kv_heads > config->heads || config->heads % kv_heads != 0, error, HSTEP_ERROR_ARGUMENT,
                 "decoder: %zu kv_heads do not divide %zu heads", kv_heads, config->heads);
    HS_RETURN_IF(config->rules == NULL && config->rule_count > 0, error, HSTEP_ERROR_ARGUMENT,
                 "decoder: %zu precision rules, and no place where they stand", config->rule_count);
    return HSTEP_OK;
}

hstep_status hstep_decoder_products(const hstep_decoder_config *config, hstep_product *products, size_t room,
                                    size_t *count, hstep_error *error) {
    HS_RETURN_IF(config == NULL, error, HSTEP_ERROR_ARGUMENT, "hstep_decoder_products needs a configuration");
    HS_FORWARD(check_config(config, config->kv_heads != 0 ? config->kv_heads : config->heads, error));
    builder b = make_builder(config, error);
    hstep_value logits = 0;
    HS_FORWARD(hstep_graph_create(&b.graph, error));
    hstep_status status = build(&b, &logits);
    if (status == HSTEP_OK)
        status = hstep_graph_products(b.graph, products, room, count, error);
    hstep_graph_destroy(b.graph);
    return status;
}

/* The model's own copy of the rules, from malloc. */
static hstep_status copy_rules(const hstep_decoder_config *config, hstep_precision_rule **rules, hstep_error *error) {
    *rules = calloc(config->rule_count + 1, sizeof **rules);
    if (*rules == NULL)
        return hs_fail_memory(error, "a model");
    for (size_t i = 0; i < config->rule_count; i++)
        (*rules)[i] = config->rules[i];
    return HSTEP_OK;
}

hstep_status hstep_model_create_decoder(hstep_context *context, const hstep_decoder_config *config, hstep_model **model,
                                        hstep_error *error) {
    HS_RETURN_IF(context == NULL || config == NULL || model == NULL, error, HSTEP_ERROR_ARGUMENT,
                 "hstep_model_create_decoder needs a context, a configuration and a place for the model");
    HS_FORWARD(check_config(config, config->kv_heads != 0 ? config->kv_heads : config->heads, error));
    builder b = make_builder(config, error);
    hstep_value logits = 0;
    hstep_precision_rule *rules = NULL;
    HS_FORWARD(hstep_graph_create(&b.graph, error));
    hstep_status status = build(&b, &logits);
    if (status == HSTEP_OK)
        status = build_loss(&b, logits);
    if (status == HSTEP_OK)
        status = copy_rules(config, &rules, error);
    if (status == HSTEP_OK)
        status = hstep_model_create(context, b.graph, model, error);
    if (status != HSTEP_OK) {
        free(rules);
        hstep_graph_destroy(b.graph);
        return status;
    }
    (*model)->decoder = *config;
    (*model)->decoder.rules = (*model)->rules = rules;
    return HSTEP_OK;
}

hstep_status hs_decoder_decoding_graph(const hstep_decoder_config *config, size_t sequences, size_t capacity,
                                       hstep_graph **graph, hstep_error *error) {
    builder b = make_builder(config, error);
    hstep_value logits = 0;
    HS_FORWARD(hstep_graph_create(&b.graph, error));
    b.graph->cache_sequences = sequences;
    b.graph->cache_capacity = capacity;
    const hstep_status status = build(&b, &logits);
    if (status != HSTEP_OK) {
        hstep_graph_destroy(b.graph);
        return status;
    }
    hs_graph_mark_uses(b.graph);
    *graph = b.graph;
    return HSTEP_OK;
}
