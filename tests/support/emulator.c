#include "support/emulator.h"

#include <math.h>
#include <string.h>

#include "precision/format.h"

enum { TILE_STEPS = 32 };

static float flushed(float x) { return fabsf(x) < 0x1p-126F ? copysignf(0.0F, x) : x; }

/*
 * a + b, rounded to f32 once. In f64 the sum may be inexact: the neighbour that is odd stands for what lies between two
 * f64 numbers (round to odd), so that the step to f32 rounds as from the exact sum. Numbers like that are far above the
 * subnormal ones of f32.
 */
static float rounded_once(double a, double b) {
    const double sum = a + b, larger = fabs(a) > fabs(b) ? a : b, smaller = fabs(a) > fabs(b) ? b : a;
    const double rest = smaller - (sum - larger);
    uint64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    if (isfinite(sum) && rest != 0.0 && bits % 2 == 0)
        bits += (rest > 0.0) == (sum > 0.0) ? 1 : UINT64_MAX;
    double odd;
    memcpy(&odd, &bits, sizeof odd);
    return flushed((float)odd);
}

float hs_emulate_step(float sum, uint16_t a, uint16_t b) {
    return rounded_once((double)flushed(hs_bf16_to_f32(a)) * (double)flushed(hs_bf16_to_f32(b)), (double)flushed(sum));
}

float hs_emulate_add(float a, float b) { return rounded_once((double)flushed(a), (double)flushed(b)); }

float hs_emulate_pair(float sum, const uint16_t a[2], const uint16_t b[2]) {
    return hs_emulate_step(hs_emulate_step(sum, a[1], b[1]), a[0], b[0]);
}

float hs_emulate_tile(float sum, size_t steps, const uint16_t *a, const uint16_t *b) {
    float chains[2] = {0.0F, 0.0F};
    for (size_t k = 0; k < steps; k++)
        chains[k % 2] = hs_emulate_step(chains[k % 2], a[k], b[k]);
    return hs_emulate_add(sum, hs_emulate_add(chains[0], chains[1]));
}

static size_t steps_of_tile(size_t left) { return left < TILE_STEPS ? left : TILE_STEPS; }

float hs_emulate_tiles_bf16(float sum, size_t steps, const uint16_t *a, const uint16_t *b) {
    for (size_t k = 0; k < steps; k += TILE_STEPS)
        sum = hs_emulate_tile(sum, steps_of_tile(steps - k), a + k, b + k);
    return sum;
}

/* The first eight significant bits of an fp16 number, and the rest. */
static void split(uint16_t bits, uint16_t *high, uint16_t *low) {
    const float x = hs_fp16_to_f32(bits);
    int exponent;
    const float fraction = frexpf(x, &exponent);
    const float first = ldexpf(truncf(fraction * 256.0F), exponent - 8);
    *high = hs_bf16_from_f32(first);
    *low = hs_bf16_from_f32(x - first);
}

float hs_emulate_tiles_fp16(float sum, size_t steps, const uint16_t *a, const uint16_t *b) {
    for (size_t k = 0; k < steps; k += TILE_STEPS) {
        const size_t here = steps_of_tile(steps - k);
        uint16_t a_high[TILE_STEPS], a_low[TILE_STEPS], b_high[TILE_STEPS], b_low[TILE_STEPS];
        for (size_t i = 0; i < here; i++) {
            split(a[k + i], &a_high[i], &a_low[i]);
            split(b[k + i], &b_high[i], &b_low[i]);
        }
        sum = hs_emulate_tile(sum, here, a_low, b_low);
        sum = hs_emulate_tile(sum, here, a_low, b_high);
        sum = hs_emulate_tile(sum, here, a_high, b_high);
        sum = hs_emulate_tile(sum, here, a_high, b_low);
    }
    return sum;
}

float hs_emulate_chain_fp16(size_t steps, const uint16_t *a, const uint16_t *b) {
    float sum = 0.0F;
    for (size_t k = 0; k < steps; k++)
        sum += hs_fp16_to_f32(a[k]) * hs_fp16_to_f32(b[k]);
    return sum;
}

float hs_emulate_blocks_fp16(size_t steps, const uint16_t *a, const uint16_t *b) {
    enum { BLOCK_STEPS = 8 };
    float sum = 0.0F;
    for (size_t k = 0; k < steps; k += BLOCK_STEPS)
        sum += hs_emulate_chain_fp16(steps - k < BLOCK_STEPS ? steps - k : BLOCK_STEPS, a + k, b + k);
    return sum;
}
