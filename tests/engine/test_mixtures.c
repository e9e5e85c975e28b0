/*
 * Runs whose products differ in precision by place: the tiers give one another's bits, with 16-bit storage and without,
 * a rule that fits everything is a plain precision, and decoding has the bits of the full pass.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"
#include "engine/context.h"
#include "support/models.h"
#include "support/parity.h"

enum { VOCABULARY = 40, ATTEMPTS = 16 };

typedef struct mixture {
    const char *name;
    hstep_precision precision;
    hstep_precision_rule rules[6];
    size_t count;
    bool skips; /* the scale of these tests overflows its fp16 */
} mixture;

static const mixture mixtures[] = {
    {"f64 at the ends, fp16 in the first block",
     HSTEP_PRECISION_BF16,
     {{"head", HSTEP_PRECISION_F64}, {"blocks.0.*", HSTEP_PRECISION_FP16}},
     2,
     true},
    {"another precision in every reader of one value",
     HSTEP_PRECISION_F64,
     {{"*.query", HSTEP_PRECISION_FP16},
      {"*.key", HSTEP_PRECISION_BF16},
      {"*.gate", HSTEP_PRECISION_BF16},
      {"*.up", HSTEP_PRECISION_FP16},
      {"head", HSTEP_PRECISION_FP16}},
     5,
     true},
    {"attention apart from what feeds it",
     HSTEP_PRECISION_FP16,
     {{"*.attention", HSTEP_PRECISION_BF16}, {"blocks.1.attention", HSTEP_PRECISION_F64}},
     2,
     true},
    {"two wide formats",
     HSTEP_PRECISION_BF16,
     {{"*.attention", HSTEP_PRECISION_F64}, {"*.down", HSTEP_PRECISION_F64}},
     2,
     false},
};

/* The heads come in groups, so that some adjoints of attention are sums in f64. */
static hs_test_setup setup_of(const mixture *m) {
    return (hs_test_setup){.precision = m->precision,
                           .rules = m->rules,
                           .rule_count = m->count,
                           .vocabulary = VOCABULARY,
                           .width = 24,
                           .heads = 4,
                           .kv_heads = 2,
                           .feed_forward = 33,
                           .scaler = {.initial = 0x1p24, .minimum = 1, .maximum = 0x1p24, .growth_interval = 3}};
}

static hstep_context *adopt(hs_backend *backend) {
    hstep_context *context = NULL;
    hstep_error error = {0};
    hs_test_expect_ok(hs_context_adopt(backend, NULL, &context, &error), &error);
    return context;
}

static hstep_context *reference(void) {
    hs_backend *backend = NULL;
    hstep_error error = {0};
    hs_test_expect_ok(hs_cpu_reference_create(&backend, &error), &error);
    return adopt(backend);
}

/* What a run said, attempt by attempt, and its weights in the end. */
typedef struct story {
    hstep_update updates[ATTEMPTS];
    size_t skips;
    uint64_t checksum;
} story;

static story *train(hstep_context *context, const hs_test_setup *setup) {
    story *told = calloc(1, sizeof *told);
    cr_assert_not_null(told);
    hs_test_run run = hs_test_run_create_in(context, setup);
    hstep_error error = {0};
    for (uint64_t i = 0; i < ATTEMPTS; i++) {
        hs_test_batch batch = hs_test_batch_create(3, 9, VOCABULARY, true, i);
        hs_test_expect_ok(hstep_trainer_update(run.trainer, &batch.batch, 1, &told->updates[i], &error), &error);
        told->skips += told->updates[i].outcome == HSTEP_SKIPPED;
        hs_test_batch_destroy(&batch);
    }
    hs_test_expect_ok(hstep_model_checksum(run.model, &told->checksum, &error), &error);
    hs_test_run_destroy(&run);
    return told;
}

static void expect_same(const story *expected, story *found, const char *what) {
    for (size_t i = 0; i < ATTEMPTS; i++) {
        const hstep_update *a = &expected->updates[i], *b = &found->updates[i];
        cr_assert_eq(a->outcome, b->outcome, "%s, attempt %zu", what, i);
        cr_assert_eq(memcmp(&a->loss, &b->loss, sizeof a->loss), 0, "%s, attempt %zu: losses %a and %a", what, i,
                     a->loss, b->loss);
        cr_assert_str_eq(a->overflow.operation, b->overflow.operation, "%s, attempt %zu", what, i);
        cr_assert_str_eq(a->overflow.tensor, b->overflow.tensor, "%s, attempt %zu", what, i);
        cr_assert_eq(a->overflow.index, b->overflow.index, "%s, attempt %zu", what, i);
    }
    cr_assert_eq(expected->checksum, found->checksum, "%s: weights", what);
    free(found);
}

