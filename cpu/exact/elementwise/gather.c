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
