/* What a file's bytes are: text, a shard with the header of llm.c, or raw tokens. */
#include <string.h>

#include "engine/data/files/file.h"
#include "engine/error.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "shards are little-endian, and are read where they lie");

/* 256 numbers of 32 bits: magic, version, number of tokens, and nothing more. */
enum { HEADER_BYTES = 256 * 4 };

typedef struct header_kind {
    uint32_t magic, version;
    hstep_token_type type;
    size_t vocabulary;
} header_kind;

static const header_kind KINDS[] = {{20240520, 1, HSTEP_TOKENS_UINT16, 50257},   /* GPT-2's tokens */
                                    {20240801, 7, HSTEP_TOKENS_UINT32, 128256}}; /* Llama 3's */

size_t hs_token_width(hstep_token_type type) {
    return type == HSTEP_TOKENS_UINT32 ? 4 : type == HSTEP_TOKENS_UINT16 ? 2 : 1;
}

const char *hstep_token_type_name(hstep_token_type type) {
    static const char *const names[] = {"auto", "bytes", "uint16", "uint32"};
    return (unsigned)type < sizeof names / sizeof names[0] ? names[type] : "unknown";
}

static uint32_t number_at(const hs_file *file, size_t index) {
    uint32_t number;
    memcpy(&number, file->bytes + 4 * index, sizeof number);
    return number;
}

static const header_kind *find_kind(const hs_file *file) {
    for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0] && file->size >= 4; ++i)
        if (number_at(file, 0) == KINDS[i].magic)
            return &KINDS[i];
    return NULL;
}

static hstep_status accept(hs_file *file, const char *format, hstep_token_type type, size_t start, size_t tokens) {
    file->known.format = format;
    file->known.type = type;
    file->known.tokens = tokens;
    file->start = start;
    return HSTEP_OK;
}

static hstep_status recognize_shard(hs_file *file, const header_kind *kind, hstep_error *error) {
    const char *name = file->known.name;
    if (file->size < HEADER_BYTES)
        return hs_fail_file(error, name,
                            "truncated at byte offset %zu: the header of a shard of llm.c has %d bytes; make it anew",
                            file->size, HEADER_BYTES);
    if (number_at(file, 1) != kind->version)
        return hs_fail_file(error, name,
                            "version %u at byte offset 4, but shards of magic %u are of version %u: make it anew",
                            number_at(file, 1), kind->magic, kind->version);
    const uint32_t tokens = number_at(file, 2);
    if (tokens == 0 || tokens > INT32_MAX)
        return hs_fail_file(error, name, "%s tokens, says the header at byte offset 8: make it anew",
                            tokens == 0 ? "no" : "more than 2^31 - 1");
    const size_t width = hs_token_width(kind->type), end = HEADER_BYTES + (size_t)tokens * width;
    if (file->size < end)
        return hs_fail_file(error, name,
                            "truncated at byte offset %zu: the header says %u tokens, which end at %zu; make it anew",
                            file->size, tokens, end);
    if (file->size > end)
        return hs_fail_file(error, name,
                            "%zu bytes too many: the header says %u tokens, which end at byte offset %zu; make it anew",
                            file->size - end, tokens, end);
    file->vocabulary = kind->vocabulary;
    return accept(file, "llm.c", kind->type, HEADER_BYTES, tokens);
}

static hstep_status recognize_raw(hs_file *file, hstep_token_type type, hstep_error *error) {
    const size_t width = hs_token_width(type), rest = file->size % width;
    if (rest != 0)
        return hs_fail_file(error, file->known.name,
                            "truncated: of the last token, at byte offset %zu, there %s %zu of %zu bytes; see whether "
                            "its tokens are %s",
                            file->size - rest, rest == 1 ? "is" : "are", rest, width, hstep_token_type_name(type));
    return accept(file, "raw", type, 0, file->size / width);
}

static bool is_named_bin(const char *name) {
    const size_t length = strlen(name);
    return length >= 4 && strcmp(name + length - 4, ".bin") == 0;
}

hstep_status hs_file_recognize(hs_file *file, hstep_token_type wanted, hstep_error *error) {
    const char *name = file->known.name;
    if (file->size == 0)
        return hs_fail_file(error, name, "it is empty, at byte offset 0 there is nothing: give a file with tokens");
    const header_kind *kind = wanted == HSTEP_TOKENS_BYTES ? NULL : find_kind(file);
    if (kind != NULL && wanted != HSTEP_TOKENS_AUTO && wanted != kind->type)
        return hs_fail_file(error, name, "its header, magic %u at byte offset 0, says %s tokens, not %s", kind->magic,
                            hstep_token_type_name(kind->type), hstep_token_type_name(wanted));
    if (kind != NULL)
        return recognize_shard(file, kind, error);
    if (wanted == HSTEP_TOKENS_UINT16 || wanted == HSTEP_TOKENS_UINT32)
        return recognize_raw(file, wanted, error);
    if (wanted == HSTEP_TOKENS_AUTO && is_named_bin(name))
        return hs_fail_file(error, name,
                            "no magic of llm.c at byte offset 0: if it holds raw tokens, as nanoGPT's do, name their "
                            "token type, uint16 or uint32; bytes takes it for text");
    return accept(file, "text", HSTEP_TOKENS_BYTES, 0, file->size);
}
