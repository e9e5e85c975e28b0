#include "trainer/train/run.h"

#include <stdlib.h>

#include "trainer/text/sample.h"
#include "trainer/train/clock.h"
#include "trainer/train/output.h"

#define FORWARD(expression)                                                                                            \
    do {                                                                                                               \
        const hstep_status forward_status = (expression);                                                              \
        if (forward_status != HSTEP_OK)                                                                                \
            return forward_status;                                                                                     \
    } while (0)

static hstep_status load_data(hs_run *run, hstep_error *error) {
    const hs_options *o = run->options;
    if (o->data.count > 0) {
        const hstep_dataset_options options = {.token_type = (hstep_token_type)o->token_type,
                                               .vocabulary = o->vocabulary,
                                               .evaluation_paths = o->eval_data.items,
                                               .evaluation_count = o->eval_data.count};
        FORWARD(hstep_dataset_load(o->data.items, o->data.count, &options, &run->dataset, error));
        if (o->eval_data.count == 0)
            FORWARD(hstep_dataset_hold_out(run->dataset, o->held_out, error));
    } else {
        if (!hs_corpus_create(o->seed, o->held_out, &run->corpus))
            return hs_no_memory(error);
        FORWARD(hstep_dataset_from_bytes(run->corpus.text, run->corpus.size, &run->dataset, error));
        FORWARD(hstep_dataset_split_at(run->dataset, run->corpus.training_size, error));
    }
    FORWARD(hstep_dataset_check(run->dataset, o->context, error));
    return hstep_dataset_unigram_loss(run->dataset, &run->unigram_loss, error);
}

/* The inner dimensions of the decoder's products, forward and backward: levers are judged on them. */
static hstep_status make_context(hs_run *run, hstep_error *error) {
    const hs_options *o = run->options;
    const uint64_t kv_heads = o->kv_heads != 0 ? o->kv_heads : o->heads;
    const uint64_t depths[] = {o->width, o->width / o->heads * kv_heads, o->feed_forward,
                               hstep_dataset_vocabulary(run->dataset), o->batch_size * o->context};
    enum { DEPTHS = sizeof depths / sizeof depths[0] };
    hstep_product_depth products[DEPTHS];
    for (size_t i = 0; i < DEPTHS; ++i)
        products[i] = (hstep_product_depth){(hstep_precision)o->precision, depths[i]};
    const hstep_context_options context = {.backend = (hstep_backend)o->backend,
                                           .threads = (unsigned)o->threads,
                                           .levers = o->levers,
                                           .products = products,
                                           .product_count = DEPTHS};
    return hstep_context_create(&context, &run->context, error);
}

static hstep_status make_model(hs_run *run, hstep_error *error) {
    const hs_options *o = run->options;
    FORWARD(make_context(run, error));
    run->decoder = hstep_decoder_defaults();
    run->decoder.vocabulary = hstep_dataset_vocabulary(run->dataset);
    run->decoder.width = o->width;
    run->decoder.layers = o->layers;
    run->decoder.heads = o->heads;
    run->decoder.kv_heads = o->kv_heads != 0 ? o->kv_heads : o->heads;
    run->decoder.feed_forward = o->feed_forward;
    run->decoder.precision = (hstep_precision)o->precision;
    return hstep_model_create_decoder(run->context, &run->decoder, &run->model, error);
}

static hstep_status make_trainer(hs_run *run, hstep_error *error) {
    const hs_options *o = run->options;
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
    return hstep_trainer_create(run->model, &config, &run->trainer, error);
}

static hstep_status make_window(hs_run *run, hstep_error *error) {
    const hs_options *o = run->options;
    run->window_count = o->replicas * o->micro_batches;
    run->batch_tokens = o->batch_size * o->context;
    const size_t count = run->window_count * run->batch_tokens;
    /* Each factor is at most 2^20. */
    if (count / run->batch_tokens != run->window_count)
        return hs_no_memory(error);
    run->tokens = calloc(count, sizeof *run->tokens);
    run->targets = calloc(count, sizeof *run->targets);
    run->window = calloc(run->window_count, sizeof *run->window);
    if (run->tokens == NULL || run->targets == NULL || run->window == NULL)
        return hs_no_memory(error);
    for (size_t i = 0; i < run->window_count; ++i)
        run->window[i] = (hstep_batch){
            .sequences = o->batch_size,
            .length = o->context,
            .tokens = run->tokens + i * run->batch_tokens,
            .targets = run->targets + i * run->batch_tokens,
        };
    return HSTEP_OK;
}

static hstep_status open_records(hs_run *run, hstep_error *error) {
    run->records_path = hs_output_path(run->options, run->dataset, error);
    if (run->records_path == NULL)
        return error->status;
    return hstep_records_open(run->records_path, &run->records, error);
}

hstep_status hs_run_read_data(const hs_options *options, hs_run *run, hstep_error *error) {
    *run = (hs_run){.options = options};
    FORWARD(load_data(run, error));
    return make_window(run, error);
}

hstep_status hs_run_make(hs_run *run, hstep_error *error) {
    FORWARD(make_model(run, error));
    return make_trainer(run, error);
}

hstep_status hs_run_create(const hs_options *options, hs_run *run, hstep_error *error) {
    FORWARD(hs_run_read_data(options, run, error));
    FORWARD(hs_run_make(run, error));
    FORWARD(hstep_model_initialize(run->model, (hstep_initialization)options->init, options->seed, error));
    FORWARD(open_records(run, error));
    run->start = hs_now();
    hs_progress_start(&run->progress, run->context, (hstep_precision)options->precision, options->steps,
                      options->quiet);
    return HSTEP_OK;
}

hstep_status hs_run_fill_window(hs_run *run, uint64_t step, hstep_error *error) {
    const hs_options *o = run->options;
    const size_t sequences = run->window_count * o->batch_size;
    return hstep_dataset_batch(run->dataset, o->seed, (step - 1) * sequences, sequences, o->context, run->tokens,
                               run->targets, error);
}

hstep_status hs_run_destroy(hs_run *run, hstep_error *error) {
    const hstep_status status = run->records != NULL ? hstep_records_close(run->records, error) : HSTEP_OK;
    free(run->records_path);
    free(run->window);
    free(run->targets);
    free(run->tokens);
    hstep_trainer_destroy(run->trainer);
    hstep_model_destroy(run->model);
    hstep_context_destroy(run->context);
    hstep_dataset_destroy(run->dataset);
    hs_corpus_free(&run->corpus);
    return status;
}
