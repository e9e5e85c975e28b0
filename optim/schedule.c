#include "optim/schedule.h"

#include <math.h>
#include <stddef.h>

#include "precision/arithmetic.h"

const char *hs_schedule_refusal(const hstep_schedule *schedule) {
    if (schedule->kind != HSTEP_SCHEDULE_CONSTANT && schedule->kind != HSTEP_SCHEDULE_COSINE)
        return "the schedule must be constant or cosine";
    if (!isfinite(schedule->learning_rate) || schedule->learning_rate < 0)
        return "the learning rate must be finite and not negative";
    if (!(schedule->min_learning_rate >= 0 && schedule->min_learning_rate <= schedule->learning_rate))
        return "the minimum learning rate must lie between 0 and the learning rate";
    if (schedule->kind == HSTEP_SCHEDULE_COSINE && schedule->steps < 1)
        return "a cosine schedule needs at least 1 step";
    if (schedule->kind == HSTEP_SCHEDULE_COSINE && schedule->warmup_steps > schedule->steps)
        return "the warm-up must not be longer than the cosine schedule";
    return NULL;
}

double hs_schedule_rate(const hstep_schedule *schedule, uint64_t step) {
    double peak = schedule->learning_rate;
    double floor = schedule->min_learning_rate;
    uint64_t warmup = schedule->warmup_steps;
    if (step <= warmup && warmup > 0)
        return peak * ((double)step / (double)warmup);
    if (schedule->kind == HSTEP_SCHEDULE_CONSTANT)
        return peak;
    if (step >= schedule->steps)
        return floor;
    const double pi = 3.141592653589793;
    double progress = (double)(step - warmup) / (double)(schedule->steps - warmup);
    return floor + (peak - floor) * (0.5 * (1 + hs_cos(pi * progress)));
}

hstep_schedule hstep_schedule_defaults(void) {
    return (hstep_schedule){.kind = HSTEP_SCHEDULE_CONSTANT, .learning_rate = 1e-3};
}
