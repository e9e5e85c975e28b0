/*
 * y = a b in either form of each (policy, section 2). A group computes a tile of 64 x 64 cells, an invocation 16 cells of
 * it; along k blocks of 16 stand in shared memory. Every cell adds its products one by one, ascending in k, in HS_REAL.
 * Options: 1 a stands transposed, 2 b does; 4 the cells of y hold sums that go on here, 8 they get sums that go on.
 *
 * HS_PAD numbers stand between the lines of a tile, where there is room for them: invocations that fill it along k would
 * else take turns at one bank of shared memory.
 *
 * The including shader says HS_REAL, HS_PAD, hs_fetch_operand(slot, row, column), hs_step(sum, a, b),
 * hs_store_sum(row, column, sum), and how sums stand in f64: hs_narrow_sum(f64), hs_widen_sum(sum).
 */
#define HS_TILE 64u
#define HS_DEPTH 16u
#define HS_SIDE 16u /* a group is 16 x 16 invocations */
#define HS_CELLS 4  /* each takes 4 x 4 cells, HS_SIDE apart */

shared HS_REAL tile_a[HS_DEPTH][HS_TILE + HS_PAD];
shared HS_REAL tile_b[HS_DEPTH][HS_TILE + HS_PAD];

/* Element (outer, k) of an operand; outside of it +0, which adds nothing to a sum that began with +0. */
HS_REAL hs_fetch(uint slot, bool along_rows, uint outer, uint outer_end, uint k, uint k_end) {
    if (outer >= outer_end || k >= k_end)
        return HS_REAL(0);
    return along_rows ? hs_fetch_operand(slot, hs_row(slot, outer), k) : hs_fetch_operand(slot, hs_row(slot, k), outer);
}

/* The sum that a cell of y holds, which is of type f64; +0 outside and where none goes on. */
HS_REAL hs_begin(uint row, uint rows, uint column, uint columns) {
    if ((hs_options & 4u) == 0u || row >= rows || column >= columns)
        return HS_REAL(0);
    return hs_narrow_sum(hs_doubles(hs_row(HS_OUT(0), row)).at[column]);
}

void hs_end(uint row, uint column, HS_REAL sum) {
    if ((hs_options & 8u) != 0u)
        hs_doubles(hs_row(HS_OUT(0), row)).at[column] = hs_widen_sum(sum);
    else
        hs_store_sum(hs_row(HS_OUT(0), row), column, sum);
}

/* Places in a tile, so that neighbours read neighbours: along k where k is innermost, else along the other side. */
uvec2 hs_place(uint i, bool along_rows) {
    return along_rows ? uvec2(i / HS_DEPTH, i % HS_DEPTH) : uvec2(i % HS_TILE, i / HS_TILE);
}

void main() {
    uint m = hs_rows(HS_OUT(0)), n = hs_columns(HS_OUT(0));
    bool a_rows = (hs_options & 1u) == 0u, b_rows = (hs_options & 2u) != 0u;
    uint depth = a_rows ? hs_columns(HS_IN(0)) : hs_rows(HS_IN(0));
    uint tiles = (n + HS_TILE - 1u) / HS_TILE;
    uint first_row = hs_group() / tiles * HS_TILE, first_column = hs_group() % tiles * HS_TILE;
    uint x = gl_LocalInvocationID.x % HS_SIDE, y = gl_LocalInvocationID.x / HS_SIDE;
    HS_REAL sums[HS_CELLS][HS_CELLS];
    for (int i = 0; i < HS_CELLS; i++)
        for (int j = 0; j < HS_CELLS; j++)
            sums[i][j] = hs_begin(first_row + y + uint(i) * HS_SIDE, m, first_column + x + uint(j) * HS_SIDE, n);
    for (uint k0 = 0u; k0 < depth; k0 += HS_DEPTH) {
        barrier();
        for (uint i = gl_LocalInvocationID.x; i < HS_TILE * HS_DEPTH; i += HS_GROUP) {
            uvec2 at = hs_place(i, a_rows);
            tile_a[at.y][at.x] = hs_fetch(HS_IN(0), a_rows, first_row + at.x, m, k0 + at.y, depth);
            at = hs_place(i, b_rows);
            tile_b[at.y][at.x] = hs_fetch(HS_IN(1), b_rows, first_column + at.x, n, k0 + at.y, depth);
        }
        barrier();
        for (uint k = 0u; k < HS_DEPTH; k++)
            for (int i = 0; i < HS_CELLS; i++)
                for (int j = 0; j < HS_CELLS; j++)
                    sums[i][j] = hs_step(sums[i][j], tile_a[k][y + uint(i) * HS_SIDE], tile_b[k][x + uint(j) * HS_SIDE]);
    }
    for (int i = 0; i < HS_CELLS; i++)
        for (int j = 0; j < HS_CELLS; j++) {
            uint row = first_row + y + uint(i) * HS_SIDE, column = first_column + x + uint(j) * HS_SIDE;
            if (row < m && column < n)
                hs_end(row, column, sums[i][j]);
        }
}
