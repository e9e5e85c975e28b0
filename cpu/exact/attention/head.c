#include "cpu/exact/attention/head.h"

#include <math.h>
#include <string.h>

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
        .half = run->kit->narrow != NULL,
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
        packed->ranges[panel] = hs_no_range;
        side->pack(hs_lines_from(lines, line, 0), rest < side->width ? rest : side->width, depth,
                   packed->data + panel * packed->bytes, &packed->ranges[panel]);
    }
}

hs_lines hs_head_of(const hs_view *view, size_t row, size_t column) {
    const hs_lines all = {view->buffer->data + view->offset, hs_pitch(view), 1, hs_dtype_is_half(view->dtype)};
    return hs_lines_from(all, row, column);
}

hs_cells hs_head_into(const hs_view *view, size_t row, size_t column) {
    const hs_cells all = {view->buffer->data + view->offset, hs_pitch(view), hs_dtype_is_half(view->dtype)};
    return hs_cells_from(all, row, column);
}

hs_cells hs_carve_rows(unsigned char **scratch, const hs_exact_attention *attention) {
    const size_t width = attention->kit->right.width, pitch = hs_panels(attention->keys, width) * width;
    void *rows = hs_carve(scratch, attention->kit->left.width * pitch * hs_slot(attention->half));
    return (hs_cells){rows, pitch, attention->half};
}

double *hs_take_row(const hs_exact_attention *attention, hs_cells rows, size_t row, size_t count, double *buffer) {
    void *stored = hs_cells_from(rows, row, 0).data;
    if (!attention->half)
        return stored;
    attention->kit->widen(count, stored, buffer);
    return buffer;
}

void hs_give_row(const hs_exact_attention *attention, hs_cells rows, size_t row, size_t count, const double *values) {
    if (attention->half)
        attention->kit->narrow(count, values, hs_cells_from(rows, row, 0).data);
}

void hs_query_key_products(const hs_exact_attention *attention, size_t count, size_t seen, const hs_packed *a,
                           const hs_packed *b, hs_cells y) {
    const hs_kit *kit = attention->kit;
    for (size_t panel = 0; panel < hs_panels(seen, kit->right.width); panel++) {
        hs_sums sums;
        hs_tile(kit, count, attention->width, a->data, b->data + panel * b->bytes,
                hs_fusible(a->ranges[0], b->ranges[panel]), true, sums.bytes);
        kit->store(count, kit->right.width, sums.bytes, hs_cells_from(y, 0, panel * kit->right.width));
    }
}

/* The rows from `first` on, of `count`, that see `key`: how many there are from *row on, where *row is the next such
 * row. */
static size_t rows_seeing(const hs_positions *positions, size_t first, size_t count, size_t key, size_t *row) {
    size_t end;
    while (*row < count && key >= hs_keys_of(positions, first + *row))
        ++*row;
    for (end = *row; end < count && key < hs_keys_of(positions, first + end);)
        end++;
    return end - *row;
}

/* The sums of a tile whose rows are queries and whose k runs over keys. */
static void chain_over_keys(const hs_kit *kit, const hs_positions *positions, size_t first, size_t count,
                            const unsigned char *a, const unsigned char *b, bool fused, void *sums) {
    const size_t a_step = kit->left.pitch * kit->element, b_step = kit->right.pitch * kit->element;
    const size_t seen = hs_keys_seen(positions, first, count), shared = hs_keys_shared(positions, first, count);
    hs_tile(kit, count, shared, a, b, fused, true, sums);
    for (size_t key = shared; key < seen; key++)
        for (size_t row = 0, rows; (rows = rows_seeing(positions, first, count, key, &row)) > 0; row += rows)
            kit->part(row, rows, 1, a + key * a_step, b + key * b_step, fused, sums);
}

bool hs_sum_over_keys(const hs_exact_attention *attention, const hs_positions *positions, size_t first, size_t count,
                      const hs_packed *a, const hs_packed *b, hs_cells y) {
    const hs_kit *kit = attention->kit;
    bool nonfinite = false;
    for (size_t panel = 0; panel < hs_panels(attention->width, kit->right.width); panel++) {
        const size_t column = panel * kit->right.width, rest = attention->width - column;
        hs_sums sums;
        chain_over_keys(kit, positions, first, count, a->data, b->data + panel * b->bytes,
                        hs_fusible(a->ranges[0], b->ranges[panel]), sums.bytes);
        nonfinite |= kit->store(count, rest < kit->right.width ? rest : kit->right.width, sums.bytes,
                                hs_cells_from(y, 0, column));
    }
    return nonfinite;
}

size_t hs_runs_of(const hs_positions *positions, size_t queries, size_t first, size_t count, hs_run *runs) {
    size_t made = 0;
    for (size_t query = 0; query < queries; query++) {
        const size_t keys = hs_keys_of(positions, query), beyond = keys > first ? keys - first : 0,
                     rows = beyond < count ? beyond : count;
        if (made > 0 && runs[made - 1].rows == rows)
            runs[made - 1].count++;
        else
            runs[made++] = (hs_run){query, 1, rows};
    }
    return made;
}

/* The sums of a tile whose rows are keys and whose k runs over queries. */
static void chain_over_queries(const hs_kit *kit, const hs_run *runs, size_t run_count, const unsigned char *a,
                               const unsigned char *b, bool fused, hs_sums *sums) {
    const size_t a_step = kit->left.pitch * kit->element, b_step = kit->right.pitch * kit->element;
    memset(sums, 0, sizeof *sums);
    for (size_t i = 0; i < run_count; i++)
        if (runs[i].rows > 0)
            kit->part(0, runs[i].rows, runs[i].count, a + runs[i].query * a_step, b + runs[i].query * b_step, fused,
                      sums->bytes);
}

/* Adds a tile of results to y, which is f64. */
static bool add_results(const hs_kit *kit, size_t rows, size_t columns, const void *sums, hs_cells y) {
    double results[HS_TILE_BYTES / sizeof(float)];
    uint64_t seen = 0;
    kit->store(rows, columns, sums, (hs_cells){results, columns, false});
    for (size_t r = 0; r < rows; r++) {
        double *row = hs_cells_from(y, r, 0).data;
        for (size_t j = 0; j < columns; j++) {
            row[j] += results[r * columns + j];
            seen |= hs_nonfinite(row[j]);
        }
    }
    return hs_any_nonfinite(seen);
}

bool hs_sum_over_queries(const hs_exact_attention *attention, const hs_run *runs, size_t run_count, size_t panel,
                         size_t count, const hs_packed *a, const hs_packed *b, hs_cells y, bool added) {
    const hs_kit *kit = attention->kit;
    bool nonfinite = false;
    for (size_t other = 0; other < hs_panels(attention->width, kit->right.width); other++) {
        const size_t column = other * kit->right.width, rest = attention->width - column,
                     columns = rest < kit->right.width ? rest : kit->right.width;
        hs_sums sums;
        chain_over_queries(kit, runs, run_count, a->data + panel * a->bytes, b->data + other * b->bytes,
                           hs_fusible(a->ranges[panel], b->ranges[other]), &sums);
        const hs_cells part = hs_cells_from(y, 0, column);
        nonfinite |=
            added ? add_results(kit, count, columns, sums.bytes, part) : kit->store(count, columns, sums.bytes, part);
    }
    return nonfinite;
}
