/* The names in a folder. */
#ifndef HS_ENGINE_FILES_NAMES_H
#define HS_ENGINE_FILES_NAMES_H

#include <halfstep/types.h>

#include "engine/files/files.h"

typedef struct hs_names {
    char **items;
    size_t count;
} hs_names;

/* All names that `wanted` picks, in no order. A failure leaves *names empty. */
hstep_status hs_names_read(const hs_files *files, const char *folder, bool (*wanted)(void *context, const char *name),
                           void *context, hs_names *names, hstep_error *error);

void hs_names_free(hs_names *names);

#endif
