#include "support/shards.h"

#include <stdlib.h>
#include <string.h>

#include "support/folder.h"

static void put_32(unsigned char *place, uint32_t number) {
    for (int i = 0; i < 4; ++i)
        place[i] = (unsigned char)(number >> 8 * i);
}

size_t hs_test_make_shard(const uint16_t *tokens, size_t count, unsigned char *shard) {
    const size_t size = 1024 + 2 * count;
    if (shard == NULL)
        return size;
    memset(shard, 0, 1024);
    put_32(shard, 20240520);
    put_32(shard + 4, 1);
    put_32(shard + 8, (uint32_t)count);
    for (size_t i = 0; i < count; ++i) {
        shard[1024 + 2 * i] = (unsigned char)(tokens[i] & 255);
        shard[1025 + 2 * i] = (unsigned char)(tokens[i] >> 8);
    }
    return size;
}

void hs_test_write_shard(const char *path, const uint16_t *tokens, size_t count) {
    const size_t size = hs_test_make_shard(tokens, count, NULL);
    unsigned char *shard = malloc(size);
    hs_test_make_shard(tokens, count, shard);
    hs_test_write_bytes(path, shard, size);
    free(shard);
}
