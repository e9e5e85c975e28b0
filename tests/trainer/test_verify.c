/* `trainer verify`: the judgement of curves, planted levers in whole runs, and the command. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "cpu/cpu.h"
#include "engine/context.h"
#include "support/choosing.h"
#include "support/program.h"
#include "trainer/verify/conclude.h"
#include "trainer/verify/print.h"

static hs_verify_settings settings;
static hs_verification v;

/* What a test has made, at its end and before it makes the next. */
static void release(void) {
    hs_verification_free(&v);
    hs_verify_settings_free(&settings);
    v = (hs_verification){0};
    settings = (hs_verify_settings){.against = -1};
}

static void leave(void) {
    release();
    hs_test_leave_folder();
}

TestSuite(verify, .init = hs_test_enter_cache, .fini = leave, .timeout = 300);

static void parse(const char *precision, const char *steps) {
    const char *words[] = {"verify", "--precision",  precision, "--steps",   steps, "--threads",
                           "1",      "--layers",     "1",       "--width",   "16",  "--feed-forward",
                           "23",     "--batch-size", "3",       "--context", "17",  "--backend",
                           "cpu",    "--held-out",   "0.01",    "--quiet"};
    char *argv[32];
    release();
    const int argc = sizeof words / sizeof words[0];
    for (int i = 0; i < argc; ++i)
        argv[i] = (char *)(size_t)words[i];
    cr_assert_eq(hs_verify_settings_parse(argc, argv, &settings), 0);
}

/* A context in which a planted lever is active, whatever the gate would say; or none is. */
static hstep_context *plant(hs_planted planted, bool active) {
    hstep_context *context = NULL;
    hs_backend *backend = NULL;
    hstep_error error = {0};
    const hs_lever_request request = {.selection = "exact"};
    cr_assert_eq(hs_cpu_create_tier(hs_planted_tier(planted), 1, &backend, &error), HSTEP_OK);
    cr_assert_eq(hs_context_adopt(backend, NULL, &context, &error), HSTEP_OK);
    cr_assert_eq(hs_levers_choose(backend, &request, &context->levers, &error), HSTEP_OK, "%s", error.message);
    for (size_t i = 0; i < context->levers.count && active; ++i)
        if (!context->levers.levers[i].exact)
            backend->api->lever_set(backend, i, HSTEP_LEVER_ACTIVE, "for a test");
    hs_levers_copy(backend, &context->levers);
    return context;
}

static hs_side *train(hs_planted planted, const char *precision, const char *steps) {
    hs_side *sides = calloc(2, sizeof *sides);
    hstep_error error = {0};
    cr_assert_not_null(sides);
    parse(precision, steps);
    v = (hs_verification){.settings = &settings, .sides = sides, .count = 2};
    cr_assert_eq(hs_run_read_data(&settings.options, &v.data, &error), HSTEP_OK, "%s", error.message);
    for (size_t i = 0; i < 2; ++i) {
        sides[i] = (hs_side){.options = settings.options, .gated = true, .context = plant(planted, i == 1)};
        snprintf(sides[i].name, sizeof sides[i].name, "%s", i == 0 ? "reference" : hs_planted_name(planted));
        cr_assert_eq(hs_side_begin(&sides[i], HSTEP_BYTE_VOCABULARY, &error), HSTEP_OK, "%s", error.message);
    }
    cr_assert_eq(hs_sides_train(&v.data, sides, 2, &error), HSTEP_OK, "%s", error.message);
    return &sides[1];
}

static hs_side *finished(hs_planted planted, const char *precision, const char *steps) {
    hstep_error error = {0};
    hs_side *side = train(planted, precision, steps);
    for (size_t i = 0; i < 2; ++i)
        cr_assert_eq(hs_side_conclude(&v.data, &v.sides[i], &error), HSTEP_OK, "%s", error.message);
    return side;
}

