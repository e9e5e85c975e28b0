/* Reading the golden values of tests/vectors, and the checksum that some of them are given as. */
#ifndef HS_TESTS_VECTORS_H
#define HS_TESTS_VECTORS_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

/* The parsed file; a test that cannot read it fails. */
json_t *hs_vectors_load(const char *name);

/* A member that must be there. */
json_t *hs_vectors_member(const json_t *object, const char *key);

/* A number, whether the file spells it as an integer or not. */
double hs_vectors_number(const json_t *object, const char *key);

/* An unsigned integer spelt in hexadecimal. */
uint64_t hs_vectors_hex(const json_t *string);

/* An array of f64 spelt as the hexadecimal of their bits. The caller frees it. */
double *hs_vectors_doubles(const json_t *array, size_t *count);

uint64_t hs_test_bits(double value);
double hs_test_double(uint64_t bits);

/* SHA-256 in lower-case hexadecimal. */
void hs_test_sha256(const void *data, size_t bytes, char hex[65]);

#endif
