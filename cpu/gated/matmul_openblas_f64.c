/*
 * Products in f64 by OpenBLAS: the sums of a cell run along k in an order of its kernels' choosing, with fused steps.
 *
 * The library has threads of its own, which keep turning for a while after a product and take the processors from the
 * exact kernels that come next. So it is left one thread, and the threads of the backend call it, each for one piece of
 * the result. How a product is cut follows from its shape and the number of threads alone, so the bits do too.
 */
#include <limits.h>

#include "cpu/exact/sums.h"
#include "cpu/exact/view.h"
#include "cpu/gated/openblas.h"

/* Pieces end at multiples of this, which suits every kernel of the library; a piece is not worth a thread below so many
 * steps. */
enum { UNIT = 16, WORTH_A_THREAD = 1 << 20 };

static bool fits(const hs_view *view) {
    return hs_rows(view) <= INT_MAX && hs_columns(view) <= INT_MAX && hs_pitch(view) <= INT_MAX;
}

bool hs_openblas_accepts(const hs_call *call) {
    if (call->attributes.continues || call->attributes.unfinished)
        return false;
    return fits(&call->inputs[0]) && fits(&call->inputs[1]) && fits(&call->outputs[0]);
}

static size_t units(size_t count) { return (count + UNIT - 1) / UNIT; }

/* The cut into that many pieces which reads least; none where the result is too small for it. */
static hs_openblas_grid best_grid(size_t m, size_t n, size_t pieces) {
    hs_openblas_grid best = {0};
    size_t least = SIZE_MAX;
    for (size_t rows = 1; rows <= pieces; rows++) {
        const size_t columns = pieces / rows, reads = m / rows + n / columns;
        if (rows * columns != pieces || rows > units(m) || columns > units(n) || reads >= least)
            continue;
        least = reads;
        best = (hs_openblas_grid){rows, columns};
    }
    return best;
}

hs_openblas_grid hs_openblas_cut(size_t m, size_t n, size_t k, unsigned threads) {
    const double worth = (double)m * (double)n * (double)k / WORTH_A_THREAD;
    size_t pieces = threads < HS_OPENBLAS_MOST_CALLERS ? threads : HS_OPENBLAS_MOST_CALLERS;
    if (worth < (double)pieces)
        pieces = worth < 1 ? 1 : (size_t)worth;
    hs_openblas_grid grid = best_grid(m, n, pieces);
    while (grid.rows == 0 && --pieces > 0)
        grid = best_grid(m, n, pieces);
    return grid;
}

/* Where piece i of `pieces` begins. */
static size_t start_of(size_t count, size_t pieces, size_t i) {
    const size_t start = units(count) * i / pieces * UNIT;
    return start < count ? start : count;
}

/* The pitch of a matrix with one row may be anything; dgemm wants it to span a row. */
static int pitch_of(const hs_view *view) {
    const size_t pitch = hs_pitch(view), columns = hs_columns(view);
    return (int)(pitch > columns ? pitch : columns);
}

static uint64_t scan(const hs_call *call, size_t row, size_t rows, size_t column, size_t columns) {
    uint64_t seen = 0;
    for (size_t i = 0; i < rows; i++) {
        const double *y = hs_out_row(call, 0, row + i) + column;
        for (size_t j = 0; j < columns; j++)
            seen |= hs_nonfinite(y[j]);
    }
    return seen;
}

/* Returns whether the piece holds a nonfinite value. */
static bool multiply_piece(const hs_call *call, const hs_openblas *blas, hs_openblas_grid grid, size_t k,
                           size_t piece) {
    const hs_view *a = &call->inputs[0], *b = &call->inputs[1], *y = &call->outputs[0];
    const bool a_turned = call->attributes.a_form == HSTEP_TRANSPOSE,
               b_turned = call->attributes.b_form == HSTEP_TRANSPOSE;
    const size_t i = piece / grid.columns, j = piece % grid.columns;
    const size_t row = start_of(hs_rows(y), grid.rows, i), rows = start_of(hs_rows(y), grid.rows, i + 1) - row;
    const size_t column = start_of(hs_columns(y), grid.columns, j),
                 columns = start_of(hs_columns(y), grid.columns, j + 1) - column;
    const double *left = a_turned ? hs_in(call, 0) + row : hs_in_row(call, 0, row);
    const double *right = b_turned ? hs_in_row(call, 1, column) : hs_in(call, 1) + column;
    blas->dgemm(HS_CBLAS_ROW_MAJOR, a_turned ? HS_CBLAS_TRANSPOSE : HS_CBLAS_NO_TRANSPOSE,
                b_turned ? HS_CBLAS_TRANSPOSE : HS_CBLAS_NO_TRANSPOSE, (int)rows, (int)columns, (int)k, 1.0, left,
                pitch_of(a), right, pitch_of(b), 0.0, hs_out_row(call, 0, row) + column, pitch_of(y));
    return hs_any_nonfinite(scan(call, row, rows, column, columns));
}

void hs_matmul_openblas_f64(const hs_call *call, hs_kernel_run *run) {
    const hs_openblas *blas = hs_openblas_load();
    const hs_view *a = &call->inputs[0], *y = &call->outputs[0];
    const size_t m = hs_rows(y), n = hs_columns(y);
    const size_t k = call->attributes.a_form == HSTEP_TRANSPOSE ? hs_rows(a) : hs_columns(a);
    if (m == 0 || n == 0)
        return;
    if (k == 0) {
        for (size_t i = 0; i < m; i++)
            for (size_t j = 0; j < n; j++)
                hs_out_row(call, 0, i)[j] = 0.0;
        return;
    }
    if (blas->threads() != 1)
        blas->set_threads(1);
    const hs_openblas_grid grid = hs_openblas_cut(m, n, k, run->threads);
    const size_t pieces = grid.rows * grid.columns;
    bool nonfinite = false;
#pragma omp parallel for num_threads((int)pieces) schedule(static, 1) reduction(|| : nonfinite)
    for (size_t piece = 0; piece < pieces; piece++)
        nonfinite = multiply_piece(call, blas, grid, k, piece) || nonfinite;
    run->nonfinite = run->nonfinite || nonfinite;
}
