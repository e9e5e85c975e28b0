/* Verdicts that are kept, and what makes them count no more. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "support/choosing.h"
#include "support/program.h"

TestSuite(lever_kept, .init = hs_test_enter_cache, .fini = hs_test_leave_folder, .timeout = 300);

static bool from_cache(unsigned threads, const hs_lever_request *request) {
    hs_test_chosen *c = hs_test_choose_with(HS_PLANTED_TURNED, threads, request);
    cr_assert_eq(c->status, HSTEP_OK, "%s", c->error.message);
    cr_assert_eq(c->lever->state, HSTEP_LEVER_SLOWER, "%s", c->lever->reason);
    cr_assert_gt(c->lever->gate->case_count, 20);
    const bool cached = c->lever->gate->from_cache != 0;
    hs_test_release(c);
    return cached;
}

Test(lever_kept, a_verdict_is_kept_for_the_same_key_alone) {
    const hstep_product_depth other[] = {{HSTEP_PRECISION_F64, 33}, {HSTEP_PRECISION_F64, 48}};
    const hs_lever_request usual = {.selection = "auto", .products = hs_test_depths, .product_count = 2},
                           deeper = {.selection = "auto", .products = other, .product_count = 2},
                           anew = {.selection = "auto",
                                   .products = hs_test_depths,
                                   .product_count = 2,
                                   .judge_anew = true},
                           narrower = {.selection = "-cpu.avx512", .products = hs_test_depths, .product_count = 2};
    cr_expect_not(from_cache(1, &usual));
    cr_expect(from_cache(1, &usual));
    cr_expect_not(from_cache(2, &usual), "other threads, other times");
    cr_expect(from_cache(2, &usual), "one key does not push out another");
    cr_expect(from_cache(1, &usual));
    cr_expect_not(from_cache(1, &anew));
    cr_expect_not(from_cache(1, &deeper), "a depth that was not judged");
    cr_expect(from_cache(1, &deeper));
    cr_expect(from_cache(1, &usual), "and the depths before it still count");
    hs_test_chosen *c = hs_test_choose(HS_PLANTED_ABSENT, "auto");
    const bool has_avx512 = hs_test_find_lever(c, "cpu.avx512")->state == HSTEP_LEVER_ACTIVE;
    hs_test_release(c);
    cr_expect_eq(from_cache(1, &narrower), !has_avx512, "timed against other exact levers");
}

static hs_test_chosen *choose_at(size_t k) {
    const hstep_product_depth depth = {HSTEP_PRECISION_F64, k};
    return hs_test_choose_with(HS_PLANTED_TURNED, 1,
                               &(hs_lever_request){.selection = "auto", .products = &depth, .product_count = 1});
}

static size_t cases_at(const hstep_lever_gate *gate, size_t m, size_t n, size_t k) {
    size_t count = 0;
    for (size_t i = 0; i < gate->case_count; i++)
        count += gate->cases[i].m == m && gate->cases[i].n == n && gate->cases[i].k == k;
    return count;
}

/* 129 is the depth of a shape of one column that is judged always, which says nothing of 64 x 128 x 129. */
Test(lever_kept, a_verdict_is_completed_by_what_it_lacks_and_no_more) {
    hs_test_release(choose_at(48));
    const size_t before = hs_planted_runs();
    hs_test_chosen *c = choose_at(129);
    cr_expect_eq(cases_at(c->lever->gate, 64, 128, 129), 3);
    cr_expect_eq(cases_at(c->lever->gate, 64, 128, 48), 3, "what was measured is kept");
    cr_expect_eq(cases_at(c->lever->gate, 65, 1, 129), 3);
    cr_expect_eq(hs_planted_runs() - before, 6 * 3, "six kinds of inputs in three orientations at one shape");
    cr_expect_not(c->lever->gate->from_cache);
    hs_test_release(c);
    const size_t after = hs_planted_runs();
    c = choose_at(129);
    cr_expect(c->lever->gate->from_cache);
    cr_expect_eq(hs_planted_runs(), after);
    hs_test_release(c);
}