static hs_side *judged(hs_planted planted, const char *precision) {
    hs_side *side = finished(planted, precision, "60");
    hs_side_judge(side, &v.sides[0], settings.within);
    return side;
}

static void expect_reason(const hs_side *side, const char *words) {
    char why[512];
    hs_side_explain(side, settings.within, why, sizeof why);
    cr_expect_not_null(strstr(why, words), "%s: no '%s' in: %s", side->name, words, why);
}

/* ---- Judgement ---- */

Test(verify, the_gap_of_curves_by_hand) {
    const double reference[] = {4, 2, 2, 1}, tested[] = {4, 2, 3, 1};
    hs_curve_gap gap = hs_curve_gap_of(reference, tested, 4, 2);
    cr_expect_eq(gap.step, 4, "means of two: 3 2 1.5 and 3 2.5 2");
    cr_expect_eq(gap.largest, 0.5 / 1.5);
    gap = hs_curve_gap_of(reference, tested, 4, 1);
    cr_expect(gap.step == 3 && gap.largest == 0.5);
    gap = hs_curve_gap_of(reference, tested, 3, 20);
    cr_expect(gap.step == 3 && fabs(gap.largest - 1.0 / 8) < 1e-15, "one window of all steps");
    gap = hs_curve_gap_of(reference, reference, 4, 2);
    cr_expect(gap.step == 2 && gap.largest == 0);
    cr_expect_eq(hs_curve_gap_of(reference, tested, 0, 2).step, 0);
    const double lost[] = {4, NAN, 2, 1};
    cr_expect_eq(hs_curve_gap_of(reference, lost, 4, 2).largest, INFINITY);
    cr_expect_eq(hs_curve_gap_of(lost, lost, 4, 2).largest, INFINITY, "agreement in what is no number is none");
}

Test(verify, the_first_difference_is_one_of_bits) {
    const double a[] = {1, 0.0, 3}, b[] = {1, -0.0, 3};
    cr_expect_eq(hs_first_difference(a, b, 3), 2);
    cr_expect_eq(hs_first_difference(a, b, 1), 0);
    cr_expect_eq(hs_first_difference(a, a, 3), 0);
}

/* ---- Planted levers that no gate has stopped ---- */

Test(verify, the_same_kernels_never_differ) {
    hs_side *side = finished(HS_PLANTED_ABSENT, "bf16", "25");
    side->exact = true;
    hs_side_judge(side, &v.sides[0], 0);
    cr_expect(side->passed && side->first_difference == 0 && side->gap.largest == 0 && side->gap.step == 20);
    cr_expect_eq(side->equal_tokens, HS_VERIFY_TOKENS);
    cr_expect_eq(side->held_out_loss, v.sides[0].held_out_loss);
    cr_expect_lt(side->losses[24], side->losses[0], "and they learn");
}

Test(verify, sums_in_another_order_pass) {
    hs_side *side = judged(HS_PLANTED_REVERSED, "bf16");
    cr_expect(side->passed, "gap %g, first gradient %g", side->gap.largest, side->first_gradient_gap);
    cr_expect_gt(side->first_difference, 0);
    side->exact = true;
    cr_expect_not(hs_side_passes(side, 1), "for an exact lever one bit is too many");
    expect_reason(side, "the reference's bits");
}

Test(verify, a_lost_bit_fails) {
    hs_side *side = judged(HS_PLANTED_LOST_BIT, "bf16");
    cr_expect_not(side->passed);
    cr_expect_eq(side->first_difference, 1);
    expect_reason(side, "first gradient");
    cr_expect_not(judged(HS_PLANTED_TRUNCATED, "bf16")->passed);
}

Test(verify, sums_in_half_precision_fail) {
    hs_side *side = judged(HS_PLANTED_BF16_SUMS, "bf16");
    cr_expect_not(side->passed);
    expect_reason(side, "first gradient");
    side = judged(HS_PLANTED_FP16_SUMS, "fp16");
    cr_expect_not(side->passed, "first gradient %g", side->first_gradient_gap);
    expect_reason(side, "first gradient");
}

