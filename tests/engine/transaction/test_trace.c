/* Statistics of attempts: right by other code, the same however numbers are stored, and without a trace in the bits. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/models.h"
#include "support/traces.h"

/* ---- Against other code ---- */

/* The tensors of hs_test_traced_model in the test's own hands. */
typedef struct expected {
    double scaled[HS_TEST_TRACED_ROWS * 4], adjoint[HS_TEST_TRACED_ROWS * 2], adjoint_of_first[HS_TEST_TRACED_ROWS * 4];
} expected;

static expected compute(double seed) {
    expected e;
    hstep_error error = {0};
    const size_t rows = HS_TEST_TRACED_ROWS;
    double first[HS_TEST_TRACED_ROWS * 4];
    hs_test_expect_ok(hstep_matmul(NULL, HSTEP_PRECISION_FP16, HSTEP_NO_TRANSPOSE, HSTEP_NO_TRANSPOSE, rows, 4, 3,
                                   hs_test_traced_x, hs_test_traced_w1, first, &error),
                      &error);
    for (size_t i = 0; i < rows * 4; i++)
        e.scaled[i] = first[i] * HS_TEST_TRACED_FACTOR;
    for (size_t i = 0; i < rows * 2; i++)
        e.adjoint[i] = seed;
    hs_test_expect_ok(hstep_matmul(NULL, HSTEP_PRECISION_FP16, HSTEP_NO_TRANSPOSE, HSTEP_TRANSPOSE, rows, 4, 2,
                                   e.adjoint, hs_test_traced_w2, first, &error),
                      &error);
    for (size_t i = 0; i < rows * 4; i++)
        e.adjoint_of_first[i] = first[i] * HS_TEST_TRACED_FACTOR;
    return e;
}

/* What fp16 makes of numbers, by the public conversion. */
static void expect_row(const hstep_trace *trace, const char *operation, const char *tensor, int is_adjoint,
                       size_t count, const double *x) {
    const hstep_operand_trace *row = hs_test_find_row(trace, operation, tensor, is_adjoint);
    uint64_t zero = 0, subnormal = 0, infinite = 0, nonfinite = 0;
    double largest = 0;
    for (size_t i = 0; i < count; i++) {
        const double rounded = fabs(hstep_decode(HSTEP_FP16, hstep_encode(HSTEP_FP16, x[i])));
        nonfinite += isfinite(x[i]) ? 0 : 1;
        infinite += isfinite(x[i]) && rounded == INFINITY;
        zero += rounded == 0 && x[i] != 0;
        subnormal += rounded > 0 && rounded < 0x1p-14;
        largest = isfinite(x[i]) ? fmax(largest, fabs(x[i])) : largest;
    }
    cr_assert_not_null(row, "%s of %s", tensor, operation);
    cr_expect_eq(row->precision, HSTEP_PRECISION_FP16);
    cr_expect_eq(row->elements, count, "%s: %llu elements", tensor, (unsigned long long)row->elements);
    cr_expect(row->to_zero == zero && row->to_subnormal == subnormal && row->to_infinity == infinite &&
                  row->nonfinite == nonfinite && row->largest == largest,
              "%s of %s: %llu %llu %llu %llu %a, not %llu %llu %llu %llu %a", tensor, operation,
              (unsigned long long)row->to_zero, (unsigned long long)row->to_subnormal,
              (unsigned long long)row->to_infinity, (unsigned long long)row->nonfinite, row->largest,
              (unsigned long long)zero, (unsigned long long)subnormal, (unsigned long long)infinite,
              (unsigned long long)nonfinite, largest);
}

static double norm(size_t count, const double *x, double *largest) {
    double sum = 0;
    *largest = 0;
    for (size_t i = 0; i < count; i++) {
        sum += x[i] * x[i];
        *largest = fmax(*largest, fabs(x[i]));
    }
    return sqrt(sum);
}

static void expect_close(double a, double b) { cr_expect(fabs(a - b) <= 1e-14 * fabs(b), "%.17g, not %.17g", a, b); }

/* Norms of the parameter's row against values that were copied out before and after. */
static void expect_tensor(const hstep_tensor_trace *row, size_t count, const double *before, const double *after,
                          const double *gradient) {
    double largest, change[16];
    for (size_t i = 0; i < count; i++)
        change[i] = after[i] - before[i];
    expect_close(row->weight_norm, norm(count, before, &largest));
    cr_expect_eq(row->weight_largest, largest);
    expect_close(row->gradient_norm, norm(count, gradient, &largest));
    cr_expect_eq(row->gradient_largest, largest);
    expect_close(row->update_norm, norm(count, change, &largest));
    cr_expect_eq(row->update_largest, largest);
    cr_expect_gt(row->update_norm, 0);
    cr_expect_eq(row->update_ratio, row->update_norm / row->weight_norm);
}

