/* `trainer levers`, and what --levers does to a run. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "support/program.h"

static void enter(void) {
    char folder[256];
    hs_test_enter_folder();
    cr_assert_not_null(getcwd(folder, sizeof folder));
    cr_assert_eq(setenv("XDG_CACHE_HOME", folder, 1), 0);
    hs_test_write_file("text", "some text to train on, some text to train on, some text to train on, some more text");
}

TestSuite(levers, .init = enter, .fini = hs_test_leave_folder, .timeout = 120);

#define TINY                                                                                                           \
    "train", "--data", "text", "--layers", "1", "--width", "8", "--heads", "2", "--context", "8", "--batch-size", "2", \
        "--feed-forward", "8", "--steps", "3", "--threads", "1", "--sample-tokens", "0", "--held-out", "0"

static const char *text_of(const json_t *object, const char *name) {
    const char *text = json_string_value(json_object_get(object, name));
    cr_assert_not_null(text, "%s", name);
    return text;
}

static const json_t *lever_of(const json_t *object, const char *name) {
    const json_t *levers = json_object_get(object, "levers");
    for (size_t i = 0; i < json_array_size(levers); ++i)
        if (strcmp(text_of(json_array_get(levers, i), "name"), name) == 0)
            return json_array_get(levers, i);
    cr_assert_fail("no lever %s", name);
    return NULL;
}

/* A folder in which the loader finds something that is no library. */
static void hide_openblas(void) {
    char folder[256];
    cr_assert_not_null(getcwd(folder, sizeof folder));
    hs_test_write_file("libopenblas.so.0", "no library");
    cr_assert_eq(setenv("LD_LIBRARY_PATH", folder, 1), 0);
}

static json_t *list_as_json(void) {
    hs_test_program run = HS_TEST_RUN("levers", "--json", "--threads", "1");
    cr_assert_eq(run.status, 0, "%s", run.err);
    json_t *root = json_loads(run.out, JSON_REJECT_DUPLICATES, NULL);
    cr_assert_not_null(root);
    hs_test_program_free(&run);
    return root;
}

static void check_judged(const json_t *lever) {
    const json_t *gate = json_object_get(lever, "gate"), *worst = json_object_get(gate, "worst");
    const char *state = text_of(lever, "state");
    cr_assert(json_is_object(gate));
    cr_expect_str_eq(text_of(gate, "precision"), "f64");
    cr_expect_eq(json_is_true(json_object_get(worst, "passed")), strcmp(state, "rejected") != 0);
    cr_expect(json_is_false(json_object_get(gate, "flushes_subnormals")));
    cr_expect_lt(json_real_value(json_object_get(worst, "mean_rel")), 0.005);
    cr_expect_eq(json_integer_value(json_object_get(worst, "cells_beyond")), 0);
    cr_expect_gt(json_integer_value(json_object_get(worst, "cells")), 100000);
    cr_expect_gt(json_real_value(json_object_get(gate, "speed")), 0);
    bool vocabulary = false;
    const json_t *cases = json_object_get(gate, "cases");
    for (size_t i = 0; i < json_array_size(cases); ++i)
        vocabulary = vocabulary || json_integer_value(json_object_get(json_array_get(cases, i), "k")) == 50257;
    cr_expect(vocabulary);
}

Test(levers, json_has_every_lever_with_state_and_figures) {
    json_t *root = list_as_json();
    cr_expect_str_eq(text_of(root, "schema"), "halfstep.levers/1");
    cr_expect_eq(json_integer_value(json_object_get(root, "threads")), 1);
    static const char *const exact[] = {"cpu.compact", "cpu.avx512-bf16", "cpu.avx512", "cpu.avx2", "cpu.portable"};
    size_t active = 0;
    for (size_t i = 0; i < sizeof exact / sizeof exact[0]; ++i) {
        const json_t *lever = lever_of(root, exact[i]);
        cr_expect(json_is_true(json_object_get(lever, "exact")));
        cr_expect(json_is_null(json_object_get(lever, "gate")));
        active += strcmp(text_of(lever, "state"), "active") == 0;
    }
    cr_expect_gt(active, 0);
    const json_t *blas = lever_of(root, "cpu.openblas");
    cr_expect(json_is_false(json_object_get(blas, "exact")));
    if (strcmp(text_of(blas, "state"), "absent") != 0)
        check_judged(blas);
    json_decref(root);
}

