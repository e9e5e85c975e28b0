/* Decoding with a cache: the bits of the full forward pass, whatever the parts, and text that is that of single steps.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"
#include "engine/context.h"
#include "support/models.h"
#include "support/parity.h"

enum { VOCABULARY = 40, SEQUENCES = 3, LENGTH = 11 };

static hstep_error error;

static hs_test_setup describe(hstep_precision precision, size_t kv_heads) {
    return (hs_test_setup){.precision = precision,
                           .vocabulary = VOCABULARY,
                           .width = 24,
                           .heads = 4,
                           .kv_heads = kv_heads,
                           .feed_forward = 33,
                           .seed = 7,
                           .scaler = {.initial = 1, .minimum = 1, .maximum = 1, .growth_interval = 1}};
}

static hs_test_run create_on(hs_backend *backend, const hs_test_setup *setup) {
    hstep_context *context = NULL;
    hs_test_expect_ok(hs_context_adopt(backend, NULL, &context, &error), &error);
    return hs_test_run_create_in(context, setup);
}

static hs_backend *reference(void) {
    hs_backend *backend = NULL;
    hs_test_expect_ok(hs_cpu_reference_create(&backend, &error), &error);
    return backend;
}

static hstep_decoding *create_decoding(const hs_test_run *run, size_t sequences, size_t capacity) {
    hstep_decoding *decoding = NULL;
    hs_test_expect_ok(hstep_decoding_create(run->model, sequences, capacity, &decoding, &error), &error);
    return decoding;
}

static double *full_logits(const hs_test_run *run, const hstep_batch *batch) {
    double *logits = malloc(hstep_model_output_size(run->model, batch->sequences, batch->length) * sizeof *logits);
    cr_assert_not_null(logits);
    hs_test_expect_ok(hstep_model_output(run->model, batch, logits, &error), &error);
    return logits;
}

/* Feeds positions [first, first + count) of a batch; logits are those of the last of them. */
static hstep_status feed(hstep_decoding *decoding, const hstep_batch *batch, size_t first, size_t count,
                         double *logits) {
    int32_t *part = malloc(batch->sequences * count * sizeof *part);
    cr_assert_not_null(part);
    for (size_t s = 0; s < batch->sequences; s++)
        memcpy(part + s * count, batch->tokens + s * batch->length + first, count * sizeof *part);
    const hstep_status status = hstep_decoding_feed(decoding, part, count, logits, &error);
    free(part);
    return status;
}

/* The same, with logits held against the rows of the full pass. */
static void feed_and_compare(hstep_decoding *decoding, const hstep_batch *batch, size_t first, size_t count,
                             const double *expected) {
    double *logits = malloc(batch->sequences * VOCABULARY * sizeof *logits);
    cr_assert_not_null(logits);
    hs_test_expect_ok(feed(decoding, batch, first, count, logits), &error);
    cr_assert_eq(hstep_decoding_length(decoding), first + count);
    for (size_t s = 0; s < batch->sequences; s++)
        cr_assert_arr_eq(logits + s * VOCABULARY, expected + (s * batch->length + first + count - 1) * VOCABULARY,
                         VOCABULARY * sizeof *logits, "%zu positions behind %zu, sequence %zu", count, first, s);
    free(logits);
}

/* All of a batch: `first` positions in one pass, then passes of `more`. */
static void check_parts(hstep_decoding *decoding, const hstep_batch *batch, size_t first, size_t more,
                        const double *expected) {
    hs_test_expect_ok(hstep_decoding_rewind(decoding, 0, &error), &error);
    feed_and_compare(decoding, batch, 0, first, expected);
    for (size_t at = first; at < batch->length; at += more)
        feed_and_compare(decoding, batch, at, at + more < batch->length ? more : batch->length - at, expected);
}

static void check_run(hs_test_run *run, size_t sequences, size_t length, size_t capacity) {
    static const size_t parts[][2] = {{1, 1}, {2, 1}, {5, 3}, {7, 2}};
    hs_test_batch batch = hs_test_batch_create(sequences, length, VOCABULARY, false, length);
    double *expected = full_logits(run, &batch.batch);
    hstep_decoding *decoding = create_decoding(run, sequences, capacity);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        check_parts(decoding, &batch.batch, parts[i][0], parts[i][1], expected);
    check_parts(decoding, &batch.batch, length, 1, expected);
    hstep_decoding_destroy(decoding);
    free(expected);
    hs_test_batch_destroy(&batch);
}

