/*
 * y = a b in either form of each by cooperative matrices of m x n x k, as many as the device offers at once: f32 sums of
 * operands of 16 bits. A group computes a tile of 64 x 64 cells, a subgroup a block of `down` x `across` matrices of it.
 * Along k blocks of 32 stand in shared memory, as they lie in the operand, zeros beyond its edges: a matrix is loaded by
 * rows or by columns. Options: 1 a stands transposed, 2 b does, 8 y gets the sums before their last rounding.
 *
 * The including shader says HS_ELEMENT, the type of the operands' elements.
 */
#define HS_TILE 64u
#define HS_DEPTH 32u
#define HS_PIECE 8u     /* elements that are fetched at once: four words */
#define HS_GAP_WORDS 4u /* behind a line of a tile, so that lines do not meet in the banks of shared memory */
#define HS_TILE_WORDS (HS_TILE * (HS_DEPTH / 2u + HS_GAP_WORDS))

/* The shape of the device's matrices, and of a subgroup's block of them (hs_vk_matrices). */
layout(constant_id = 3) const uint hs_m = 16;
layout(constant_id = 4) const uint hs_n = 16;
layout(constant_id = 5) const uint hs_k = 16;
layout(constant_id = 6) const uint hs_down = 2;
layout(constant_id = 7) const uint hs_across = 2;

layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer hs_pieces { uvec4 at[]; };

/* Tiles of both operands, two elements to a word; at the end the sums. */
shared uint hs_pool[HS_TILE * HS_TILE];

/* An element as bits of the precision's format. */
uint hs_fetch_bits(uint slot, uint64_t row, uint column) {
    if (hs_type(slot) == HS_TYPE_F64)
        return hs_half_from_f64(hs_precision, hs_doubles(row).at[column]);
    return uint(hs_halves(row).at[column]);
}

/* Eight elements of a row from `column` on; those outside of the operand are +0, which adds nothing to a sum. */
uvec4 hs_fetch_piece(uint slot, bool by_words, uint row, uint column) {
    uvec4 words = uvec4(0u);
    if (row >= hs_rows(slot))
        return words;
    uint64_t address = hs_row(slot, row);
    if (by_words && column + HS_PIECE <= hs_columns(slot))
        return hs_pieces(address + 2UL * column).at[0];
    for (uint i = 0u; i < HS_PIECE; i++)
        if (column + i < hs_columns(slot))
            words[i / 2u] |= hs_fetch_bits(slot, address, column + i) << (i % 2u * 16u);
    return words;
}

/* Words of a line of a tile: along k where the operand's rows run along k. */
uint hs_line(bool along_k) {
    return (along_k ? HS_DEPTH : HS_TILE) / 2u + HS_GAP_WORDS;
}

/* Puts a tile of an operand, from (outer, k) on, into shared memory. */
void hs_stage(uint slot, bool along_k, bool by_words, uint first, uint outer, uint k) {
    uint pieces = (along_k ? HS_DEPTH : HS_TILE) / HS_PIECE;
    for (uint i = gl_LocalInvocationID.x; i < HS_TILE * HS_DEPTH / HS_PIECE; i += HS_GROUP) {
        uint line = i / pieces, piece = i % pieces;
        uvec4 words = hs_fetch_piece(slot, by_words, (along_k ? outer : k) + line,
                                     (along_k ? k : outer) + HS_PIECE * piece);
        uint at = first + line * hs_line(along_k) + HS_PIECE / 2u * piece;
        for (uint j = 0u; j < HS_PIECE / 2u; j++)
            hs_pool[at + j] = words[j];
    }
}

/* Whether all pieces of an operand lie where four words can be read at once. */
bool hs_lies_on_words(uint slot) {
    return hs_type(slot) != HS_TYPE_F64 && (hs_row(slot, 0u) & 15UL) == 0UL && (hs_row(slot, 1u) & 15UL) == 0UL;
}

