/* --dry-run says before a run what memory it will take, and does nothing else. */
#include <sys/resource.h>
#include <sys/stat.h>

#include <criterion/criterion.h>

#include "support/program.h"

TestSuite(dry_run, .init = hs_test_enter_folder, .fini = hs_test_leave_folder);

/* Large enough that the program itself is a small part of it. */
#define SIZES                                                                                                          \
    "train", "--layers", "3", "--width", "384", "--heads", "6", "--feed-forward", "1024", "--context", "128",          \
        "--batch-size", "8", "--eval-batches", "1", "--sample-tokens", "0", "--threads", "1", "--quiet"

/* Peak memory of the children so far; the largest of them decides. */
static double peak_of_children(void) {
    struct rusage usage;
    cr_assert_eq(getrusage(RUSAGE_CHILDREN, &usage), 0);
    return (double)usage.ru_maxrss * 1024;
}

static double predicted(const char *precision) {
    hs_test_program run = HS_TEST_RUN(SIZES, "--precision", precision, "--dry-run", "--out", "run");
    cr_assert_eq(run.status, 0, "%s", run.err);
    json_t *plan = json_loads(run.out, JSON_REJECT_DUPLICATES, NULL);
    cr_assert_not_null(plan);
    cr_assert_str_eq(json_string_value(json_object_get(plan, "schema")), "halfstep.dry-run/1");
    cr_assert_eq(json_integer_value(json_object_get(plan, "tokens_per_update")), 8 * 128);
    const json_t *memory = json_object_get(plan, "memory_bytes");
    const double state = (double)json_integer_value(json_object_get(memory, "state")),
                 parameters = (double)json_integer_value(json_object_get(plan, "parameters"));
    /* Weight, gradient and two moments in f64. */
    cr_assert_geq(state, 32 * parameters);
    cr_assert_lt(state, 35 * parameters);
    const double peak = (double)json_integer_value(json_object_get(memory, "peak"));
    json_decref(plan);
    hs_test_program_free(&run);
    struct stat status;
    cr_assert_neq(stat("run", &status), 0, "nothing may be written");
    return peak;
}

static void check(const char *precision) {
    const double prediction = predicted(precision);
    cr_assert_lt(peak_of_children(), prediction / 2, "a dry run takes little memory itself");
    hs_test_program run = HS_TEST_RUN(SIZES, "--precision", precision, "--steps", "1", "--records", "-");
    cr_assert_eq(run.status, 0, "%s", run.err);
    hs_test_program_free(&run);
    const double peak = peak_of_children();
#if !defined(__SANITIZE_ADDRESS__)
    cr_assert_gt(peak, 0.9 * prediction, "%.0f bytes, predicted %.0f", peak, prediction);
    cr_assert_lt(peak, 1.1 * prediction, "%.0f bytes, predicted %.0f", peak, prediction);
#else
    cr_assert_gt(peak, prediction / 2);
#endif
}

Test(dry_run, is_near_the_peak_in_bf16, .timeout = 60) { check("bf16"); }
Test(dry_run, is_near_the_peak_in_f64, .timeout = 60) { check("f64"); }

Test(dry_run, refuses_what_a_run_would_refuse) {
    hs_test_program run = HS_TEST_RUN("train", "--dry-run", "--data", "missing");
    cr_assert_eq(run.status, 3, "%s", run.err);
    hs_test_program_free(&run);
    run = HS_TEST_RUN("train", "--dry-run", "--heads", "3", "--width", "64");
    cr_assert_eq(run.status, 2, "%s", run.err);
    hs_test_program_free(&run);
}
