/* Verdicts that are kept between processes: what comes back, and what does not count. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/levers/cache.h"
#include "support/program.h"

/* Everything happens in an empty folder that is also the user's cache directory. */
static void enter(void) {
    char folder[256];
    hs_test_enter_folder();
    cr_assert_not_null(getcwd(folder, sizeof folder));
    cr_assert_eq(setenv("XDG_CACHE_HOME", folder, 1), 0);
}

TestSuite(lever_cache, .init = enter, .fini = hs_test_leave_folder);

static hstep_gate_case cases[] = {
    {64, 128, 256, HSTEP_NO_TRANSPOSE, HSTEP_TRANSPOSE, 1, NULL, 0.125, 0.5, 0.001, 0.005, 0.1, 8192, 0, 0},
    {1, 2, 3, HSTEP_TRANSPOSE, HSTEP_NO_TRANSPOSE, 1, NULL, 0.25, 2, 0.002, 0.005, 0.7, 6, 0, 0}};
static hstep_gate_timing timings[] = {{64, 128, 256, HSTEP_NO_TRANSPOSE, HSTEP_TRANSPOSE, 2e-3, 1e-3}};

static hs_verdict good_verdict(void) {
    return (hs_verdict){.gate = {.precision = HSTEP_PRECISION_BF16,
                                 .speed = 2,
                                 .seconds = 0.75,
                                 .case_count = 2,
                                 .timing_count = 1,
                                 .cases = cases,
                                 .timings = timings}};
}

static bool is_kept(const char *lever, const char *key) {
    hs_verdict verdict;
    const bool found = hs_cache_read(lever, key, &verdict);
    cr_assert_eq(found, verdict.gate.case_count > 0);
    hs_verdict_free(&verdict);
    return found;
}

static void keep(const char *lever, const char *key) {
    const hs_verdict verdict = good_verdict();
    hs_cache_write(lever, key, &verdict);
}

Test(lever_cache, a_verdict_comes_back_whole) {
    keep("a", "key");
    hs_verdict v;
    cr_assert(hs_cache_read("a", "key", &v));
    cr_expect_eq(v.gate.precision, HSTEP_PRECISION_BF16);
    cr_expect_eq(v.gate.speed, 2);
    cr_expect_eq(v.gate.seconds, 0.75);
    cr_expect(v.gate.from_cache);
    cr_assert_eq(v.gate.case_count, 2);
    for (size_t i = 0; i < 2; i++) {
        cr_expect_eq(v.gate.cases[i].k, cases[i].k);
        cr_expect_eq(v.gate.cases[i].a_form, cases[i].a_form);
        cr_expect_eq(v.gate.cases[i].b_form, cases[i].b_form);
        cr_expect_eq(v.gate.cases[i].max_abs, cases[i].max_abs);
        cr_expect_eq(v.gate.cases[i].cells, cases[i].cells);
    }
    cr_expect_eq(v.gate.worst.passed, 1);
    cr_expect_eq(v.gate.worst.max_abs, 0.125, "a quarter of its limit, the other an eighth");
    cr_expect_eq(v.gate.worst.max_abs_limit, 0.5);
    cr_expect_eq(v.gate.worst.mean_rel, 0.002);
    cr_expect_eq(v.gate.worst.max_rel, 0.7);
    cr_expect_eq(v.gate.worst.cells, 8198);
    cr_assert_eq(v.gate.timing_count, 1);
    cr_expect_eq(v.gate.timings[0].exact_seconds, 2e-3);
    cr_expect_eq(v.gate.timings[0].lever_seconds, 1e-3);
    cr_expect_eq(v.gate.timings[0].b_form, HSTEP_TRANSPOSE);
    hs_verdict_free(&v);
}

Test(lever_cache, a_rejection_with_infinite_figures_comes_back) {
    hstep_gate_case wrong = cases[0];
    wrong.passed = 0;
    wrong.failed_inputs = "nonfinite";
    wrong.max_abs = (double)INFINITY;
    wrong.cells_wrong = 12;
    const hs_verdict verdict = {.gate = {.case_count = 1, .cases = &wrong}};
    hs_cache_write("a", "key", &verdict);
    hs_verdict v;
    cr_assert(hs_cache_read("a", "key", &v));
    cr_expect_eq(v.gate.worst.passed, 0);
    cr_expect_str_eq(v.gate.worst.failed_inputs, "nonfinite");
    cr_expect(isinf(v.gate.worst.max_abs));
    cr_expect_eq(v.gate.worst.cells_wrong, 12);
    cr_expect_eq(v.gate.worst.k, 256);
    hs_verdict_free(&v);
}