Test(verify, a_missing_last_step_fails) {
    cr_expect_not(judged(HS_PLANTED_ODD_LAST_STEP, "f64")->passed);
    hs_side *side = judged(HS_PLANTED_LAST_STEP, "f64");
    cr_expect_not(side->passed);
    cr_expect_gt(side->gap.largest, 0.02, "the curve itself leaves the reference's");
    side->first_gradient_gap = side->first_norm_gap = 0;
    cr_expect_not(hs_side_passes(side, HS_CURVE_LIMIT));
    expect_reason(side, "loss curve");
}

/* ---- What the gate has stopped, and what is remembered ---- */

static hstep_context *choose(hs_planted planted, const char *selection) {
    hs_backend *backend = NULL;
    hstep_context *context = NULL;
    hstep_error error = {0};
    const hs_lever_request request = {.selection = selection, .products = hs_test_depths, .product_count = 2};
    cr_assert_eq(hs_cpu_create_tier(hs_planted_tier(planted), 1, &backend, &error), HSTEP_OK);
    cr_assert_eq(hs_context_adopt(backend, NULL, &context, &error), HSTEP_OK);
    cr_assert_eq(hs_levers_choose(backend, &request, &context->levers, &error), HSTEP_OK, "%s", error.message);
    return context;
}

static int plan(hs_planted planted, const char *precision, bool named) {
    hstep_error error = {0};
    parse(precision, "20");
    if (named) {
        settings.levers = (hs_texts){calloc(1, sizeof(char *)), 1};
        cr_assert_not_null(settings.levers.items);
        settings.levers.items[0] = hs_planted_name(planted);
    }
    v = (hs_verification){.settings = &settings};
    cr_assert_eq(hs_run_read_data(&settings.options, &v.data, &error), HSTEP_OK, "%s", error.message);
    hstep_context *probe = choose(planted, "auto");
    const int status = hs_verification_plan_levers(&v, probe, &settings.options);
    hstep_context_destroy(probe);
    return status;
}

Test(verify, what_the_gate_rejects_is_outside_with_its_figures) {
    cr_assert_eq(plan(HS_PLANTED_LOST_BIT, "bf16", true), 0);
    cr_assert_eq(v.count, 2);
    cr_expect_str_eq(v.sides[1].name, "planted.lost-bit");
    expect_reason(&v.sides[1], "wrong on uniform inputs");
    hstep_error error = {0};
    cr_assert_eq(hs_sides_train(&v.data, v.sides, v.count, &error), HSTEP_OK);
    cr_expect_eq(hs_verification_conclude(&v), 1);
    cr_expect_not(v.sides[1].passed);
    char *kept = hs_test_read_file("halfstep/levers.json");
    cr_expect_null(strstr(kept, "first gradient"), "the gate's word needs no second one");
    free(kept);
}

Test(verify, an_absent_lever_is_status_5) { cr_expect_eq(plan(HS_PLANTED_ABSENT, "bf16", true), 5); }

Test(verify, without_an_active_lever_there_is_only_the_reference) {
    cr_assert_eq(plan(HS_PLANTED_ABSENT, "bf16", false), 0);
    cr_expect_eq(v.count, 1);
}

static hstep_lever_state state_of(hs_planted planted, const char *words) {
    hstep_context *context = choose(planted, "auto");
    const hstep_lever *levers;
    const size_t count = hstep_context_levers(context, &levers);
    hstep_lever_state state = HSTEP_LEVER_ABSENT;
    for (size_t i = 0; i < count; ++i)
        if (strcmp(levers[i].name, hs_planted_name(planted)) == 0) {
            state = levers[i].state;
            cr_expect_not_null(strstr(levers[i].reason, words), "%s", levers[i].reason);
        }
    hstep_context_destroy(context);
    return state;
}

