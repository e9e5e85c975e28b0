/*
 * Products. All threads pack a block of rows of the left operand, whole chains long; then each takes columns of the
 * right one, packs them block of k by block of k, and walks them past every row. A cell belongs to one thread and its
 * chain runs in ascending k, block after block, so no bit depends on how many there are.
 */
#include <omp.h>
#include <stdatomic.h>

#include "cpu/exact/kernels.h"
#include "cpu/exact/product/kit.h"
#include "cpu/exact/product/partial.h"
#include "cpu/exact/scratch.h"
#include "cpu/exact/view.h"

/* Rows that are packed at a time, at most, and how many bytes they may fill if there are more than a few. */
enum { MOST_ROWS = 1120, FEW_ROWS = 140, PACKED_BYTES = 8 << 20 };

/* Columns that are worth a task, where threads would have too few tasks otherwise. */
enum { FEW_COLUMNS = 64 };

/* Blocks of k begin at multiples of this: with a cache line of the source, and with what any kit packs together. */
enum { DEPTH_UNIT = 32 };

/* Multiplications below which one thread is faster than waking others: they take it some twenty microseconds. */
enum { PARALLEL_WORK = 3 << 19 };

typedef struct product {
    const hs_kit *kit;
    hs_store *store;
    bool continues, unfinished; /* whether y holds sums before, and afterwards */
    size_t m, n, k;
    hs_lines a, b;
    hs_cells y;
    size_t rows, depth, columns; /* of a block of the left operand; of a block of k; of a task */
    size_t parts; /* into which the panels of a block of rows are cut, so that there are tasks for all threads */
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
    unsigned char *sums; /* of the task's tiles between two blocks of k; of one tile where there is one block */
    bool *apart;         /* of each: whether its last steps were not fused */
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

/* The size of parts that are about equal and none larger than `most`: multiples of `multiple`, as `most` is. */
static size_t balanced(size_t total, size_t most, size_t multiple) {
    const size_t count = hs_panels(total, most);
    return count ? hs_panels(hs_panels(total, count), multiple) * multiple : 0;
}

static size_t tile_bytes(const hs_kit *kit) { return kit->left.width * kit->right.pitch * kit->sum; }

static size_t left_panels(const product *p, size_t rows) { return hs_panels(rows, p->kit->left.width); }

/* One where there is no step at all: that chain is +0, and is stored. */
static size_t blocks_of_k(const product *p) { return p->k ? hs_panels(p->k, p->depth) : 1; }

static size_t rows_of_block(const hs_kit *kit, size_t m, size_t k) {
    const size_t width = kit->left.width, room = PACKED_BYTES / larger(k * kit->element, 1);
    const size_t most = smaller(larger(room, FEW_ROWS), MOST_ROWS) / width * width;
    return balanced(m, most, width);
}

/* Fewer than the kit would like where the threads would have too little to share. */
static size_t columns_of_task(const hs_kit *kit, size_t n, unsigned threads) {
    const size_t width = kit->right.width, share = threads > 1 ? n / (2 * threads) / width * width : kit->columns;
    return smaller(kit->columns, larger(share, FEW_COLUMNS));
}

/* An operand whose lines are the rows of a view, or its columns; where it stands comes later. */
static hs_lines lines_of(const hs_view *view, bool rows) {
    const size_t pitch = hs_pitch(view);
    return (hs_lines){NULL, rows ? pitch : 1, rows ? 1 : pitch, hs_dtype_is_half(view->dtype)};
}

static product product_of(const hs_call *call, const hs_kernel_run *run) {
    const hs_view *a = &call->inputs[0], *b = &call->inputs[1], *y = &call->outputs[0];
    const bool a_turned = call->attributes.a_form == HSTEP_TRANSPOSE,
               b_turned = call->attributes.b_form == HSTEP_TRANSPOSE;
    const hs_kit *kit = run->kit;
    product p = {.kit = kit,
                 .store = call->attributes.sums && kit->store_sums ? kit->store_sums : kit->store,
                 .continues = call->attributes.continues,
                 .unfinished = call->attributes.unfinished,
                 .m = hs_rows(y),
                 .n = hs_columns(y),
                 .k = a_turned ? hs_rows(a) : hs_columns(a),
                 .a = lines_of(a, !a_turned),
                 .b = lines_of(b, b_turned),
                 .y = {NULL, hs_pitch(y), hs_dtype_is_half(y->dtype)},
                 .threads = run->threads};
    if (p.m * p.n * (p.k + 1) <= PARALLEL_WORK)
        p.threads = 1;
    p.rows = rows_of_block(kit, p.m, p.k);
    p.depth = smaller(p.k, balanced(p.k, kit->depth, DEPTH_UNIT));
    p.columns = columns_of_task(kit, p.n, p.threads);
    if (p.threads > 1)
        p.parts = 3 * p.threads / larger(hs_panels(p.n, p.columns), 1);
    p.parts = larger(smaller(p.parts, left_panels(&p, p.rows)), 1);
    return p;
}

/* Lays out what a thread works with from `scratch` on. */
static work work_at(const product *p, unsigned char **scratch) {
    const hs_kit *kit = p->kit;
    const size_t across = hs_panels(smaller(p->n, p->columns), kit->right.width);
    const size_t tiles = hs_panels(left_panels(p, p->rows), p->parts) * across;
    work w;
    w.packed_b = hs_carve(scratch, across * hs_panel_bytes(kit, &kit->right, p->depth));
    w.ranges_b = hs_carve(scratch, across * sizeof *w.ranges_b);
    w.sums = hs_carve(scratch, (p->depth < p->k ? tiles : 1) * tile_bytes(kit));
    w.apart = hs_carve(scratch, tiles * sizeof *w.apart);
    return w;
}

/* Lays everything out; returns how many bytes it takes. */
static size_t lay_out(product *p, unsigned char *scratch) {
    const size_t panels = left_panels(p, p->rows);
    unsigned char *end = scratch;
    p->packed_a = hs_carve(&end, panels * hs_panel_bytes(p->kit, &p->kit->left, p->k));
    p->ranges_a = hs_carve(&end, panels * blocks_of_k(p) * sizeof *p->ranges_a);
    p->works = end;
    (void)work_at(p, &end);
    p->work_bytes = (size_t)(end - p->works);
    return (size_t)(p->works - scratch) + p->threads * p->work_bytes;
}

size_t hs_kit_matmul_scratch(const hs_call *call, const hs_kernel_run *run) {
    unsigned char origin;
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
    const size_t panels = left_panels(p, rows), blocks = blocks_of_k(p);
    const size_t end = panels * blocks * (own->thread + 1) / own->team;
    for (size_t i = panels * blocks * own->thread / own->team; i < end; i++) {
        const size_t panel = i % panels, line = panel * p->kit->left.width, k = i / panels * p->depth;
        const size_t depth = smaller(p->depth, p->k - k);
        p->ranges_a[i] =
            pack_panel(&p->kit->left, p->a, row + line, rows - line, k, depth, packed_left(p, rows, panel, k, depth));
    }
}

/* What the tiles of a task prefetch, one after another: part of the right operand that is packed next. */
typedef struct prefetch {
    uintptr_t at;
    size_t tiles, turns;  /* tiles that take something; how many of them share a column of cache lines */
    size_t column, share; /* bytes from one column to the next, and from one tile's share of it to the next one's */
    size_t step;          /* bytes from line to line */
} prefetch;

/*
 * For columns [column, column + columns) from step k on, by tiles that take `lines` lines each. Rows of the source
 * stand far apart, so a tile takes the same cache line of as many of them as it has lines. Where they are far fewer, it
 * takes a row as a whole instead.
 */
static prefetch prefetch_of(const product *p, size_t column, size_t columns, size_t k, size_t lines) {
    enum { LINE = 64 };
    const bool along = p->b.k_stride == 1;
    const size_t slot = hs_slot(p->b.half), pitch = (along ? p->b.line_stride : p->b.k_stride) * slot;
    const size_t rows = along ? columns : p->depth, row_bytes = (along ? p->depth : columns) * slot;
    const uintptr_t at = (uintptr_t)p->b.data + (column * p->b.line_stride + k * p->b.k_stride) * slot;
    if (along && 2 * rows <= lines)
        return (prefetch){at, rows, 1, pitch, 0, slot * p->kit->at_once};
    const size_t turns = hs_panels(rows, lines);
    return (prefetch){at, turns * hs_panels(row_bytes, LINE), turns, LINE, lines * pitch, pitch};
}

static hs_ahead ahead_of(const prefetch *f, size_t tile, const void *nothing) {
    if (tile >= f->tiles)
        return (hs_ahead){(uintptr_t)nothing, 0};
    if (f->turns == 1)
        return (hs_ahead){f->at + tile * f->column, f->step};
    return (hs_ahead){f->at + tile / f->turns * f->column + tile % f->turns * f->share, f->step};
}

/* A block of k, and what is packed of it. */
typedef struct block {
    size_t k, depth;
    bool last;
    const unsigned char *a; /* the first panel of the task */
    const hs_range *ranges_a;
    size_t a_bytes, b_bytes; /* of a panel */
    prefetch prefetch;
} block;

static block block_of(const product *p, const task *t, size_t k) {
    const size_t depth = smaller(p->depth, p->k - k), panels = left_panels(p, t->rows);
    block b = {.k = k, .depth = depth, .last = k + depth == p->k};
    b.a_bytes = hs_panel_bytes(p->kit, &p->kit->left, depth);
    b.b_bytes = hs_panel_bytes(p->kit, &p->kit->right, depth);
    b.a = packed_left(p, t->rows, t->first, k, depth);
    b.ranges_a = p->ranges_a + (k ? k / p->depth : 0) * panels + t->first;
    /* After the last block the thread probably goes on with the task that stands as far ahead as there are threads. */
    const size_t next = b.last ? t->column + p->threads * p->columns : t->column;
    b.prefetch = prefetch_of(p, next, next < p->n ? smaller(p->columns, p->n - next) : 0, b.last ? 0 : k + depth,
                             larger(hs_panels(depth, p->kit->at_once), 1));
    return b;
}

/* Results are written all at once when a tile is done: it is better to have their lines by then. */
static void prefetch_results(hs_cells y, size_t rows, size_t columns) {
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j += 64 / hs_slot(y.half))
            __builtin_prefetch(hs_cells_from(y, i, j).data, 1);
}

