/* Verdicts that are kept between processes: what comes back, and what does not count. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/levers/cache/cache.h"
#include "engine/levers/cache/machine.h"
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
    {64, 128, 256, HSTEP_NO_TRANSPOSE, HSTEP_TRANSPOSE, 1, NULL, NULL, 0.125, 0.5, 0.001, 0.005, 0.1, 49152, 0, 0},
    {1, 2, 3, HSTEP_TRANSPOSE, HSTEP_NO_TRANSPOSE, 1, NULL, NULL, 0.25, 2, 0.002, 0.005, 0.7, 12, 0, 0}};

/* The geometric mean of the speeds is 2. */
static hstep_gate_timing timings[] = {{64, 128, 256, HSTEP_NO_TRANSPOSE, HSTEP_TRANSPOSE, 2e-3, 1e-3, 2},
                                      {64, 128, 256, HSTEP_NO_TRANSPOSE, HSTEP_NO_TRANSPOSE, 4e-3, 1e-3, 4},
                                      {64, 128, 256, HSTEP_TRANSPOSE, HSTEP_NO_TRANSPOSE, 1e-3, 1e-3, 1},
                                      {1, 2, 3, HSTEP_NO_TRANSPOSE, HSTEP_TRANSPOSE, 2e-3, 1e-3, 2},
                                      {1, 2, 3, HSTEP_NO_TRANSPOSE, HSTEP_NO_TRANSPOSE, 2e-3, 1e-3, 2},
                                      {1, 2, 3, HSTEP_TRANSPOSE, HSTEP_NO_TRANSPOSE, 2e-3, 1e-3, 2}};
enum { TIMINGS = sizeof timings / sizeof timings[0] };

