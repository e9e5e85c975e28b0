/*
 * The operations on AMX tiles that the kernels use, in one place: the tests compile the same kernels over an emulation
 * of them, which they declare under these names before they include a kernel (tests/support/emulated_tiles.h).
 *
 * All eight tiles have 16 rows of 64 bytes. Configuration and contents belong to the thread; nothing of them outlives
 * hs_tiles_release. Tile numbers are constants.
 */
#ifndef HS_CPU_GATED_TILES_H
#define HS_CPU_GATED_TILES_H

#include <stdint.h>

enum { HS_TILE_ROWS = 16, HS_TILE_ROW_BYTES = 64 };

/* What the processor reads its configuration from. */
typedef struct hs_tiles_configuration {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} hs_tiles_configuration;

_Static_assert(sizeof(hs_tiles_configuration) == 64, "the processor reads 64 bytes");

/* A constant in memory: gcc's _tile_loadconfig tells the compiler of its first bytes alone, so that what a function
 * writes into the others might be left out. */
static const hs_tiles_configuration hs_tiles_full_size = {
    .palette = 1,
    .row_bytes = {HS_TILE_ROW_BYTES, HS_TILE_ROW_BYTES, HS_TILE_ROW_BYTES, HS_TILE_ROW_BYTES, HS_TILE_ROW_BYTES,
                  HS_TILE_ROW_BYTES, HS_TILE_ROW_BYTES, HS_TILE_ROW_BYTES},
    .rows = {HS_TILE_ROWS, HS_TILE_ROWS, HS_TILE_ROWS, HS_TILE_ROWS, HS_TILE_ROWS, HS_TILE_ROWS, HS_TILE_ROWS,
             HS_TILE_ROWS}};

#ifndef HS_TILES_EMULATED
#include <immintrin.h>

#define hs_tiles_configure(configuration) _tile_loadconfig(configuration)
#define hs_tiles_release() _tile_release()
#define hs_tile_zero(tile) _tile_zero(tile)
/* Rows stand `pitch` bytes apart. */
#define hs_tile_load(tile, from, pitch) _tile_loadd(tile, from, pitch)
#define hs_tile_store(tile, to, pitch) _tile_stored(tile, to, pitch)
/* sums += a b, with pairs of bf16 in a's rows and in b's columns, f32 sums. */
#define hs_tile_multiply(sums, a, b) _tile_dpbf16ps(sums, a, b)
#endif

#endif
