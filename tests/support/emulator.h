/*
 * What processors do with pairs of bf16 numbers, in plain C, one step after another: the order of vdpbf16ps, and of AMX
 * tiles (tdpbf16ps) in whole products. Written from the manuals' pseudocode, and independent of the kernels.
 *
 * Every step takes subnormal numbers for zeros of their sign, operands and sums alike, is rounded once, to nearest even
 * (a product is not rounded by itself), and gives a zero of its sign for a subnormal result.
 */
#ifndef HS_TESTS_SUPPORT_EMULATOR_H
#define HS_TESTS_SUPPORT_EMULATOR_H

#include <stddef.h>
#include <stdint.h>

/* sum + a b, a and b being the bits of bf16 numbers. */
float hs_emulate_step(float sum, uint16_t a, uint16_t b);

/* a + b */
float hs_emulate_add(float a, float b);

/* vdpbf16ps: the odd elements' product is added first. */
float hs_emulate_pair(float sum, const uint16_t a[2], const uint16_t b[2]);

/* tdpbf16ps, one sum of it: the even and the odd elements of up to 32 steps make two chains from zero, which are added
 * to each other and then to the sum. */
float hs_emulate_tile(float sum, size_t steps, const uint16_t *a, const uint16_t *b);

/* A sum that goes on over `steps` steps, 32 at a time, of bf16 numbers and of fp16 numbers in two parts: low by low,
 * low by high, high by high, high by low. */
float hs_emulate_tiles_bf16(float sum, size_t steps, const uint16_t *a, const uint16_t *b);
float hs_emulate_tiles_fp16(float sum, size_t steps, const uint16_t *a, const uint16_t *b);

/* The policy's chain of fp16 numbers; and what lavapipe's cooperative matrices make of it: blocks of 8 steps, each a
 * chain from zero that is then added to the sum. Nothing in them is subnormal. */
float hs_emulate_chain_fp16(size_t steps, const uint16_t *a, const uint16_t *b);
float hs_emulate_blocks_fp16(size_t steps, const uint16_t *a, const uint16_t *b);

#endif
