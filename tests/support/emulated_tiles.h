/*
 * A processor's tiles in plain C, under the names of cpu/gated/tiles.h: include this, then a kernel's source. What the
 * processor answers with a fault ends the process: a tile that is used without a configuration or with shapes that do
 * not fit each other, a configuration that is not allowed. Memory is read and written where the processor would.
 */
#ifndef HS_TESTS_SUPPORT_EMULATED_TILES_H
#define HS_TESTS_SUPPORT_EMULATED_TILES_H

#include <stddef.h>

#define HS_TILES_EMULATED

void hs_tiles_configure(const void *configuration); /* 64 bytes, as ldtilecfg reads them */
void hs_tiles_release(void);
void hs_tile_zero(unsigned tile);
void hs_tile_load(unsigned tile, const void *from, size_t pitch);
void hs_tile_store(unsigned tile, void *to, size_t pitch);
void hs_tile_multiply(unsigned sums, unsigned a, unsigned b);

/* Threads that have configured their tiles and not released them, and configurations so far. */
int hs_tiles_in_use(void);
int hs_tiles_configured(void);

#endif
