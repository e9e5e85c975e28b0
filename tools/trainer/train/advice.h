/* What can be done about gradients that overflow. */
#ifndef HS_TRAINER_ADVICE_H
#define HS_TRAINER_ADVICE_H

#include <stddef.h>

#include "trainer/options/options.h"

/* Names the options that can still help a run whose gradients overflow at `loss_scale`. */
void hs_advise_on_overflow(const hs_options *options, double loss_scale, char *text, size_t size);

#endif