Test(verify, a_failed_lever_is_remembered_until_it_is_cleared) {
    cr_assert_eq(state_of(HS_PLANTED_REVERSED, "as fast as"), HSTEP_LEVER_SLOWER);
    train(HS_PLANTED_REVERSED, "bf16", "20");
    v.sides[1].losses[19] *= 2;
    cr_assert_eq(hs_verification_conclude(&v), 1);
    cr_expect_eq(state_of(HS_PLANTED_REVERSED, "its loss curve is"), HSTEP_LEVER_REJECTED);
    int cleared = 0;
    hstep_error error = {0};
    cr_assert_eq(hstep_context_clear_rejection(v.sides[1].context, "planted.reversed", &cleared, &error), HSTEP_OK);
    cr_expect_eq(cleared, 1);
    cr_expect_eq(state_of(HS_PLANTED_REVERSED, "as fast as"), HSTEP_LEVER_SLOWER, "verdicts of the gate are kept");
    cr_assert_eq(hstep_context_clear_rejection(v.sides[1].context, "planted.reversed", &cleared, &error), HSTEP_OK);
    cr_expect_eq(cleared, 0);
    cr_expect_eq(hstep_context_reject_lever(v.sides[1].context, "cpu.portable", "why", &error), HSTEP_ERROR_ARGUMENT);
    cr_expect_eq(hstep_context_reject_lever(v.sides[1].context, "cpu.nothing", "why", &error), HSTEP_ERROR_ARGUMENT);
    cr_assert_eq(setenv("XDG_CACHE_HOME", "/proc/nowhere", 1), 0);
    cr_expect_eq(hstep_context_reject_lever(v.sides[1].context, "planted.reversed", "why", &error),
                 HSTEP_ERROR_OUTPUT_FILE);
}

/* Whoever asks for less than the policy does gets an answer, and no other run hears of it. */
Test(verify, a_limit_of_ones_own_is_not_remembered) {
    train(HS_PLANTED_REVERSED, "bf16", "40");
    settings.within = 0;
    cr_assert_eq(hs_verification_conclude(&v), 1);
    cr_expect_not(hs_test_exists("halfstep/levers.json"));
}

/* ---- The command ---- */

#define TINY                                                                                                           \
    "verify", "--threads", "1", "--layers", "1", "--width", "16", "--feed-forward", "24", "--batch-size", "2",         \
        "--held-out", "0.01"

static json_t *verify(const char *const *arguments, int status) {
    hs_test_program run = hs_test_run(arguments);
    cr_assert_eq(run.status, status, "%d: %s", run.status, run.err);
    json_t *root = json_loads(run.out, JSON_REJECT_DUPLICATES, NULL);
    cr_assert_not_null(root, "%s", run.out);
    cr_expect_eq(json_is_true(json_object_get(root, "passed")), status == 0);
    hs_test_program_free(&run);
    return root;
}

#define VERIFY(status, ...) verify((const char *const[]){TINY, "--json", __VA_ARGS__, NULL}, status)

Test(verify, a_precision_against_f64) {
    json_t *root = VERIFY(0, "--against", "f64", "--steps", "25", "--quiet", "--precision", "fp16");
    const json_t *reference = json_object_get(root, "reference"),
                 *side = json_array_get(json_object_get(root, "sides"), 0);
    cr_expect_eq(json_array_size(json_object_get(root, "sides")), 1);
    cr_expect_str_eq(json_string_value(json_object_get(reference, "precision")), "f64");
    cr_expect_str_eq(json_string_value(json_object_get(side, "precision")), "fp16-fp32");
    cr_expect_eq(json_integer_value(json_object_get(side, "first_difference")), 1);
    cr_expect_gt(json_real_value(json_object_get(side, "gap")), 0);
    cr_expect_eq(json_array_size(json_object_get(side, "losses")), 25);
    cr_expect_eq(json_array_size(json_object_get(side, "tokens")), 100);
    json_decref(root);
    json_decref(VERIFY(1, "--against", "f64", "--steps", "25", "--quiet", "--within", "0"));
}

