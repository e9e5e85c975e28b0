/* What options describe: decoder, context, and settings of the trainer. */
#ifndef HS_TRAINER_BUILD_H
#define HS_TRAINER_BUILD_H

#include <halfstep/halfstep.h>

#include "trainer/options/options.h"

hstep_decoder_config hs_decoder_of(const hs_options *options, size_t vocabulary);

/* `rows` of a batch that gradients are computed of; 0: there are none to come. */
hstep_status hs_context_of(const hs_options *options, const char *levers, size_t vocabulary, size_t rows,
                           hstep_context **context, hstep_error *error);

hstep_trainer_config hs_trainer_config_of(const hs_options *options);

#endif
