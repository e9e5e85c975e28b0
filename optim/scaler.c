#include "optim/scaler.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "precision/arithmetic.h"

/* A finite power of two of at least 1 has nothing in its fraction. */
static bool hs_is_scale(double value) {
    return value >= 1 && isfinite(value) && (hs_bits(value) & UINT64_C(0xfffffffffffff)) == 0;
}

const char *hs_scaler_refusal(const hstep_scaler *settings) {
    if (!hs_is_scale(settings->initial))
        return "the loss scale must be a finite power of two of at least 1";
    if (!hs_is_scale(settings->minimum))
        return "the minimum loss scale must be a finite power of two of at least 1";
    if (!hs_is_scale(settings->maximum))
        return "the maximum loss scale must be a finite power of two of at least 1";
    if (settings->minimum > settings->maximum)
        return "the minimum loss scale must not exceed the maximum";
    if (settings->initial < settings->minimum || settings->initial > settings->maximum)
        return "the loss scale must lie between its minimum and its maximum";
    if (settings->growth_interval < 1)
        return "the growth interval must be at least 1";
    return NULL;
}

hs_scaler hs_scaler_init(const hstep_scaler *settings) {
    return (hs_scaler){settings->initial, settings->minimum, settings->maximum, settings->growth_interval, 0};
}

void hs_scaler_on_commit(hs_scaler *scaler) {
    scaler->finite_updates++;
    if (scaler->finite_updates < scaler->growth_interval)
        return;
    scaler->finite_updates = 0;
    /* Compared before it is doubled: twice 2^1023 would be infinite. */
    if (scaler->scale < scaler->maximum)
        scaler->scale *= 2;
}

void hs_scaler_on_skip(hs_scaler *scaler) {
    scaler->finite_updates = 0;
    if (scaler->scale > scaler->minimum)
        scaler->scale /= 2;
}

hstep_scaler hstep_scaler_defaults(hstep_precision precision) {
    if (precision == HSTEP_PRECISION_FP16)
        return (hstep_scaler){65536, 1, 16777216, 2000};
    return (hstep_scaler){1, 1, 1, 2000};
}
