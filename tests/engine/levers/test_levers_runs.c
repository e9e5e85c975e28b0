/* Levers in contexts and runs: what a rejected one, a gated one and none at all do to training. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "cpu/cpu.h"
#include "engine/context.h"
#include "support/models.h"
#include "support/planted.h"

/* No verdict is kept: there is no place for it. */
static void enter(void) {
    cr_assert_eq(setenv("XDG_CACHE_HOME", "", 1), 0);
    cr_assert_eq(setenv("HOME", "", 1), 0);
}

TestSuite(levers_runs, .init = enter, .timeout = 120);

/* So that no large vocabulary is tried. */
static const hstep_product_depth both[] = {{HSTEP_PRECISION_BF16, 48}, {HSTEP_PRECISION_F64, 48}};

static hstep_context *context_with(hs_planted planted, const char *selection) {
    hs_backend *backend = NULL;
    hstep_context *context = NULL;
    hstep_error error = {0};
    hs_test_expect_ok(hs_cpu_create_tier(hs_planted_tier(planted), 1, &backend, &error), &error);
    hs_test_expect_ok(hs_context_adopt(backend, NULL, &context, &error), &error);
    const hs_lever_request request = {.selection = selection, .products = both, .product_count = 2};
    hs_test_expect_ok(hs_levers_choose(backend, &request, &context->levers, &error), &error);
    return context;
}

static const hs_test_setup decoder = {.vocabulary = 24, .width = 16, .heads = 2, .feed_forward = 24, .layers = 1};

static uint64_t train(hstep_context *context, hstep_precision precision) {
    hs_test_setup setup = decoder;
    setup.precision = precision;
    hs_test_run run = hs_test_run_create_in(context, &setup);
    hs_test_batch batch = hs_test_batch_create(2, 7, setup.vocabulary, false, 5);
    hstep_error error = {0};
    for (int i = 0; i < 5; i++) {
        hstep_update update;
        hs_test_expect_ok(hstep_trainer_update(run.trainer, &batch.batch, 1, &update, &error), &error);
        cr_assert_eq(update.outcome, HSTEP_APPLIED);
    }
    uint64_t checksum = 0;
    hs_test_expect_ok(hstep_model_checksum(run.model, &checksum, &error), &error);
    hs_test_batch_destroy(&batch);
    hs_test_run_destroy(&run);
    return checksum;
}

Test(levers_runs, a_run_goes_on_with_exact_kernels_where_a_lever_is_rejected) {
    const uint64_t exact = train(context_with(HS_PLANTED_LAST_STEP, "exact"), HSTEP_PRECISION_F64);
    cr_expect_eq(train(context_with(HS_PLANTED_LAST_STEP, "auto"), HSTEP_PRECISION_F64), exact);
    const uint64_t half = train(context_with(HS_PLANTED_LOST_BIT, "exact"), HSTEP_PRECISION_BF16);
    cr_expect_eq(train(context_with(HS_PLANTED_LOST_BIT, "auto"), HSTEP_PRECISION_BF16), half);
    cr_expect_neq(train(context_with(HS_PLANTED_REVERSED, "+planted.reversed"), HSTEP_PRECISION_BF16), half,
                  "a lever that is active does take part");
}

Test(levers_runs, the_record_of_a_run_tells_of_a_rejection) {
    hstep_context *context = context_with(HS_PLANTED_F32_SUMS, "auto");
    hstep_run_record run = {.precision = HSTEP_PRECISION_F64, .backend = "cpu", .device = "some", .threads = 1};
    run.lever_count = hstep_context_levers(context, &run.levers);
    hstep_records *records = NULL;
    hstep_error error = {0};
    char path[] = "/tmp/halfstep-test-XXXXXX";
    const int descriptor = mkstemp(path);
    cr_assert_geq(descriptor, 0);
    cr_assert_eq(close(descriptor), 0);
    hs_test_expect_ok(hstep_records_open(path, &records, &error), &error);
    hs_test_expect_ok(hstep_records_write_run(records, &run, &error), &error);
    hs_test_expect_ok(hstep_records_close(records, &error), &error);
    json_t *record = json_load_file(path, JSON_REJECT_DUPLICATES, NULL), *levers = json_object_get(record, "levers");
    cr_assert_eq(unlink(path), 0);
    const json_t *lever = json_array_get(levers, json_array_size(levers) - 1);
    const json_t *gate = json_object_get(lever, "gate");
    cr_expect_str_eq(json_string_value(json_object_get(lever, "name")), "planted.f32-sums");
    cr_expect_str_eq(json_string_value(json_object_get(lever, "state")), "rejected");
    cr_expect_str_eq(json_string_value(json_object_get(gate, "precision")), "f64");
    cr_expect(json_is_false(json_object_get(gate, "passed")));
    cr_expect_gt(json_integer_value(json_object_get(gate, "cells_beyond")), 0);
    cr_expect(json_is_null(json_object_get(json_array_get(levers, 0), "gate")));
    cr_expect(json_is_true(json_object_get(record, "reference_bits")));
    json_decref(record);
    hstep_context_destroy(context);
}

