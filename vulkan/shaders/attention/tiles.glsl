/*
 * Products inside attention, by tiles of 32 x 32 cells (policy, section 2): a group of 256 invocations computes one tile
 * after another. Invocation (x, y) has the cells (y + 8 i, x), i < 4. Keys of a tile begin at a multiple of 32, so that
 * x is the lane of a sum over keys. Every cell is a chain, ascending, that takes its terms one by one.
 */
#extension GL_EXT_control_flow_attributes : require
#include "vulkan/shaders/attention/reals.glsl"

/* Unrolled, the loops along a tile would make so much code that drivers take seconds to compile it. */
#define HS_LOOP [[dont_unroll]] for

#define HS_SIDE 32u
#define HS_CELLS 4
#define HS_STEP 8u
#define HS_DEPTH 8u  /* of the operands that stand in shared memory at a time */
#define HS_WIDTH 64u /* columns of the second product at a time, two for an invocation */
#define HS_PITCH 33u /* against conflicts of banks */

shared HS_REAL hs_tile[HS_SIDE][HS_SIDE];
shared HS_REAL hs_chunk[2u * HS_DEPTH * HS_PITCH];

/* Where rows are folded. In f64 the tile serves, since both would be too much for 16 KiB. */
#ifdef HS_ALL_F64
#define hs_folded hs_tile
#else
shared double hs_folded[HS_SIDE][HS_SIDE];
#endif

uint hs_x() {
    return gl_LocalInvocationID.x % HS_SIDE;
}

/* The row of cell i. */
uint hs_cell(int i) {
    return gl_LocalInvocationID.x / HS_SIDE + HS_STEP * uint(i);
}

/* Up to 32 rows of an operand, and in them the columns of one head. */
struct hs_slice {
    uint slot, row, count, column;
};

/* An element as an operand; +0 beyond the edges. */
HS_REAL hs_fetch(hs_slice s, uint r, uint column) {
    if (r >= s.count || column >= hs_call.record.head_width)
        return HS_REAL(0);
    return hs_fetch_operand(s.slot, hs_row(s.slot, s.row + r), s.column + column);
}

/* Cells (row of a, row of b): chains over the width of a head. */
void hs_multiply_rows(hs_slice a, hs_slice b, out HS_REAL sums[HS_CELLS]) {
    uint at = gl_LocalInvocationID.x / HS_DEPTH, k = gl_LocalInvocationID.x % HS_DEPTH;
    for (int i = 0; i < HS_CELLS; i++)
        sums[i] = HS_REAL(0);
    for (uint k0 = 0u; k0 < hs_call.record.head_width; k0 += HS_DEPTH) {
        barrier();
        hs_chunk[k * HS_PITCH + at] = hs_fetch(a, at, k0 + k);
        hs_chunk[(HS_DEPTH + k) * HS_PITCH + at] = hs_fetch(b, at, k0 + k);
        barrier();
        HS_LOOP (uint j = 0u; j < HS_DEPTH; j++)
            for (int i = 0; i < HS_CELLS; i++) {
                precise HS_REAL product =
                    hs_chunk[j * HS_PITCH + hs_cell(i)] * hs_chunk[(HS_DEPTH + j) * HS_PITCH + hs_x()];
                precise HS_REAL sum = sums[i] + product;
                sums[i] = sum;
            }
    }
}

/* Sets the operand that hs_add_products takes from the tile; all have to call it. */
void hs_put_tile(double values[HS_CELLS]) {
    barrier();
    for (int i = 0; i < HS_CELLS; i++)
        hs_tile[hs_cell(i)][hs_x()] = hs_to_operand(values[i]);
}

/*
 * Continues the chains of cells (row of the tile, column of b) with the 32 terms of the tile: columns x and x + 32 from
 * `column` of the head. Bit t of seen[i] says whether term t of row i is formed; others must not be touched, since what
 * they would be multiplied by may be infinite.
 */
void hs_add_products(hs_slice b, uint column, uint seen[HS_CELLS], inout HS_REAL sums[HS_CELLS][2]) {
    for (uint t0 = 0u; t0 < b.count; t0 += HS_DEPTH) {
        barrier();
        for (uint n = gl_LocalInvocationID.x; n < HS_DEPTH * HS_WIDTH; n += HS_GROUP)
            hs_chunk[n] = hs_fetch(b, t0 + n / HS_WIDTH, column + n % HS_WIDTH);
        barrier();
        HS_LOOP (uint t = 0u; t < HS_DEPTH; t++)
            for (int i = 0; i < HS_CELLS; i++)
                if ((seen[i] >> (t0 + t) & 1u) != 0u)
                    for (int c = 0; c < 2; c++) {
                        precise HS_REAL product =
                            hs_tile[hs_cell(i)][t0 + t] * hs_chunk[t * HS_WIDTH + uint(c) * HS_SIDE + hs_x()];
                        precise HS_REAL sum = sums[i][c] + product;
                        sums[i][c] = sum;
                    }
    }
}

void hs_clear(out HS_REAL sums[HS_CELLS][2]) {
    for (int i = 0; i < HS_CELLS; i++)
        for (int c = 0; c < 2; c++)
            sums[i][c] = HS_REAL(0);
}

/*
 * Folds the 32 lanes of each row by 16, 8, 4, 2, 1; every cell gets its row's sum, or the largest: of several zeros any,
 * and NaN loses, or not. All have to call it.
 */
void hs_fold_rows(bool largest, inout double lanes[HS_CELLS]) {
    barrier();
    for (int i = 0; i < HS_CELLS; i++)
        hs_folded[hs_cell(i)][hs_x()] = lanes[i];
    HS_LOOP (uint width = HS_SIDE / 2u; width > 0u; width /= 2u) {
        barrier();
        if (hs_x() < width)
            for (int i = 0; i < HS_CELLS; i++) {
                double own = hs_folded[hs_cell(i)][hs_x()], other = hs_folded[hs_cell(i)][hs_x() + width];
                precise double sum = own + other;
                if (!largest)
                    hs_folded[hs_cell(i)][hs_x()] = sum;
                else if (other > own)
                    hs_folded[hs_cell(i)][hs_x()] = other;
            }
    }
    barrier();
    for (int i = 0; i < HS_CELLS; i++)
        lanes[i] = hs_folded[hs_cell(i)][0];
}
