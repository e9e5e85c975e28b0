/* Calls that fail leave everything as it was: numbers, contexts, models, trainers and decodings. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "support/models.h"
#include "support/untouched.h"

enum { UNKNOWN = 77 };

static const int32_t TOKENS[3] = {0, 1, 2}, TOO_LARGE[3] = {0, 258, 1}, NONE[3] = {-1, -1, -1};

static hstep_batch batch_of(size_t length, const int32_t *tokens, const int32_t *targets) {
    return (hstep_batch){.sequences = 1, .length = length, .tokens = tokens, .targets = targets};
}

/* A fixture with one committed update, so that there are moments and counts that could change. */
static hs_test_run run;

static void start(void) {
    hstep_error error = {0};
    hstep_update update;
    const hs_test_setup setup = {.backend = HSTEP_BACKEND_CPU, .precision = HSTEP_PRECISION_FP16};
    run = hs_test_run_create(&setup);
    const hstep_batch batch = hs_test_fixture_batch();
    hs_test_expect_ok(hstep_trainer_update(run.trainer, &batch, 1, &update, &error), &error);
    hs_test_out_fill();
    hs_test_watch(run.trainer, NULL);
}

static void stop(void) {
    hs_test_watch(NULL, NULL);
    hs_test_run_destroy(&run);
}

