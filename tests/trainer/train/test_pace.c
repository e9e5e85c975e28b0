/* How many threads a run computes on where nobody said: made-up times in, choices out. */
#include <criterion/criterion.h>

#include <halfstep/halfstep.h>

#include "trainer/train/pace.c"

static hs_pace pace;
static hstep_context *context;

static void open_context(void) {
    const hstep_context_options options = {.backend = HSTEP_BACKEND_CPU, .threads = 2, .levers = "exact"};
    cr_assert_eq(hstep_context_create(&options, &context, NULL), HSTEP_OK);
    hs_pace_start(&pace, context, 1e9);
}

static void close_context(void) { hstep_context_destroy(context); }

TestSuite(pace, .init = open_context, .fini = close_context);

/* Updates that take so long on one thread and on all; returns how many were made on all. */
static unsigned run(unsigned updates, double one, double all) {
    unsigned on_all = 0;
    for (unsigned i = 0; i < updates; ++i) {
        on_all += !pace.one_thread;
        hs_pace_note(&pace, pace.one_thread ? one : all);
    }
    return on_all;
}

Test(pace, all_threads_where_they_are_faster) {
    cr_expect_eq(run(7, 0.02, 0.015), 4, "the first, and three of six");
    cr_expect_not(pace.one_thread);
    cr_expect_eq(run(1000, 0.02, 0.015), 1000);
}

Test(pace, one_where_all_gain_nothing) {
    (void)run(7, 0.02, 0.019);
    cr_expect(pace.one_thread);
    cr_expect_eq(run(SHORTEST_PAUSE, 0.02, 0.019), 0);
    cr_expect_eq(run(6, 0.02, 0.019), 3, "it is measured again");
    cr_expect(pace.one_thread);
    cr_expect_eq(run(2 * SHORTEST_PAUSE, 0.02, 0.019), 0, "the pause has doubled");
}

Test(pace, ruinous_threads_get_one_update_at_a_time) {
    cr_expect_eq(run(1000, 0.02, 0.3), 1 + 1 + 4, "the first, the first measured, and after 50, 100, 200 and 400");
    cr_expect(pace.one_thread || pace.measuring);
}

Test(pace, a_machine_that_becomes_busy_is_noticed, .description = "and one that becomes idle") {
    (void)run(20, 0.02, 0.012);
    cr_assert_not(pace.one_thread);
    cr_expect_eq(run(SLOW_IN_A_ROW + 2, 0.02, 0.3), SLOW_IN_A_ROW + 1);
    cr_assert(pace.one_thread);
    (void)run(SHORTEST_PAUSE + 6, 0.02, 0.012);
    cr_expect_not(pace.one_thread);
}

Test(pace, one_slow_update_changes_nothing) {
    (void)run(20, 0.02, 0.012);
    for (int i = 0; i < 100; ++i) {
        (void)run(SLOW_IN_A_ROW - 1, 0.02, 0.5);
        cr_assert_eq(run(1, 0.02, 0.012), 1);
    }
    cr_expect_not(pace.one_thread);
}

Test(pace, large_updates_run_on_all) {
    hs_pace_start(&pace, context, 1e12);
    cr_expect_eq(run(100, 0.01, 1), 100);
}
