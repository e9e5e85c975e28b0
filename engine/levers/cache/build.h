#ifndef HS_ENGINE_LEVERS_CACHE_BUILD_H
#define HS_ENGINE_LEVERS_CACHE_BUILD_H

#include <stdbool.h>
#include <stdint.h>

/* A checksum of the file that this code was loaded from: the program, or the shared library. */
bool hs_build_checksum(uint64_t *checksum);

#endif
