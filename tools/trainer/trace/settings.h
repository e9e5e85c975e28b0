/* What `trainer trace-forward` was asked for. */
#ifndef HS_TRAINER_TRACE_SETTINGS_H
#define HS_TRAINER_TRACE_SETTINGS_H

#include "trainer/options/options.h"

typedef struct hs_trace_settings {
    hs_options options;  /* sizes, data, and what computes */
    const char *weights; /* "integers", or what a command takes for a checkpoint */
    double loss_scale;   /* 0: the precision's default */
    bool gradients, overwrite;
} hs_trace_settings;

#endif
