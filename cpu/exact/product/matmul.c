/*
 * Products. All threads pack a block of rows of the left operand, whole chains long; then each takes columns of the
 * right one, packs them block of k by block of k, and walks them past every row. A cell belongs to one thread and its
 * chain runs in ascending k, block after block, so no bit depends on how many there are.
 */
#include <omp.h>
#include <stdatomic.h>

#include "cpu/exact/kernels.h"
#include "cpu/exact/product/kit.h"
#include "cpu/exact/scratch.h"
#include "cpu/exact/view.h"

/* Columns that a task packs and walks past the rows. */
enum { TASK_COLUMNS = 64 };

/* Rows that are packed at a time, at most, and how many bytes they may fill if there are more than a few. */
enum { MOST_ROWS = 1120, FEW_ROWS = 140, PACKED_BYTES = 8 << 20 };

/* Multiplications below which one thread is faster than waking others: they take it some twenty microseconds. */
enum { PARALLEL_WORK = 3 << 19 };

typedef struct product {
    const hs_kit *kit;
    size_t m, n, k;
    hs_lines a, b;
    hs_cells y;
    size_t rows, depth; /* of a block of the left operand; of a block of k */
    size_t parts;       /* into which the panels of a block of rows are cut, so that there are tasks for all threads */
    unsigned threads;
    unsigned char *packed_a;
    hs_range *ranges_a;   /* for every block of k, of every panel */
    unsigned char *works; /* of the threads, one after another */
    size_t work_bytes;
} product;

/* What a thread works with. */
typedef struct work {
    unsigned char *packed_b;
    hs_range *ranges_b;
    unsigned char *sums; /* of the task's tiles between two blocks of k; NULL where there is one block */
} work;

/* A thread of the team that computes a product. Teams are told apart by hand: one thread alone needs no region, and
 * must not meet a team of the caller's. */
typedef struct member {
    unsigned thread, team;
} member;

/* Part of the result: rows of a block of the left operand, by panels, and columns. */
typedef struct task {
    size_t row, rows;   /* of the block */
    size_t first, last; /* panels of the block */
    size_t column, columns;
} task;

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }
static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

/* The size of parts that are about equal and none larger than `most`, which is a multiple of `multiple`, as they are.
 */
static size_t balanced(size_t total, size_t most, size_t multiple) {
    const size_t count = hs_panels(total, most);
    return count ? hs_panels(hs_panels(total, count), multiple) * multiple : 0;
}

static size_t tile_bytes(const hs_kit *kit) { return kit->left.width * kit->right.pitch * kit->element; }

static size_t left_panels(const product *p, size_t rows) { return hs_panels(rows, p->kit->left.width); }

/* Rows of the left operand that are packed at a time. */
static size_t rows_of_block(const hs_kit *kit, size_t m, size_t k) {
    const size_t width = kit->left.width, room = PACKED_BYTES / larger(k * kit->element, 1);
    const size_t most = smaller(larger(room, FEW_ROWS), MOST_ROWS) / width * width;
    return balanced(m, most, width);
}

/* An operand whose lines are the rows of a view, or its columns; where it stands comes later. */
static hs_lines lines_of(const hs_view *view, bool rows) {
    const size_t pitch = hs_pitch(view);
    return (hs_lines){NULL, rows ? pitch : 1, rows ? 1 : pitch, view->dtype != HSTEP_DTYPE_F64};
}

static product product_of(const hs_call *call, const hs_kernel_run *run) {
    const hs_view *a = &call->inputs[0], *b = &call->inputs[1], *y = &call->outputs[0];
    const bool a_turned = call->attributes.a_form == HSTEP_TRANSPOSE,
               b_turned = call->attributes.b_form == HSTEP_TRANSPOSE;
    const hs_kit *kit = run->kit;
    product p = {.kit = kit,
                 .m = hs_rows(y),
                 .n = hs_columns(y),
                 .k = a_turned ? hs_rows(a) : hs_columns(a),
                 .a = lines_of(a, !a_turned),
                 .b = lines_of(b, b_turned),
                 .y = {NULL, hs_pitch(y), y->dtype != HSTEP_DTYPE_F64},
                 .threads = run->threads};
    p.rows = rows_of_block(kit, p.m, p.k);
    p.depth = smaller(p.k, balanced(p.k, kit->depth, 16));
    if (p.m * p.n * (p.k + 1) <= PARALLEL_WORK)
        p.threads = 1;
    if (p.threads > 1)
        p.parts = 3 * p.threads / larger(hs_panels(p.n, TASK_COLUMNS), 1);
    p.parts = larger(smaller(p.parts, left_panels(&p, p.rows)), 1);
    return p;
}

