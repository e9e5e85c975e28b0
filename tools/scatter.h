/* Weights and tokens that programs in any language make alike (docs/comparing.md). */
#ifndef HS_TOOLS_SCATTER_H
#define HS_TOOLS_SCATTER_H

#include <stdint.h>

/* Element `index` of a stream of numbers that look random. */
static inline uint32_t hs_scatter(uint32_t index, uint32_t stream) {
    const uint32_t factor = 2654435769U; /* 2^32 divided by the golden ratio, made odd */
    uint32_t x = index * factor + stream * 40503U + 1;
    for (int i = 0; i < 3; i++)
        x = (x ^ x >> 16) * factor;
    return x ^ x >> 16;
}

#endif
