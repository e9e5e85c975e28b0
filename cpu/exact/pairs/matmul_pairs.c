/*
 * Products over panels of pairs. All threads pack a block of rows of the left operand, whole chains long; then each
 * takes columns of the right one, packs them block of steps by block of steps, and walks every row past them. A cell
 * belongs to one thread and its blocks of steps follow each other, so no bit depends on how many threads there are.
 */
#include <omp.h>
#include <stdatomic.h>

#include "cpu/exact/pairs/pairs.h"
#include "cpu/exact/scratch.h"
#include "cpu/exact/view.h"

/* Rows that are packed at a time, at most, and how many bytes they may fill if there are more than a few. */
enum { MOST_ROWS = 1024, FEW_ROWS = 128, PACKED_BYTES = 8 << 20 };

/* Multiplications below which one thread is faster than waking others. */
enum { PARALLEL_WORK = 1 << 19 };

enum { PAIRS = HS_PAIRS_STEPS / 2 };

typedef struct product {
    const hs_pairs_kit *kit;
    size_t m, n, k;
    hs_lines a, b;
    hs_cells y;
    bool sums;                   /* stored as they are */
    size_t rows, depth, columns; /* of a block of the left operand; of a block of steps; of a task */
    size_t parts;                /* into which the panels of a block of rows are cut, so that all threads have tasks */
    unsigned threads;
    uint16_t *packed_a;
    hs_range *ranges_a;   /* for every block of steps, of every panel */
    unsigned char *works; /* of the threads, one after another */
    size_t work_bytes;
} product;

/* What a thread works with. */
typedef struct work {
    uint16_t *packed_b;
    hs_range *ranges_b;
    float *sums; /* of the task's tiles between two blocks of steps; of one tile where there is one block */
    bool *plain; /* of each: whether it has left the instruction's order */
} work;

/* A thread of the team that computes a product. Teams are told apart by hand: one thread alone needs no region, and
 * must not meet a team of the caller's. */
typedef struct member {
    unsigned thread, team;
} member;

/* Part of the result: panels of the block of rows that starts at `row`, and columns. */
typedef struct task {
    size_t row, rows;
    size_t first, last;
    size_t column, columns;
} task;

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }
static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

/* The size of parts that are about equal, multiples of `multiple`, and none larger than `most`, which is one. */
static size_t balanced(size_t total, size_t most, size_t multiple) {
    const size_t count = hs_panels(total, most);
    return count ? hs_panels(hs_panels(total, count), multiple) * multiple : 0;
}

/* Elements of a panel with `lines` lines. */
static size_t panel_size(const hs_pairs_kit *kit, size_t lines, size_t depth) {
    return hs_panels(depth, HS_PAIRS_STEPS) * HS_PAIRS_STEPS * lines * kit->planes;
}

static size_t left_panels(const product *p, size_t rows) { return hs_panels(rows, p->kit->rows); }

static size_t rows_of_block(const hs_pairs_kit *kit, size_t m, size_t k) {
    const size_t room = PACKED_BYTES / (larger(k, 1) * kit->planes * sizeof(uint16_t));
    return balanced(m, smaller(larger(room, FEW_ROWS), MOST_ROWS) / kit->rows * kit->rows, kit->rows);
}

/* Columns of a task: fewer than the kit would like where the threads would have too little to share. */
static size_t columns_of_task(const hs_pairs_kit *kit, size_t n, unsigned threads) {
    const size_t wanted = threads > 1 ? n / (2 * threads) / HS_PAIRS_COLUMNS * HS_PAIRS_COLUMNS : kit->columns;
    return smaller(kit->columns, larger(wanted, smaller(kit->columns, 2 * HS_PAIRS_COLUMNS)));
}