/* Lays out what a thread works with from `scratch` on. */
static work work_at(const product *p, unsigned char **scratch) {
    const hs_kit *kit = p->kit;
    const size_t columns = smaller(p->n, TASK_COLUMNS), panels = hs_panels(columns, kit->right.width);
    work w = {.packed_b = hs_carve(scratch, panels * hs_panel_bytes(kit, &kit->right, p->depth))};
    w.ranges_b = hs_carve(scratch, panels * sizeof *w.ranges_b);
    if (p->depth < p->k)
        w.sums = hs_carve(scratch, hs_panels(left_panels(p, p->rows), p->parts) * panels * tile_bytes(kit));
    return w;
}

/* Lays everything out; returns how many bytes it takes. */
static size_t lay_out(product *p, unsigned char *scratch) {
    const size_t panels = left_panels(p, p->rows), blocks = p->depth ? hs_panels(p->k, p->depth) : 1;
    unsigned char *end = scratch;
    p->packed_a = hs_carve(&end, panels * hs_panel_bytes(p->kit, &p->kit->left, p->k));
    p->ranges_a = hs_carve(&end, panels * blocks * sizeof *p->ranges_a);
    p->works = end;
    (void)work_at(p, &end);
    p->work_bytes = (size_t)(end - p->works);
    return (size_t)(p->works - scratch) + p->threads * p->work_bytes;
}

size_t hs_exact_matmul_scratch(const hs_call *call, const hs_kernel_run *run) {
    static unsigned char origin;
    product p = product_of(call, run);
    return lay_out(&p, &origin);
}

/* Packs a panel of up to `count` lines, from line `line` on, over [k, k + depth). */
static hs_range pack_panel(const hs_side *side, hs_lines lines, size_t line, size_t count, size_t k, size_t depth,
                           unsigned char *panel) {
    hs_range range = hs_no_range;
    side->pack(hs_lines_from(lines, line, k), smaller(side->width, count), depth, panel, &range);
    return range;
}

/* Where the packed block of a left panel at k stands: first comes everything of earlier blocks of k. */
static unsigned char *packed_left(const product *p, size_t rows, size_t panel, size_t k, size_t depth) {
    const hs_side *left = &p->kit->left;
    return p->packed_a + left_panels(p, rows) * hs_panel_bytes(p->kit, left, k) +
           panel * hs_panel_bytes(p->kit, left, depth);
}

static void wait_for_team(const member *own) {
    if (own->team > 1) {
#pragma omp barrier
    }
}

/* Rows [row, row + rows) of the left operand, the share of one thread. Panels of one block of k follow each other:
 * where the source runs across the lines, they are side by side in its cache lines. */
static void pack_left(const product *p, const member *own, size_t row, size_t rows) {
    const size_t panels = left_panels(p, rows), blocks = p->depth ? hs_panels(p->k, p->depth) : 0;
    const size_t end = panels * blocks * (own->thread + 1) / own->team;
    for (size_t i = panels * blocks * own->thread / own->team; i < end; i++) {
        const size_t panel = i % panels, line = panel * p->kit->left.width, k = i / panels * p->depth;
        const size_t depth = smaller(p->depth, p->k - k);
        p->ranges_a[i] =
            pack_panel(&p->kit->left, p->a, row + line, rows - line, k, depth, packed_left(p, rows, panel, k, depth));
    }
}

/*
 * What tile `tile` of a task prefetches: part of the right operand that is packed next, at columns [column,
 * column + columns) and step k. Where its rows run across the lines, one tile takes the same cache line of each row,
 * otherwise one line.
 */
static hs_ahead ahead_of(const product *p, size_t column, size_t columns, size_t k, size_t tile, const void *nothing) {
    enum { LINE = 64 };
    const hs_lines *b = &p->b;
    const size_t slot = hs_slot(b->half);
    const uintptr_t at = (uintptr_t)b->data + (column * b->line_stride + k * b->k_stride) * slot;
    if (b->k_stride == 1 && tile < columns)
        return (hs_ahead){at + tile * b->line_stride * slot, slot};
    if (b->k_stride != 1 && tile * LINE < columns * slot)
        return (hs_ahead){at + tile * LINE, b->k_stride * slot};
    return (hs_ahead){(uintptr_t)nothing, 0};
}

/* Results are written all at once when a tile is done: it is better to have their lines by then. */
static void prefetch_results(hs_cells y, size_t rows, size_t columns) {
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j += 64 / hs_slot(y.half))
            __builtin_prefetch(hs_cells_from(y, i, j).data, 1);
}

