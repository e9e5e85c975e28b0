/* Whether the thread that calls computes as the policy needs it. */
#ifndef HS_PRECISION_ENVIRONMENT_H
#define HS_PRECISION_ENVIRONMENT_H

/* NULL, or what is wrong: rounding that is not to nearest, or subnormals that are flushed to zero. */
const char *hs_environment_refusal(void);

#endif
