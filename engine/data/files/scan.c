/* The pass over all tokens before training, and the copies out of a file during it. */
#include <string.h>

#include "engine/data/files/file.h"
#include "engine/error.h"

/* Bytes that stay in a processor's cache while they are looked at several times. */
enum { CHUNK = 1 << 17 };

/* Pages are given back after so many tokens. */
enum { RELEASED = 1 << 22 };

/* Loops that compilers vectorise. */
static uint32_t largest_byte(const uint8_t *tokens, size_t count) {
    uint8_t largest = 0;
    for (size_t i = 0; i < count; ++i)
        largest = tokens[i] > largest ? tokens[i] : largest;
    return largest;
}

static uint32_t largest_16(const uint16_t *tokens, size_t count) {
    uint16_t largest = 0;
    for (size_t i = 0; i < count; ++i)
        largest = tokens[i] > largest ? tokens[i] : largest;
    return largest;
}

static uint32_t largest_32(const uint32_t *tokens, size_t count) {
    uint32_t largest = 0;
    for (size_t i = 0; i < count; ++i)
        largest = tokens[i] > largest ? tokens[i] : largest;
    return largest;
}

/* The place of a token; those of two and four bytes are aligned, since mappings, blocks and headers are. */
static const void *place_of(const hs_file *file, size_t token) {
    return file->bytes + file->start + token * hs_token_width(file->known.type);
}

static uint32_t largest_of(const hs_file *file, size_t first, size_t count) {
    const void *tokens = place_of(file, first);
    switch (file->known.type) {
    case HSTEP_TOKENS_UINT16:
        return largest_16(tokens, count);
    case HSTEP_TOKENS_UINT32:
        return largest_32(tokens, count);
    case HSTEP_TOKENS_AUTO:
    case HSTEP_TOKENS_BYTES:
        break;
    }
    return largest_byte(tokens, count);
}

static hstep_status fail_token(const hs_file *file, size_t first, size_t limit, hstep_error *error) {
    size_t i = first;
    uint32_t token;
    while ((token = largest_of(file, i, 1)) < limit)
        ++i;
    const size_t offset = file->start + i * hs_token_width(file->known.type);
    return hs_fail_file(error, file->known.name,
                        "token %u at byte offset %zu is outside the vocabulary of %zu: give that of its tokenizer, or "
                        "the right token type",
                        token, offset, limit);
}

hstep_status hs_file_scan(hs_file *file, size_t limit, XXH3_state_t *all, hstep_error *error) {
    XXH3_state_t *own = XXH3_createState();
    if (own == NULL)
        return hs_fail_memory(error, "a checksum");
    (void)XXH3_64bits_reset(own);
    hs_file_expect_order(file, true);
    hstep_status status = HSTEP_OK;
    const size_t width = hs_token_width(file->known.type), step = CHUNK / width;
    for (size_t first = 0; first < file->known.tokens && status == HSTEP_OK; first += step) {
        const size_t left = file->known.tokens - first, count = left < step ? left : step;
        const uint32_t largest = largest_of(file, first, count);
        file->known.largest = largest > file->known.largest ? largest : file->known.largest;
        if (largest >= limit)
            status = fail_token(file, first, limit, error);
        (void)XXH3_64bits_update(own, place_of(file, first), count * width);
        (void)XXH3_64bits_update(all, place_of(file, first), count * width);
        if (first / RELEASED != (first + count) / RELEASED || count == left)
            hs_file_release(file, first / RELEASED * RELEASED, first % RELEASED + count);
    }
    file->known.checksum = XXH3_64bits_digest(own);
    (void)XXH3_freeState(own);
    hs_file_expect_order(file, false);
    return status;
}

static void widen_16(const uint16_t *from, size_t count, int32_t *tokens) {
    for (size_t i = 0; i < count; ++i)
        tokens[i] = from[i];
}

static void widen_bytes(const uint8_t *from, size_t count, int32_t *tokens) {
    for (size_t i = 0; i < count; ++i)
        tokens[i] = from[i] + HSTEP_TOKEN_FIRST_BYTE;
}

void hs_file_read(const hs_file *file, size_t first, size_t count, int32_t *tokens) {
    switch (file->known.type) {
    case HSTEP_TOKENS_UINT32: /* below 2^31, as the scan made sure */
        memcpy(tokens, place_of(file, first), count * sizeof *tokens);
        break;
    case HSTEP_TOKENS_UINT16:
        widen_16(place_of(file, first), count, tokens);
        break;
    case HSTEP_TOKENS_AUTO:
    case HSTEP_TOKENS_BYTES:
        widen_bytes(place_of(file, first), count, tokens);
        break;
    }
}