/* A block of k, and what is packed of it. */
typedef struct block {
    size_t k, depth;
    bool last;
    const unsigned char *a; /* the first panel of the task */
    const hs_range *ranges_a;
    size_t a_bytes, b_bytes;                /* of a panel */
    size_t next, next_columns, next_k, row; /* what is packed next; the task's first row in the block of rows */
} block;

static block block_of(const product *p, const task *t, size_t k) {
    const size_t depth = smaller(p->depth, p->k - k), panels = left_panels(p, t->rows);
    block b = {.k = k, .depth = depth, .last = k + depth == p->k, .row = t->first * p->kit->left.width};
    b.a_bytes = hs_panel_bytes(p->kit, &p->kit->left, depth);
    b.b_bytes = hs_panel_bytes(p->kit, &p->kit->right, depth);
    b.a = packed_left(p, t->rows, t->first, k, depth);
    b.ranges_a = p->ranges_a + (k ? k / p->depth : 0) * panels + t->first;
    /* After the last block the thread probably goes on with the task that stands as far ahead as there are threads. */
    b.next_k = b.last ? 0 : k + depth;
    b.next = b.last ? t->column + p->threads * TASK_COLUMNS : t->column;
    b.next_columns = b.next < p->n ? smaller(TASK_COLUMNS, p->n - b.next) : 0;
    return b;
}

/* Walks panel `j` of a task's columns past its rows. Returns whether a result is nonfinite. */
static bool compute_panel(const product *p, const task *t, const work *w, const block *b, size_t j) {
    const hs_kit *kit = p->kit;
    const size_t panels = t->last - t->first, height = kit->left.width, column = j * kit->right.width;
    const size_t columns = smaller(kit->right.width, t->columns - column), bytes = tile_bytes(kit);
    const unsigned char *packed_b = w->packed_b + j * b->b_bytes;
    bool nonfinite = false;
    hs_sums local;
    for (size_t i = 0; i < panels; i++) {
        const size_t tile = j * panels + i, row = b->row + i * height, rows = smaller(height, t->rows - row);
        void *sums = w->sums ? w->sums + tile * bytes : local.bytes;
        const hs_cells y = hs_cells_from(p->y, t->row + row, t->column + column);
        if (b->last)
            prefetch_results(y, rows, columns);
        kit->walks[hs_fusible(b->ranges_a[i], w->ranges_b[j])][rows - 1](
            b->depth, b->a + i * b->a_bytes, packed_b, b->k == 0, sums,
            ahead_of(p, b->next, b->next_columns, b->next_k, tile, sums));
        if (b->last)
            nonfinite |= kit->store(rows, columns, sums, y);
    }
    return nonfinite;
}

/* One block of k for a task. */
static bool compute_block(const product *p, const task *t, const work *w, size_t k) {
    const hs_side *right = &p->kit->right;
    const block b = block_of(p, t, k);
    const size_t panels = hs_panels(t->columns, right->width);
    bool nonfinite = false;
    for (size_t j = 0; j < panels; j++)
        w->ranges_b[j] = pack_panel(right, p->b, t->column + j * right->width, t->columns - j * right->width, k,
                                    b.depth, w->packed_b + j * b.b_bytes);
    for (size_t j = 0; j < panels; j++)
        nonfinite |= compute_panel(p, t, w, &b, j);
    return nonfinite;
}

/* Rows that are packed: the first tasks by the number of the thread, the others as they come. */
static bool multiply_rows(const product *p, const member *own, size_t row, size_t rows, const work *w,
                          atomic_size_t *next) {
    const size_t panels = left_panels(p, rows), height = hs_panels(panels, p->parts),
                 across = hs_panels(p->n, TASK_COLUMNS), tasks = hs_panels(panels, height) * across;
    bool nonfinite = false;
    for (size_t i = own->thread; i < tasks; i = atomic_fetch_add_explicit(next, 1, memory_order_relaxed)) {
        task t = {.row = row, .rows = rows, .first = i / across * height, .column = i % across * TASK_COLUMNS};
        t.last = smaller(t.first + height, panels);
        t.columns = smaller(TASK_COLUMNS, p->n - t.column);
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
    for (size_t row = 0; row < p->m; row += p->rows) {
        const size_t rows = smaller(p->rows, p->m - row);
        pack_left(p, own, row, rows);
        if (own->thread == 0)
            atomic_store_explicit(next, own->team, memory_order_relaxed);
        wait_for_team(own);
        nonfinite |= multiply_rows(p, own, row, rows, &w, next);
        wait_for_team(own);
    }
    return nonfinite;
}

void hs_exact_matmul(const hs_call *call, hs_kernel_run *run) {
    product p = product_of(call, run);
    lay_out(&p, run->scratch);
    p.a.data = hs_in(call, 0);
    p.b.data = hs_in(call, 1);
    p.y.data = hs_out(call, 0);
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
