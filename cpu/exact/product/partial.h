/*
 * The sums of a tile that continue from one product to the next (HS_OP_MATMUL: continues, unfinished): in memory they
 * stand in f64 slots, in a tile as the kit computes them.
 */
#ifndef HS_CPU_EXACT_PARTIAL_H
#define HS_CPU_EXACT_PARTIAL_H

#include <string.h>

#include "cpu/exact/product/kit.h"

/*
 * What instructions take that hold subnormal numbers for zero: multiples of 2^-126, the least normal number. Products
 * of panels that fit are such, and so sums stay such.
 */
static inline bool hs_is_coarse(float sum) { return sum == 0 || !(sum > -0x1p-103f && sum < 0x1p-103f); }

/* Fills a whole tile. Returns whether all sums are such that instructions of any kind may continue them. */
static inline bool hs_load_partial(const hs_kit *kit, size_t rows, size_t columns, hs_cells y, void *tile) {
    const size_t pitch = kit->right.pitch;
    bool coarse = true;
    if (rows < kit->left.width || columns < pitch)
        memset(tile, 0, kit->left.width * pitch * kit->sum);
    for (size_t i = 0; i < rows; i++) {
        const double *from = hs_cells_from(y, i, 0).data;
        if (kit->sum == sizeof(double)) {
            memcpy((double *)tile + i * pitch, from, columns * sizeof *from);
            continue;
        }
        float *sums = (float *)tile + i * pitch;
        for (size_t j = 0; j < columns; j++) {
            sums[j] = (float)from[j];
            coarse &= hs_is_coarse(sums[j]);
        }
    }
    return coarse;
}

static inline void hs_store_partial(const hs_kit *kit, size_t rows, size_t columns, const void *tile, hs_cells y) {
    const size_t pitch = kit->right.pitch;
    for (size_t i = 0; i < rows; i++) {
        double *to = hs_cells_from(y, i, 0).data;
        if (kit->sum == sizeof(double)) {
            memcpy(to, (const double *)tile + i * pitch, columns * sizeof *to);
            continue;
        }
        const float *sums = (const float *)tile + i * pitch;
        for (size_t j = 0; j < columns; j++)
            to[j] = (double)sums[j];
    }
}

#endif