static void check_by_hand(hstep_context *context) {
    hstep_error error = {0};
    hs_test_run run = hs_test_traced_run_create_in(context);
    const hstep_batch batch = hs_test_traced_batch();
    hs_test_expect_ok(hstep_trainer_set_trace(run.trainer, 1, &error), &error);
    double before[2][12], after[2][12], gradient[2][12];
    hs_test_expect_ok(hstep_trainer_record(run.trainer, &batch, NULL, &error), &error);
    hs_test_expect_ok(hstep_trainer_backward(run.trainer, &error), &error);
    for (size_t i = 0; i < 2; i++) {
        hs_test_expect_ok(hstep_model_read_parameter(run.model, i, before[i], &error), &error);
        hs_test_expect_ok(hstep_trainer_read_gradient(run.trainer, i, gradient[i], &error), &error);
        for (size_t j = 0; j < 12; j++)
            gradient[i][j] /= HS_TEST_TRACED_SCALE;
    }
    hstep_update update;
    hs_test_expect_ok(hstep_trainer_commit(run.trainer, &update, &error), &error);
    cr_assert_eq(update.outcome, HSTEP_APPLIED);
    for (size_t i = 0; i < 2; i++)
        hs_test_expect_ok(hstep_model_read_parameter(run.model, i, after[i], &error), &error);

    hstep_trace trace;
    hs_test_expect_ok(hstep_trainer_trace(run.trainer, &trace, &error), &error);
    const expected e = compute(HS_TEST_TRACED_SCALE);
    const size_t rows = HS_TEST_TRACED_ROWS;
    cr_assert_eq(trace.operand_count, 6);
    expect_row(&trace, "first", "x", 0, rows * 3, hs_test_traced_x);
    expect_row(&trace, "first", "w1", 0, 12, hs_test_traced_w1);
    expect_row(&trace, "first", "first", 1, rows * 4, e.adjoint_of_first);
    expect_row(&trace, "second", "scaled", 0, rows * 4, e.scaled);
    expect_row(&trace, "second", "w2", 0, 8, hs_test_traced_w2);
    expect_row(&trace, "second", "second", 1, rows * 2, e.adjoint);
    cr_expect_gt(hs_test_find_row(&trace, "second", "scaled", 0)->to_zero, 0, "the test must see zeros");
    cr_expect_gt(hs_test_find_row(&trace, "first", "x", 0)->to_subnormal, 0, "and subnormals");
    cr_assert_eq(trace.tensor_count, 2);
    expect_tensor(&trace.tensors[0], 12, before[0], after[0], gradient[0]);
    expect_tensor(&trace.tensors[1], 8, before[1], after[1], gradient[1]);
    hs_test_run_destroy(&run);
}

Test(trace, counts_and_norms_by_hand) {
    const hstep_backend backends[] = {HSTEP_BACKEND_CPU, HSTEP_BACKEND_CPU_REFERENCE};
    for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++) {
        hstep_context *context = NULL;
        hstep_error error = {0};
        const hstep_context_options options = {.backend = backends[i], .threads = 1};
        hs_test_expect_ok(hstep_context_create(&options, &context, &error), &error);
        check_by_hand(context);
    }
}

/* ---- Against itself ---- */

static const hs_test_setup decoder = {.precision = HSTEP_PRECISION_FP16,
                                      .vocabulary = 40,
                                      .width = 24,
                                      .heads = 4,
                                      .kv_heads = 2,
                                      .feed_forward = 33,
                                      .scaler = {256, 1, 0x1p24, 2}};

/* Attempts at a window of a decoder, traced where the bit of `traced` is set; what was last found is kept in *last. */
static hs_test_snapshot train(const hs_test_run *run, size_t window_size, unsigned traced, hstep_update *updates,
                              hs_test_kept_trace *last) {
    enum { ATTEMPTS = 6, MOST = 4 };
    hstep_error error = {0};
    for (unsigned attempt = 0; attempt < ATTEMPTS; attempt++) {
        hs_test_batch batches[MOST];
        hstep_batch window[MOST];
        for (size_t i = 0; i < window_size; i++) {
            batches[i] = hs_test_batch_create(3, 9 - i, 40, true, 100 * attempt + i);
            window[i] = batches[i].batch;
        }
        hs_test_expect_ok(hstep_trainer_set_trace(run->trainer, (int)(traced >> attempt & 1), &error), &error);
        hs_test_expect_ok(hstep_trainer_update(run->trainer, window, window_size, &updates[attempt], &error), &error);
        if (last != NULL && (traced >> attempt & 1))
            hs_test_keep_trace(run->trainer, last);
        for (size_t i = 0; i < window_size; i++)
            hs_test_batch_destroy(&batches[i]);
    }
    return hs_test_snapshot_take(run->trainer);
}