Test(levers, a_library_that_cannot_be_loaded_is_absent) {
    hide_openblas();
    json_t *root = list_as_json();
    const json_t *blas = lever_of(root, "cpu.openblas");
    cr_expect_str_eq(text_of(blas, "state"), "absent");
    cr_expect_not_null(strstr(text_of(blas, "reason"), "libopenblas"));
    cr_expect(json_is_null(json_object_get(blas, "gate")));
    json_decref(root);
    hs_test_program run = HS_TEST_RUN(TINY, "--precision", "f64", "--levers", "+cpu.openblas", "--records", "-");
    cr_expect_eq(run.status, 5, "%d: %s", run.status, run.err);
    cr_expect_not_null(strstr(run.err, "cpu.openblas is absent"), "%s", run.err);
    cr_expect_eq(run.out_size, 0);
    hs_test_program_free(&run);
    run = HS_TEST_RUN(TINY, "--precision", "f64", "--records", "-", "--quiet");
    cr_expect_eq(run.status, 0, "%s", run.err);
    hs_test_program_free(&run);
}

Test(levers, a_table_for_people) {
    hide_openblas();
    hs_test_program run = HS_TEST_RUN("levers");
    cr_expect_eq(run.status, 0);
    static const char *const words[] = {
        "cpu.avx512", "cpu.avx2", "cpu.portable     exact", "cpu.openblas     gated  absent", "state", "why"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; ++i)
        cr_expect_not_null(strstr(run.out, words[i]), "no '%s' in: %s", words[i], run.out);
    cr_expect_str_empty(run.err);
    hs_test_program_free(&run);
}

Test(levers, one_of_them_explained) {
    hs_test_program run = HS_TEST_RUN("levers", "--explain", "cpu.openblas", "--threads", "1");
    cr_expect_eq(run.status, 0);
    cr_expect_eq(strncmp(run.out, "cpu.openblas: gated, ", 21), 0, "%s", run.out);
    if (strstr(run.out, "absent") == NULL) {
        static const char *const words[] = {"A B ", "A Bt", "At B", " 50257 ", "passed", "exact, ms"};
        for (size_t i = 0; i < sizeof words / sizeof words[0]; ++i)
            cr_expect_not_null(strstr(run.out, words[i]), "no '%s' in: %s", words[i], run.out);
    }
    hs_test_program_free(&run);
    hide_openblas();
    run = HS_TEST_RUN("levers", "--explain", "cpu.portable");
    cr_expect_not_null(strstr(run.out, "reference's bits"), "%s", run.out);
    hs_test_program_free(&run);
    run = HS_TEST_RUN("levers", "--explain", "cpu.portabel");
    cr_expect_eq(run.status, 2);
    cr_expect_not_null(strstr(run.err, "cpu.portabel"), "%s", run.err);
    hs_test_program_free(&run);
}

Test(levers, help_names_its_options) {
    hs_test_program run = HS_TEST_RUN("levers", "--help");
    cr_expect_eq(run.status, 0);
    static const char *const words[] = {"--json", "--explain", "--threads", "--help"};
    for (size_t i = 0; i < 4; ++i)
        cr_expect_not_null(strstr(run.out, words[i]));
    cr_expect_str_empty(run.err);
    hs_test_program_free(&run);
}

