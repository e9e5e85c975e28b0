/* Well-formed UTF-8, as JSON wants it. */
#ifndef HS_ENGINE_UTF8_H
#define HS_ENGINE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Length of the well-formed UTF-8 sequence at `bytes` (Unicode, table 3-7), or 0. */
static inline size_t hs_utf8_length(const unsigned char *bytes, size_t size) {
    const unsigned char first = bytes[0];
    if (first < 0x80)
        return 1;
    if (first < 0xc2 || first > 0xf4)
        return 0;
    const size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (length > size)
        return 0;
    const unsigned char lowest = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    const unsigned char highest = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (bytes[1] < lowest || bytes[1] > highest)
        return 0;
    for (size_t i = 2; i < length; i++)
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
    return length;
}

static inline bool hs_is_utf8(const char *text) {
    size_t left = strlen(text);
    while (left > 0) {
        const size_t length = hs_utf8_length((const unsigned char *)text, left);
        if (length == 0)
            return false;
        text += length;
        left -= length;
    }
    return true;
}

#endif