Test(failing_calls, numbers, .init = hs_test_out_fill) {
    const double a[4] = {1, 2, 3, 4};
    const uint16_t halves[4] = {1, 2, 3, 4};
    hs_test_places *o = &hs_test_out;
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_encode_array((hstep_format)UNKNOWN, 4, a, o->bits, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_encode_array(HSTEP_FP16, 4, NULL, o->bits, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_encode_array(HSTEP_FP16, 4, a, NULL, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_decode_array((hstep_format)UNKNOWN, 4, halves, o->numbers, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_decode_array(HSTEP_BF16, 4, NULL, o->numbers, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_decode_array(HSTEP_BF16, 4, halves, NULL, e));

    const hstep_transpose no = HSTEP_NO_TRANSPOSE;
    const hstep_precision bf16 = HSTEP_PRECISION_BF16;
    hs_test_refuses(HSTEP_ERROR_ARGUMENT,
                    hstep_matmul(NULL, (hstep_precision)UNKNOWN, no, no, 2, 2, 2, a, a, o->numbers, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT,
                    hstep_matmul(NULL, bf16, (hstep_transpose)UNKNOWN, no, 2, 2, 2, a, a, o->numbers, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_matmul(NULL, bf16, no, no, 2, 2, 2, NULL, a, o->numbers, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_matmul(NULL, bf16, no, no, 2, 2, 2, a, NULL, o->numbers, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_matmul(NULL, bf16, no, no, 2, 2, 2, a, a, NULL, e));
    hs_test_refuses(HSTEP_ERROR_SHAPE, hstep_matmul(NULL, bf16, no, no, SIZE_MAX / 4, 8, 1, a, a, o->numbers, e));

    const hstep_transpose unknown = (hstep_transpose)UNKNOWN;
    hs_test_refuses(HSTEP_ERROR_ARGUMENT,
                    hstep_gate((hstep_precision)UNKNOWN, no, no, 2, 2, 2, a, a, a, NULL, &o->judged, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_gate(bf16, no, unknown, 2, 2, 2, a, a, a, NULL, &o->judged, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_gate(bf16, no, no, 2, 2, 2, a, a, a, NULL, NULL, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_gate(bf16, no, no, 2, 2, 2, NULL, a, a, NULL, &o->judged, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_gate(bf16, no, no, 2, 2, 2, a, a, NULL, NULL, &o->judged, e));
    hs_test_refuses(HSTEP_ERROR_SHAPE, hstep_gate(bf16, no, no, SIZE_MAX / 4, 8, 1, a, a, a, NULL, &o->judged, e));
}

Test(failing_calls, words, .init = hs_test_out_fill) {
    (void)hstep_status_name((hstep_status)UNKNOWN);
    hs_test_places *o = &hs_test_out;
    const char *const texts[] = {"", "fp8", "FP16", NULL};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const hs_test_places before = *o;
        cr_expect_eq(hstep_precision_parse(texts[i], &o->precision), HSTEP_ERROR_ARGUMENT);
        cr_expect_eq(hstep_storage_parse(texts[i] != NULL ? "half" : NULL, &o->storage), HSTEP_ERROR_ARGUMENT);
        cr_expect(memcmp(&before, o, sizeof before) == 0, "text %zu", i);
    }
}

Test(failing_calls, contexts, .init = hs_test_out_fill) {
    hs_test_places *o = &hs_test_out;
    hstep_context_options options = hstep_context_defaults();
    options.backend = (hstep_backend)UNKNOWN;
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_context_create(&options, &o->context, e));
    options = (hstep_context_options){.backend = HSTEP_BACKEND_CPU, .threads = 1025};
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_context_create(&options, &o->context, e));
    options = (hstep_context_options){.backend = HSTEP_BACKEND_CPU, .threads = 1, .levers = "+cpu.unknown"};
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_context_create(&options, &o->context, e));
    options.levers = "{\"levers\":[{\"name\":\"cpu.unknown\"}]}"; /* no text of hstep_context_lever_set */
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_context_create(&options, &o->context, e));
    const hstep_context_options elsewhere = {.backend = HSTEP_BACKEND_VULKAN, .device = "a device that is not there"};
    hs_test_refuses(HSTEP_ERROR_BACKEND_UNAVAILABLE, hstep_context_create(&elsewhere, &o->context, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_context_create(NULL, NULL, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_devices_list(NULL, &o->count, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_devices_list(&o->devices, NULL, e));

    hstep_error error = {0};
    hstep_context *context = NULL;
    options.levers = NULL;
    hs_test_expect_ok(hstep_context_create(&options, &context, &error), &error);
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_context_reject_lever(NULL, "cpu.openblas", "why", e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_context_reject_lever(context, "cpu.unknown", "why", e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_context_reject_lever(context, "cpu.compact", "why", e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_context_reject_lever(context, "cpu.openblas", NULL, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_context_clear_rejection(context, "cpu.unknown", &o->cleared, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_context_clear_rejection(context, NULL, &o->cleared, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_context_clear_rejection(context, "cpu.openblas", NULL, e));
    hstep_context_destroy(context);
}

Test(failing_calls, models, .init = start, .fini = stop) {
    hs_test_places *o = &hs_test_out;
    hstep_decoder_config config = hstep_decoder_defaults();
    config.vocabulary = 10;
    config.width = config.feed_forward = 8;
    config.layers = 1;
    config.heads = 3; /* do not divide the width */
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_model_create_decoder(run.context, &config, &o->model, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_model_create_decoder(NULL, &config, &o->model, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_model_create_decoder(run.context, NULL, &o->model, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_model_create_decoder(run.context, &config, NULL, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_decoder_products(&config, o->products, 2, &o->count, e));
    const hstep_precision_rule rule = {"nothing.that.is.there", HSTEP_PRECISION_F64};
    config.heads = 2;
    config.rules = &rule;
    config.rule_count = 1;
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_model_create_decoder(run.context, &config, &o->model, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_decoder_products(&config, o->products, 2, &o->count, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_model_products(NULL, o->products, 2, &o->count, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_model_products(run.model, NULL, 2, &o->count, e));

    hstep_error error = {0};
    hstep_graph *graph = NULL;
    hs_test_expect_ok(hstep_graph_create(&graph, &error), &error);
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_model_create(run.context, graph, &o->model, e)); /* has no loss */
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_model_create(run.context, NULL, &o->model, e));
    hstep_graph_destroy(graph); /* is still the caller's */

    const size_t beyond = hstep_model_parameter_count(run.model);
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_model_parameter(run.model, beyond, &o->parameter, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_model_parameter(run.model, 0, NULL, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_model_read_parameter(run.model, beyond, o->numbers, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_model_read_parameter(run.model, 0, NULL, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_model_write_parameter(run.model, beyond, o->numbers, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_model_write_parameter(run.model, 0, NULL, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_model_parameter_data(run.model, beyond, &o->pointer, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_model_parameter_data(run.model, 0, NULL, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_model_mark_parameter(run.model, beyond, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_model_initialize(run.model, (hstep_initialization)UNKNOWN, 1, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_model_initialize(NULL, HSTEP_INIT_NORMAL, 1, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_model_checksum(NULL, &o->checksum, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_model_checksum(run.model, NULL, e));
}

static void never_shown(void *data, const hstep_traced_value *value) { *(double *)data = value->values[0]; }

/* Losses and outputs that cannot be computed; the last one because a weight is infinite. */
Test(failing_calls, passes, .init = start, .fini = stop) {
    hs_test_places *o = &hs_test_out;
    const hstep_batch good = batch_of(3, TOKENS, TOKENS), empty = batch_of(0, TOKENS, TOKENS),
                      bare = batch_of(3, NULL, TOKENS), bad = batch_of(3, TOO_LARGE, TOKENS);
    hs_test_refuses(HSTEP_ERROR_SHAPE, hstep_model_loss(run.model, &empty, &o->sum, &o->weight, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_model_loss(run.model, &bare, &o->sum, &o->weight, e));
    hs_test_refuses(HSTEP_ERROR_TOKEN, hstep_model_loss(run.model, &bad, &o->sum, &o->weight, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_model_loss(run.model, &good, NULL, &o->weight, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_model_loss(run.model, &good, &o->sum, NULL, e));
    hs_test_refuses(HSTEP_ERROR_SHAPE, hstep_model_output(run.model, &empty, o->numbers, e));
    hs_test_refuses(HSTEP_ERROR_TOKEN, hstep_model_output(run.model, &bad, o->numbers, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_model_output(run.model, &good, NULL, e));
    hs_test_refuses(HSTEP_ERROR_SHAPE, hstep_model_prepare_loss(run.model, 0, 3, e));
    hs_test_refuses(HSTEP_ERROR_TOKEN, hstep_model_trace(run.model, &bad, never_shown, &o->sum, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_model_trace(run.model, &good, NULL, &o->sum, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_model_prepare_loss(NULL, 1, 3, e));

    hstep_error error = {0};
    double *gain = NULL;
    const size_t last = hstep_model_parameter_count(run.model) - 1;
    hs_test_expect_ok(hstep_model_parameter_data(run.model, last, &gain, &error), &error);
    gain[0] = INFINITY;
    hs_test_expect_ok(hstep_model_mark_parameter(run.model, last, &error), &error);
    hs_test_refuses(HSTEP_ERROR_NONFINITE_FORWARD, hstep_model_loss(run.model, &good, &o->sum, &o->weight, e));
    hs_test_refuses(HSTEP_ERROR_NONFINITE_FORWARD, hstep_trainer_update(run.trainer, &good, 1, &o->update, e));
    hs_test_refuses(HSTEP_ERROR_NONFINITE_FORWARD, hstep_trainer_record(run.trainer, &good, &o->loss, e));
    hs_test_refuses(HSTEP_ERROR_NONFINITE_FORWARD, hstep_trainer_explain(run.trainer, &good, 1, &o->explanation, e));
}

Test(failing_calls, trainers, .init = start, .fini = stop) {
    hs_test_places *o = &hs_test_out;
    hstep_trainer_config config = hstep_trainer_defaults(HSTEP_PRECISION_FP16);
    /* The model has a trainer already. */
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_trainer_create(run.model, &config, &o->trainer, e));
    config.scaler.initial = 3;
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_trainer_create(run.model, &config, &o->trainer, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_trainer_create(NULL, &config, &o->trainer, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_trainer_create(run.model, NULL, &o->trainer, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_trainer_create(run.model, &config, NULL, e));
    hs_test_refuses(HSTEP_ERROR_SHAPE, hstep_trainer_prepare(run.trainer, 0, 3, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_trainer_prepare(NULL, 1, 3, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_trainer_set_scaler(run.trainer, &config.scaler, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_trainer_set_scaler(run.trainer, NULL, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_trainer_set_observer(NULL, NULL, NULL, e));

    const size_t beyond = hstep_model_parameter_count(run.model);
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_trainer_read_gradient(run.trainer, beyond, o->numbers, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_trainer_read_gradient(run.trainer, 0, NULL, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_trainer_read_moments(run.trainer, beyond, o->numbers, o->others, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_trainer_read_moments(NULL, 0, o->numbers, o->others, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_trainer_gradient_data(run.trainer, beyond, &o->first, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_trainer_gradient_data(run.trainer, 0, NULL, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_trainer_moments_data(run.trainer, beyond, &o->first, &o->second, e));
    o->size = 5; /* too few bytes */
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_trainer_snapshot(run.trainer, o->text, &o->size, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_trainer_snapshot(run.trainer, o->text, NULL, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_trainer_snapshot(NULL, o->text, &o->size, e));
}

Test(failing_calls, updates, .init = start, .fini = stop) {
    hs_test_places *o = &hs_test_out;
    const hstep_batch good = batch_of(3, TOKENS, TOKENS), empty = batch_of(0, TOKENS, TOKENS),
                      bare = batch_of(3, TOKENS, NULL), bad = batch_of(3, TOO_LARGE, TOKENS),
                      untold = batch_of(3, TOKENS, NONE);
    const hstep_batch *const windows[] = {&empty, &bare, &bad, &untold};
    const hstep_status refusals[] = {HSTEP_ERROR_SHAPE, HSTEP_ERROR_ARGUMENT, HSTEP_ERROR_TOKEN,
                                     HSTEP_ERROR_NO_TARGETS};
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        hs_test_refuses(refusals[i], hstep_trainer_update(run.trainer, windows[i], 1, &o->update, e));
        hs_test_refuses(refusals[i], hstep_trainer_explain(run.trainer, windows[i], 1, &o->explanation, e));
        hs_test_refuses(refusals[i], hstep_trainer_record(run.trainer, windows[i], &o->loss, e));
    }
    const hstep_batch two[2] = {good, good};
    hs_test_refuses(HSTEP_ERROR_SHAPE, hstep_trainer_update(run.trainer, two, 2, &o->update, e));
    hs_test_refuses(HSTEP_ERROR_SHAPE, hstep_trainer_explain(run.trainer, two, 2, &o->explanation, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_trainer_update(run.trainer, NULL, 1, &o->update, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_trainer_update(run.trainer, &good, 1, NULL, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_trainer_explain(run.trainer, &good, 1, NULL, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_trainer_record(NULL, &good, &o->loss, e));
    hs_test_refuses(HSTEP_ERROR_STALE_TAPE, hstep_trainer_backward(run.trainer, e));
    hs_test_refuses(HSTEP_ERROR_MISSING_GRADIENT, hstep_trainer_commit(run.trainer, &o->update, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_trainer_commit(run.trainer, NULL, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_trainer_clear(NULL, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_trainer_trace(run.trainer, &o->trace, e)); /* was not traced */
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_trainer_trace(run.trainer, NULL, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_trainer_set_trace(NULL, 1, e));

    /* Between the steps of an update there are gradients that must stay. */
    hstep_error error = {0};
    hs_test_expect_ok(hstep_trainer_record(run.trainer, &good, NULL, &error), &error);
    hs_test_expect_ok(hstep_trainer_backward(run.trainer, &error), &error);
    hs_test_refuses(HSTEP_ERROR_DIRTY_GRADIENT, hstep_trainer_update(run.trainer, &good, 1, &o->update, e));
    hs_test_refuses(HSTEP_ERROR_DIRTY_GRADIENT, hstep_trainer_explain(run.trainer, &good, 1, &o->explanation, e));
    hs_test_refuses(HSTEP_ERROR_DIRTY_GRADIENT, hstep_trainer_record(run.trainer, &good, &o->loss, e));
    hs_test_refuses(HSTEP_ERROR_DIRTY_GRADIENT, hstep_trainer_backward(run.trainer, e));
    hs_test_refuses(HSTEP_ERROR_DIRTY_GRADIENT, hstep_trainer_prepare(run.trainer, 1, 3, e));
    hs_test_refuses(HSTEP_ERROR_DIRTY_GRADIENT, hstep_trainer_set_trace(run.trainer, 1, e));
    const hstep_scaler scaler = hstep_scaler_defaults(HSTEP_PRECISION_FP16);
    hs_test_refuses(HSTEP_ERROR_DIRTY_GRADIENT, hstep_trainer_set_scaler(run.trainer, &scaler, e));
    hs_test_expect_ok(hstep_trainer_commit(run.trainer, &o->update, &error), &error);
}

Test(failing_calls, decodings, .init = start, .fini = stop) {
    hs_test_places *o = &hs_test_out;
    hstep_error error = {0};
    const hstep_sampling greedy = {0}, odd = {.top_p = 2};
    const double logits[2] = {0, 1};
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_sampling_check(NULL, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_sampling_check(&odd, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_choose_token(&odd, logits, 2, NULL, 0, 0.5, o->tokens, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_choose_token(&greedy, NULL, 2, NULL, 0, 0.5, o->tokens, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_choose_token(&greedy, logits, 0, NULL, 0, 0.5, o->tokens, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_choose_token(&greedy, logits, 2, NULL, 3, 0.5, o->tokens, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_decoding_create(NULL, 1, 4, &o->decoding, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_decoding_create(run.model, 1, 4, NULL, e));
    hs_test_refuses(HSTEP_ERROR_SHAPE, hstep_decoding_create(run.model, 0, 4, &o->decoding, e));
    hs_test_refuses(HSTEP_ERROR_SHAPE, hstep_decoding_create(run.model, SIZE_MAX, 4, &o->decoding, e));

    hstep_decoding *decoding = NULL;
    hs_test_expect_ok(hstep_decoding_create(run.model, 1, 4, &decoding, &error), &error);
    hs_test_expect_ok(hstep_decoding_feed(decoding, TOKENS, 2, NULL, &error), &error);
    hs_test_refuses(HSTEP_ERROR_SHAPE, hstep_decoding_feed(decoding, TOKENS, 3, o->numbers, e));
    hs_test_refuses(HSTEP_ERROR_SHAPE, hstep_decoding_feed(decoding, TOKENS, 0, o->numbers, e));
    hs_test_refuses(HSTEP_ERROR_TOKEN, hstep_decoding_feed(decoding, &TOO_LARGE[1], 1, o->numbers, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_decoding_feed(decoding, NULL, 1, o->numbers, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_decoding_rewind(decoding, 3, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_decoding_rewind(NULL, 0, e));
    memcpy(o->tokens, TOKENS, sizeof TOKENS);
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_decoding_extend(decoding, &odd, 1, o->tokens, 4, 3, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_decoding_extend(decoding, NULL, 1, o->tokens, 4, 3, e));
    hs_test_refuses(HSTEP_ERROR_ARGUMENT, hstep_decoding_extend(decoding, &greedy, 1, o->tokens, 3, 3, e));
    o->tokens[2] = 258;
    hs_test_refuses(HSTEP_ERROR_TOKEN, hstep_decoding_extend(decoding, &greedy, 1, o->tokens, 4, 3, e));
    cr_expect_eq(hstep_decoding_length(decoding), 2);

    hs_test_expect_ok(hstep_model_mark_parameter(run.model, 0, &error), &error);
    hs_test_refuses(HSTEP_ERROR_STALE_TAPE, hstep_decoding_feed(decoding, TOKENS, 1, o->numbers, e));
    hstep_decoding_destroy(decoding);
}