static void check_backend(hs_backend *backend, hstep_precision precision, size_t kv_heads) {
    const hs_test_setup setup = describe(precision, kv_heads);
    hs_test_run run = create_on(backend, &setup);
    check_run(&run, SEQUENCES, LENGTH, LENGTH);
    check_run(&run, 1, 2 * LENGTH, 2 * LENGTH + 5);
    hs_test_run_destroy(&run);
}

/* Heads of their own, in pairs, and all on one. */
Test(decoding, logits_are_those_of_the_full_pass, .timeout = 120) {
    static const size_t kv_heads[] = {4, 2, 1};
    for (hstep_precision precision = HSTEP_PRECISION_F64; precision <= HSTEP_PRECISION_BF16; precision++)
        for (size_t k = 0; k < 3; k++) {
            check_backend(reference(), precision, kv_heads[k]);
            for (size_t lever = 0; lever < HS_TEST_LEVERS; lever++)
                for (unsigned threads = 1; threads <= HS_TEST_THREADS; threads++) {
                    hs_backend *backend = hs_test_exact(threads, hs_test_levers[lever]);
                    if (backend != NULL)
                        check_backend(backend, precision, kv_heads[k]);
                }
        }
}

/* Past the lanes of a sum and the tiles of every kit. */
Test(decoding, long_contexts_too, .timeout = 120) {
    for (hstep_precision precision = HSTEP_PRECISION_F64; precision <= HSTEP_PRECISION_BF16; precision++) {
        hs_test_setup setup = describe(precision, 2);
        setup.threads = 2;
        hs_test_run run = hs_test_run_create(&setup);
        check_run(&run, 2, 150, 200);
        hs_test_run_destroy(&run);
    }
}

/* Of both backends, and with 16-bit storage switched off: the bits of one another. */
Test(decoding, logits_are_those_of_the_reference) {
    for (hstep_precision precision = HSTEP_PRECISION_F64; precision <= HSTEP_PRECISION_BF16; precision++) {
        const hs_test_setup setup = describe(precision, 2);
        hs_test_run oracle = create_on(reference(), &setup);
        hs_test_batch batch = hs_test_batch_create(2, 9, VOCABULARY, false, 5);
        double *expected = full_logits(&oracle, &batch.batch);
        for (int compact = 0; compact < 2; compact++) {
            hs_backend *backend = hs_test_exact(2, "cpu.portable");
            if (compact == 0)
                hs_test_leave_compact_out(backend);
            hs_test_run run = create_on(backend, &setup);
            hstep_decoding *decoding = create_decoding(&run, 2, 9);
            check_parts(decoding, &batch.batch, 4, 1, expected);
            hstep_decoding_destroy(decoding);
            hs_test_run_destroy(&run);
        }
        free(expected);
        hs_test_batch_destroy(&batch);
        hs_test_run_destroy(&oracle);
    }
}

Test(decoding, goes_back_to_an_earlier_position) {
    const hs_test_setup setup = describe(HSTEP_PRECISION_FP16, 2);
    hs_test_run run = hs_test_run_create(&setup);
    hs_test_batch batch = hs_test_batch_create(2, LENGTH, VOCABULARY, false, 3),
                  other = hs_test_batch_create(2, LENGTH, VOCABULARY, false, 4);
    double *expected = full_logits(&run, &batch.batch);
    hstep_decoding *decoding = create_decoding(&run, 2, LENGTH);
    feed_and_compare(decoding, &batch.batch, 0, 4, expected);
    hs_test_expect_ok(feed(decoding, &other.batch, 4, 7, NULL), &error);
    hs_test_expect_ok(hstep_decoding_rewind(decoding, 4, &error), &error);
    feed_and_compare(decoding, &batch.batch, 4, 7, expected);
    cr_assert_eq(hstep_decoding_rewind(decoding, 12, &error), HSTEP_ERROR_ARGUMENT);
    cr_assert_eq(hstep_decoding_length(decoding), LENGTH);
    hstep_decoding_destroy(decoding);
    free(expected);
    hs_test_batch_destroy(&batch);
    hs_test_batch_destroy(&other);
    hs_test_run_destroy(&run);
}

