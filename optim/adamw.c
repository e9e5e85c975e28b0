#include "optim/adamw.h"

#include <math.h>
#include <stddef.h>

const char *hs_adamw_refusal(const hstep_adamw *settings) {
    if (!(settings->beta1 >= 0 && settings->beta1 < 1))
        return "beta1 must be at least 0 and below 1";
    if (!(settings->beta2 >= 0 && settings->beta2 < 1))
        return "beta2 must be at least 0 and below 1";
    if (!(settings->epsilon > 0 && isfinite(settings->epsilon)))
        return "epsilon must be finite and above 0";
    if (!(settings->weight_decay >= 0 && isfinite(settings->weight_decay)))
        return "weight decay must be finite and not negative";
    if (!(settings->grad_clip > 0 && isfinite(settings->grad_clip)))
        return "the gradient clip must be finite and above 0";
    return NULL;
}

hs_adamw_state hs_adamw_init(void) { return (hs_adamw_state){1, 1, 0}; }

hs_adamw_update hs_adamw_prepare(const hstep_adamw *settings, const hs_adamw_state *state, double learning_rate) {
    hs_adamw_state after = {state->power1 * settings->beta1, state->power2 * settings->beta2, state->step + 1};
    return (hs_adamw_update){
        .rate = learning_rate / (1 - after.power1),
        .root = 1 / sqrt(1 - after.power2),
        .decay = learning_rate * settings->weight_decay,
        .after = after,
    };
}

double hs_clip_factor(double norm, double limit, bool *clipped) {
    *clipped = norm > limit;
    return *clipped ? limit / norm : 1;
}

hstep_adamw hstep_adamw_defaults(void) {
    return (hstep_adamw){.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.01, .grad_clip = 1};
}
