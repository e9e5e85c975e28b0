/* Packing and rounding for products over pairs, with AVX-512: 16 lines by 32 steps at a time, turned in registers where
 * source and panel run in different directions. */
#include <immintrin.h>

#include "cpu/exact/pairs/pairs.h"
#include "cpu/exact/vectors/avx512.h"

enum { LINES = 16, PAIRS = HS_PAIRS_STEPS / 2 };

/* What of a number is packed: all of a bf16 number, or one part of an fp16 number. */
typedef enum piece { WHOLE, HIGH, LOW } piece;

/* How a panel is packed: what all its elements have in common. */
typedef struct form {
    bool half, swapped;
    piece which;
} form;

/* The part of an fp16 number that is packed; infinities and NaNs are whole in the high part. */
HS_INLINE __m512 piece_of(const piece which, __m512 x) {
    const __m512i upper = _mm512_set1_epi32((int)0xffff0000);
    const __m512 high = _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(x), upper));
    if (which == HIGH)
        return high;
    const __m512 magnitude = _mm512_abs_ps(x);
    const __mmask16 finite = _mm512_cmp_ps_mask(magnitude, _mm512_set1_ps(0x1p17F), _CMP_LT_OQ);
    return _mm512_maskz_sub_ps(finite, x, high);
}

