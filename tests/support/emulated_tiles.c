#include "support/emulated_tiles.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/emulator.h"

enum {
    TILES = 8,
    MOST_ROWS = 16,
    MOST_BYTES = 64,
    CONFIGURATION = 64,
    PALETTE = 0,
    START_ROW = 1,
    BYTES = 16,
    ROWS = 48
};

typedef struct tile {
    unsigned rows, bytes;
    unsigned char data[MOST_ROWS][MOST_BYTES];
} tile;

static _Thread_local struct {
    bool configured;
    tile tiles[TILES];
} state;

static atomic_int in_use, configured;

int hs_tiles_in_use(void) { return atomic_load(&in_use); }
int hs_tiles_configured(void) { return atomic_load(&configured); }

static void fault(const char *why) {
    fprintf(stderr, "emulated tiles: %s\n", why);
    abort();
}

/* The places of fields in the 64 bytes are the manual's: palette 0, start row 1, bytes of a row from 16 on in two bytes
 * each, rows from 48 on; what lies between and for tiles that the palette lacks must be zero. */
void hs_tiles_configure(const void *configuration) {
    unsigned char c[CONFIGURATION];
    memcpy(c, configuration, sizeof c);
    if (c[PALETTE] != 1 || c[START_ROW] != 0)
        fault("an unknown palette or a start row");
    for (int i = 2; i < BYTES; i++)
        if (c[i] != 0)
            fault("a reserved byte that is not zero");
    for (int i = 0; i < 16; i++) {
        uint16_t bytes;
        memcpy(&bytes, &c[BYTES + 2 * i], sizeof bytes);
        const unsigned rows = c[ROWS + i];
        if (bytes > MOST_BYTES || rows > MOST_ROWS || (bytes == 0) != (rows == 0) || (i >= TILES && bytes != 0))
            fault("a tile that is too large, half empty, or beyond the palette");
        if (i < TILES)
            state.tiles[i] = (tile){.rows = rows, .bytes = bytes};
    }
    if (!state.configured)
        atomic_fetch_add(&in_use, 1);
    atomic_fetch_add(&configured, 1);
    state.configured = true;
}

void hs_tiles_release(void) {
    if (state.configured)
        atomic_fetch_sub(&in_use, 1);
    state.configured = false;
}

static tile *tile_of(unsigned number) {
    if (!state.configured)
        fault("tiles without a configuration");
    if (number >= TILES || state.tiles[number].rows == 0)
        fault("a tile that is not there");
    return &state.tiles[number];
}

void hs_tile_zero(unsigned number) {
    tile *t = tile_of(number);
    memset(t->data, 0, sizeof t->data);
}

/* Whole rows are read and written; what a tile has beyond them becomes zero. */
void hs_tile_load(unsigned number, const void *from, size_t pitch) {
    tile *t = tile_of(number);
    memset(t->data, 0, sizeof t->data);
    for (unsigned i = 0; i < t->rows; i++)
        memcpy(t->data[i], (const unsigned char *)from + i * pitch, t->bytes);
}

void hs_tile_store(unsigned number, void *to, size_t pitch) {
    const tile *t = tile_of(number);
    for (unsigned i = 0; i < t->rows; i++)
        memcpy((unsigned char *)to + i * pitch, t->data[i], t->bytes);
}

/* One sum: the pairs of a row of a, and those that stand below each other in b. */
static float multiplied(const tile *a, const tile *b, unsigned row, unsigned column, float sum) {
    uint16_t left[MOST_BYTES / 2], right[MOST_BYTES / 2];
    memcpy(left, a->data[row], a->bytes);
    for (unsigned k = 0; k < b->rows; k++)
        memcpy(&right[2 * k], &b->data[k][4 * column], 4);
    return hs_emulate_tile(sum, 2 * b->rows, left, right);
}

void hs_tile_multiply(unsigned sums_number, unsigned a_number, unsigned b_number) {
    tile *sums = tile_of(sums_number);
    const tile *a = tile_of(a_number), *b = tile_of(b_number);
    if (sums_number == a_number || sums_number == b_number || a_number == b_number)
        fault("the same tile twice");
    if (sums->bytes % 4 != 0 || a->bytes % 4 != 0 || b->bytes % 4 != 0)
        fault("rows that are no whole pairs");
    if (a->bytes / 4 != b->rows || sums->rows != a->rows || sums->bytes != b->bytes)
        fault("tiles that do not fit each other");
    for (unsigned i = 0; i < sums->rows; i++)
        for (unsigned j = 0; j < sums->bytes / 4; j++) {
            float sum;
            memcpy(&sum, &sums->data[i][4 * j], sizeof sum);
            sum = multiplied(a, b, i, j, sum);
            memcpy(&sums->data[i][4 * j], &sum, sizeof sum);
        }
}
