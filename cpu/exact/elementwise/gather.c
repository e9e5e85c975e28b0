#include "cpu/exact/kernels.h"
#include "cpu/exact/sums.h"
#include "cpu/exact/view.h"

static uint64_t copy_row(size_t count, const double *x, double *y) {
    uint64_t seen = 0;
    for (size_t i = 0; i < count; i++) {
        y[i] = x[i];
        seen |= hs_nonfinite(x[i]);
    }
    return seen;
}

void HS_EXACT(gather)(const hs_call *call, hs_kernel_run *run) {
    const size_t rows = hs_rows(&call->outputs[0]), columns = hs_columns(&call->outputs[0]);
    const int32_t *indices = hs_in_i32(call, 1);
    uint64_t seen = 0;
#pragma omp parallel for num_threads(run->threads) if (rows * columns > HS_PARALLEL_CHEAP) reduction(| : seen)
    for (size_t row = 0; row < rows; row++)
        seen |= copy_row(columns, hs_in_row(call, 0, (size_t)indices[row]), hs_out_row(call, 0, row));
    run->nonfinite = run->nonfinite || hs_any_nonfinite(seen);
}

/* Elements [at, at + count) of the rows, to element `to` of the state. */
static uint64_t store_piece(const hs_call *call, size_t at, size_t to, size_t count) {
    const hs_view *state = &call->outputs[0];
    double read[HS_SPAN], placed[HS_SPAN];
    double *y = hs_place(state, to, placed);
    const uint64_t seen = copy_row(count, hs_read(&call->inputs[0], at, count, read), y);
    hs_write(state, to, count, y);
    return seen;
}

void HS_EXACT(store_rows)(const hs_call *call, hs_kernel_run *run) {
    const size_t rows = hs_rows(&call->inputs[0]), columns = hs_columns(&call->inputs[0]);
    const int32_t *indices = hs_in_i32(call, 1);
    uint64_t seen = 0;
#pragma omp parallel for num_threads(run->threads) if (rows * columns > HS_PARALLEL_CHEAP) reduction(| : seen)
    for (size_t row = 0; row < rows; row++)
        for (size_t column = 0; column < columns; column += HS_SPAN) {
            const size_t rest = columns - column, count = rest < HS_SPAN ? rest : HS_SPAN;
            seen |= store_piece(call, row * columns + column, (size_t)indices[row] * columns + column, count);
        }
    run->nonfinite = run->nonfinite || hs_any_nonfinite(seen);
}

/* Lays the base under columns [first, last) of the table; in place it is there already and only looked at. */
static uint64_t lay_base(const hs_call *call, size_t first, size_t last) {
    const size_t rows = hs_rows(&call->outputs[0]);
    uint64_t seen = 0;
    for (size_t row = 0; row < rows; row++) {
        double *y = hs_out_row(call, 0, row);
        if (call->input_count > 2)
            seen |= copy_row(last - first, hs_in_row(call, 2, row) + first, y + first);
        else
            for (size_t i = first; i < last; i++)
                y[i] = 0.0;
    }
    return seen;
}

/* Columns [first, last) of the table, where rows are added one by one, ascending. */
static uint64_t scatter_columns(const hs_call *call, size_t first, size_t last) {
    const size_t rows = hs_rows(&call->inputs[0]);
    const int32_t *indices = hs_in_i32(call, 1);
    uint64_t seen = lay_base(call, first, last);
    for (size_t row = 0; row < rows; row++) {
        const double *dy = hs_in_row(call, 0, row);
        double *y = hs_out_row(call, 0, (size_t)indices[row]);
        for (size_t i = first; i < last; i++) {
            y[i] += dy[i];
            seen |= hs_nonfinite(y[i]);
        }
    }
    return seen;
}

/* Threads share columns out, in whole cache lines, so that every cell keeps its ascending order. */
void HS_EXACT(gather_backward)(const hs_call *call, hs_kernel_run *run) {
    enum { LINE = 8 };
    const size_t columns = hs_columns(&call->outputs[0]), lines = (columns + LINE - 1) / LINE;
    const size_t parts = lines < run->threads ? lines : run->threads;
    const size_t work = hs_view_elements(&call->inputs[0]) + hs_view_elements(&call->outputs[0]);
    uint64_t seen = 0;
#pragma omp parallel for num_threads(run->threads) if (work > HS_PARALLEL_CHEAP) reduction(| : seen)
    for (size_t part = 0; part < parts; part++) {
        const size_t first = part * lines / parts * LINE, end = (part + 1) * lines / parts * LINE;
        seen |= scatter_columns(call, first, end < columns ? end : columns);
    }
    run->nonfinite = run->nonfinite || hs_any_nonfinite(seen);
}