static void expect_no_bit_changed(const hs_test_setup *setup, size_t window_size) {
    const unsigned traced[] = {0, 0x15, 0x3f};
    hs_test_snapshot snapshots[3];
    hstep_update updates[3][6];
    memset(updates, 0, sizeof updates);
    for (int i = 0; i < 3; i++) {
        hs_test_run run = hs_test_run_create(setup);
        snapshots[i] = train(&run, window_size, traced[i], updates[i], NULL);
        hs_test_run_destroy(&run);
    }
    for (int i = 1; i < 3; i++) {
        cr_expect(hs_test_snapshot_equal(&snapshots[0], &snapshots[i]));
        for (int j = 0; j < 6; j++)
            cr_expect(hs_test_same_update(&updates[0][j], &updates[i][j]), "attempt %d", j + 1);
    }
    for (int i = 0; i < 3; i++)
        hs_test_snapshot_free(&snapshots[i]);
}

Test(trace, changes_no_bit, .timeout = 60) {
    for (hstep_precision precision = HSTEP_PRECISION_F64; precision <= HSTEP_PRECISION_BF16; precision++) {
        hs_test_setup setup = decoder;
        setup.precision = precision;
        expect_no_bit_changed(&setup, 1);
        setup.backend = HSTEP_BACKEND_CPU_REFERENCE;
        expect_no_bit_changed(&setup, 1);
    }
}

Test(trace, changes_no_bit_of_windows_recomputation_and_skips, .timeout = 60) {
    hs_test_setup setup = decoder;
    setup.replicas = setup.micro_batches = 2;
    expect_no_bit_changed(&setup, 4);
    setup.recompute = HSTEP_RECOMPUTE_BLOCKS;
    expect_no_bit_changed(&setup, 4);
    setup.scaler = (hstep_scaler){0x1p24, 1, 0x1p24, 2000};
    expect_no_bit_changed(&setup, 4);
}

/* The same attempts under every way to compute give the same statistics, whatever stands in 16 bits. */
Test(trace, is_the_same_however_numbers_are_stored, .timeout = 60) {
    hs_test_kept_trace kept[4] = {0};
    hs_test_setup setup = decoder;
    setup.scaler = (hstep_scaler){1, 1, 1, 2000};
    hstep_update updates[6];
    for (int i = 0; i < 4; i++) {
        setup.backend = i == 1 ? HSTEP_BACKEND_CPU_REFERENCE : HSTEP_BACKEND_CPU;
        setup.recompute = i == 3 ? HSTEP_RECOMPUTE_BLOCKS : HSTEP_RECOMPUTE_NONE;
        hs_test_run run = i == 2 ? hs_test_run_create_in(hs_test_wide_context(), &setup) : hs_test_run_create(&setup);
        hs_test_snapshot snapshot = train(&run, 1, 0x20, updates, &kept[i]);
        hs_test_snapshot_free(&snapshot);
        hs_test_run_destroy(&run);
    }
    uint64_t rounded = 0;
    for (size_t i = 0; i < kept[0].operand_count; i++)
        rounded += kept[0].operands[i].to_subnormal + kept[0].operands[i].to_zero;
    cr_expect_gt(rounded, 100, "the test must see something");
    for (int i = 1; i < 4; i++)
        hs_test_expect_same_trace(&kept[0], &kept[i]);
    for (int i = 0; i < 4; i++)
        hs_test_free_trace(&kept[i]);
}

/* Counts of the forward pass add up over the window's batches; those of weights stand for all. */
Test(trace, adds_up_over_a_window) {
    hs_test_kept_trace parts[4] = {0}, whole = {0};
    hstep_update update;
    hstep_error error = {0};
    for (int i = 0; i < 5; i++) {
        hs_test_setup setup = decoder;
        setup.replicas = setup.micro_batches = i == 4 ? 2 : 1;
        hs_test_run run = hs_test_run_create(&setup);
        hs_test_batch batches[4];
        hstep_batch window[4];
        for (size_t j = 0; j < 4; j++) {
            batches[j] = hs_test_batch_create(2, 5 + j, 40, false, j);
            window[j] = batches[j].batch;
        }
        hs_test_expect_ok(hstep_trainer_set_trace(run.trainer, 1, &error), &error);
        hs_test_expect_ok(
            hstep_trainer_update(run.trainer, i == 4 ? window : &window[i], i == 4 ? 4 : 1, &update, &error), &error);
        hs_test_keep_trace(run.trainer, i == 4 ? &whole : &parts[i]);
        for (size_t j = 0; j < 4; j++)
            hs_test_batch_destroy(&batches[j]);
        hs_test_run_destroy(&run);
    }
    for (size_t i = 0; i < whole.operand_count; i++) {
        const hstep_operand_trace *row = &whole.operands[i];
        uint64_t elements = 0, subnormal = 0, zero = 0;
        for (int j = 0; j < 4; j++) {
            elements += parts[j].operands[i].elements;
            subnormal += parts[j].operands[i].to_subnormal;
            zero += parts[j].operands[i].to_zero;
        }
        const bool weight = strstr(row->tensor, ".weight") != NULL && !row->is_adjoint;
        cr_expect_eq(row->elements, weight ? elements / 4 : elements, "%s of %s", row->tensor, row->operation);
        if (!row->is_adjoint)
            cr_expect(row->to_subnormal * (weight ? 4 : 1) == subnormal && row->to_zero * (weight ? 4 : 1) == zero);
    }
    for (int i = 0; i < 4; i++)
        hs_test_free_trace(&parts[i]);
    hs_test_free_trace(&whole);
}

