/* What a program hands to the library to be called: an observer, a log, an allocator. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/context.h"
#include "support/folder.h"
#include "support/models.h"

/* ---- Observers ---- */

typedef struct seen {
    hstep_update updates[40];
    size_t count;
    const hstep_trainer *trainer;
    uint64_t optimizer_step; /* as the trainer said it, when it was last called */
} seen;

static void look(const hstep_update *update, void *user) {
    seen *s = user;
    s->updates[s->count++] = *update;
    s->optimizer_step = hstep_trainer_optimizer_step(s->trainer);
}

Test(callbacks, an_observer_sees_commits_and_skips_once) {
    const hs_test_setup setup = {.precision = HSTEP_PRECISION_FP16, .scaler = {0x1p24, 1, 0x1p24, 2000}};
    hs_test_run run = hs_test_run_create(&setup);
    const hstep_batch batch = hs_test_fixture_batch();
    hs_test_batch wrong = hs_test_batch_create(1, 3, 100000, false, 1);
    hstep_error error = {0};
    hstep_update update = {0};
    seen s = {.trainer = run.trainer};
    hs_test_expect_ok(hstep_trainer_set_observer(run.trainer, look, &s, &error), &error);
    size_t attempts = 0, skips = 0;
    for (; attempts < 32 && (attempts == 0 || update.outcome == HSTEP_SKIPPED); attempts++) {
        hs_test_expect_ok(hstep_trainer_update(run.trainer, &batch, 1, &update, &error), &error);
        skips += update.outcome == HSTEP_SKIPPED;
        cr_assert_eq(s.count, attempts + 1);
        cr_expect_eq(s.updates[attempts].outcome, update.outcome);
        cr_expect_eq(s.updates[attempts].attempt, update.attempt);
        cr_expect_eq(s.optimizer_step, update.optimizer_step, "the verdict is over when it is called");
    }
    cr_expect(skips > 0 && skips < attempts, "both outcomes must be seen");
    cr_expect_eq(hstep_trainer_update(run.trainer, &wrong.batch, 1, &update, &error), HSTEP_ERROR_TOKEN);
    cr_expect_eq(s.count, attempts, "an error is no attempt");
    hs_test_expect_ok(hstep_trainer_record(run.trainer, &batch, NULL, &error), &error);
    hs_test_expect_ok(hstep_trainer_backward(run.trainer, &error), &error);
    cr_expect_eq(s.count, attempts);
    hs_test_expect_ok(hstep_trainer_commit(run.trainer, &update, &error), &error);
    cr_expect_eq(s.count, attempts + 1);
    hs_test_expect_ok(hstep_trainer_set_observer(run.trainer, NULL, NULL, &error), &error);
    hs_test_expect_ok(hstep_trainer_update(run.trainer, &batch, 1, &update, &error), &error);
    cr_expect_eq(s.count, attempts + 1);
    hs_test_batch_destroy(&wrong);
    hs_test_run_destroy(&run);
}

/* ---- Logs ---- */

typedef struct log {
    char text[4096];
    size_t notes, warnings;
} log;

static void keep_message(hstep_log_level level, const char *message, void *user) {
    log *l = user;
    l->notes += level == HSTEP_LOG_NOTE;
    l->warnings += level == HSTEP_LOG_WARNING;
    cr_expect_null(strchr(message, '\n'));
    strncat(l->text, message, sizeof l->text - strlen(l->text) - 2);
    strcat(l->text, "\n");
}

static log made_context(const char *levers, hstep_backend backend) {
    log l = {0};
    hstep_context *context = NULL;
    hstep_error error = {0};
    const hstep_product_depth product = {HSTEP_PRECISION_F64, 16};
    const hstep_context_options options = {.backend = backend,
                                           .threads = 1,
                                           .levers = levers,
                                           .products = &product,
                                           .product_count = 1,
                                           .log = keep_message,
                                           .log_user = &l};
    hs_test_expect_ok(hstep_context_create(&options, &context, &error), &error);
    hstep_context_destroy(context);
    return l;
}

/* Whether a GPU is there or not, it is said or taken. */
Test(callbacks, a_log_says_why_no_gpu_is_taken) {
    const log l = made_context("exact", HSTEP_BACKEND_AUTO);
    cr_expect_eq(l.warnings, 0);
    cr_expect(l.notes == 0 || strstr(l.text, "no GPU") != NULL, "%s", l.text);
    cr_expect_eq(made_context("exact", HSTEP_BACKEND_CPU).notes, 0, "nothing happened");
}

/* Judging OpenBLAS asks for kept verdicts. */
Test(callbacks, a_log_says_that_kept_verdicts_cannot_be_read, .init = hs_test_enter_folder,
     .fini = hs_test_leave_folder, .timeout = 60) {
    char folder[4096];
    cr_assert_not_null(getcwd(folder, sizeof folder));
    setenv("XDG_CACHE_HOME", folder, 1);
    const log clean = made_context("auto", HSTEP_BACKEND_CPU);
    cr_expect_null(strstr(clean.text, "verdicts on levers"), "%s", clean.text);
    if (access("halfstep/levers.json", F_OK) != 0)
        cr_skip_test("skipped: no lever is judged here, since OpenBLAS is not installed");
    hs_test_write_file("halfstep/levers.json", "{\"schema\":\"another\"}");
    const log spoiled = made_context("auto", HSTEP_BACKEND_CPU);
    cr_expect_not_null(strstr(spoiled.text, "levers.json' cannot be read"), "%s", spoiled.text);
    cr_expect_geq(spoiled.warnings, 1);
}