static product product_of(const hs_call *call, const hs_kernel_run *run, const hs_pairs_kit *kit) {
    const hs_view *a = &call->inputs[0], *b = &call->inputs[1], *y = &call->outputs[0];
    const bool a_turned = call->attributes.a_form == HSTEP_TRANSPOSE,
               b_turned = call->attributes.b_form == HSTEP_TRANSPOSE;
    const size_t a_pitch = hs_pitch(a), b_pitch = hs_pitch(b);
    product p = {.kit = kit,
                 .m = hs_rows(y),
                 .n = hs_columns(y),
                 .k = a_turned ? hs_rows(a) : hs_columns(a),
                 .a = {NULL, a_turned ? 1 : a_pitch, a_turned ? a_pitch : 1, hs_dtype_is_half(a->dtype)},
                 .b = {NULL, b_turned ? b_pitch : 1, b_turned ? 1 : b_pitch, hs_dtype_is_half(b->dtype)},
                 .y = {NULL, hs_pitch(y), hs_dtype_is_half(y->dtype)},
                 .sums = call->attributes.sums,
                 .threads = run->threads};
    if (p.m * p.n * (p.k + 1) <= PARALLEL_WORK)
        p.threads = 1;
    p.rows = rows_of_block(kit, p.m, p.k);
    p.depth = balanced(p.k, kit->depth, HS_PAIRS_STEPS);
    p.columns = columns_of_task(kit, p.n, p.threads);
    if (p.threads > 1)
        p.parts = 3 * p.threads / larger(hs_panels(p.n, p.columns), 1);
    p.parts = larger(smaller(p.parts, left_panels(&p, p.rows)), 1);
    return p;
}

/* Lays out what a thread works with from `scratch` on. */
static work work_at(const product *p, unsigned char **scratch) {
    const size_t right = p->columns / HS_PAIRS_COLUMNS;
    const size_t tiles = hs_panels(left_panels(p, p->rows), p->parts) * right;
    work w;
    w.packed_b = hs_carve(scratch, right * panel_size(p->kit, HS_PAIRS_COLUMNS, p->depth) * sizeof *w.packed_b);
    w.ranges_b = hs_carve(scratch, right * sizeof *w.ranges_b);
    w.sums = hs_carve(scratch, (p->k > p->depth ? tiles : 1) * p->kit->rows * HS_PAIRS_COLUMNS * sizeof *w.sums);
    w.plain = hs_carve(scratch, tiles * sizeof *w.plain);
    return w;
}

/* Lays out everything from `scratch` on, and returns its size. */
static size_t lay_out(product *p, unsigned char *scratch) {
    unsigned char *end = scratch;
    const size_t panels = left_panels(p, p->rows), blocks = p->depth ? hs_panels(p->k, p->depth) : 0;
    p->packed_a = hs_carve(&end, panels * panel_size(p->kit, p->kit->rows, p->k) * sizeof *p->packed_a);
    p->ranges_a = hs_carve(&end, panels * blocks * sizeof *p->ranges_a);
    p->works = end;
    (void)work_at(p, &end);
    p->work_bytes = (size_t)(end - p->works);
    return (size_t)(p->works - scratch) + p->threads * p->work_bytes;
}

size_t hs_pairs_matmul_scratch(const hs_call *call, const hs_kernel_run *run, const hs_pairs_kit *kit) {
    static unsigned char origin;
    product p = product_of(call, run, kit);
    return lay_out(&p, &origin);
}

/* Where the packed block of a left panel at step k stands: first comes everything of earlier blocks of steps. */
static uint16_t *packed_left(const product *p, size_t rows, size_t panel, size_t k, size_t depth) {
    return p->packed_a + left_panels(p, rows) * panel_size(p->kit, p->kit->rows, k) +
           panel * panel_size(p->kit, p->kit->rows, depth);
}

static void wait_for_team(const member *own) {
    if (own->team > 1) {
#pragma omp barrier
    }
}

/* Rows [row, row + rows) of the left operand, the share of one thread. */
static void pack_left(const product *p, const member *own, size_t row, size_t rows) {
    const size_t panels = left_panels(p, rows), blocks = p->depth ? hs_panels(p->k, p->depth) : 0;
    const size_t end = panels * blocks * (own->thread + 1) / own->team;
    for (size_t i = panels * blocks * own->thread / own->team; i < end; i++) {
        const size_t line = i / blocks * p->kit->rows, k = i % blocks * p->depth;
        const size_t depth = smaller(p->depth, p->k - k);
        hs_range range = hs_no_range;
        hs_pairs_pack(p->kit, true, hs_lines_from(p->a, row + line, k), smaller(p->kit->rows, rows - line), depth,
                      packed_left(p, rows, i / blocks, k, depth), &range);
        p->ranges_a[i % blocks * panels + i / blocks] = range;
    }
}

