/* Options as settings of a record. */
#ifndef HS_TRAINER_SETTINGS_H
#define HS_TRAINER_SETTINGS_H

#include <halfstep/records.h>

#include "trainer/options/options.h"

/* `texts` stands for the value of an option that may be repeated. */
hstep_setting hs_setting_of(const hs_option *option, const hs_options *options, const char *texts);

/* Several texts as one with `between` between them, from malloc; NULL for none. False without memory. */
bool hs_texts_join(const hs_texts *texts, const char *between, char **joined);

#endif