Test(lever_cache, lever_and_key_must_be_the_same) {
    keep("a", "key");
    keep("b", "other");
    cr_expect(is_kept("a", "key") && is_kept("b", "other"));
    cr_expect_not(is_kept("a", "other") || is_kept("b", "key") || is_kept("a", "ke") || is_kept("a", "key "));
}

Test(lever_cache, old_verdicts_make_room) {
    char key[16];
    for (int i = 0; i < 40; i++) {
        snprintf(key, sizeof key, "key %d", i);
        keep("a", key);
    }
    cr_expect(is_kept("a", "key 39") && is_kept("a", "key 10"));
    cr_expect_not(is_kept("a", "key 0"));
}

/* Writes `text` where verdicts are kept. */
static void put_file(const char *text) {
    (void)mkdir("halfstep", 0700);
    hs_test_write_file("halfstep/levers.json", text);
}

Test(lever_cache, a_file_that_is_no_good_holds_nothing_and_is_replaced) {
    static const char *const bad[] = {"",
                                      "{",
                                      "[]",
                                      "null",
                                      "{\"schema\": \"other\", \"verdicts\": []}",
                                      "{\"schema\": \"halfstep.lever-verdicts/1\", \"verdicts\": {}}",
                                      "{\"schema\": \"halfstep.lever-verdicts/1\", \"verdicts\": [1, null, {}]}"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        put_file(bad[i]);
        cr_expect_not(is_kept("a", "key"), "%s", bad[i]);
        keep("a", "key");
        cr_expect(is_kept("a", "key"), "%s", bad[i]);
    }
}

/* A good file with one word replaced. */
static void spoil(const char *good, const char *word, const char *by) {
    const char *at = strstr(good, word);
    cr_assert_not_null(at, "%s", word);
    const size_t size = strlen(good) + strlen(by) + 1;
    char *text = calloc(1, size);
    cr_assert_not_null(text);
    snprintf(text, size, "%.*s%s%s", (int)(at - good), good, by, at + strlen(word));
    put_file(text);
    free(text);
}

Test(lever_cache, a_verdict_that_is_not_whole_does_not_count) {
    static const char *const words[][2] = {{"\"passed\": true", "\"passed\": 1"},
                                           {"\"passed\": true", "\"passed\": false"},
                                           {"\"speed\": ", "\"speed\": null, \"was\": "},
                                           {"\"precision\": 2", "\"precision\": 7"},
                                           {"\"cells\": ", "\"cells\": -"},
                                           {"\"max_rel\": ", "\"max_rel\": \"x\", \"was\": "},
                                           {"\"cases\": [", "\"cases\": [[],"},
                                           {"\"timings\": [", "\"timings\": [], \"were\": ["},
                                           {"\"lever_seconds\": ", "\"lever\": "},
                                           {"\"failed_inputs\": null", "\"failed_inputs\": \"all\""}};
    keep("a", "key");
    char *good = hs_test_read_file("halfstep/levers.json");
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        spoil(good, words[i][0], words[i][1]);
        cr_expect_not(is_kept("a", "key"), "%s", words[i][1]);
    }
    put_file(good);
    cr_expect(is_kept("a", "key"));
    free(good);
}

Test(lever_cache, nowhere_to_write_keeps_nothing) {
    static const char *const places[] = {"/proc/nowhere", "relative", ""};
    cr_assert_eq(setenv("HOME", "/proc/nowhere", 1), 0);
    for (size_t i = 0; i < 3; i++) {
        cr_assert_eq(setenv("XDG_CACHE_HOME", places[i], 1), 0);
        keep("a", "key");
        cr_expect_not(is_kept("a", "key"), "%s", places[i]);
    }
    cr_assert_eq(unsetenv("XDG_CACHE_HOME"), 0);
    cr_assert_eq(unsetenv("HOME"), 0);
    keep("a", "key");
    cr_expect_not(is_kept("a", "key"));
    char folder[256];
    cr_assert_not_null(getcwd(folder, sizeof folder));
    cr_assert_eq(setenv("HOME", folder, 1), 0);
    keep("a", "key");
    cr_expect(is_kept("a", "key"));
    cr_expect_eq(access(".cache/halfstep/levers.json", R_OK), 0);
}
