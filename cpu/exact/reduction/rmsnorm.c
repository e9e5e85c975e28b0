/* RMSNorm and its adjoint to the input (policy, section 3). */
#include "cpu/exact/kernels.h"
#include "cpu/exact/reduction/rows.h"
#include "cpu/exact/view.h"

/* Room for a row of what may stand in 16 bits, y or dy. */
size_t HS_EXACT(rmsnorm_scratch)(const hs_call *call, const hs_kernel_run *run) {
    return hs_row_rooms_bytes(&call->outputs[0], 1, run->threads);
}

void HS_EXACT(rmsnorm)(const hs_call *call, hs_kernel_run *run) {
    const size_t rows = hs_rows(&call->outputs[0]), columns = hs_columns(&call->outputs[0]);
    const double *gain = hs_in(call, 1);
    uint64_t seen = 0;
#pragma omp parallel for num_threads(run->threads) if (rows * columns > HS_PARALLEL_COSTLY) reduction(| : seen)
    for (size_t row = 0; row < rows; row++) {
        const double *x = hs_in_row(call, 0, row);
        double *y = hs_place_row(&call->outputs[0], row, hs_row_room(&call->outputs[0], 1, 0, run->scratch));
        const double r = hs_reciprocal_rms(columns, x, call->attributes.epsilon);
#pragma omp simd reduction(| : seen)
        for (size_t i = 0; i < columns; i++) {
            y[i] = (x[i] * r) * gain[i];
            seen |= hs_nonfinite(y[i]);
        }
        hs_write_row(&call->outputs[0], row, y);
    }
    run->nonfinite = run->nonfinite || hs_any_nonfinite(seen);
}

static uint64_t differentiate_row(size_t columns, const double *dy, const double *x, const double *gain, double epsilon,
                                  double *dx) {
    const double r = hs_reciprocal_rms(columns, x, epsilon);
    double sum;
    HS_SUM_OVER(sum, columns, i, (dy[i] * gain[i]) * (x[i] * r));
    const double mean = sum / (double)columns;
    uint64_t seen = 0;
#pragma omp simd reduction(| : seen)
    for (size_t i = 0; i < columns; i++) {
        dx[i] = r * (dy[i] * gain[i] - (x[i] * r) * mean);
        seen |= hs_nonfinite(dx[i]);
    }
    return seen;
}

void HS_EXACT(rmsnorm_backward_input)(const hs_call *call, hs_kernel_run *run) {
    const size_t rows = hs_rows(&call->outputs[0]), columns = hs_columns(&call->outputs[0]);
    const double *gain = hs_in(call, 2);
    uint64_t seen = 0;
#pragma omp parallel for num_threads(run->threads) if (rows * columns > HS_PARALLEL_COSTLY) reduction(| : seen)
    for (size_t row = 0; row < rows; row++) {
        const double *dy = hs_read_row(&call->inputs[0], row, hs_row_room(&call->inputs[0], 1, 0, run->scratch));
        seen |= differentiate_row(columns, dy, hs_in_row(call, 1, row), gain, call->attributes.epsilon,
                                  hs_out_row(call, 0, row));
    }
    run->nonfinite = run->nonfinite || hs_any_nonfinite(seen);
}
