/*
 * A permutation of 0 .. count - 1 without a list of them, different for every seed and epoch: a Feistel network over
 * the smallest power of two that holds all, walked until the value is one of them. Private to engine/data.
 */
#ifndef HS_ENGINE_DATA_SHUFFLE_H
#define HS_ENGINE_DATA_SHUFFLE_H

#include <stdint.h>

enum { HS_SHUFFLE_ROUNDS = 8 };

typedef struct hs_shuffle {
    uint64_t count;
    unsigned low_bits, high_bits;
    uint64_t keys[HS_SHUFFLE_ROUNDS];
} hs_shuffle;

/* count >= 1 */
hs_shuffle hs_shuffle_make(uint64_t seed, uint64_t epoch, uint64_t count);

/* The window that stands at a place, place < count. */
uint64_t hs_shuffle_at(const hs_shuffle *shuffle, uint64_t place);

/* A number below `limit`, >= 1, for a segment of an epoch. */
uint64_t hs_shuffle_phase(uint64_t seed, uint64_t epoch, uint64_t segment, uint64_t limit);

#endif