static hs_verdict good_verdict(void) {
    return (hs_verdict){.gate = {.precision = HSTEP_PRECISION_BF16,
                                 .flushes_subnormals = 1,
                                 .speed = 2,
                                 .seconds = 0.75,
                                 .case_count = 2,
                                 .timing_count = TIMINGS,
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
    cr_expect_float_eq(v.gate.speed, 2, 1e-12);
    cr_expect_eq(v.gate.flushes_subnormals, 1);
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
    cr_expect_eq(v.gate.worst.cells, 49164);
    cr_assert_eq(v.gate.timing_count, TIMINGS);
    cr_expect_eq(v.gate.timings[0].exact_seconds, 2e-3);
    cr_expect_eq(v.gate.timings[0].lever_seconds, 1e-3);
    cr_expect_eq(v.gate.timings[0].b_form, HSTEP_TRANSPOSE);
    hs_verdict_free(&v);
}

Test(lever_cache, a_rejection_with_infinite_figures_comes_back) {
    hstep_gate_case wrong = cases[0];
    wrong.passed = 0;
    wrong.failed_inputs = "nonfinite";
    wrong.failed_storage = "pitched 16-bit";
    wrong.max_abs = (double)INFINITY;
    wrong.cells_wrong = 12;
    const hs_verdict verdict = {.gate = {.case_count = 1, .cases = &wrong}};
    hs_cache_write("a", "key", &verdict);
    hs_verdict v;
    cr_assert(hs_cache_read("a", "key", &v));
    cr_expect_eq(v.gate.worst.passed, 0);
    cr_expect_str_eq(v.gate.worst.failed_inputs, "nonfinite");
    cr_expect_str_eq(v.gate.worst.failed_storage, "pitched 16-bit");
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
    cr_assert_eq(chmod("halfstep/levers.json", 0600), 0);
}

Test(lever_cache, a_file_that_is_no_good_holds_nothing_and_is_replaced) {
    static const char *const bad[] = {"",
                                      "{",
                                      "[]",
                                      "null",
                                      "{\"schema\": \"other\", \"verdicts\": []}",
                                      "{\"schema\": \"halfstep.lever-verdicts/2\", \"verdicts\": {}}",
                                      "{\"schema\": \"halfstep.lever-verdicts/2\", \"verdicts\": [1, null, {}]}"};
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

/* Nothing of it may contradict the rest. */
Test(lever_cache, a_verdict_that_is_not_whole_does_not_count) {
    static const char *const words[][2] = {{"\"passed\": true", "\"passed\": 1"},
                                           {"\"passed\": true", "\"passed\": false"},
                                           {"\"speed\": ", "\"speed\": null, \"was\": "},
                                           {"\"speed\": 2.0", "\"speed\": 0.5"},
                                           {"\"speed\": 4.0", "\"speed\": 400.0"},
                                           {"\"speed\": 4.0", "\"speed\": -4.0"},
                                           {"\"precision\": 2", "\"precision\": 7"},
                                           {"\"cells\": ", "\"cells\": -"},
                                           {"\"cells\": 49152", "\"cells\": 40000"},
                                           {"\"cells_beyond\": 0", "\"cells_beyond\": 1"},
                                           {"\"cells_wrong\": 0", "\"cells_wrong\": 1"},
                                           {"\"max_abs\": 0.125", "\"max_abs\": 0.625"},
                                           {"\"max_abs\": 0.125", "\"max_abs\": null"},
                                           {"\"max_abs_limit\": 0.5", "\"max_abs_limit\": null"},
                                           {"\"mean_rel_limit\": 0.005", "\"mean_rel_limit\": 0.05"},
                                           {"\"mean_rel\": 0.001", "\"mean_rel\": 0.02"},
                                           {"\"max_rel\": ", "\"max_rel\": \"x\", \"was\": "},
                                           {"\"m\": 64", "\"m\": 0"},
                                           {"\"a_form\": 0", "\"a_form\": 1"},
                                           {"\"cases\": [", "\"cases\": [[],"},
                                           {"\"cases\": [", "\"cases\": [], \"were\": ["},
                                           {"\"timings\": [", "\"timings\": [], \"were\": ["},
                                           {"\"timings\": [", "\"timings\": [{},"},
                                           {"\"lever_seconds\": ", "\"lever\": "},
                                           {"\"exact_seconds\": ", "\"exact_seconds\": 0, \"was\": "},
                                           {"\"failed_storage\": null", "\"failed_storage\": \"16-bit\""},
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

Test(lever_cache, one_case_twice_does_not_count) {
    hstep_gate_case twice[] = {cases[0], cases[0]};
    hs_verdict verdict = good_verdict();
    verdict.gate.cases = twice;
    hs_cache_write("a", "key", &verdict);
    cr_expect_not(is_kept("a", "key"));
}

/* ---- Places that cannot be trusted ---- */

/* How many files the folder holds. */
static size_t files_in(const char *folder) {
    DIR *stream = opendir(folder);
    cr_assert_not_null(stream);
    size_t count = 0;
    for (const struct dirent *entry; (entry = readdir(stream)) != NULL;)
        count += entry->d_name[0] != '.';
    cr_assert_eq(closedir(stream), 0);
    return count;
}

/* Neither waits, nor fails, nor leaves anything behind. */
Test(lever_cache, what_is_no_file_holds_nothing, .timeout = 20) {
    keep("a", "key");
    cr_expect_eq(files_in("halfstep"), 1, "no temporary file is left");
    cr_assert_eq(unlink("halfstep/levers.json"), 0);
    cr_assert_eq(mkfifo("halfstep/levers.json", 0600), 0);
    cr_expect_not(is_kept("a", "key"), "a pipe");
    keep("a", "key");
    cr_expect(is_kept("a", "key"), "it was replaced");
    cr_assert_eq(unlink("halfstep/levers.json"), 0);
    cr_assert_eq(symlink("/dev/zero", "halfstep/levers.json"), 0);
    cr_expect_not(is_kept("a", "key"), "a device");
    cr_assert_eq(unlink("halfstep/levers.json"), 0);
    cr_assert_eq(mkdir("halfstep/levers.json", 0700), 0);
    keep("a", "key");
    cr_expect_not(is_kept("a", "key"), "a folder");
    cr_expect_eq(files_in("halfstep"), 1, "no temporary file is left");
}

Test(lever_cache, what_others_may_write_is_not_believed) {
    keep("a", "key");
    cr_assert_eq(chmod("halfstep/levers.json", 0666), 0);
    cr_expect_not(is_kept("a", "key"));
    keep("b", "key");
    cr_expect(is_kept("b", "key"), "it was replaced");
    struct stat status;
    cr_assert_eq(stat("halfstep/levers.json", &status), 0);
    cr_expect_eq(status.st_mode & 0777, 0600);
}

Test(lever_cache, a_file_of_any_size_is_left_alone) {
    keep("a", "key");
    cr_assert_eq(truncate("halfstep/levers.json", (off_t)1 << 40), 0);
    cr_expect_not(is_kept("a", "key"));
}

/* The name of the new file is nobody's to guess: whoever takes the one that an older version used gets nothing. */
Test(lever_cache, a_file_in_the_way_is_not_written_through) {
    char name[64];
    cr_assert_eq(mkdir("halfstep", 0700), 0);
    hs_test_write_file("precious", "kept");
    snprintf(name, sizeof name, "halfstep/levers.json.%ld", (long)getpid());
    cr_assert_eq(symlink("../precious", name), 0);
    keep("a", "key");
    cr_expect(is_kept("a", "key"));
    char *text = hs_test_read_file("precious");
    cr_expect_str_eq(text, "kept");
    free(text);
}

/* ---- The processor in the key ---- */

static void describe(const char *listing, char text[HS_MACHINE]) {
    hs_test_write_file("cpuinfo", listing);
    FILE *file = fopen("cpuinfo", "r");
    cr_assert_not_null(file);
    hs_machine_describe(file, text);
    cr_assert_eq(fclose(file), 0);
}

#define LISTING(family, model, stepping, flags)                                                                        \
    "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: " family "\nmodel\t\t: " model                           \
    "\nmodel name\t: Some\nstepping\t: " stepping "\ncpu MHz\t\t: 2000.1\nflags\t\t: " flags "\n\nprocessor\t: 1\n"

Test(lever_cache, another_processor_is_another_machine) {
    char usual[HS_MACHINE], other[HS_MACHINE];
    describe(LISTING("6", "143", "8", "fpu avx2 amx_bf16"), usual);
    cr_expect_not_null(strstr(usual, "vendor_id GenuineIntel cpu family 6 model 143 stepping 8 features "), "%s",
                       usual);
    static const char *const others[] = {LISTING("7", "143", "8", "fpu avx2 amx_bf16"),
                                         LISTING("6", "144", "8", "fpu avx2 amx_bf16"),
                                         LISTING("6", "143", "9", "fpu avx2 amx_bf16"),
                                         LISTING("6", "143", "8", "fpu avx2"),
                                         "processor : 0\n",
                                         ""};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        describe(others[i], other);
        cr_expect_str_neq(other, usual, "%s", others[i]);
    }
    describe("processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\nmodel name\t: Some\n"
             "stepping\t: 8\ncpu MHz\t\t: 3500.7\nflags\t\t: fpu avx2 amx_bf16\n\n",
             other);
    cr_expect_str_eq(other, usual, "its clock changes, it does not");
    hs_machine_describe(NULL, other);
    cr_expect_str_eq(other, "unknown processor");
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
