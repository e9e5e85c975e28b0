#include "trainer/model/build.h"

#include <string.h>

/* The inner dimensions of the decoder's products, forward and backward: levers are judged on them. */
hstep_status hs_context_of(const hs_options *o, const char *levers, size_t vocabulary, size_t rows,
                           hstep_context **context, hstep_error *error) {
    const uint64_t kv_heads = o->kv_heads != 0 ? o->kv_heads : o->heads;
    const uint64_t depths[] = {o->width, o->width / o->heads * kv_heads, o->feed_forward, vocabulary, rows};
    enum { DEPTHS = sizeof depths / sizeof depths[0] };
    hstep_product_depth products[HS_PRECISIONS * DEPTHS];
    size_t count = 0;
    for (int precision = 0; precision < HS_PRECISIONS; ++precision)
        for (size_t i = 0; i < (rows > 0 ? DEPTHS : DEPTHS - 1) && o->in_use[precision]; ++i)
            products[count++] = (hstep_product_depth){(hstep_precision)precision, depths[i]};
    const hstep_context_options options = {.backend = (hstep_backend)o->backend,
                                           .device = strcmp(o->device, "any") != 0 ? o->device : NULL,
                                           .threads = (unsigned)o->threads,
                                           .levers = levers,
                                           .products = products,
                                           .product_count = count};
    return hstep_context_create(&options, context, error);
}

hstep_decoder_config hs_decoder_of(const hs_options *o, size_t vocabulary) {
    hstep_decoder_config decoder = hstep_decoder_defaults();
    decoder.vocabulary = vocabulary;
    decoder.width = o->width;
    decoder.layers = o->layers;
    decoder.heads = o->heads;
    decoder.kv_heads = o->kv_heads != 0 ? o->kv_heads : o->heads;
    decoder.feed_forward = o->feed_forward;
    decoder.precision = (hstep_precision)o->precision;
    decoder.rules = o->rules;
    decoder.rule_count = o->rule_count;
    return decoder;
}

hstep_trainer_config hs_trainer_config_of(const hs_options *o) {
    hstep_trainer_config config = hstep_trainer_defaults((hstep_precision)o->precision);
    config.adamw.beta1 = o->beta1;
    config.adamw.beta2 = o->beta2;
    config.adamw.epsilon = o->epsilon;
    config.adamw.weight_decay = o->weight_decay;
    config.adamw.grad_clip = o->grad_clip;
    config.schedule = (hstep_schedule){
        .kind = (hstep_schedule_kind)o->schedule,
        .learning_rate = o->learning_rate,
        .min_learning_rate = o->min_learning_rate,
        .warmup_steps = o->warmup_steps,
        .steps = o->steps,
    };
    config.scaler = o->scaler;
    config.replicas = o->replicas;
    config.micro_batches = o->micro_batches;
    config.recompute = (hstep_recompute)o->recompute;
    config.head_rows = o->head_rows;
    return config;
}
