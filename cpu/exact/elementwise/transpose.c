#include "cpu/exact/kernels.h"
#include "cpu/exact/sums.h"
#include "cpu/exact/view.h"

/* Side of the squares that are turned at once: whole cache lines of both matrices. */
enum { SQUARE = 16 };

/* Rows [first, first + SQUARE) of y. */
static uint64_t turn_band(const hs_call *call, size_t first) {
    const size_t rows = hs_rows(&call->outputs[0]), columns = hs_columns(&call->outputs[0]);
    const size_t x_pitch = hs_pitch(&call->inputs[0]), y_pitch = hs_pitch(&call->outputs[0]);
    const size_t last = first + SQUARE < rows ? first + SQUARE : rows;
    const double *x = hs_in(call, 0);
    double *y = hs_out(call, 0);
    uint64_t seen = 0;
    for (size_t j0 = 0; j0 < columns; j0 += SQUARE) {
        const size_t j1 = j0 + SQUARE < columns ? j0 + SQUARE : columns;
        for (size_t i = first; i < last; i++)
            for (size_t j = j0; j < j1; j++) {
                const double value = x[j * x_pitch + i];
                y[i * y_pitch + j] = value;
                seen |= hs_nonfinite(value);
            }
    }
    return seen;
}

void HS_EXACT(transpose)(const hs_call *call, hs_kernel_run *run) {
    const size_t rows = hs_rows(&call->outputs[0]), columns = hs_columns(&call->outputs[0]);
    uint64_t seen = 0;
#pragma omp parallel for num_threads(run->threads) if (rows * columns > HS_PARALLEL_CHEAP) reduction(| : seen)
    for (size_t first = 0; first < rows; first += SQUARE)
        seen |= turn_band(call, first);
    run->nonfinite = run->nonfinite || hs_any_nonfinite(seen);
}