/* The exact kernels beside plain loops: not one bit may differ. */
Test(verify, an_exact_lever_beside_the_plain_loops) {
    json_t *root = VERIFY(0, "--lever", "cpu.portable", "--reference", "cpu-reference", "--steps", "4", "--quiet");
    const json_t *side = json_array_get(json_object_get(root, "sides"), 0);
    cr_expect(json_is_null(json_object_get(side, "first_difference")));
    cr_expect_eq(json_integer_value(json_object_get(side, "equal_tokens")), 100);
    cr_expect_str_eq(json_string_value(json_object_get(json_object_get(root, "reference"), "backend")),
                     "cpu-reference");
    json_decref(root);
}

Test(verify, an_active_lever_of_this_machine_passes) {
    json_t *root = VERIFY(0, "--precision", "f64", "--steps", "25", "--quiet");
    const json_t *sides = json_object_get(root, "sides");
    for (size_t i = 0; i < json_array_size(sides); ++i)
        cr_expect(json_is_true(json_object_get(json_array_get(sides, i), "passed")));
    json_decref(root);
}

Test(verify, a_table_and_progress_for_people) {
    hs_test_program run = HS_TEST_RUN(TINY, "--against", "f64", "--steps", "20");
    cr_expect_eq(run.status, 0, "%s", run.err);
    static const char *const words[] = {"bf16-fp32 against f64", "reference", "within ", "of 100", "limit 1%"};
    for (size_t i = 0; i < 5; ++i)
        cr_expect_not_null(strstr(run.out, words[i]), "no '%s' in: %s", words[i], run.out);
    cr_expect_not_null(strstr(run.err, "step 20 of 20"), "%s", run.err);
    hs_test_program_free(&run);
}

Test(verify, mistakes_are_named) {
    static const struct {
        const char *arguments[6];
        int status;
        const char *words;
    } list[] = {{{"verify", "--lever", "cpu.nothing", "--steps", "1"}, 2, "cpu.nothing"},
                {{"verify", "--against", "bf16"}, 2, "--against bf16"},
                {{"verify", "--against", "f64", "--precision", "f64"}, 2, "against itself"},
                {{"verify", "--against", "f64", "--lever", "cpu.avx2"}, 2, "give one of them"},
                {{"verify", "--within", "101%"}, 2, "--within 101%"},
                {{"verify", "--within=x"}, 2, "--within x"},
                {{"verify", "--out", "folder"}, 2, "--out has no place"},
                {{"verify", "--lever"}, 2, "'--lever' needs a value"},
                {{"verify", "--steps", "x"}, 2, "--steps x"},
                {{"verify", "--data", "nowhere"}, 3, "nowhere"},
                {{"verify", "--clear", "cpu.nothing"}, 2, "cpu.nothing"},
                {{"verify", "--clear", "cpu.openblas"}, 0, "was not rejected"},
                {{"verify", "more"}, 2, "unexpected word 'more'"}};
    for (size_t i = 0; i < sizeof list / sizeof list[0]; ++i) {
        hs_test_program run = hs_test_run(list[i].arguments);
        cr_expect_eq(run.status, list[i].status, "%zu: %d: %s", i, run.status, run.err);
        cr_expect_not_null(strstr(run.err, list[i].words), "%zu: %s", i, run.err);
        cr_expect_eq(run.out_size, 0);
        hs_test_program_free(&run);
    }
    hs_test_program run = HS_TEST_RUN("verify", "--help");
    cr_expect_eq(run.status, 0);
    cr_expect_not_null(strstr(run.out, "--within"), "%s", run.out);
    hs_test_program_free(&run);
}