/* Casts of new weights are used, keys of old ones refused. */
Test(decoding, follows_an_update) {
    for (hstep_precision precision = HSTEP_PRECISION_F64; precision <= HSTEP_PRECISION_BF16; precision++) {
        hs_test_setup setup = describe(precision, 2);
        setup.learning_rate = 0.05;
        hs_test_run run = hs_test_run_create(&setup);
        hs_test_batch batch = hs_test_batch_create(2, LENGTH, VOCABULARY, false, 3);
        double *before = full_logits(&run, &batch.batch);
        hstep_decoding *decoding = create_decoding(&run, 2, LENGTH);
        check_parts(decoding, &batch.batch, 5, 1, before);
        hstep_update update;
        hs_test_expect_ok(hstep_trainer_update(run.trainer, &batch.batch, 1, &update, &error), &error);
        hs_test_expect_ok(hstep_decoding_rewind(decoding, 3, &error), &error);
        cr_assert_eq(feed(decoding, &batch.batch, 3, 1, NULL), HSTEP_ERROR_STALE_TAPE);
        cr_assert_not_null(strstr(error.message, "rewind to 0"), "%s", error.message);
        double *after = full_logits(&run, &batch.batch);
        cr_assert_arr_neq(before, after, 2 * LENGTH * VOCABULARY * sizeof *after);
        check_parts(decoding, &batch.batch, 5, 1, after);
        hstep_decoding_destroy(decoding);
        free(before);
        free(after);
        hs_test_batch_destroy(&batch);
        hs_test_run_destroy(&run);
    }
}

Test(decoding, refuses_what_does_not_fit_and_goes_on) {
    const hs_test_setup setup = describe(HSTEP_PRECISION_BF16, 4);
    hs_test_run run = hs_test_run_create(&setup);
    hs_test_batch batch = hs_test_batch_create(1, LENGTH, VOCABULARY, false, 3);
    double *expected = full_logits(&run, &batch.batch);
    hstep_decoding *decoding = create_decoding(&run, 1, LENGTH - 1);
    feed_and_compare(decoding, &batch.batch, 0, 8, expected);
    cr_assert_eq(feed(decoding, &batch.batch, 8, 3, NULL), HSTEP_ERROR_SHAPE);
    cr_assert_not_null(strstr(error.message, "3 tokens do not fit behind 8 in a context of 10"), "%s", error.message);
    const int32_t bad = VOCABULARY;
    cr_assert_eq(hstep_decoding_feed(decoding, &bad, 1, NULL, &error), HSTEP_ERROR_TOKEN);
    cr_assert_eq(hstep_decoding_feed(decoding, &bad, 0, NULL, &error), HSTEP_ERROR_SHAPE);
    feed_and_compare(decoding, &batch.batch, 8, 2, expected);
    cr_assert_eq(feed(decoding, &batch.batch, 10, 1, NULL), HSTEP_ERROR_SHAPE, "the context is full");
    hstep_decoding_destroy(decoding);
    free(expected);
    hs_test_batch_destroy(&batch);
    hs_test_run_destroy(&run);
}

Test(decoding, is_refused_where_it_cannot_be) {
    const hs_test_setup setup = describe(HSTEP_PRECISION_F64, 4);
    hs_test_run run = hs_test_run_create(&setup);
    const size_t held = hstep_context_memory(run.context);
    hstep_decoding *decoding = NULL;
    cr_assert_eq(hstep_decoding_create(run.model, 0, 5, &decoding, &error), HSTEP_ERROR_SHAPE);
    cr_assert_eq(hstep_decoding_create(run.model, 5, 0, &decoding, &error), HSTEP_ERROR_SHAPE);
    cr_assert_eq(hstep_decoding_create(run.model, SIZE_MAX / 2, 3, &decoding, &error), HSTEP_ERROR_SHAPE);
    cr_assert_eq(hstep_decoding_create(NULL, 1, 1, &decoding, &error), HSTEP_ERROR_ARGUMENT);
    cr_assert_null(decoding);
    decoding = create_decoding(&run, 1, 5);
    cr_assert_gt(hstep_context_memory(run.context), held, "what a context holds counts the cache");
    hstep_decoding_destroy(decoding);
    hs_test_run_destroy(&run);
    hs_backend *backend = reference();
    hstep_context *context = NULL;
    hs_test_expect_ok(hs_context_adopt(backend, NULL, &context, &error), &error);
    hs_test_run other = hs_test_general_run_create_in(context);
    cr_assert_eq(hstep_decoding_create(other.model, 1, 5, &decoding, &error), HSTEP_ERROR_ARGUMENT);
    hs_test_run_destroy(&other);
}

