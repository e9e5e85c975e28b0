/* SplitMix64 (Steele, Lea and Flood, 2014): the one source of random numbers. */
#ifndef HS_PRECISION_RANDOM_H
#define HS_PRECISION_RANDOM_H

#include <stdint.h>

typedef struct hs_random {
    uint64_t state;
} hs_random;

static inline uint64_t hs_random_next(hs_random *random) {
    uint64_t z = random->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Uniform in [0, 1): the upper 53 bits. */
static inline double hs_random_uniform(hs_random *random) { return (double)(hs_random_next(random) >> 11) * 0x1p-53; }

#endif