static void pack_right(const product *p, const task *t, size_t k, size_t depth, const work *w) {
    for (size_t j = 0; j * HS_PAIRS_COLUMNS < t->columns; j++) {
        const size_t column = j * HS_PAIRS_COLUMNS;
        w->ranges_b[j] = hs_no_range;
        hs_pairs_pack(p->kit, false, hs_lines_from(p->b, t->column + column, k),
                      smaller(HS_PAIRS_COLUMNS, t->columns - column), depth,
                      w->packed_b + j * panel_size(p->kit, HS_PAIRS_COLUMNS, depth), &w->ranges_b[j]);
    }
}

/*
 * What tile `tile` of a task prefetches, `steps` lines: part of the right operand that is packed next, at columns
 * [column, column + columns) and steps [k, k + depth). A tile takes the same cache line of many rows of the source.
 */
static hs_ahead ahead_of(const product *p, size_t column, size_t columns, size_t k, size_t depth, size_t tile,
                         size_t steps, const void *nothing) {
    enum { LINE = 64 };
    const size_t element = hs_slot(p->b.half);
    const bool along = p->b.k_stride == 1;
    const size_t row_bytes = (along ? p->b.line_stride : p->b.k_stride) * element;
    const size_t rows = along ? columns : depth, bytes = (along ? depth : columns) * element;
    const size_t turns = larger(hs_panels(rows, steps), 1);
    const uintptr_t at = (uintptr_t)p->b.data + (column * p->b.line_stride + k * p->b.k_stride) * element;
    if (columns == 0 || tile / turns * LINE >= bytes)
        return (hs_ahead){(uintptr_t)nothing, 0};
    return (hs_ahead){at + tile / turns * LINE + tile % turns * steps * row_bytes, row_bytes};
}

/* Results are written all at once when a tile is done: it is better to have their lines by then. */
static void prefetch_results(const unsigned char *y, size_t rows, size_t bytes, size_t pitch_bytes) {
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < bytes; j += 64)
            __builtin_prefetch(y + i * pitch_bytes + j, 1);
}

/*
 * One block of steps for a task. Returns whether a result is nonfinite. A tile that has left the instruction's order
 * goes on in that of the policy: its sums may be what the instruction would not take.
 */
static bool compute_block(const product *p, const task *t, const work *w, size_t k) {
    const hs_pairs_kit *kit = p->kit;
    const size_t depth = smaller(p->depth, p->k - k), blocks = hs_panels(depth, HS_PAIRS_STEPS);
    const size_t b_size = panel_size(kit, HS_PAIRS_COLUMNS, depth), right = hs_panels(t->columns, HS_PAIRS_COLUMNS);
    const hs_range *ranges_a = p->ranges_a + (k ? k / p->depth : 0) * left_panels(p, t->rows);
    bool nonfinite = false;
    /* After the last block the thread probably goes on with the task that stands as far ahead as there are threads. */
    const bool last = k + depth == p->k;
    const size_t next_k = last ? 0 : k + depth, next = last ? t->column + p->threads * p->columns : t->column;
    const size_t next_columns = next < p->n ? smaller(p->columns, p->n - next) : 0;
    pack_right(p, t, k, depth, w);
    for (size_t i = t->first; i < t->last; i++)
        for (size_t j = 0; j < right; j++) {
            const size_t tile = (i - t->first) * right + j, row = i * kit->rows;
            float *sums = w->sums + (p->k > p->depth ? tile : 0) * kit->rows * HS_PAIRS_COLUMNS;
            w->plain[tile] = (k > 0 && w->plain[tile]) || (kit->fits && !kit->fits(ranges_a[i], w->ranges_b[j]));
            const uint16_t *a = packed_left(p, t->rows, i, k, depth), *b = w->packed_b + j * b_size;
            const size_t rows = smaller(kit->rows, t->rows - row),
                         columns = smaller(HS_PAIRS_COLUMNS, t->columns - j * HS_PAIRS_COLUMNS);
            const hs_cells y = hs_cells_from(p->y, t->row + row, t->column + j * HS_PAIRS_COLUMNS);
            if (last)
                prefetch_results(y.data, rows, columns * hs_slot(y.half), y.pitch * hs_slot(y.half));
            if (w->plain[tile])
                kit->plain(rows, blocks, a, b, k == 0, sums);
            else
                kit->tile(rows, blocks, a, b, k == 0, sums,
                          ahead_of(p, next, next_columns, next_k, p->depth, tile, larger(blocks, 1) * PAIRS, sums));
            if (last)
                nonfinite |= hs_pairs_store(kit->precision, p->sums, rows, columns, sums, y);
        }
    return nonfinite;
}