/* An infinity is named, and what it left in the cache is of no harm to the next pass. */
static void check_infinity(hs_backend *backend) {
    const hs_test_setup setup = describe(HSTEP_PRECISION_BF16, 2);
    hs_test_run run = create_on(backend, &setup);
    hs_test_batch batch = hs_test_batch_create(1, LENGTH, VOCABULARY, false, 3);
    double *expected = full_logits(&run, &batch.batch);
    hstep_decoding *decoding = create_decoding(&run, 1, LENGTH);
    const size_t gain = hstep_model_find_parameter(run.model, "blocks.1.attention_norm.gain");
    double values[24], bad[24];
    hs_test_expect_ok(hstep_model_read_parameter(run.model, gain, values, &error), &error);
    memcpy(bad, values, sizeof values);
    bad[3] = INFINITY;
    hs_test_expect_ok(hstep_model_write_parameter(run.model, gain, bad, &error), &error);
    cr_assert_eq(feed(decoding, &batch.batch, 0, 6, NULL), HSTEP_ERROR_NONFINITE_FORWARD);
    cr_assert_str_eq(error.operation, "blocks.1.attention_norm");
    cr_assert_eq(hstep_decoding_length(decoding), 0);
    hs_test_expect_ok(hstep_model_write_parameter(run.model, gain, values, &error), &error);
    check_parts(decoding, &batch.batch, 2, 1, expected);
    hstep_decoding_destroy(decoding);
    free(expected);
    hs_test_batch_destroy(&batch);
    hs_test_run_destroy(&run);
}

Test(decoding, names_an_infinity_and_recovers) {
    check_infinity(reference());
    check_infinity(hs_test_exact(1, "cpu.portable"));
}

/* ---- Text ---- */

enum { ROWS = 2, KNOWN = 3, TEXT = 40, CONTEXT = 16 };

/* The likeliest token behind tokens [first, known), by a full pass. */
static int32_t likeliest(const hs_test_run *run, const int32_t *row, size_t first, size_t known) {
    const hstep_batch batch = {.sequences = 1, .length = known - first, .tokens = row + first};
    double *logits = full_logits(run, &batch);
    const double *last = logits + (batch.length - 1) * VOCABULARY;
    int32_t best = 0;
    for (int32_t i = 1; i < VOCABULARY; i++)
        best = last[i] > last[best] ? i : best;
    free(logits);
    return best;
}

static void fill_prompts(int32_t rows[ROWS][TEXT]) {
    memset(rows, 0, sizeof(int32_t[ROWS][TEXT]));
    for (size_t i = 0; i < ROWS * KNOWN; i++)
        rows[i / KNOWN][i % KNOWN] = (int32_t)(i * 11 % VOCABULARY);
}

/* The context is full at 16 tokens; 17, 26 and 35 do not fit, and it begins anew with the last 8. */
Test(decoding, text_is_that_of_full_passes_over_a_context_that_slides) {
    const hs_test_setup setup = describe(HSTEP_PRECISION_BF16, 2);
    hs_test_run run = hs_test_run_create(&setup);
    hstep_decoding *decoding = create_decoding(&run, ROWS, CONTEXT);
    int32_t rows[ROWS][TEXT];
    fill_prompts(rows);
    const hstep_sampling greedy = {0};
    size_t first = 0;
    for (size_t known = KNOWN; known < TEXT; known++) {
        hs_test_expect_ok(hstep_decoding_extend(decoding, &greedy, 1, rows[0], TEXT, known, &error), &error);
        if (known - first > CONTEXT)
            first = known - CONTEXT / 2;
        for (size_t i = 0; i < ROWS; i++)
            cr_assert_eq(rows[i][known], likeliest(&run, rows[i], first, known), "row %zu, place %zu", i, known);
    }
    cr_assert_eq(first, 27);
    hstep_decoding_destroy(decoding);
    hs_test_run_destroy(&run);
}