/* Whether a tile's next steps may be fused; keeps what it answers. */
static bool may_fuse(const hs_kit *kit, hs_range a, hs_range b, bool first, bool *apart) {
    const bool stays_apart = kit->stays_apart && !first && *apart;
    *apart = stays_apart || !(kit->fits ? kit->fits(a, b) : hs_fusible(a, b));
    return !*apart;
}

/* Walks panel `j` of a task's columns past its rows. Returns whether a result is nonfinite. */
static bool compute_panel(const product *p, const task *t, const work *w, const block *b, size_t j) {
    const hs_kit *kit = p->kit;
    const size_t panels = t->last - t->first, height = kit->left.width, column = j * kit->right.width;
    const size_t columns = smaller(kit->right.width, t->columns - column),
                 bytes = p->depth < p->k ? tile_bytes(kit) : 0;
    const unsigned char *packed_b = w->packed_b + j * b->b_bytes;
    bool nonfinite = false;
    for (size_t i = 0; i < panels; i++) {
        const size_t tile = j * panels + i, row = (t->first + i) * height, rows = smaller(height, t->rows - row);
        void *sums = w->sums + tile * bytes;
        const hs_cells y = hs_cells_from(p->y, t->row + row, t->column + column);
        const bool first = b->k == 0, continued = first && p->continues;
        if (continued)
            w->apart[tile] = !hs_load_partial(kit, rows, columns, y, sums);
        const bool fused = may_fuse(kit, b->ranges_a[i], w->ranges_b[j], first && !continued, &w->apart[tile]);
        if (b->last)
            prefetch_results(y, rows, columns);
        kit->walk(fused, rows, b->depth, b->a + i * b->a_bytes, packed_b, first && !continued, sums,
                  ahead_of(&b->prefetch, tile, sums));
        if (b->last && p->unfinished)
            hs_store_partial(kit, rows, columns, sums, y);
        else if (b->last)
            nonfinite |= p->store(rows, columns, sums, y);
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

void hs_kit_matmul(const hs_call *call, hs_kernel_run *run) {
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
