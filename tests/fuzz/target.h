/*
 * What a fuzz target is: a function that must come back from any bytes. libFuzzer, where clang has it, looks for bytes
 * that reach new code; driver.c does what it can elsewhere, with mutations of the target's own examples.
 */
#ifndef HS_TESTS_FUZZ_TARGET_H
#define HS_TESTS_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

/* Reads the bytes as the input of what is fuzzed; a sanitizer, an assertion or a time limit judges. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Good input number `index` to start from, at most `room` bytes; 0 when there is no such number. */
size_t hs_fuzz_example(size_t index, uint8_t *data, size_t room);

#endif
