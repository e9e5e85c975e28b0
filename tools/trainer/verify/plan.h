/* Which trainings a verification takes. */
#ifndef HS_TRAINER_VERIFY_PLAN_H
#define HS_TRAINER_VERIFY_PLAN_H

#include "trainer/verify/settings.h"
#include "trainer/verify/side.h"

typedef struct hs_verification {
    const hs_verify_settings *settings;
    hs_run data;    /* data and windows alone */
    hs_side *sides; /* the reference first */
    size_t count;
} hs_verification;

/*
 * Makes all sides, each ready to train, but for levers that the gate or an earlier run rejected: those have their
 * reason. A backend that was left open is written into the settings. Returns HS_EXIT_DONE or reports;
 * hs_verification_free in either case.
 */
int hs_verification_plan(hs_verify_settings *settings, hs_verification *verification);

/* The part of it that looks at levers, for data that are read: `probe` is a context of all that this machine finds. */
int hs_verification_plan_levers(hs_verification *verification, hstep_context *probe, hs_options *options);

void hs_verification_free(hs_verification *verification);

#endif
