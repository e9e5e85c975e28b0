/* AdamW (policy, section 6): what one update needs besides its tensors. */
#ifndef HS_OPTIM_ADAMW_H
#define HS_OPTIM_ADAMW_H

#include <stdbool.h>

#include <halfstep/optim.h>

/* What committed updates leave behind, apart from the moments. It starts as {1, 1, 0}. */
typedef struct hs_adamw_state {
    double power1, power2; /* beta1 and beta2 to the power of step, as a running product */
    uint64_t step;
} hs_adamw_state;

/* The scalars of the next update, and the state to store once it has committed. */
typedef struct hs_adamw_update {
    double rate;  /* lr / (1 - P1) */
    double root;  /* 1 / sqrt(1 - P2) */
    double decay; /* lr * weight decay */
    hs_adamw_state after;
} hs_adamw_update;

/* NULL, or what is wrong with the settings. */
const char *hs_adamw_refusal(const hstep_adamw *settings);

hs_adamw_state hs_adamw_init(void);

/* The state itself stays as it is: an attempt may still be skipped. */
hs_adamw_update hs_adamw_prepare(const hstep_adamw *settings, const hs_adamw_state *state, double learning_rate);

/* The factor on every unscaled gradient: limit / norm when the global norm exceeds the limit, else 1. */
double hs_clip_factor(double norm, double limit, bool *clipped);

#endif