/* ---- Allocators ---- */

typedef struct heap {
    size_t calls, alive, bytes, most;
    size_t failing; /* the call that gets nothing, from 1; 0: none */
} heap;

static void *allocate(size_t bytes, size_t alignment, void *user) {
    heap *h = user;
    cr_assert(bytes > 0 && alignment > 0 && (alignment & (alignment - 1)) == 0 && alignment <= 64);
    if (++h->calls == h->failing)
        return NULL;
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    cr_assert_not_null(memory);
    memset(memory, 0xa5, bytes); /* of any content */
    h->alive++;
    h->bytes += bytes;
    h->most = h->bytes > h->most ? h->bytes : h->most;
    return memory;
}

static void release(void *memory, size_t bytes, void *user) {
    heap *h = user;
    cr_assert_not_null(memory);
    h->alive--;
    h->bytes -= bytes;
    free(memory);
}

/* Two updates of a small decoder that is traced; the first status that is no success, with everything destroyed. */
static hstep_status train_on(heap *h, hstep_backend backend, uint64_t *checksum, hstep_error *error) {
    const hstep_allocator allocator = {allocate, release, h};
    const hstep_context_options options = {.backend = backend, .threads = 1, .allocator = &allocator};
    hstep_context *context = NULL;
    hstep_model *model = NULL;
    hstep_trainer *trainer = NULL;
    hstep_decoder_config decoder = hstep_decoder_defaults();
    decoder.vocabulary = 258;
    decoder.width = 8;
    decoder.layers = 1;
    decoder.heads = 2;
    decoder.feed_forward = 12;
    const hstep_trainer_config config = hstep_trainer_defaults(decoder.precision);
    const hstep_batch batch = hs_test_fixture_batch();
    hstep_update update;
    size_t counted = 0;
    hstep_status status = hstep_context_create(&options, &context, error);
    if (status == HSTEP_OK)
        status = hstep_model_create_decoder(context, &decoder, &model, error);
    if (status == HSTEP_OK)
        status = hstep_model_initialize(model, HSTEP_INIT_XAVIER, 1, error);
    if (status == HSTEP_OK)
        status = hstep_trainer_create(model, &config, &trainer, error);
    for (int i = 0; i < 2 && status == HSTEP_OK; i++) {
        status = hstep_trainer_set_trace(trainer, i, error);
        if (status == HSTEP_OK)
            status = hstep_trainer_update(trainer, &batch, 1, &update, error);
    }
    if (status == HSTEP_OK)
        status = hstep_model_checksum(model, checksum, error);
    counted = status == HSTEP_OK ? hstep_context_memory(context) : 0;
    cr_expect(counted == 0 || (h->bytes >= counted && h->bytes <= counted + h->alive), "all that is counted, no more");
    hstep_trainer_destroy(trainer);
    hstep_model_destroy(model);
    hstep_context_destroy(context);
    return status;
}

Test(callbacks, an_allocator_gets_everything_back, .timeout = 60) {
    uint64_t with = 0, without = 1;
    hstep_error error = {0};
    for (int i = 0; i < 2; i++) {
        const hstep_backend backend = i == 0 ? HSTEP_BACKEND_CPU : HSTEP_BACKEND_CPU_REFERENCE;
        heap h = {0};
        hs_test_expect_ok(train_on(&h, backend, &with, &error), &error);
        cr_expect_gt(h.calls, 20);
        cr_expect_gt(h.most, 30000);
        cr_expect(h.alive == 0 && h.bytes == 0, "%zu pieces of %zu bytes were kept", h.alive, h.bytes);
        const hs_test_setup setup = {.backend = backend,
                                     .precision = hstep_decoder_defaults().precision,
                                     .width = 8,
                                     .layers = 1,
                                     .feed_forward = 12,
                                     .seed = 1};
        hs_test_run run = hs_test_run_create(&setup);
        const hstep_batch batch = hs_test_fixture_batch();
        hstep_update update;
        for (int j = 0; j < 2; j++)
            hs_test_expect_ok(hstep_trainer_update(run.trainer, &batch, 1, &update, &error), &error);
        hs_test_expect_ok(hstep_model_checksum(run.model, &without, &error), &error);
        hs_test_run_destroy(&run);
        cr_expect_eq(with, without, "where memory comes from changes no bit");
    }
}

/* Every allocation in turn fails: a clear error, and nothing is lost. */
Test(callbacks, an_allocator_may_fail, .timeout = 60) {
    size_t failures = 0;
    for (size_t failing = 1;; failing++) {
        heap h = {.failing = failing};
        uint64_t checksum;
        hstep_error error = {0};
        const hstep_status status = train_on(&h, HSTEP_BACKEND_CPU, &checksum, &error);
        cr_assert(h.alive == 0 && h.bytes == 0, "failing call %zu: %zu pieces were kept", failing, h.alive);
        if (status == HSTEP_OK)
            break;
        cr_assert_eq(status, HSTEP_ERROR_MEMORY, "%zu: %s", failing, error.message);
        failures++;
    }
    cr_expect_gt(failures, 20);
}

Test(callbacks, half_an_allocator_is_refused) {
    const hstep_allocator half = {.allocate = allocate};
    const hstep_context_options options = {.allocator = &half};
    hstep_context *context = (hstep_context *)(uintptr_t)16;
    hstep_error error = {0};
    cr_expect_eq(hstep_context_create(&options, &context, &error), HSTEP_ERROR_ARGUMENT);
    cr_expect_eq(context, (hstep_context *)(uintptr_t)16);
}