/* Sixteen elements from number `at` on as f32 whose lower halves are zero; those outside the masks become +0. */
HS_INLINE __m512 represent(const form f, const unsigned char *data, size_t at, __mmask16 mask) {
    __m256i halves = _mm256_setzero_si256();
    if (f.half)
        halves = _mm256_maskz_loadu_epi16(mask, data + at * sizeof(uint16_t));
    if (f.half && f.which == WHOLE)
        return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
    if (!f.half) {
        const unsigned char *x = data + at * sizeof(double);
        const __m512d x0 = _mm512_maskz_loadu_pd((__mmask8)mask, x),
                      x1 = _mm512_maskz_loadu_pd((__mmask8)(mask >> 8), x + 8 * sizeof(double));
        if (f.which == WHOLE)
            return hs_joined(hs_bf16_f32(x0), hs_bf16_f32(x1));
        halves =
            _mm512_cvtps_ph(hs_joined(hs_odd_f32(x0), hs_odd_f32(x1)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    }
    return piece_of(f.which, _mm512_cvtph_ps(halves));
}

/* The upper halves of 32 f32, side by side in their order, or with each pair swapped. */
HS_INLINE __m512i upper_halves(const bool swapped, __m512 low, __m512 high) {
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i first = _mm512_set1_epi32(swapped ? 0x00010003 : 0x00030001);
    const __m512i index = _mm512_add_epi32(first, _mm512_mullo_epi32(lanes, _mm512_set1_epi32(0x00040004)));
    return _mm512_permutex2var_epi16(_mm512_castps_si512(low), index, _mm512_castps_si512(high));
}

/* The 32 steps of one line. */
HS_INLINE __m512i pairs_of_line(const form f, const unsigned char *data, size_t at, size_t steps) {
    if (f.half && f.which == WHOLE) {
        const __m512i pairs = _mm512_maskz_loadu_epi16(hs_first_of_32(steps), data + at * sizeof(uint16_t));
        return f.swapped ? _mm512_rol_epi32(pairs, 16) : pairs;
    }
    return upper_halves(f.swapped, represent(f, data, at, hs_first_of_16(steps)),
                        represent(f, data, at + 16, hs_first_of_16(hs_beyond(steps, 16))));
}

/* Two steps of sixteen lines. */
HS_INLINE __m512i pairs_of_lines(const form f, const unsigned char *data, size_t at, size_t stride, __mmask16 lines,
                                 size_t steps) {
    const __m512i first = _mm512_castps_si512(represent(f, data, at, steps > 0 ? lines : 0)),
                  second = _mm512_castps_si512(represent(f, data, at + stride, steps > 1 ? lines : 0));
    return f.swapped ? _mm512_or_si512(_mm512_srli_epi32(second, 16), first)
                     : _mm512_or_si512(_mm512_srli_epi32(first, 16), second);
}

/* Up to 16 lines and 32 steps into rows of 64 bytes, `pitch` elements apart: a row is a line in a left panel, a pair of
 * steps in a right one. `rows` of them are stored. */
HS_INLINE void pack_block(const form f, const bool along, const bool left, hs_lines s, size_t count, size_t steps,
                          size_t rows, uint16_t *out, size_t pitch, hs_magnitudes *widened) {
    __m512 r[16];
    hs_magnitudes local = *widened;
    const __mmask16 lines = hs_first_of_16(count);
    HS_UNROLL
    for (size_t i = 0; i < 16; i++) {
        __m512i pairs = _mm512_setzero_si512();
        if (along && i < count)
            pairs = pairs_of_line(f, s.data, i * s.line_stride, steps);
        else if (!along && 2 * i < steps)
            pairs = pairs_of_lines(f, s.data, 2 * i * s.k_stride, s.k_stride, lines, steps - 2 * i);
        if (f.which != LOW)
            hs_see_halves(pairs, &local);
        r[i] = _mm512_castsi512_ps(pairs);
    }
    *widened = local;
    if (along != left)
        hs_transpose(r);
    HS_UNROLL
    for (size_t i = 0; i < 16; i++)
        if (i < rows)
            _mm512_store_si512(out + i * pitch, _mm512_castps_si512(r[i]));
}

/* A plane of a panel of `width` lines; blocks stand `distance` elements apart. */
HS_INLINE void pack_plane(const form f, const bool along, const bool left, hs_lines source, size_t width, size_t count,
                          size_t depth, uint16_t *panel, size_t distance, hs_magnitudes *s) {
    for (size_t k = 0; k < depth; k += HS_PAIRS_STEPS, panel += distance)
        for (size_t line = 0; line < width; line += LINES) {
            const size_t steps = depth - k < HS_PAIRS_STEPS ? depth - k : HS_PAIRS_STEPS;
            const size_t here = hs_beyond(count, line) < LINES ? hs_beyond(count, line) : LINES;
            /* No address is made beyond the operand. */
            const hs_lines part = here > 0 ? hs_lines_from(source, line, k) : source;
            if (left)
                pack_block(f, along, true, part, here, steps, width - line, panel + line * HS_PAIRS_STEPS,
                           HS_PAIRS_STEPS, s);
            else
                pack_block(f, along, false, part, here, steps, PAIRS, panel + 2 * line, 2 * HS_PAIRS_COLUMNS, s);
        }
}

/* From every kind of source. Each is compiled by itself, so that no loop asks which one it is. */
HS_INLINE void pack_piece(const piece which, const bool swapped, const bool left, hs_lines source, size_t width,
                          size_t count, size_t depth, uint16_t *panel, size_t distance, hs_magnitudes *s) {
    const form wide = {false, swapped, which}, half = {true, swapped, which};
    const bool along = source.k_stride == 1;
    if (source.half && along)
        pack_plane(half, true, left, source, width, count, depth, panel, distance, s);
    else if (source.half)
        pack_plane(half, false, left, source, width, count, depth, panel, distance, s);
    else if (along)
        pack_plane(wide, true, left, source, width, count, depth, panel, distance, s);
    else
        pack_plane(wide, false, left, source, width, count, depth, panel, distance, s);
}

HS_INLINE void pack_whole(const bool swapped, const bool left, const size_t width, hs_lines source, size_t count,
                          size_t depth, void *panel, hs_range *range) {
    hs_magnitudes s = hs_no_magnitudes();
    pack_piece(WHOLE, swapped, left, source, width, count, depth, panel, width * HS_PAIRS_STEPS, &s);
    hs_widen_by_halves(range, &s);
}

HS_INLINE void pack_parts(const bool left, const size_t width, hs_lines source, size_t count, size_t depth, void *panel,
                          hs_range *range) {
    const size_t block = width * HS_PAIRS_STEPS;
    hs_magnitudes s = hs_no_magnitudes();
    pack_piece(HIGH, false, left, source, width, count, depth, panel, 2 * block, &s);
    pack_piece(LOW, false, left, source, width, count, depth, (uint16_t *)panel + block, 2 * block, &s);
    hs_widen_by_halves(range, &s);
}

void hs_pairs_pack_left_swapped(hs_lines source, size_t count, size_t depth, void *panel, hs_range *range) {
    pack_whole(true, true, HS_PAIRS_FEW_ROWS, source, count, depth, panel, range);
}

void hs_pairs_pack_right_swapped(hs_lines source, size_t count, size_t depth, void *panel, hs_range *range) {
    pack_whole(true, false, HS_PAIRS_COLUMNS, source, count, depth, panel, range);
}

void hs_pairs_pack_left_bf16(hs_lines source, size_t count, size_t depth, void *panel, hs_range *range) {
    pack_whole(false, true, HS_PAIRS_ROWS, source, count, depth, panel, range);
}

void hs_pairs_pack_right_bf16(hs_lines source, size_t count, size_t depth, void *panel, hs_range *range) {
    pack_whole(false, false, HS_PAIRS_COLUMNS, source, count, depth, panel, range);
}

void hs_pairs_pack_left_parts(hs_lines source, size_t count, size_t depth, void *panel, hs_range *range) {
    pack_parts(true, HS_PAIRS_ROWS, source, count, depth, panel, range);
}

void hs_pairs_pack_right_parts(hs_lines source, size_t count, size_t depth, void *panel, hs_range *range) {
    pack_parts(false, HS_PAIRS_COLUMNS, source, count, depth, panel, range);
}

bool hs_pairs_store_sums(size_t rows, size_t columns, const void *sums, hs_cells y) {
    __mmask16 nonfinite = 0;
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j += 16) {
            const __mmask16 exist = hs_first_of_16(columns - j);
            const __m512 sum = _mm512_load_ps((const float *)sums + i * HS_PAIRS_COLUMNS + j);
            hs_store_doubles(sum, columns - j, hs_cells_from(y, i, j).data);
            const __m512i magnitude = _mm512_and_si512(_mm512_castps_si512(sum), _mm512_set1_epi32(0x7fffffff));
            nonfinite |= _mm512_mask_cmpge_epu32_mask(exist, magnitude, _mm512_set1_epi32(0x7f800000));
        }
    return nonfinite != 0;
}
