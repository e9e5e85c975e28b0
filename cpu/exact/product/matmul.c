/*
 * Products. Blocks of both operands are packed by all threads together, then tiles of the result are shared out. A cell
 * belongs to one thread and its chain runs in ascending k, block after block, so no bit depends on how many there are.
 */
#include <omp.h>

#include "cpu/exact/kernels.h"
#include "cpu/exact/product/kit.h"
#include "cpu/exact/sums.h"
#include "cpu/exact/view.h"

/* Blocks, in elements: a panel of the right operand stays in the first-level cache, the packed blocks near it. */
enum { BLOCK_M = 1024, BLOCK_N = 2048, BLOCK_K = 512 };

/* What one thread takes at a time, in elements of the result; multiples of every tile. */
enum { TASK_M = 64, TASK_N = 64 };

/* Multiplications below which one thread is faster than waking others. */
enum { PARALLEL_WORK = 32768 };

typedef struct product {
    const hs_kit *kit;
    const hs_rounding *rounding;
    size_t m, n, k;
    hs_lines a, b;
    double *y;
    size_t pitch;
    unsigned char *packed_a, *packed_b;
} product;

/* A block of the result at (i, j), and the part [k, k + depth) of its chains. */
typedef struct block {
    size_t i, rows, j, columns, k, depth;
} block;

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

static size_t rounded_up(size_t a, size_t multiple) { return hs_panels(a, multiple) * multiple; }

static size_t packed_a_bytes(const hs_kit *kit, size_t m, size_t k) {
    return rounded_up(rounded_up(smaller(m, BLOCK_M), kit->rows) * smaller(k, BLOCK_K) * kit->element, 64);
}

static product product_of(const hs_call *call, hs_kernel_run *run) {
    const hs_view *a = &call->inputs[0], *b = &call->inputs[1], *y = &call->outputs[0];
    const bool a_turned = call->attributes.a_form == HSTEP_TRANSPOSE,
               b_turned = call->attributes.b_form == HSTEP_TRANSPOSE;
    const size_t a_pitch = hs_pitch(a), b_pitch = hs_pitch(b);
    product p = {
        .kit = hs_kit_of(call->precision),
        .rounding = hs_rounding_of(call->precision),
        .m = hs_rows(y),
        .n = hs_columns(y),
        .k = a_turned ? hs_rows(a) : hs_columns(a),
        .a = a_turned ? (hs_lines){hs_in(call, 0), 1, a_pitch} : (hs_lines){hs_in(call, 0), a_pitch, 1},
        .b = b_turned ? (hs_lines){hs_in(call, 1), b_pitch, 1} : (hs_lines){hs_in(call, 1), 1, b_pitch},
        .y = hs_out(call, 0),
        .pitch = hs_pitch(y),
        .packed_a = run->scratch,
    };
    p.packed_b = p.packed_a + packed_a_bytes(p.kit, p.m, p.k);
    return p;
}

size_t hs_exact_matmul_scratch(const hs_call *call, unsigned threads) {
    (void)threads;
    hs_kernel_run none = {0};
    const product p = product_of(call, &none);
    const size_t columns = rounded_up(smaller(p.n, BLOCK_N), p.kit->columns);
    return packed_a_bytes(p.kit, p.m, p.k) + columns * smaller(p.k, BLOCK_K) * p.kit->element;
}

/* Packs panel `panel` of the lines [first, first + count) over the block's part of k. */
static void pack_panel(const product *p, hs_lines lines, size_t width, const block *part, size_t first, size_t count,
                       size_t panel, unsigned char *packed) {
    const size_t line = panel * width;
    lines.data += (first + line) * lines.line_stride + part->k * lines.k_stride;
    p->kit->pack(p->rounding, width, lines, smaller(width, count - line), part->depth,
                 packed + line * part->depth * p->kit->element);
}

/* One tile at (i, j) of the block. */
static uint64_t compute_tile(const product *p, const block *part, size_t i, size_t j) {
    const hs_kit *kit = p->kit;
    const size_t rows = smaller(kit->rows, part->rows - i), columns = smaller(kit->columns, part->columns - j);
    double *y = p->y + (part->i + i) * p->pitch + part->j + j;
    double sums[HS_TILE_CELLS] = {0};
    if (part->k > 0)
        kit->load(rows, columns, y, p->pitch, sums);
    kit->tile(part->depth, p->packed_a + i * part->depth * kit->element, p->packed_b + j * part->depth * kit->element,
              sums);
    if (part->k + part->depth == p->k)
        return kit->store(p->rounding, rows, columns, sums, y, p->pitch);
    kit->keep(rows, columns, sums, y, p->pitch);
    return 0;
}

/* Task `task` of the block, numbered along rows of the result. */
static uint64_t compute_task(const product *p, const block *part, size_t task) {
    const size_t across = hs_panels(part->columns, TASK_N);
    const size_t i0 = task / across * TASK_M, j0 = task % across * TASK_N;
    const size_t i1 = smaller(i0 + TASK_M, part->rows), j1 = smaller(j0 + TASK_N, part->columns);
    uint64_t seen = 0;
    for (size_t j = j0; j < j1; j += p->kit->columns)
        for (size_t i = i0; i < i1; i += p->kit->rows)
            seen |= compute_tile(p, part, i, j);
    return seen;
}

/*
 * Called by every thread of the team, for a block of rows against a right operand that is being packed. No thread waits
 * at the end: whoever packs over these panels next does.
 */
static uint64_t compute_rows(const product *p, block part) {
    uint64_t seen = 0;
#pragma omp for schedule(static)
    for (size_t panel = 0; panel < hs_panels(part.rows, p->kit->rows); panel++)
        pack_panel(p, p->a, p->kit->rows, &part, part.i, part.rows, panel, p->packed_a);
#pragma omp for schedule(dynamic) nowait
    for (size_t task = 0; task < hs_panels(part.rows, TASK_M) * hs_panels(part.columns, TASK_N); task++)
        seen |= compute_task(p, &part, task);
    return seen;
}

/* Called by every thread of the team: one block of columns over one block of k. */
static uint64_t compute_columns(const product *p, block part) {
    uint64_t seen = 0;
    const bool first = part.j == 0 && part.k == 0;
    for (part.i = 0; part.i < p->m; part.i += BLOCK_M) {
        part.rows = smaller(BLOCK_M, p->m - part.i);
        if (!first || part.i > 0) {
#pragma omp barrier
        }
        if (part.i == 0) {
#pragma omp for schedule(static) nowait
            for (size_t panel = 0; panel < hs_panels(part.columns, p->kit->columns); panel++)
                pack_panel(p, p->b, p->kit->columns, &part, part.j, part.columns, panel, p->packed_b);
        }
        seen |= compute_rows(p, part);
    }
    return seen;
}

void hs_exact_matmul(const hs_call *call, hs_kernel_run *run) {
    const product p = product_of(call, run);
    uint64_t seen = 0;
#pragma omp parallel num_threads(run->threads) if (p.m * p.n * (p.k + 1) > PARALLEL_WORK) reduction(| : seen)
    for (size_t j = 0; j < p.n; j += BLOCK_N) {
        block part = {.j = j, .columns = smaller(BLOCK_N, p.n - j)};
        do {
            part.depth = smaller(BLOCK_K, p.k - part.k);
            seen |= compute_columns(&p, part);
            part.k += part.depth;
        } while (part.k < p.k);
    }
    run->nonfinite = run->nonfinite || hs_any_nonfinite(seen);
}
