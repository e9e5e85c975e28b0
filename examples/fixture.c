/*
 * Trains a decoder of 1372 numbers on the text "ab" in fp16 and prints what became of every update.
 * cc fixture.c $(pkg-config --cflags --libs halfstep) -o fixture
 * (docs/embedding.md has the line for an installation in a folder of one's own.)
 */
#include <halfstep/halfstep.h>
#include <stdio.h>
#include <stdlib.h>

enum { LENGTH = 3, UPDATES = 12 };

/* Every function of the library reports like this; it never prints or exits itself. */
static void require(hstep_status status, const hstep_error *error) {
    if (status == HSTEP_OK)
        return;
    fprintf(stderr, "fixture: %s: %s%s%s\n", hstep_status_name(status), error->operation, *error->operation ? ": " : "",
            error->message);
    exit(EXIT_FAILURE);
}

int main(void) {
    /* Byte vocabulary: 0 begins a text, 1 ends it, byte b is token b + 2. */
    const int32_t tokens[LENGTH] = {0, 'a' + 2, 'b' + 2}, targets[LENGTH] = {'a' + 2, 'b' + 2, 1};
    const hstep_batch batch = {.sequences = 1, .length = LENGTH, .tokens = tokens, .targets = targets};
    hstep_error error = {0};
    hstep_context *context = NULL;
    hstep_model *model = NULL;
    hstep_trainer *trainer = NULL;

    require(hstep_context_create(NULL, &context, &error), &error);

    hstep_decoder_config decoder = hstep_decoder_defaults();
    decoder.vocabulary = 258;
    decoder.width = 4;
    decoder.layers = 2;
    decoder.heads = 2;
    decoder.feed_forward = 8;
    decoder.precision = HSTEP_PRECISION_FP16;
    require(hstep_model_create_decoder(context, &decoder, &model, &error), &error);
    require(hstep_model_initialize(model, HSTEP_INIT_XAVIER, 39, &error), &error);

    hstep_trainer_config config = hstep_trainer_defaults(decoder.precision);
    config.scaler.initial = 128;
    config.scaler.growth_interval = 4;
    require(hstep_trainer_create(model, &config, &trainer, &error), &error);

    for (int i = 0; i < UPDATES; i++) {
        hstep_update update;
        require(hstep_trainer_update(trainer, &batch, 1, &update, &error), &error);
        printf("step %2u  loss %.7f  scale %.0f -> %.0f  %s%s\n", (unsigned)update.step, update.loss, update.loss_scale,
               update.next_loss_scale, update.outcome == HSTEP_APPLIED ? "applied" : "skipped: ",
               update.outcome == HSTEP_APPLIED ? "" : update.overflow.operation);
    }
    hstep_trainer_destroy(trainer);
    hstep_model_destroy(model);
    hstep_context_destroy(context);
    return EXIT_SUCCESS;
}