/* Names are written out in full, so that an option which a later version adds changes the meaning of no command. */
Test(levers, words_that_it_does_not_know_are_usage_errors) {
    static const char *const wrong[][2] = {{"--js", "did you mean --json"},  {"--thread", "did you mean --threads"},
                                           {"--json=1", "takes no value"},   {"--explain", "needs a value"},
                                           {"--fast", "check its spelling"}, {"json", "unexpected word 'json'"},
                                           {"-j", "unknown option '-j'"},    {"--threads=x", "whole number"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
        hs_test_program run = HS_TEST_RUN("levers", wrong[i][0]);
        cr_expect_eq(run.status, 2, "%s: %d", wrong[i][0], run.status);
        cr_expect_not_null(strstr(run.err, wrong[i][1]), "%s: %s", wrong[i][0], run.err);
        cr_expect_eq(run.out_size, 0);
        hs_test_program_free(&run);
    }
    hide_openblas();
    hs_test_program run = HS_TEST_RUN("levers", "--threads=1", "--explain=cpu.portable");
    cr_expect_eq(run.status, 0, "%s", run.err);
    hs_test_program_free(&run);
}

/* The run record of a run in f64 with a selection of levers, and the checksum of its weights. */
static json_t *run_record(const char *selection, char checksum[32]) {
    hs_test_program run = HS_TEST_RUN(TINY, "--precision", "f64", "--levers", selection, "--records", "-", "--quiet");
    cr_assert_eq(run.status, 0, "%s: %s", selection, run.err);
    json_t *records = hs_test_parse_lines(run.out), *record = hs_test_record(records, "run");
    snprintf(checksum, 32, "%s", text_of(hs_test_record(records, "end"), "weights_checksum"));
    json_incref(record);
    json_decref(records);
    hs_test_program_free(&run);
    return record;
}

Test(levers, records_say_whether_a_run_keeps_the_reference_bits) {
    char exact[32], none[32], required[32];
    json_t *record = run_record("exact", exact);
    cr_expect_str_eq(text_of(json_object_get(record, "configuration"), "levers"), "exact");
    cr_expect(json_is_true(json_object_get(record, "reference_bits")));
    cr_expect_str_eq(text_of(lever_of(record, "cpu.openblas"), "state"), "disabled");
    cr_expect_neq(access("halfstep", F_OK), 0, "exact measures nothing and writes nothing");
    json_decref(record);
    record = run_record("none", none);
    cr_expect_str_eq(text_of(lever_of(record, "cpu.portable"), "state"), "active");
    cr_expect(json_is_true(json_object_get(record, "reference_bits")));
    cr_expect_str_eq(none, exact);
    json_decref(record);
    record = run_record("auto", required);
    const bool there = strcmp(text_of(lever_of(record, "cpu.openblas"), "state"), "absent") != 0;
    const bool active = strcmp(text_of(lever_of(record, "cpu.openblas"), "state"), "active") == 0;
    cr_expect_eq(json_is_true(json_object_get(record, "reference_bits")), !active);
    json_decref(record);
    if (!there)
        return;
    record = run_record("+cpu.openblas", required);
    cr_expect(json_is_false(json_object_get(record, "reference_bits")));
    const json_t *lever = lever_of(record, "cpu.openblas");
    cr_expect_str_eq(text_of(lever, "state"), "active");
    cr_expect(json_is_true(json_object_get(json_object_get(lever, "gate"), "from_cache")), "auto has judged it");
    json_decref(record);
}

Test(levers, a_run_in_bf16_looks_for_no_lever_of_f64) {
    hs_test_program run = HS_TEST_RUN(TINY, "--levers", "auto", "--records", "-");
    cr_assert_eq(run.status, 0, "%s", run.err);
    json_t *records = hs_test_parse_lines(run.out);
    const json_t *record = hs_test_record(records, "run");
    cr_expect_str_eq(text_of(lever_of(record, "cpu.openblas"), "state"), "disabled");
    cr_expect_not_null(strstr(text_of(lever_of(record, "cpu.openblas"), "reason"), "f64"));
    cr_expect(json_is_true(json_object_get(record, "reference_bits")));
    cr_expect_null(strstr(run.err, "openblas"), "%s", run.err);
    json_decref(records);
    hs_test_program_free(&run);
}

Test(levers, the_progress_line_names_a_gated_lever) {
    hs_test_program run = HS_TEST_RUN(TINY, "--precision", "f64", "--levers", "+cpu.openblas", "--records", "r");
    if (run.status == 5) {
        hs_test_program_free(&run);
        cr_skip_test("skipped: OpenBLAS is not there");
    }
    cr_expect_eq(run.status, 0, "%s", run.err);
    cr_expect_not_null(strstr(run.err, "~openblas"), "%s", run.err);
    cr_expect_not_null(strstr(run.err, "--levers exact"), "%s", run.err);
    hs_test_program_free(&run);
}

Test(levers, unknown_names_are_usage_errors_that_list_the_known) {
    static const char *const wrong[] = {"+cpu.nothing", "fast", "exact,-cpu.avx2"};
    for (size_t i = 0; i < 3; ++i) {
        hs_test_program run = HS_TEST_RUN(TINY, "--levers", wrong[i], "--records", "-");
        cr_expect_eq(run.status, 2, "%d: %s", run.status, run.err);
        cr_expect_not_null(strstr(run.err, "cpu.avx512, cpu.avx2, cpu.portable, cpu.openblas"), "%s", run.err);
        cr_expect_eq(run.out_size, 0);
        hs_test_program_free(&run);
    }
}