/* Asking for a token again gives it again; a long beginning is seen as far back as the context goes. */
Test(decoding, text_goes_on_from_any_of_its_places) {
    const hs_test_setup setup = describe(HSTEP_PRECISION_F64, 4);
    hs_test_run run = hs_test_run_create(&setup);
    hstep_decoding *decoding = create_decoding(&run, 1, CONTEXT);
    int32_t row[TEXT], kept[TEXT];
    for (size_t i = 0; i < TEXT; i++)
        row[i] = (int32_t)(i * 7 % VOCABULARY);
    const hstep_sampling warm = {.temperature = 2};
    hs_test_expect_ok(hstep_decoding_extend(decoding, &(hstep_sampling){0}, 1, row, TEXT, 30, &error), &error);
    cr_assert_eq(row[30], likeliest(&run, row, 30 - CONTEXT, 30));
    for (size_t known = 31; known < TEXT; known++)
        hs_test_expect_ok(hstep_decoding_extend(decoding, &warm, 9, row, TEXT, known, &error), &error);
    memcpy(kept, row, sizeof row);
    for (size_t known = TEXT - 1; known >= TEXT - 3; known--) {
        row[known] = -1;
        hs_test_expect_ok(hstep_decoding_extend(decoding, &warm, 9, row, TEXT, known, &error), &error);
        cr_assert_eq(row[known], kept[known]);
    }
    cr_assert_eq(hstep_decoding_extend(decoding, &warm, 9, row, TEXT, TEXT, &error), HSTEP_ERROR_ARGUMENT);
    cr_assert_eq(hstep_decoding_extend(decoding, &warm, 9, row, TEXT, 0, &error), HSTEP_ERROR_ARGUMENT);
    hstep_decoding_destroy(decoding);
    hs_test_run_destroy(&run);
}

/* The smallest context there is sees one token. */
Test(decoding, a_context_of_one_position) {
    const hs_test_setup setup = describe(HSTEP_PRECISION_F64, 4);
    hs_test_run run = hs_test_run_create(&setup);
    hstep_decoding *decoding = create_decoding(&run, 1, 1);
    int32_t row[10] = {5, 6};
    for (size_t known = 2; known < 10; known++) {
        hs_test_expect_ok(hstep_decoding_extend(decoding, &(hstep_sampling){0}, 1, row, 10, known, &error), &error);
        cr_assert_eq(row[known], likeliest(&run, row, known - 1, known));
    }
    hstep_decoding_destroy(decoding);
    hs_test_run_destroy(&run);
}

Test(decoding, draws_depend_on_seed_and_place_alone) {
    const hs_test_setup setup = describe(HSTEP_PRECISION_BF16, 2);
    hs_test_run run = hs_test_run_create(&setup);
    int32_t rows[3][ROWS][TEXT];
    const hstep_sampling warm = {.temperature = 1.5, .top_k = 20, .top_p = 0.9, .repetition_penalty = 1.1};
    for (size_t i = 0; i < 3; i++) {
        hstep_decoding *decoding = create_decoding(&run, ROWS, TEXT);
        fill_prompts(rows[i]);
        for (size_t known = KNOWN; known < TEXT; known++) {
            hs_test_expect_ok(hstep_decoding_extend(decoding, &warm, 5 + i / 2, rows[i][0], TEXT, known, &error),
                              &error);
            if (i == 1 && known % 10 == 0)
                hs_test_expect_ok(hstep_decoding_rewind(decoding, 0, &error), &error);
        }
        hstep_decoding_destroy(decoding);
    }
    cr_assert_arr_eq(rows[0], rows[1], sizeof rows[0]);
    cr_assert_arr_neq(rows[0], rows[2], sizeof rows[0]);
    cr_assert_arr_neq(rows[0][0] + KNOWN, rows[0][1] + KNOWN, (TEXT - KNOWN) * sizeof rows[0][0][0]);
    hs_test_run_destroy(&run);
}