Test(lever_kept, another_thing_behind_a_lever_is_judged_anew) {
    hs_test_release(choose_at(48));
    hs_planted_identify("another kernel");
    hs_test_chosen *c = choose_at(48);
    cr_expect_not(c->lever->gate->from_cache);
    hs_test_release(c);
}

/* What is wrong somewhere is wrong: no other shape is tried, in this process or the next. */
Test(lever_kept, a_rejection_needs_no_other_shapes) {
    hs_test_chosen *c = hs_test_choose(HS_PLANTED_NEIGHBOUR, "auto");
    cr_expect_eq(c->lever->state, HSTEP_LEVER_REJECTED);
    cr_expect_eq(c->lever->gate->case_count, 3);
    hs_test_release(c);
    const hstep_product_depth deep = {HSTEP_PRECISION_F64, 100000};
    const size_t runs = hs_planted_runs();
    c = hs_test_choose_with(HS_PLANTED_NEIGHBOUR, 1,
                            &(hs_lever_request){.selection = "auto", .products = &deep, .product_count = 1});
    cr_expect_eq(c->lever->state, HSTEP_LEVER_REJECTED);
    cr_expect_eq(hs_planted_runs(), runs);
    hs_test_release(c);
}

/* Long runs speak after the gate, and their word holds until it is taken back. */
Test(lever_kept, a_lever_that_long_runs_have_rejected_stays_rejected) {
    hs_test_release(hs_test_choose(HS_PLANTED_REVERSED, "+planted.reversed"));
    char *kept = hs_test_read_file("halfstep/levers.json");
    json_t *root = json_loads(kept, JSON_REJECT_DUPLICATES, NULL);
    const json_t *verdict = json_array_get(json_object_get(root, "verdicts"), 0);
    const char *key = json_string_value(json_object_get(verdict, "key"));
    const char *end = strstr(key, "; 1 threads");
    cr_assert_not_null(end, "%s", key);
    json_t *rejection = json_pack("{s:s, s:s%, s:s}", "lever", "planted.reversed", "machine", key, (size_t)(end - key),
                                  "reason", "its loss curve left the reference's");
    json_array_append_new(json_object_get(root, "rejections"), rejection);
    cr_assert_eq(json_dump_file(root, "halfstep/levers.json", 0), 0);
    json_decref(root);
    free(kept);
    const hs_lever_request anew = {
        .selection = "auto", .products = hs_test_depths, .product_count = 2, .judge_anew = true};
    hs_test_chosen *c = hs_test_choose_with(HS_PLANTED_REVERSED, 1, &anew);
    cr_expect_eq(c->lever->state, HSTEP_LEVER_REJECTED);
    cr_expect_not_null(strstr(c->lever->reason, "loss curve"), "%s", c->lever->reason);
    hs_test_release(c);
    hs_test_release(hs_test_choose(HS_PLANTED_NEIGHBOUR, "auto")); /* writes the file again */
    hs_test_expect_refusal(HS_PLANTED_REVERSED, "+planted.reversed", HSTEP_ERROR_BACKEND_UNAVAILABLE, "loss curve");
}

Test(lever_kept, a_rejection_is_kept_with_its_figures) {
    hs_test_chosen *first = hs_test_choose(HS_PLANTED_NEIGHBOUR, "auto"),
                   *second = hs_test_choose(HS_PLANTED_NEIGHBOUR, "auto");
    cr_assert(!first->lever->gate->from_cache && second->lever->gate->from_cache);
    cr_expect_eq(second->lever->state, HSTEP_LEVER_REJECTED);
    cr_expect_str_eq(first->lever->reason, second->lever->reason);
    cr_expect_eq(first->lever->gate->case_count, second->lever->gate->case_count);
    cr_expect_eq(memcmp(&first->lever->gate->worst, &second->lever->gate->worst, sizeof(hstep_gate_case)), 0);
    hs_test_release(first);
    hs_test_release(second);
}

Test(lever_kept, nowhere_to_keep_a_verdict_is_no_failure) {
    const hs_lever_request usual = {.selection = "auto", .products = hs_test_depths, .product_count = 2};
    cr_assert_eq(setenv("XDG_CACHE_HOME", "/proc/nowhere", 1), 0);
    cr_expect_not(from_cache(1, &usual));
}