static void compare_levers(const mixture *m) {
    const hs_test_setup setup = setup_of(m);
    story *expected = train(reference(), &setup);
    char what[160];
    cr_assert_eq(expected->skips > 0, m->skips, "%s: %zu skips", m->name, expected->skips);
    cr_assert_gt(ATTEMPTS - expected->skips, 4, "%s", m->name);
    for (size_t lever = 0; lever < HS_TEST_LEVERS; lever++)
        for (unsigned variant = 0; variant < 4; variant++) {
            hs_backend *backend = hs_test_exact(1 + variant % 2, hs_test_levers[lever]);
            if (backend == NULL)
                continue;
            if (variant >= 2)
                hs_test_leave_compact_out(backend);
            (void)snprintf(what, sizeof what, "%s: %s, %u threads%s", m->name, hs_test_levers[lever], 1 + variant % 2,
                           variant >= 2 ? ", f64 slots" : "");
            expect_same(expected, train(adopt(backend), &setup), what);
        }
    free(expected);
}

Test(mixtures, have_the_bits_of_the_reference, .timeout = 120) {
    for (size_t i = 0; i < sizeof mixtures / sizeof mixtures[0]; i++)
        compare_levers(&mixtures[i]);
}

Test(mixtures, of_one_precision_are_that_precision) {
    for (hstep_precision precision = HSTEP_PRECISION_F64; precision <= HSTEP_PRECISION_BF16; precision++) {
        const mixture plain = {.precision = precision};
        mixture everywhere = {.precision = (precision + 1) % 3, .rules = {{"*", precision}}, .count = 1};
        hs_test_setup setup = setup_of(&plain);
        story *expected = train(reference(), &setup);
        setup = setup_of(&everywhere);
        expect_same(expected, train(adopt(hs_test_exact(2, "cpu.portable")), &setup), "a rule for everything");
        free(expected);
    }
}

/* So that the two tests above would see a rule that has no effect. */
Test(mixtures, differ_from_the_precisions_they_are_made_of) {
    for (size_t i = 0; i < sizeof mixtures / sizeof mixtures[0]; i++) {
        hs_test_setup setup = setup_of(&mixtures[i]);
        story *mixed = train(reference(), &setup);
        for (hstep_precision precision = HSTEP_PRECISION_F64; precision <= HSTEP_PRECISION_BF16; precision++) {
            const mixture plain = {.precision = precision};
            setup = setup_of(&plain);
            story *other = train(reference(), &setup);
            cr_assert_neq(mixed->checksum, other->checksum, "%s", mixtures[i].name);
            free(other);
        }
        free(mixed);
    }
}

Test(mixtures, recomputed_blocks_change_no_bit) {
    for (size_t i = 0; i < sizeof mixtures / sizeof mixtures[0]; i++) {
        hs_test_setup setup = setup_of(&mixtures[i]);
        story *expected = train(adopt(hs_test_exact(2, "cpu.portable")), &setup);
        setup.recompute = HSTEP_RECOMPUTE_BLOCKS;
        expect_same(expected, train(adopt(hs_test_exact(2, "cpu.portable")), &setup), mixtures[i].name);
        free(expected);
    }
}

/* Tokens one by one against the rows of the full pass on the reference. */
static void check_decoding(hstep_context *context, const hs_test_setup *setup, const hstep_batch *batch,
                           const double *expected) {
    hs_test_run run = hs_test_run_create_in(context, setup);
    hstep_decoding *decoding = NULL;
    hstep_error error = {0};
    double logits[VOCABULARY];
    hs_test_expect_ok(hstep_decoding_create(run.model, 1, batch->length, &decoding, &error), &error);
    for (size_t i = 0; i < batch->length; i++) {
        hs_test_expect_ok(hstep_decoding_feed(decoding, batch->tokens + i, 1, logits, &error), &error);
        cr_assert_arr_eq(logits, expected + i * VOCABULARY, sizeof logits, "position %zu", i);
    }
    hstep_decoding_destroy(decoding);
    hs_test_run_destroy(&run);
}

Test(mixtures, decode_with_a_cache_as_without) {
    for (size_t i = 0; i < sizeof mixtures / sizeof mixtures[0]; i++) {
        const hs_test_setup setup = setup_of(&mixtures[i]);
        hs_test_batch batch = hs_test_batch_create(1, 12, VOCABULARY, false, 3);
        hs_test_run run = hs_test_run_create_in(reference(), &setup);
        hstep_error error = {0};
        double *expected = malloc(12 * VOCABULARY * sizeof *expected);
        hs_test_expect_ok(hstep_model_output(run.model, &batch.batch, expected, &error), &error);
        check_decoding(reference(), &setup, &batch.batch, expected);
        check_decoding(adopt(hs_test_exact(2, "cpu.portable")), &setup, &batch.batch, expected);
        hs_test_run_destroy(&run);
        hs_test_batch_destroy(&batch);
        free(expected);
    }
}
