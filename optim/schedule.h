/* The learning rate as a function of the scheduled step. */
#ifndef HS_OPTIM_SCHEDULE_H
#define HS_OPTIM_SCHEDULE_H

#include <halfstep/optim.h>

/* NULL, or what is wrong with the settings. */
const char *hs_schedule_refusal(const hstep_schedule *schedule);

/* The rate of step 1, 2, ...; the schedule must have passed hs_schedule_refusal. */
double hs_schedule_rate(const hstep_schedule *schedule, uint64_t step);

#endif
