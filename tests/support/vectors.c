#include "support/vectors.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *hs_vectors_load(const char *name) {
    char path[1024];
    json_error_t error;
    snprintf(path, sizeof path, "%s/%s", HS_TEST_VECTORS, name);
    json_t *root = json_load_file(path, 0, &error);
    cr_assert(root != NULL, "%s:%d: %s", path, error.line, error.text);
    return root;
}

json_t *hs_vectors_member(const json_t *object, const char *key) {
    json_t *member = json_object_get(object, key);
    cr_assert(member != NULL, "no member %s", key);
    return member;
}

double hs_vectors_number(const json_t *object, const char *key) {
    json_t *member = hs_vectors_member(object, key);
    cr_assert(json_is_number(member), "%s is no number", key);
    return json_number_value(member);
}

uint64_t hs_vectors_hex(const json_t *string) {
    uint64_t value;
    cr_assert(json_is_string(string) && sscanf(json_string_value(string), "%" SCNx64, &value) == 1);
    return value;
}

double *hs_vectors_doubles(const json_t *array, size_t *count) {
    *count = json_array_size(array);
    double *values = malloc((*count + 1) * sizeof *values);
    cr_assert(values != NULL);
    for (size_t i = 0; i < *count; i++)
        values[i] = hs_test_double(hs_vectors_hex(json_array_get(array, i)));
    return values;
}

uint64_t hs_test_bits(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

double hs_test_double(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t rotate(uint32_t x, int by) { return x >> by | x << (32 - by); }

/* The first 32 bits of the fraction of a root of a small prime: square roots start the hash, cube roots its rounds. */
static uint32_t root_bits(unsigned index, bool cube) {
    unsigned prime = 2;
    for (unsigned found = 0;; prime++) {
        bool composite = false;
        for (unsigned d = 2; d * d <= prime; d++)
            composite = composite || prime % d == 0;
        if (!composite && found++ == index)
            break;
    }
    long double root = cube ? cbrtl((long double)prime) : sqrtl((long double)prime);
    return (uint32_t)((root - floorl(root)) * 4294967296.0L);
}

static void sha256_block(uint32_t hash[8], const uint32_t constants[64], const unsigned char *block) {
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 |
               block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t a = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t b = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + a + w[i - 7] + b;
    }
    memcpy(v, hash, sizeof v);
    for (int i = 0; i < 64; i++) {
        uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
        uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        uint32_t one = v[7] + (rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25)) + choice + constants[i] + w[i];
        uint32_t two = (rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22)) + majority;
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += one;
        v[0] = one + two;
    }
    for (int i = 0; i < 8; i++)
        hash[i] += v[i];
}

void hs_test_sha256(const void *data, size_t bytes, char hex[65]) {
    uint32_t hash[8], constants[64];
    for (unsigned i = 0; i < 64; i++)
        constants[i] = root_bits(i, true);
    for (unsigned i = 0; i < 8; i++)
        hash[i] = root_bits(i, false);
    size_t whole = bytes / 64 * 64, rest = bytes - whole;
    for (size_t i = 0; i < whole; i += 64)
        sha256_block(hash, constants, (const unsigned char *)data + i);
    unsigned char last[128] = {0};
    if (rest > 0)
        memcpy(last, (const unsigned char *)data + whole, rest);
    last[rest] = 0x80;
    size_t padded = rest < 56 ? 64 : 128;
    for (size_t i = 0; i < 8; i++)
        last[padded - 1 - i] = (unsigned char)((uint64_t)bytes * 8 >> 8 * i);
    for (size_t i = 0; i < padded; i += 64)
        sha256_block(hash, constants, last + i);
    for (int i = 0; i < 8; i++)
        snprintf(hex + (ptrdiff_t)8 * i, 9, "%08" PRIx32, hash[i]);
}
