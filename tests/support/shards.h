/* Token shards for tests: made by hand, from the words of their formats. */
#ifndef HS_TESTS_SUPPORT_SHARDS_H
#define HS_TESTS_SUPPORT_SHARDS_H

#include <stddef.h>
#include <stdint.h>

/* A shard of llm.c with uint16 tokens. Returns its size; `shard`, where not NULL, has room for it. */
size_t hs_test_make_shard(const uint16_t *tokens, size_t count, unsigned char *shard);

void hs_test_write_shard(const char *path, const uint16_t *tokens, size_t count);

#endif