/* ---- Skips, and errors ---- */

Test(trace, of_a_skip_is_that_of_the_passes_that_ran) {
    hs_test_setup setup = decoder;
    setup.scaler = (hstep_scaler){0x1p24, 1, 0x1p24, 2000};
    setup.micro_batches = 2;
    hs_test_run run = hs_test_run_create(&setup);
    hs_test_batch batch = hs_test_batch_create(3, 9, 40, false, 1);
    const hstep_batch window[2] = {batch.batch, batch.batch};
    hstep_error error = {0};
    hstep_update update;
    hstep_trace trace;
    hs_test_expect_ok(hstep_trainer_set_trace(run.trainer, 1, &error), &error);
    hs_test_expect_ok(hstep_trainer_update(run.trainer, window, 2, &update, &error), &error);
    hs_test_expect_ok(hstep_trainer_trace(run.trainer, &trace, &error), &error);
    cr_assert_eq(update.outcome, HSTEP_SKIPPED);
    cr_expect_eq(trace.has_gradients, 0);
    cr_expect_eq(trace.has_updates, 0);
    uint64_t beyond = 0;
    for (size_t i = 0; i < trace.operand_count; i++) {
        const hstep_operand_trace *row = &trace.operands[i];
        beyond += row->to_infinity + row->nonfinite;
        /* Both batches went forward, one of them backward. */
        if (strcmp(row->operation, "head") == 0 && strstr(row->tensor, ".weight") == NULL)
            cr_expect_eq(row->elements, (size_t)(3 * 9) * (row->is_adjoint ? 40 : 24 * 2), "%s", row->tensor);
    }
    cr_expect_gt(beyond, 0, "an overflow leaves numbers beyond the format");
    for (size_t i = 0; i < trace.tensor_count; i++) {
        cr_expect_gt(trace.tensors[i].weight_norm, 0);
        cr_expect(trace.tensors[i].gradient_norm == 0 && trace.tensors[i].update_norm == 0);
    }
    hs_test_batch_destroy(&batch);
    hs_test_run_destroy(&run);
}

Test(trace, is_refused_where_there_is_none) {
    hs_test_run run = hs_test_run_create(&decoder);
    const hstep_batch batch = hs_test_fixture_batch();
    hs_test_batch other = hs_test_batch_create(1, 3, 40, false, 1);
    hstep_error error = {0};
    hstep_update update;
    hstep_trace trace, untouched;
    memset(&trace, 0x5a, sizeof trace);
    untouched = trace;
    cr_expect_eq(hstep_trainer_trace(run.trainer, &trace, &error), HSTEP_ERROR_ARGUMENT);
    cr_expect_not_null(strstr(error.message, "hstep_trainer_set_trace"));
    cr_expect_eq(hstep_trainer_update(run.trainer, &batch, 1, &update, &error), HSTEP_ERROR_TOKEN);
    hs_test_expect_ok(hstep_trainer_update(run.trainer, &other.batch, 1, &update, &error), &error);
    cr_expect_eq(hstep_trainer_trace(run.trainer, &trace, &error), HSTEP_ERROR_ARGUMENT);
    cr_expect_eq(memcmp(&trace, &untouched, sizeof trace), 0);
    hs_test_expect_ok(hstep_trainer_record(run.trainer, &other.batch, NULL, &error), &error);
    hs_test_expect_ok(hstep_trainer_backward(run.trainer, &error), &error);
    cr_expect_eq(hstep_trainer_set_trace(run.trainer, 1, &error), HSTEP_ERROR_DIRTY_GRADIENT);
    hs_test_batch_destroy(&other);
    hs_test_run_destroy(&run);
}
