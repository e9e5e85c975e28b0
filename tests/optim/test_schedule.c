/* The learning-rate schedules at their ends and corners. */
#include <criterion/criterion.h>
#include <math.h>

#include "optim/schedule.h"

static void expect_close(double got, double want) {
    cr_assert(fabs(got - want) <= 1e-15 * fabs(want), "%.17g, not %.17g", got, want);
}

Test(schedule, constant_warms_up_and_stays) {
    hstep_schedule s = {HSTEP_SCHEDULE_CONSTANT, 0.1, 0, 4, 0};
    cr_assert_null(hs_schedule_refusal(&s));
    cr_assert_eq(hs_schedule_rate(&s, 1), 0.025);
    cr_assert_eq(hs_schedule_rate(&s, 2), 0.05);
    expect_close(hs_schedule_rate(&s, 3), 0.075);
    for (uint64_t step = 4; step < 100; step++)
        cr_assert_eq(hs_schedule_rate(&s, step), 0.1);
    s.warmup_steps = 0;
    cr_assert_eq(hs_schedule_rate(&s, 1), 0.1);
    cr_assert_eq(hs_schedule_rate(&s, UINT64_MAX), 0.1);
}

Test(schedule, cosine_follows_the_formula) {
    hstep_schedule s = {HSTEP_SCHEDULE_COSINE, 3e-4, 3e-5, 10, 110};
    cr_assert_null(hs_schedule_refusal(&s));
    for (uint64_t step = 1; step <= 10; step++)
        expect_close(hs_schedule_rate(&s, step), 3e-4 * (double)step / 10);
    cr_assert_eq(hs_schedule_rate(&s, 10), 3e-4);
    for (uint64_t step = 11; step < 110; step++) {
        long double turn = 3.14159265358979323846L * (long double)(step - 10) / 100;
        long double want = 3e-5L + (3e-4L - 3e-5L) * (1 + cosl(turn)) / 2;
        expect_close(hs_schedule_rate(&s, step), (double)want);
        cr_assert_lt(hs_schedule_rate(&s, step), hs_schedule_rate(&s, step - 1));
    }
    expect_close(hs_schedule_rate(&s, 60), (3e-4 + 3e-5) / 2);
    cr_assert_eq(hs_schedule_rate(&s, 110), 3e-5);
    cr_assert_eq(hs_schedule_rate(&s, 111), 3e-5);
    cr_assert_eq(hs_schedule_rate(&s, UINT64_MAX), 3e-5);
}

Test(schedule, cosine_knows_its_corners) {
    hstep_schedule s = {HSTEP_SCHEDULE_COSINE, 1, 0.25, 0, 1};
    cr_assert_eq(hs_schedule_rate(&s, 1), 0.25);
    s.steps = 2;
    cr_assert_eq(hs_schedule_rate(&s, 1), 0.625);
    cr_assert_eq(hs_schedule_rate(&s, 2), 0.25);
    /* A schedule that is all warm-up reaches the peak at its last step. */
    s.warmup_steps = 2;
    cr_assert_null(hs_schedule_refusal(&s));
    cr_assert_eq(hs_schedule_rate(&s, 1), 0.5);
    cr_assert_eq(hs_schedule_rate(&s, 2), 1);
    cr_assert_eq(hs_schedule_rate(&s, 3), 0.25);
}

Test(schedule, refuses_each_bad_field) {
    const hstep_schedule good = {HSTEP_SCHEDULE_COSINE, 1e-3, 1e-4, 10, 100};
    cr_assert_null(hs_schedule_refusal(&good));
    const double bad_rates[] = {-1e-3, INFINITY, -INFINITY, NAN};
    for (size_t i = 0; i < sizeof bad_rates / sizeof *bad_rates; i++) {
        hstep_schedule s = good;
        s.learning_rate = bad_rates[i];
        cr_assert_not_null(hs_schedule_refusal(&s), "%g", bad_rates[i]);
        s = good, s.min_learning_rate = bad_rates[i];
        cr_assert_not_null(hs_schedule_refusal(&s), "%g", bad_rates[i]);
    }
    hstep_schedule s = good;
    s.min_learning_rate = 2e-3;
    cr_assert_not_null(hs_schedule_refusal(&s), "a minimum above the peak");
    s = good, s.warmup_steps = 101;
    cr_assert_not_null(hs_schedule_refusal(&s), "a warm-up longer than the schedule");
    s = good, s.warmup_steps = 0, s.steps = 0;
    cr_assert_not_null(hs_schedule_refusal(&s), "a cosine of no steps");
    s = good, s.kind = (hstep_schedule_kind)7;
    cr_assert_not_null(hs_schedule_refusal(&s), "an unknown kind");
    s = (hstep_schedule){HSTEP_SCHEDULE_CONSTANT, 0, 0, 500, 0};
    cr_assert_null(hs_schedule_refusal(&s), "a constant schedule has no length");
}

Test(schedule, has_defaults) {
    hstep_schedule s = hstep_schedule_defaults();
    cr_assert_null(hs_schedule_refusal(&s));
    cr_assert(s.kind == HSTEP_SCHEDULE_CONSTANT && s.learning_rate == 1e-3 && s.warmup_steps == 0);
}
