/* The dynamic loss scale (policy, section 5). */
#ifndef HS_OPTIM_SCALER_H
#define HS_OPTIM_SCALER_H

#include <halfstep/optim.h>

/* A whole scaler: settings and state, as a checkpoint stores it. */
typedef struct hs_scaler {
    double scale, minimum, maximum;
    uint64_t growth_interval;
    uint64_t finite_updates; /* committed since the scale last changed or would have */
} hs_scaler;

/* NULL, or what is wrong with the settings. */
const char *hs_scaler_refusal(const hstep_scaler *settings);

/* The settings must have passed hs_scaler_refusal. */
hs_scaler hs_scaler_init(const hstep_scaler *settings);

void hs_scaler_on_commit(hs_scaler *scaler);

void hs_scaler_on_skip(hs_scaler *scaler);

#endif
