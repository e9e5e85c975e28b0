#include "cpu/exact/attention/head.h"

#include <math.h>

#include "cpu/exact/sums.h"
#include "cpu/exact/view.h"

hs_exact_attention hs_exact_attention_of(const hs_call *call, const hs_kernel_run *run, unsigned first) {
    const hs_attributes *attributes = &call->attributes;
    const hs_view *q = &call->inputs[first], *k = &call->inputs[first + 1];
    const size_t sequences = attributes->sequences, heads = attributes->heads;
    hs_exact_attention attention = {
        .kit = run->kit,
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

hs_positions hs_positions_of(const hs_exact_attention *attention, const int32_t *positions, size_t sequence) {
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

hs_packed hs_carve_panels(unsigned char **scratch, const hs_kit *kit, const hs_side *side, size_t lines, size_t depth) {
    const size_t count = hs_panels(lines, side->width);
    hs_packed packed = {.bytes = hs_panel_bytes(kit, side, depth)};
    packed.data = hs_carve(scratch, count * packed.bytes);
    packed.ranges = hs_carve(scratch, count * sizeof *packed.ranges);
    return packed;
}

void hs_pack_panels(const hs_side *side, hs_lines lines, size_t count, size_t depth, const hs_packed *packed) {
    for (size_t panel = 0; panel < hs_panels(count, side->width); panel++) {
        const size_t line = panel * side->width, rest = count - line;
        const hs_lines part = {lines.data + line * lines.line_stride, lines.line_stride, lines.k_stride};
        packed->ranges[panel] = hs_no_range;
        side->pack(part, rest < side->width ? rest : side->width, depth, packed->data + panel * packed->bytes,
                   &packed->ranges[panel]);
    }
}

void hs_query_key_products(const hs_exact_attention *attention, size_t count, size_t seen, const hs_packed *a,
                           const hs_packed *b, double *y, size_t pitch) {
    const hs_kit *kit = attention->kit;
    for (size_t panel = 0; panel < hs_panels(seen, kit->right.width); panel++) {
        hs_sums sums;
        hs_tile(kit, count, attention->width, a->data, b->data + panel * b->bytes,
                hs_fusible(a->ranges[0], b->ranges[panel]), true, sums.bytes);
        kit->store(count, kit->right.width, sums.bytes, y + panel * kit->right.width, pitch);
    }
}

/* The sums of a tile whose rows are queries and whose k runs over keys. */
static void chain_over_keys(const hs_kit *kit, const hs_positions *positions, size_t first, size_t count,
                            const unsigned char *a, const unsigned char *b, bool fused, void *sums) {
    const size_t a_step = kit->left.pitch * kit->element, b_step = kit->right.pitch * kit->element;
    const size_t seen = hs_keys_seen(positions, first, count), shared = hs_keys_shared(positions, first, count);
    hs_tile(kit, count, shared, a, b, fused, true, sums);
    for (size_t key = shared; key < seen; key++)
        for (size_t r = 0; r < count; r++)
            if (key < hs_keys_of(positions, first + r))
                kit->step(r, a + key * a_step, b + key * b_step, sums);
}

bool hs_sum_over_keys(const hs_exact_attention *attention, const hs_positions *positions, size_t first, size_t count,
                      const hs_packed *a, const hs_packed *b, double *y, size_t pitch) {
    const hs_kit *kit = attention->kit;
    bool nonfinite = false;
    for (size_t panel = 0; panel < hs_panels(attention->width, kit->right.width); panel++) {
        const size_t column = panel * kit->right.width, rest = attention->width - column;
        hs_sums sums;
        chain_over_keys(kit, positions, first, count, a->data, b->data + panel * b->bytes,
                        hs_fusible(a->ranges[0], b->ranges[panel]), sums.bytes);
        nonfinite |=
            kit->store(count, rest < kit->right.width ? rest : kit->right.width, sums.bytes, y + column, pitch);
    }
    return nonfinite;
}

/*
 * The sums of a tile whose rows are keys and whose k runs over queries. Queries that see all the keys come in runs,
 * which the tile takes whole.
 */
static void chain_over_queries(const hs_kit *kit, const hs_positions *positions, size_t queries, size_t first,
                               size_t count, const unsigned char *a, const unsigned char *b, bool fused, void *sums) {
    const size_t a_step = kit->left.pitch * kit->element, b_step = kit->right.pitch * kit->element;
    size_t query = 0;
    do {
        size_t run = 0;
        while (query + run < queries && hs_keys_of(positions, query + run) >= first + count)
            run++;
        hs_tile(kit, count, run, a + query * a_step, b + query * b_step, fused, query == 0, sums);
        query += run;
        if (query == queries)
            break;
        for (size_t r = 0; first + r < hs_keys_of(positions, query); r++)
            kit->step(r, a + query * a_step, b + query * b_step, sums);
        query++;
    } while (query < queries);
}

/* Adds a tile of results to y. */
static bool add_results(const hs_kit *kit, size_t rows, size_t columns, const void *sums, double *y, size_t pitch) {
    double results[HS_TILE_BYTES / sizeof(float)];
    uint64_t seen = 0;
    kit->store(rows, columns, sums, results, columns);
    for (size_t r = 0; r < rows; r++)
        for (size_t j = 0; j < columns; j++) {
            y[r * pitch + j] += results[r * columns + j];
            seen |= hs_nonfinite(y[r * pitch + j]);
        }
    return hs_any_nonfinite(seen);
}

bool hs_sum_over_queries(const hs_exact_attention *attention, const hs_positions *positions, size_t panel, size_t count,
                         const hs_packed *a, const hs_packed *b, double *y, size_t pitch, bool added) {
    const hs_kit *kit = attention->kit;
    bool nonfinite = false;
    for (size_t other = 0; other < hs_panels(attention->width, kit->right.width); other++) {
        const size_t column = other * kit->right.width, rest = attention->width - column,
                     columns = rest < kit->right.width ? rest : kit->right.width;
        hs_sums sums;
        chain_over_queries(kit, positions, attention->queries, panel * kit->left.width, count,
                           a->data + panel * a->bytes, b->data + other * b->bytes,
                           hs_fusible(a->ranges[panel], b->ranges[other]), sums.bytes);
        if (added)
            nonfinite |= add_results(kit, count, columns, sums.bytes, y + column, pitch);
        else
            nonfinite |= kit->store(count, columns, sums.bytes, y + column, pitch);
    }
    return nonfinite;
}