/* Updates whose scale is far too large, until one is applied: what each skip names, explained before it happens. */
static size_t name_overflows(hstep_context *context, hstep_explanation *explanations, size_t most) {
    hs_test_setup setup = decoder;
    setup.precision = HSTEP_PRECISION_BF16;
    setup.scaler = (hstep_scaler){.initial = 0x1p140, .minimum = 1, .maximum = 0x1p140, .growth_interval = 2000};
    hs_test_run run = hs_test_run_create_in(context, &setup);
    hs_test_batch batch = hs_test_batch_create(2, 7, setup.vocabulary, false, 5);
    size_t skips = 0;
    for (hstep_update update = {.outcome = HSTEP_SKIPPED}; update.outcome == HSTEP_SKIPPED && skips < most;) {
        hstep_error error = {0};
        hstep_explanation *e = &explanations[skips];
        hs_test_expect_ok(hstep_trainer_explain(run.trainer, &batch.batch, 1, e, &error), &error);
        hs_test_expect_ok(hstep_trainer_update(run.trainer, &batch.batch, 1, &update, &error), &error);
        cr_assert_eq(e->overflowed, update.outcome == HSTEP_SKIPPED);
        cr_expect_str_eq(e->overflow.operation, update.overflow.operation);
        cr_expect_str_eq(e->overflow.tensor, update.overflow.tensor);
        cr_expect_eq(e->overflow.index, update.overflow.index);
        skips += update.outcome == HSTEP_SKIPPED;
    }
    hs_test_batch_destroy(&batch);
    hs_test_run_destroy(&run);
    return skips;
}

Test(levers_runs, an_overflow_under_a_gated_lever_has_the_name_the_reference_gives_it) {
    enum { MOST = 12 };
    static hstep_explanation expected[MOST], actual[MOST];
    const size_t skips = name_overflows(context_with(HS_PLANTED_REVERSED, "exact"), expected, MOST);
    cr_assert_gt(skips, 2);
    cr_assert_eq(name_overflows(context_with(HS_PLANTED_REVERSED, "+planted.reversed"), actual, MOST), skips);
    for (size_t i = 0; i < skips; i++) {
        cr_expect_str_eq(actual[i].overflow.operation, expected[i].overflow.operation);
        cr_expect_str_eq(actual[i].overflow.tensor, expected[i].overflow.tensor);
        cr_expect_str_eq(actual[i].overflow.kind, expected[i].overflow.kind);
        cr_expect_eq(actual[i].overflow.index, expected[i].overflow.index);
        cr_assert_eq(actual[i].operand_count, expected[i].operand_count);
        for (size_t o = 0; o < actual[i].operand_count; o++) {
            const hstep_operand *ours = &actual[i].operands[o], *theirs = &expected[i].operands[o];
            cr_expect(ours->dtype == theirs->dtype && ours->mean == theirs->mean && ours->largest == theirs->largest &&
                          ours->infinities == theirs->infinities && ours->nans == theirs->nans,
                      "skip %zu, operand %zu: exact kernels compute what is told", i, o);
        }
    }
}

Test(levers_runs, a_context_is_exact_unless_told_otherwise) {
    cr_expect_str_eq(hstep_context_defaults().levers, "exact");
    hstep_context *context = NULL;
    hstep_error error = {0};
    const hstep_context_options wrong = {.levers = "+cpu.nothing"};
    cr_expect_eq(hstep_context_create(&wrong, &context, &error), HSTEP_ERROR_ARGUMENT);
    cr_expect_null(context);
    const hstep_context_options silent = {.threads = 1};
    for (int i = 0; i < 2; i++) {
        hs_test_expect_ok(hstep_context_create(i == 0 ? NULL : &silent, &context, &error), &error);
        const hstep_lever *levers;
        const size_t count = hstep_context_levers(context, &levers);
        cr_expect_gt(count, 3);
        for (int precision = 0; precision <= HSTEP_PRECISION_BF16; precision++)
            cr_expect(hstep_levers_exact(levers, count, (hstep_precision)precision));
        for (size_t j = 0; j < count; j++)
            cr_expect_null(levers[j].gate);
        hstep_context_destroy(context);
    }
}
