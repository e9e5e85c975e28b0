/* The loss scaler against golden event traces, with all its refusals. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "optim/scaler.h"
#include "support/vectors.h"

static hstep_scaler settings_of(const json_t *item) {
    return (hstep_scaler){
        hs_vectors_number(item, "initial"),
        hs_vectors_number(item, "minimum"),
        hs_vectors_number(item, "maximum"),
        (uint64_t)hs_vectors_number(item, "growth_interval"),
    };
}

Test(scaler, follows_the_golden_traces) {
    json_t *root = hs_vectors_load("scaler.json");
    json_t *traces = hs_vectors_member(root, "traces");
    cr_assert_eq(json_array_size(traces), 6);
    for (size_t i = 0; i < json_array_size(traces); i++) {
        json_t *trace = json_array_get(traces, i);
        hstep_scaler settings = settings_of(trace);
        cr_assert_null(hs_scaler_refusal(&settings));
        hs_scaler scaler = hs_scaler_init(&settings);
        const char *events = json_string_value(hs_vectors_member(trace, "events"));
        json_t *after = hs_vectors_member(trace, "after");
        cr_assert(strlen(events) == json_array_size(after) && events[0] != 0);
        for (size_t e = 0; events[e] != 0; e++) {
            if (events[e] == 'C')
                hs_scaler_on_commit(&scaler);
            else
                hs_scaler_on_skip(&scaler);
            json_t *want = json_array_get(after, e);
            cr_assert_eq(scaler.scale, json_number_value(json_array_get(want, 0)), "trace %zu, event %zu", i, e);
            cr_assert_eq((double)scaler.finite_updates, json_number_value(json_array_get(want, 1)));
        }
    }
    json_decref(root);
}

Test(scaler, refuses_the_golden_settings) {
    json_t *root = hs_vectors_load("scaler.json");
    json_t *refused = hs_vectors_member(root, "refused");
    cr_assert_eq(json_array_size(refused), 9);
    for (size_t i = 0; i < json_array_size(refused); i++) {
        hstep_scaler settings = settings_of(json_array_get(refused, i));
        cr_assert_not_null(hs_scaler_refusal(&settings), "%zu", i);
    }
    json_decref(root);
}

/* Each bad value in each place by itself, and the message names the place. */
Test(scaler, refuses_each_bad_field) {
    const hstep_scaler good = {4, 2, 8, 1};
    cr_assert_null(hs_scaler_refusal(&good));
    const double bad[] = {0, -0.0, -2, 0.5, 3, 2.0000000000000004, 6, 0x1p-1074, INFINITY, -INFINITY, NAN};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hstep_scaler s = good;
        s.initial = bad[i];
        cr_assert(hs_scaler_refusal(&s) != NULL && strstr(hs_scaler_refusal(&s), "the loss scale"), "%g", bad[i]);
        s = good, s.minimum = bad[i];
        cr_assert(hs_scaler_refusal(&s) != NULL && strstr(hs_scaler_refusal(&s), "minimum"), "%g", bad[i]);
        s = good, s.maximum = bad[i];
        cr_assert(hs_scaler_refusal(&s) != NULL && strstr(hs_scaler_refusal(&s), "maximum"), "%g", bad[i]);
    }
    const hstep_scaler wrong[] = {{1, 2, 8, 1}, {16, 2, 8, 1}, {4, 8, 2, 1}, {8, 8, 2, 1}, {4, 2, 8, 0}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        cr_assert_not_null(hs_scaler_refusal(&wrong[i]), "%zu", i);
    const hstep_scaler edges[] = {{1, 1, 1, 1}, {0x1p1023, 1, 0x1p1023, UINT64_MAX}, {0x1p1023, 0x1p1023, 0x1p1023, 1}};
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
        cr_assert_null(hs_scaler_refusal(&edges[i]), "%zu", i);
}

Test(scaler, saturates_at_growth_interval_1_and_never_reaches_infinity) {
    const double maxima[] = {1, 65536, 0x1p1023};
    for (size_t i = 0; i < 3; i++) {
        hstep_scaler settings = {1, 1, maxima[i], 1};
        hs_scaler scaler = hs_scaler_init(&settings);
        for (int step = 1; step <= 1100; step++) {
            hs_scaler_on_commit(&scaler);
            double want = step < 1023 ? ldexp(1, step) : 0x1p1023;
            cr_assert_eq(scaler.scale, want < maxima[i] ? want : maxima[i]);
            cr_assert_eq(scaler.finite_updates, 0);
        }
    }
}

Test(scaler, skips_at_the_minimum_without_going_below) {
    hstep_scaler settings = {2, 2, 4, 3};
    hs_scaler scaler = hs_scaler_init(&settings);
    hs_scaler_on_commit(&scaler);
    hs_scaler_on_commit(&scaler);
    hs_scaler_on_skip(&scaler);
    cr_assert(scaler.scale == 2 && scaler.finite_updates == 0);
    hs_scaler_on_commit(&scaler);
    hs_scaler_on_commit(&scaler);
    cr_assert(scaler.scale == 2 && scaler.finite_updates == 2);
    hs_scaler_on_commit(&scaler);
    cr_assert(scaler.scale == 4 && scaler.finite_updates == 0);
}

Test(scaler, has_the_defaults_of_the_policy) {
    hstep_scaler fp16 = hstep_scaler_defaults(HSTEP_PRECISION_FP16);
    cr_assert(fp16.initial == 65536 && fp16.minimum == 1 && fp16.maximum == 0x1p24 && fp16.growth_interval == 2000);
    const hstep_precision others[] = {HSTEP_PRECISION_BF16, HSTEP_PRECISION_F64};
    for (size_t i = 0; i < 2; i++) {
        hstep_scaler s = hstep_scaler_defaults(others[i]);
        cr_assert(s.initial == 1 && s.minimum == 1 && s.maximum == 1 && s.growth_interval == 2000);
    }
}
