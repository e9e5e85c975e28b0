/* From the paths that were given to the files that are meant. Private to engine/data. */
#ifndef HS_ENGINE_DATA_SOURCES_H
#define HS_ENGINE_DATA_SOURCES_H

#include <stddef.h>

#include <halfstep/types.h>

typedef struct hs_sources {
    char **paths; /* each from malloc */
    size_t count, capacity;
} hs_sources;

/* Adds a file, the files of a folder, or what a pattern matches, in an order that depends on nothing but names. */
hstep_status hs_sources_add(hs_sources *sources, const char *path, hstep_error *error);

void hs_sources_free(hs_sources *sources);

#endif