/* Stores the cells of the tile that are there. */
void hs_store_tile(uint first_row, uint first_column) {
    uint m = hs_rows(HS_OUT(0)), n = hs_columns(HS_OUT(0));
    for (uint i = gl_LocalInvocationID.x; i < HS_TILE * HS_TILE; i += HS_GROUP) {
        uint row = first_row + i / HS_TILE, column = first_column + i % HS_TILE;
        if (row >= m || column >= n)
            continue;
        if ((hs_options & 8u) != 0u)
            hs_doubles(hs_row(HS_OUT(0), row)).at[column] = hs_f32_to_f64(hs_pool[i]);
        else
            hs_store_product(HS_OUT(0), hs_row(HS_OUT(0), row), column, uintBitsToFloat(hs_pool[i]));
    }
}

void main() {
    bool a_along_k = (hs_options & 1u) == 0u, b_along_k = (hs_options & 2u) != 0u;
    bool a_by_words = hs_lies_on_words(HS_IN(0)), b_by_words = hs_lies_on_words(HS_IN(1));
    uint depth = a_along_k ? hs_columns(HS_IN(0)) : hs_rows(HS_IN(0));
    uint tiles = (hs_columns(HS_OUT(0)) + HS_TILE - 1u) / HS_TILE;
    uint first_row = hs_group() / tiles * HS_TILE, first_column = hs_group() % tiles * HS_TILE;
    /* Where in the tile the block of this subgroup begins. */
    uint blocks = HS_TILE / (hs_n * hs_across);
    uint top = gl_SubgroupID / blocks * hs_m * hs_down, left = gl_SubgroupID % blocks * hs_n * hs_across;
    uint a_line = hs_line(a_along_k), b_line = hs_line(b_along_k);
    coopmat<float, gl_ScopeSubgroup, hs_m, hs_n, gl_MatrixUseAccumulator> sums[hs_down * hs_across];
    for (uint i = 0u; i < hs_down * hs_across; i++)
        sums[i] = coopmat<float, gl_ScopeSubgroup, hs_m, hs_n, gl_MatrixUseAccumulator>(0.0);
    for (uint k0 = 0u; k0 < depth; k0 += HS_DEPTH) {
        barrier();
        hs_stage(HS_IN(0), a_along_k, a_by_words, 0u, first_row, k0);
        hs_stage(HS_IN(1), b_along_k, b_by_words, HS_TILE_WORDS, first_column, k0);
        barrier();
        for (uint k = 0u; k < HS_DEPTH; k += hs_k) {
            coopmat<HS_ELEMENT, gl_ScopeSubgroup, hs_m, hs_k, gl_MatrixUseA> a[hs_down];
            for (uint i = 0u; i < hs_down; i++) {
                uint row = top + i * hs_m;
                if (a_along_k)
                    coopMatLoad(a[i], hs_pool, row * a_line + k / 2u, a_line, gl_CooperativeMatrixLayoutRowMajor);
                else
                    coopMatLoad(a[i], hs_pool, k * a_line + row / 2u, a_line, gl_CooperativeMatrixLayoutColumnMajor);
            }
            for (uint j = 0u; j < hs_across; j++) {
                coopmat<HS_ELEMENT, gl_ScopeSubgroup, hs_k, hs_n, gl_MatrixUseB> b;
                uint column = left + j * hs_n;
                if (b_along_k)
                    coopMatLoad(b, hs_pool, HS_TILE_WORDS + column * b_line + k / 2u, b_line,
                                gl_CooperativeMatrixLayoutColumnMajor);
                else
                    coopMatLoad(b, hs_pool, HS_TILE_WORDS + k * b_line + column / 2u, b_line,
                                gl_CooperativeMatrixLayoutRowMajor);
                for (uint i = 0u; i < hs_down; i++)
                    sums[i * hs_across + j] = coopMatMulAdd(a[i], b, sums[i * hs_across + j]);
            }
        }
    }
    barrier();
    for (uint i = 0u; i < hs_down * hs_across; i++)
        coopMatStore(sums[i], hs_pool, (top + i / hs_across * hs_m) * HS_TILE + left + i % hs_across * hs_n, HS_TILE,
                     gl_CooperativeMatrixLayoutRowMajor);
    barrier();
    hs_store_tile(first_row, first_column);
}
