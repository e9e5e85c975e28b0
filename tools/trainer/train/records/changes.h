/* What a run that goes on is configured with now, and was not before. */
#ifndef HS_TRAINER_CHANGES_H
#define HS_TRAINER_CHANGES_H

#include <halfstep/records.h>

#include "trainer/options/options.h"

typedef struct hs_changes {
    hstep_setting_change items[HS_OPTIONS_MAX];
    size_t count;
    hs_options *before;               /* owns texts of the items, ... */
    char *joined[2 * HS_OPTIONS_MAX]; /* ... and so do these */
    size_t joined_count;
} hs_changes;

/* Of options that were resumed; what it fills is theirs in part. False without memory, and then there is none. */
bool hs_changes_find(const hs_options *options, hs_changes *changes);

void hs_changes_free(hs_changes *changes);

#endif
