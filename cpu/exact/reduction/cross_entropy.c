#include "cpu/exact/kernels.h"
#include "cpu/exact/reduction/tensor_sum.h"
#include "cpu/exact/softmax.h"
#include "cpu/exact/view.h"

/* The row losses and their sums; before them rooms for rows of logits. */
size_t HS_EXACT(cross_entropy_scratch)(const hs_call *call, const hs_kernel_run *run) {
    const size_t rows = hs_rows(&call->inputs[0]);
    return hs_row_rooms_bytes(&call->inputs[0], 1, run->threads) + (rows + hs_tensor_sum_rows(rows)) * sizeof(double);
}

size_t HS_EXACT(cross_entropy_backward_scratch)(const hs_call *call, const hs_kernel_run *run) {
    return hs_row_rooms_bytes(&call->outputs[0], 1, run->threads);
}

static double row_loss(size_t columns, const double *x, size_t target) {
    const double largest = hs_largest(columns, x);
    double sum;
    HS_SUM_OVER(sum, columns, i, hs_exp(x[i] - largest));
    return hs_log(sum) - (x[target] - largest);
}

void HS_EXACT(cross_entropy)(const hs_call *call, hs_kernel_run *run) {
    const hs_view *logits = &call->inputs[0];
    const size_t rows = hs_rows(logits), columns = hs_columns(logits);
    const int32_t *targets = hs_in_i32(call, 1);
    double *losses = (double *)run->scratch + hs_row_rooms_bytes(logits, 1, run->threads) / sizeof(double);
    if (call->attributes.unfinished)
        losses = hs_out(call, 0);
#pragma omp parallel for num_threads(run->threads) if (rows * columns > HS_PARALLEL_COSTLY)
    for (size_t row = 0; row < rows; row++) {
        double *room = hs_row_room(logits, 1, 0, run->scratch);
        losses[row] = targets[row] < 0 ? 0.0 : row_loss(columns, hs_read_row(logits, row, room), (size_t)targets[row]);
    }
    if (call->attributes.unfinished)
        return;
    const double loss = hs_tensor_sum(rows, losses, losses + rows);
    *hs_out(call, 0) = loss;
    run->nonfinite = run->nonfinite || hs_any_nonfinite(hs_nonfinite(loss));
}

static uint64_t differentiate_row(size_t columns, const double *x, int32_t target, double seed, double *dx) {
    uint64_t seen = 0;
    hs_softmax_row(columns, x, dx);
    dx[target] -= 1.0;
    for (size_t i = 0; i < columns; i++) {
        dx[i] *= seed;
        seen |= hs_nonfinite(dx[i]);
    }
    return seen;
}

void HS_EXACT(cross_entropy_backward)(const hs_call *call, hs_kernel_run *run) {
    const size_t rows = hs_rows(&call->outputs[0]), columns = hs_columns(&call->outputs[0]);
    const double seed = *hs_in(call, 0);
    const int32_t *targets = hs_in_i32(call, 2);
    uint64_t seen = 0;
#pragma omp parallel for num_threads(run->threads) if (rows * columns > HS_PARALLEL_COSTLY) reduction(| : seen)
    for (size_t row = 0; row < rows; row++) {
        double *room = hs_row_room(&call->outputs[0], 1, 0, run->scratch);
        double *dx = hs_place_row(&call->outputs[0], row, room);
        if (targets[row] >= 0)
            seen |= differentiate_row(columns, hs_read_row(&call->inputs[1], row, room), targets[row], seed, dx);
        else
            for (size_t i = 0; i < columns; i++)
                dx[i] = 0.0;
        hs_write_row(&call->outputs[0], row, dx);
    }
    run->nonfinite = run->nonfinite || hs_any_nonfinite(seen);
}