/* Rows that are packed: the first tasks by the number of the thread, the others as they come. */
static bool multiply_rows(const product *p, const member *own, size_t row, size_t rows, const work *w,
                          atomic_size_t *next) {
    const size_t panels = left_panels(p, rows), height = hs_panels(panels, p->parts),
                 across = hs_panels(p->n, p->columns), tasks = hs_panels(panels, height) * across;
    bool nonfinite = false;
    for (size_t i = own->thread; i < tasks; i = atomic_fetch_add_explicit(next, 1, memory_order_relaxed)) {
        task t = {.row = row, .rows = rows, .first = i / across * height, .column = i % across * p->columns};
        t.last = smaller(t.first + height, panels);
        t.columns = smaller(p->columns, p->n - t.column);
        size_t k = 0;
        do {
            nonfinite |= compute_block(p, &t, w, k);
            k += p->depth;
        } while (k < p->k);
    }
    return nonfinite;
}

/* What one thread does of a product. */
static bool multiply(const product *p, const member *own, atomic_size_t *next) {
    unsigned char *mine = p->works + own->thread * p->work_bytes;
    const work w = work_at(p, &mine);
    bool nonfinite = false;
    if (p->kit->enter)
        p->kit->enter();
    for (size_t row = 0; row < p->m; row += p->rows) {
        const size_t rows = smaller(p->rows, p->m - row);
        pack_left(p, own, row, rows);
        if (own->thread == 0)
            atomic_store_explicit(next, own->team, memory_order_relaxed);
        wait_for_team(own);
        nonfinite |= multiply_rows(p, own, row, rows, &w, next);
        wait_for_team(own);
    }
    if (p->kit->leave)
        p->kit->leave();
    return nonfinite;
}

void hs_pairs_matmul(const hs_call *call, hs_kernel_run *run, const hs_pairs_kit *kit) {
    product p = product_of(call, run, kit);
    lay_out(&p, run->scratch);
    p.a.data = call->inputs[0].buffer->data + call->inputs[0].offset;
    p.b.data = call->inputs[1].buffer->data + call->inputs[1].offset;
    p.y.data = call->outputs[0].buffer->data + call->outputs[0].offset;
    bool nonfinite = false;
    atomic_size_t next;
    if (p.threads == 1) {
        nonfinite = multiply(&p, &(member){0, 1}, &next);
    } else {
#pragma omp parallel num_threads(p.threads) reduction(|| : nonfinite)
        {
            const member own = {(unsigned)omp_get_thread_num(), (unsigned)omp_get_num_threads()};
            nonfinite = multiply(&p, &own, &next);
        }
    }
    run->nonfinite = run->nonfinite || nonfinite;
}

bool hs_pairs_accept(const hs_call *call, hstep_precision precision) {
    const hs_view *const views[] = {&call->inputs[0], &call->inputs[1], &call->outputs[0]};
    for (size_t i = 0; i < sizeof views / sizeof *views; i++)
        if (views[i]->dtype != HSTEP_DTYPE_F64 && views[i]->dtype != hs_operand_dtype(precision))
            return false;
    return call->precision == precision;
}
