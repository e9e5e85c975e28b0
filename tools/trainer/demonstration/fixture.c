#include "trainer/demonstration/fixture.h"

/* Byte b is token b + 2, behind the beginning (0) and the end (1) of a text. */
static const int32_t TOKENS[HS_FIXTURE_TOKENS] = {0, 'a' + 2, 'b' + 2};
static const int32_t TARGETS[HS_FIXTURE_TOKENS] = {'a' + 2, 'b' + 2, 1};

hstep_status hs_fixture_create(hs_fixture *fixture, hstep_precision precision, const hstep_scaler *scaler) {
    *fixture =
        (hs_fixture){.batch = {.sequences = 1, .length = HS_FIXTURE_TOKENS, .tokens = TOKENS, .targets = TARGETS}};
    const hstep_context_options options = {.backend = HSTEP_BACKEND_CPU_REFERENCE, .levers = "exact"};
    hstep_decoder_config config = hstep_decoder_defaults();
    config.vocabulary = HS_FIXTURE_VOCABULARY;
    config.width = HS_FIXTURE_WIDTH;
    config.heads = 2;
    config.kv_heads = 2;
    config.feed_forward = 8;
    config.layers = 2;
    config.precision = precision;
    hstep_trainer_config training = hstep_trainer_defaults(precision);
    training.schedule.learning_rate = 1e-3;
    training.scaler = *scaler;

    hstep_error *error = &fixture->error;
    hstep_status status = hstep_context_create(&options, &fixture->context, error);
    if (status == HSTEP_OK)
        status = hstep_model_create_decoder(fixture->context, &config, &fixture->model, error);
    if (status == HSTEP_OK)
        status = hstep_model_initialize(fixture->model, HSTEP_INIT_XAVIER, 39, error);
    if (status == HSTEP_OK)
        status = hstep_trainer_create(fixture->model, &training, &fixture->trainer, error);
    if (status != HSTEP_OK)
        hs_fixture_destroy(fixture);
    return status;
}

void hs_fixture_destroy(hs_fixture *fixture) {
    hstep_trainer_destroy(fixture->trainer);
    hstep_model_destroy(fixture->model);
    hstep_context_destroy(fixture->context);
    fixture->trainer = NULL;
    fixture->model = NULL;
    fixture->context = NULL;
}

hstep_status hs_fixture_update(hs_fixture *fixture, hstep_update *update) {
    return hstep_trainer_update(fixture->trainer, &fixture->batch, 1, update, &fixture->error);
}
