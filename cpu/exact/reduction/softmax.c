#include "cpu/exact/softmax.h"
#include "cpu/exact/kernels.h"
#include "cpu/exact/sums.h"
#include "cpu/exact/view.h"

void HS_EXACT(softmax)(const hs_call *call, hs_kernel_run *run) {
    const size_t rows = hs_rows(&call->outputs[0]), columns = hs_columns(&call->outputs[0]);
    uint64_t seen = 0;
#pragma omp parallel for num_threads(run->threads) if (rows * columns > HS_PARALLEL_COSTLY) reduction(| : seen)
    for (size_t row = 0; row < rows; row++) {
        double *p = hs_out_row(call, 0, row);
        hs_softmax_row(columns, hs_in_row(call, 0, row), p);
        for (size_t i = 0; i < columns; i++)
            seen |= hs_nonfinite(p[i]);
    }
    run->nonfinite = run->nonfinite || hs_any_nonfinite(seen);
}

void HS_EXACT(softmax_backward)(const hs_call *call, hs_kernel_run *run) {
    const size_t rows = hs_rows(&call->outputs[0]), columns = hs_columns(&call->outputs[0]);
    uint64_t seen = 0;
#pragma omp parallel for num_threads(run->threads) if (rows * columns > HS_PARALLEL_CHEAP) reduction(| : seen)
    for (size_t row = 0; row < rows; row++) {
        const double *g = hs_in_row(call, 0, row), *p = hs_in_row(call, 1, row);
        double *dx = hs_out_row(call, 0, row), sum;
        HS_SUM_OVER(sum, columns, i, p[i] * g[i]);
        for (size_t i = 0; i < columns; i++) {
            dx[i] = p[i] * (g[i] - sum);
            seen |= hs_nonfinite(dx[i]);
        }
    }
    run->nonfinite = run->nonfinite || hs_any_nonfinite(seen);
}
