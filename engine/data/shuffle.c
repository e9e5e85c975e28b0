#include "engine/data/shuffle.h"

#include <halfstep/data.h>

#include "precision/random.h"

uint64_t hstep_random_at(uint64_t seed, uint64_t stream, uint64_t index) {
    hs_random random = {seed};
    random.state = hs_random_next(&random) ^ stream;
    random.state = hs_random_next(&random) ^ index;
    return hs_random_next(&random);
}

hs_shuffle hs_shuffle_make(uint64_t seed, uint64_t epoch, uint64_t count) {
    hs_shuffle shuffle = {.count = count};
    unsigned bits = 0;
    while (bits < 64 && (count - 1) >> bits != 0)
        ++bits;
    shuffle.low_bits = bits / 2;
    shuffle.high_bits = bits - shuffle.low_bits;
    for (uint64_t round = 0; round < HS_SHUFFLE_ROUNDS; ++round)
        shuffle.keys[round] = hstep_random_at(seed, epoch, round);
    return shuffle;
}

static uint64_t mix(uint64_t key, uint64_t half, unsigned bits) {
    hs_random random = {key ^ half};
    return hs_random_next(&random) & ((UINT64_C(1) << bits) - 1);
}

/* Each round can be undone, so that no two values become one. */
static uint64_t permute(const hs_shuffle *shuffle, uint64_t value) {
    uint64_t high = value >> shuffle->low_bits, low = value & ((UINT64_C(1) << shuffle->low_bits) - 1);
    for (unsigned round = 0; round < HS_SHUFFLE_ROUNDS; round += 2) {
        high ^= mix(shuffle->keys[round], low, shuffle->high_bits);
        low ^= mix(shuffle->keys[round + 1], high, shuffle->low_bits);
    }
    return high << shuffle->low_bits | low;
}

uint64_t hs_shuffle_at(const hs_shuffle *shuffle, uint64_t place) {
    uint64_t value = permute(shuffle, place);
    while (value >= shuffle->count)
        value = permute(shuffle, value);
    return value;
}

uint64_t hs_shuffle_phase(uint64_t seed, uint64_t epoch, uint64_t segment, uint64_t limit) {
    return hstep_random_at(seed, epoch, HS_SHUFFLE_ROUNDS + segment) % limit;
}
