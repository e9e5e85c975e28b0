/* Every allocation of a decoding fails in turn: an error, and the right tokens when it is tried again. Under the
   sanitizers, nothing leaked. */
#include <criterion/criterion.h>

#include "memory/failing_memory.h"
#include "support/models.h"

enum { KNOWN = 3, LENGTH = 12, CONTEXT = 6 };

typedef struct scene {
    hstep_context *context;
    hstep_model *model;
    hstep_decoding *decoding;
    int32_t tokens[LENGTH];
    size_t known;
} scene;

static hstep_status make_model(scene *s, hstep_error *e) {
    const hstep_context_options options = {.threads = 1, .levers = "exact"};
    hstep_decoder_config config = hstep_decoder_defaults();
    config.vocabulary = 20;
    config.width = config.feed_forward = 8;
    config.layers = 1;
    config.heads = 2;
    hstep_status status = hstep_context_create(&options, &s->context, e);
    if (status == HSTEP_OK)
        status = hstep_model_create_decoder(s->context, &config, &s->model, e);
    return status == HSTEP_OK ? hstep_model_initialize(s->model, HSTEP_INIT_XAVIER, 3, e) : status;
}

static hstep_status write_tokens(scene *s, hstep_error *e) {
    const hstep_sampling sampling = {.temperature = 1, .top_k = 5, .top_p = 0.9};
    hstep_status status = s->decoding == NULL ? hstep_decoding_create(s->model, 1, CONTEXT, &s->decoding, e) : HSTEP_OK;
    for (; status == HSTEP_OK && s->known < LENGTH; ++s->known) {
        status = hstep_decoding_extend(s->decoding, &sampling, 5, s->tokens, LENGTH, s->known, e);
        if (status != HSTEP_OK)
            break;
    }
    return status;
}

static void destroy(scene *s) {
    hstep_decoding_destroy(s->decoding);
    hstep_model_destroy(s->model);
    hstep_context_destroy(s->context);
}

/* False once no allocation failed any more. What failed is tried once more, with memory. */
static bool fails(size_t at, const int32_t *expected) {
    scene s = {.tokens = {4, 9, 2}, .known = KNOWN};
    hstep_error e = {0};
    hs_test_expect_ok(make_model(&s, &e), &e);
    hs_test_memory_start(at, false);
    const hstep_status status = write_tokens(&s, &e);
    hs_test_memory_stop();
    const bool failed = hs_test_memory_state.failed;
    cr_expect_eq(status, failed ? HSTEP_ERROR_MEMORY : HSTEP_OK, "allocation %zu: %s: %s", at,
                 hstep_status_name(status), e.message);
    hs_test_expect_ok(write_tokens(&s, &e), &e);
    cr_expect_arr_eq(s.tokens, expected, sizeof s.tokens, "allocation %zu", at);
    destroy(&s);
    return failed;
}

Test(decoding_memory, fails_in_turn, .timeout = 60) {
    scene whole = {.tokens = {4, 9, 2}, .known = KNOWN};
    hstep_error e = {0};
    hs_test_expect_ok(make_model(&whole, &e), &e);
    hs_test_expect_ok(write_tokens(&whole, &e), &e);
    size_t at = 1;
    while (fails(at, whole.tokens))
        at++;
    cr_expect_geq(at, 100, "%zu allocations", at);
    destroy(&whole);
}
