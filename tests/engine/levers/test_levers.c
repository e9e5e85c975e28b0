/* Choosing levers: selections, and sets that are pinned. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/choosing.h"
#include "support/program.h"

TestSuite(levers, .init = hs_test_enter_cache, .fini = hs_test_leave_folder, .timeout = 300);

/* ---- Selections ---- */

Test(levers, selections_that_make_no_sense_are_refused) {
    static const char *const wrong[] = {"",           "fast",   "+", "cpu.portable", "+cpu.none",
                                        "auto,exact", "exact,", ",", "+cpu.portabl", "+cpu.portable2"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        hs_test_expect_refusal(HS_PLANTED_REVERSED, wrong[i], HSTEP_ERROR_ARGUMENT,
                               "cpu.avx512, cpu.avx2, cpu.portable");
    hs_test_expect_refusal(HS_PLANTED_REVERSED, "-cpu.portable", HSTEP_ERROR_ARGUMENT, "cannot be left out");
    hs_test_expect_refusal(HS_PLANTED_REVERSED, "+planted.reversed,-planted.reversed", HSTEP_ERROR_ARGUMENT,
                           "named twice");
    cr_expect_eq(hs_planted_looks(), 0, "a selection is read before anything is looked for");
}

Test(levers, a_required_lever_that_cannot_be_had_is_an_error) {
    hs_test_expect_refusal(HS_PLANTED_ABSENT, "+planted.absent", HSTEP_ERROR_BACKEND_UNAVAILABLE, "made to be absent");
    hs_test_expect_refusal(HS_PLANTED_LAST_STEP, "+planted.last-step", HSTEP_ERROR_BACKEND_UNAVAILABLE, "rejected");
}

Test(levers, a_required_lever_runs_though_it_is_slower) {
    hs_test_chosen *c = hs_test_choose(HS_PLANTED_REVERSED, "+planted.reversed");
    cr_assert_eq(c->status, HSTEP_OK, "%s", c->error.message);
    cr_expect_eq(c->lever->state, HSTEP_LEVER_ACTIVE);
    cr_expect_not_null(strstr(c->lever->reason, "required"), "%s", c->lever->reason);
    cr_expect_not(hstep_levers_exact(c->table.levers, c->table.count, HSTEP_PRECISION_BF16));
    cr_expect(hstep_levers_exact(c->table.levers, c->table.count, HSTEP_PRECISION_F64));
    hs_test_release(c);
}

Test(levers, exact_looks_for_nothing_and_writes_nothing) {
    static const char *const selections[] = {NULL, "exact", "none", "-planted.reversed"};
    for (size_t i = 0; i < 4; i++) {
        hs_test_chosen *c = hs_test_choose(HS_PLANTED_REVERSED, selections[i]);
        cr_assert_eq(c->status, HSTEP_OK, "%s", c->error.message);
        cr_expect_eq(c->lever->state, HSTEP_LEVER_DISABLED);
        cr_expect_null(c->lever->gate);
        hs_test_release(c);
    }
    hs_test_chosen *c = hs_test_choose(HS_PLANTED_REVERSED, "none");
    cr_expect_eq(hs_test_find_lever(c, "cpu.portable")->state, HSTEP_LEVER_ACTIVE);
    hs_test_release(c);
    cr_expect_eq(hs_planted_looks(), 0);
    cr_expect_neq(access("halfstep", F_OK), 0);
}

Test(levers, a_lever_for_another_precision_is_left_alone) {
    const hs_lever_request request = {
        .selection = "auto", .products = hs_test_depths + 1, .product_count = 1}; /* f64 */
    hs_test_chosen *c = hs_test_choose_with(HS_PLANTED_REVERSED, 1, &request);
    cr_expect_eq(c->lever->state, HSTEP_LEVER_DISABLED);
    cr_expect_not_null(strstr(c->lever->reason, "bf16-fp32"), "%s", c->lever->reason);
    hs_test_release(c);
}

Test(levers, without_avx512_avx2_works) {
    hs_test_chosen *c = hs_test_choose(HS_PLANTED_ABSENT, "-cpu.avx512");
    cr_assert_eq(c->status, HSTEP_OK);
    cr_expect_neq(hs_test_find_lever(c, "cpu.avx512")->state, HSTEP_LEVER_ACTIVE);
    cr_expect_eq(c->lever->state, HSTEP_LEVER_ABSENT);
    cr_expect(hs_test_find_lever(c, "cpu.avx2")->state == HSTEP_LEVER_ACTIVE ||
              hs_test_find_lever(c, "cpu.avx2")->state == HSTEP_LEVER_ABSENT ||
              hs_test_find_lever(c, "cpu.avx2")->state == HSTEP_LEVER_NOT_BUILT);
    hs_test_release(c);
}

/* ---- Pinned sets ---- */

/* The text of the set that a selection led to, which the caller frees. */
static char *pin_of(hs_planted planted, const char *selection) {
    hs_test_chosen *c = hs_test_choose(planted, selection);
    cr_assert_eq(c->status, HSTEP_OK, "%s: %s", selection, c->error.message);
    cr_assert_not_null(c->table.pin);
    char *text = strdup(c->table.pin);
    hs_test_release(c);
    return text;
}

Test(levers, a_pinned_set_is_chosen_again) {
    static const char *const selections[] = {"exact", "none", "-cpu.avx512", "+planted.reversed",
                                             "+planted.reversed,-cpu.compact"};
    for (size_t i = 0; i < sizeof selections / sizeof selections[0]; i++) {
        char *text = pin_of(HS_PLANTED_REVERSED, selections[i]);
        hs_test_chosen *first = hs_test_choose(HS_PLANTED_REVERSED, selections[i]),
                       *again = hs_test_choose(HS_PLANTED_REVERSED, text);
        cr_assert_eq(again->status, HSTEP_OK, "%s: %s", text, again->error.message);
        for (size_t j = 0; j < first->table.count; j++)
            cr_expect_eq(first->table.levers[j].state == HSTEP_LEVER_ACTIVE,
                         again->table.levers[j].state == HSTEP_LEVER_ACTIVE, "%s: %s", text,
                         first->table.levers[j].name);
        char *same = pin_of(HS_PLANTED_REVERSED, text);
        cr_expect_str_eq(same, text);
        free(same);
        free(text);
        hs_test_release(first);
        hs_test_release(again);
    }
}

Test(levers, a_pinned_set_that_cannot_be_had_says_why) {
    char *text = pin_of(HS_PLANTED_REVERSED, "+planted.reversed");
    hs_test_expect_refusal(HS_PLANTED_NEIGHBOUR, text, HSTEP_ERROR_BACKEND_UNAVAILABLE, "planted.reversed");
    hs_planted_identify("another kernel");
    hs_test_expect_refusal(HS_PLANTED_REVERSED, text, HSTEP_ERROR_BACKEND_UNAVAILABLE,
                           "It was \"a kernel made for tests\" and is \"another kernel\"");
    free(text);
}

static void expect_refused_pin(const char *active, hs_planted planted, hstep_status status, const char *word) {
    char text[256];
    snprintf(text, sizeof text, "{\"schema\":\"halfstep.lever-set/1\",\"backend\":\"cpu\",\"levers\":[%s]}", active);
    hs_test_expect_refusal(planted, text, status, word);
}

#define PINNED(name) "{\"name\":\"" name "\",\"identity\":\"a kernel made for tests\"}"

Test(levers, a_pinned_set_of_another_kind_is_refused) {
    const hstep_status damaged = HSTEP_ERROR_ARGUMENT, unavailable = HSTEP_ERROR_BACKEND_UNAVAILABLE;
    expect_refused_pin(PINNED("planted.absent"), HS_PLANTED_ABSENT, unavailable, "made to be absent");
    expect_refused_pin(PINNED("planted.last-step"), HS_PLANTED_LAST_STEP, unavailable, "rejected");
    expect_refused_pin("{\"name\":\"cpu.portable\",\"identity\":\"x\"}", HS_PLANTED_ABSENT, damaged, "damaged");
    expect_refused_pin("{\"name\":\"planted.reversed\"}", HS_PLANTED_REVERSED, damaged, "damaged");
    expect_refused_pin("{\"nam\":\"cpu.portable\"}", HS_PLANTED_REVERSED, damaged, "damaged");
    static const char *const wrong[] = {"{", "{}", "{\"schema\":\"halfstep.lever-set/1\",\"backend\":\"cpu\"}",
                                        "{\"schema\":\"halfstep.lever-set/9\",\"backend\":\"cpu\",\"levers\":[]}"};
    for (size_t i = 0; i < 4; i++)
        hs_test_expect_refusal(HS_PLANTED_REVERSED, wrong[i], damaged, "damaged");
    hs_test_expect_refusal(HS_PLANTED_REVERSED,
                           "{\"schema\":\"halfstep.lever-set/1\",\"backend\":\"vulkan\",\"levers\":[]}", unavailable,
                           "vulkan");
}
