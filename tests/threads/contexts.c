/*
 * For ThreadSanitizer: two contexts at a time, each in a thread of its own and with OpenMP threads of its own, train,
 * write, compute products and fail, and come to the bits that each has alone. A plain program, since the sanitizer has
 * to see the threads from their beginning.
 */
#include <halfstep/halfstep.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDES = 2, VOCABULARY = 50, SEQUENCES = 4, LENGTH = 32, ROWS = SEQUENCES * LENGTH, UPDATES = 3, WRITTEN = 8 };

typedef struct side {
    hstep_backend backend;
    unsigned threads;
    hstep_precision precision;
    double loss_scale;
    /* What it comes to. */
    uint64_t checksum;
    double loss;
    unsigned skipped;
    int32_t written[WRITTEN];
    double product[4];
    double largest; /* of the last attempt's trace */
} side;

static void require(hstep_status status, const hstep_error *error) {
    if (status == HSTEP_OK)
        return;
    fprintf(stderr, "%s: %s\n", hstep_status_name(status), error->message);
    exit(EXIT_FAILURE);
}

static void train(hstep_model *model, side *self) {
    hstep_error error = {0};
    int32_t tokens[ROWS], targets[ROWS];
    for (int i = 0; i < ROWS; i++) {
        tokens[i] = (7 * i + 3) % VOCABULARY;
        targets[i] = (7 * i + 10) % VOCABULARY;
    }
    const hstep_batch batch = {.sequences = SEQUENCES, .length = LENGTH, .tokens = tokens, .targets = targets};
    hstep_trainer_config config = hstep_trainer_defaults(self->precision);
    config.scaler = (hstep_scaler){self->loss_scale, 1, self->loss_scale, 2000};
    hstep_trainer *trainer = NULL;
    require(hstep_trainer_create(model, &config, &trainer, &error), &error);
    require(hstep_trainer_set_trace(trainer, 1, &error), &error);
    for (int i = 0; i < UPDATES; i++) {
        hstep_update update;
        require(hstep_trainer_update(trainer, &batch, 1, &update, &error), &error);
        self->skipped += update.outcome == HSTEP_SKIPPED;
        self->loss = update.loss;
    }
    hstep_trace trace;
    require(hstep_trainer_trace(trainer, &trace, &error), &error);
    self->largest = trace.operand_count > 0 ? trace.operands[0].largest : trace.tensors[0].weight_largest;
    hstep_trainer_destroy(trainer);
}

static void generate(hstep_model *model, side *self) {
    const hstep_sampling sampling = {.temperature = 0.8, .top_p = 0.9};
    hstep_error error = {0};
    hstep_decoding *decoding = NULL;
    require(hstep_decoding_create(model, 1, WRITTEN, &decoding, &error), &error);
    for (size_t known = 1; known < WRITTEN; known++)
        require(hstep_decoding_extend(decoding, &sampling, 1, self->written, WRITTEN, known, &error), &error);
    hstep_decoding_destroy(decoding);
}

static void *run(void *argument) {
    side *self = argument;
    hstep_error error = {0};
    hstep_context *context = NULL;
    hstep_model *model = NULL;
    const hstep_context_options options = {.backend = self->backend, .threads = self->threads, .levers = "exact"};
    require(hstep_context_create(&options, &context, &error), &error);

    hstep_decoder_config decoder = hstep_decoder_defaults();
    decoder.vocabulary = VOCABULARY;
    decoder.width = 64;
    decoder.layers = 1;
    decoder.heads = 4;
    decoder.kv_heads = 2;
    decoder.feed_forward = 96;
    decoder.precision = self->precision;
    require(hstep_model_create_decoder(context, &decoder, &model, &error), &error);
    require(hstep_model_initialize(model, HSTEP_INIT_NORMAL, 5, &error), &error);
    train(model, self);
    generate(model, self);
    require(hstep_model_checksum(model, &self->checksum, &error), &error);

    const double a[4] = {1, 2, 3, 4}, b[4] = {0.1, 0.2, 0.3, 0.4};
    require(hstep_matmul(context, self->precision, HSTEP_NO_TRANSPOSE, HSTEP_NO_TRANSPOSE, 2, 2, 2, a, b, self->product,
                         &error),
            &error);
    if (hstep_model_parameter(model, 1000, &(hstep_parameter){0}, &error) != HSTEP_ERROR_ARGUMENT) {
        fprintf(stderr, "a parameter that is not there was described\n");
        exit(EXIT_FAILURE);
    }
    hstep_model_destroy(model);
    hstep_context_destroy(context);
    return NULL;
}

static int equal(const side *a, const side *b) {
    return a->checksum == b->checksum && memcmp(&a->loss, &b->loss, sizeof a->loss) == 0 &&
           memcmp(&a->largest, &b->largest, sizeof a->largest) == 0 && a->skipped == b->skipped &&
           memcmp(a->written, b->written, sizeof a->written) == 0 &&
           memcmp(a->product, b->product, sizeof a->product) == 0;
}

/* Nonzero when the two, at once, came to something else than each alone. */
static int differ(const side pair[SIDES]) {
    side alone[SIDES], together[SIDES];
    pthread_t threads[SIDES];
    memcpy(alone, pair, sizeof alone);
    memcpy(together, pair, sizeof together);
    for (int i = 0; i < SIDES; i++)
        run(&alone[i]);
    for (int i = 0; i < SIDES; i++)
        if (pthread_create(&threads[i], NULL, run, &together[i]) != 0)
            return 1;
    for (int i = 0; i < SIDES; i++)
        pthread_join(threads[i], NULL);
    return !equal(&alone[0], &together[0]) || !equal(&alone[1], &together[1]);
}

int main(void) {
    const side bf16 = {.backend = HSTEP_BACKEND_CPU, .threads = 2, .precision = HSTEP_PRECISION_BF16, .loss_scale = 1};
    /* Overflows, so that attempts are run again to find out where. */
    const side fp16 = {
        .backend = HSTEP_BACKEND_CPU, .threads = 2, .precision = HSTEP_PRECISION_FP16, .loss_scale = 16777216};
    const side f64 = {
        .backend = HSTEP_BACKEND_CPU_REFERENCE, .threads = 1, .precision = HSTEP_PRECISION_F64, .loss_scale = 1};
    const side pairs[][SIDES] = {{bf16, bf16}, {bf16, fp16}, {fp16, f64}};
    int failed = 0;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (differ(pairs[i])) {
            fprintf(stderr, "pair %zu: two contexts at once have other bits than each alone\n", i);
            failed = 1;
        }
    return failed;
}
