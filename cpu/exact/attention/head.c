#include "cpu/exact/attention/head.h"

#include <math.h>

#include "cpu/exact/sums.h"
#include "cpu/exact/view.h"

hs_attention hs_attention_of(const hs_call *call, unsigned first) {
    const hs_attributes *attributes = &call->attributes;
    const hs_view *q = &call->inputs[first], *k = &call->inputs[first + 1];
    const size_t sequences = attributes->sequences, heads = attributes->heads;
    hs_attention attention = {
        .kit = hs_kit_of(call->precision),
        .rounding = hs_rounding_of(call->precision),
        .sequences = sequences,
        .heads = heads,
        .group = heads / attributes->kv_heads,
        .width = attributes->head_width,
        .queries = hs_rows(q) / sequences,
        .keys = hs_rows(k) / sequences,
    };
    attention.scale = 1.0 / sqrt((double)attention.width);
    return attention;
}

hs_positions hs_positions_of(const hs_attention *attention, const int32_t *positions, size_t sequence) {
    hs_positions p = {positions + sequence * attention->queries, attention->keys, 0};
    p.keys = hs_keys_seen(&p, 0, attention->queries);
    return p;
}

size_t hs_keys_seen(const hs_positions *positions, size_t first, size_t count) {
    size_t most = 0;
    for (size_t r = first; r < first + count; r++) {
        const size_t keys = hs_keys_of(positions, r);
        most = keys > most ? keys : most;
    }
    return most;
}

size_t hs_keys_shared(const hs_positions *positions, size_t first, size_t count) {
    size_t fewest = SIZE_MAX;
    for (size_t r = first; r < first + count; r++) {
        const size_t keys = hs_keys_of(positions, r);
        fewest = keys < fewest ? keys : fewest;
    }
    return fewest;
}

void hs_pack_panels(const hs_attention *attention, size_t width, hs_lines lines, size_t count, size_t depth,
                    void *panels) {
    const hs_kit *kit = attention->kit;
    unsigned char *panel = panels;
    for (size_t line = 0; line < count; line += width, panel += width * depth * kit->element) {
        const hs_lines part = {lines.data + line * lines.line_stride, lines.line_stride, lines.k_stride};
        kit->pack(attention->rounding, width, part, count - line < width ? count - line : width, depth, panel);
    }
}

void hs_query_key_products(const hs_attention *attention, size_t count, size_t seen, const void *a, const void *b,
                           double *y, size_t pitch) {
    const hs_kit *kit = attention->kit;
    const unsigned char *panel = b;
    for (size_t key = 0; key < seen; key += kit->columns, panel += kit->columns * attention->width * kit->element) {
        double sums[HS_TILE_CELLS] = {0};
        kit->tile(attention->width, a, panel, sums);
        kit->store(attention->rounding, count, kit->columns, sums, y + key, pitch);
    }
}

/* Continues the sums of a tile whose rows are queries and whose k runs over keys. */
static void chain_over_keys(const hs_kit *kit, const hs_positions *positions, size_t first, size_t count, size_t seen,
                            size_t shared, const unsigned char *a, const unsigned char *b, void *sums) {
    const size_t a_step = kit->rows * kit->element, b_step = kit->columns * kit->element;
    kit->tile(shared, a, b, sums);
    for (size_t key = shared; key < seen; key++)
        for (size_t r = 0; r < count; r++)
            if (key < hs_keys_of(positions, first + r))
                kit->step(r, a + key * a_step, b + key * b_step, sums);
}

uint64_t hs_sum_over_keys(const hs_attention *attention, const hs_positions *positions, size_t first, size_t count,
                          const void *a, const void *b, double *y, size_t pitch) {
    const hs_kit *kit = attention->kit;
    const unsigned char *panel = b;
    const size_t seen = hs_keys_seen(positions, first, count), shared = hs_keys_shared(positions, first, count);
    uint64_t nonfinite = 0;
    for (size_t column = 0; column < attention->width; column += kit->columns) {
        const size_t rest = attention->width - column, columns = rest < kit->columns ? rest : kit->columns;
        double sums[HS_TILE_CELLS] = {0};
        chain_over_keys(kit, positions, first, count, seen, shared, a, panel, sums);
        nonfinite |= kit->store(attention->rounding, count, columns, sums, y + column, pitch);
        panel += kit->columns * positions->keys * kit->element;
    }
    return nonfinite;
}

/*
 * Continues the sums of a tile whose rows are keys and whose k runs over queries. Queries that see all the keys come in
 * runs, which the tile takes whole.
 */
static void chain_over_queries(const hs_kit *kit, const hs_positions *positions, size_t queries, size_t first,
                               size_t count, const unsigned char *a, const unsigned char *b, void *sums) {
    const size_t a_step = kit->rows * kit->element, b_step = kit->columns * kit->element;
    for (size_t query = 0; query < queries;) {
        size_t run = 0;
        while (query + run < queries && hs_keys_of(positions, query + run) >= first + count)
            run++;
        kit->tile(run, a + query * a_step, b + query * b_step, sums);
        query += run;
        if (query == queries)
            break;
        for (size_t r = 0; first + r < hs_keys_of(positions, query); r++)
            kit->step(r, a + query * a_step, b + query * b_step, sums);
        query++;
    }
}

uint64_t hs_sum_over_queries(const hs_attention *attention, const hs_positions *positions, size_t first, size_t count,
                             const void *a, const void *b, double *y, size_t pitch, bool added) {
    const hs_kit *kit = attention->kit;
    const unsigned char *panel = b;
    uint64_t nonfinite = 0;
    for (size_t column = 0; column < attention->width; column += kit->columns) {
        const size_t rest = attention->width - column, columns = rest < kit->columns ? rest : kit->columns;
        double sums[HS_TILE_CELLS] = {0}, cells[HS_TILE_CELLS];
        chain_over_queries(kit, positions, attention->queries, first, count, a, panel, sums);
        panel += kit->columns * attention->queries * kit->element;
        if (!added) {
            nonfinite |= kit->store(attention->rounding, count, columns, sums, y + column, pitch);
            continue;
        }
        kit->store(attention->rounding, count, columns, sums, cells, kit->columns);
        for (size_t r = 0; r < count; r++)
            for (size_t j = 0; j < columns; j++) {
                double *cell = &y[r * pitch + column + j];
                *cell += cells[r * kit->columns + j];
                nonfinite |= hs_nonfinite(*cell);
            }
    }
    return nonfinite;
}
