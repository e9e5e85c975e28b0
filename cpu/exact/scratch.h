/* Scratch is carved from front to back, every piece aligned to a cache line. */
#ifndef HS_CPU_EXACT_SCRATCH_H
#define HS_CPU_EXACT_SCRATCH_H

#include <stddef.h>

static inline void *hs_carve(unsigned char **scratch, size_t bytes) {
    void *piece = *scratch;
    *scratch += (bytes + 63) / 64 * 64;
    return piece;
}

#endif
