#include "cpu/exact/kernels.h"
#include "cpu/exact/sums.h"
#include "cpu/exact/view.h"

/* Turns the pairs (i, i + half) of one head. */
static uint64_t turn(size_t half, const double *x, const double *cosine, const double *sine, double *y) {
    uint64_t seen = 0;
#pragma omp simd reduction(| : seen)
    for (size_t i = 0; i < half; i++) {
        y[i] = x[i] * cosine[i] - x[i + half] * sine[i];
        y[i + half] = x[i + half] * cosine[i] + x[i] * sine[i];
        seen |= hs_nonfinite(y[i]) | hs_nonfinite(y[i + half]);
    }
    return seen;
}

/* The transposed rotation. */
static uint64_t turn_back(size_t half, const double *x, const double *cosine, const double *sine, double *y) {
    uint64_t seen = 0;
#pragma omp simd reduction(| : seen)
    for (size_t i = 0; i < half; i++) {
        y[i] = x[i] * cosine[i] + x[i + half] * sine[i];
        y[i + half] = x[i + half] * cosine[i] - x[i] * sine[i];
        seen |= hs_nonfinite(y[i]) | hs_nonfinite(y[i + half]);
    }
    return seen;
}

static void turn_rows(const hs_call *call, hs_kernel_run *run,
                      uint64_t (*rotate)(size_t, const double *, const double *, const double *, double *)) {
    const size_t rows = hs_rows(&call->outputs[0]), columns = hs_columns(&call->outputs[0]);
    const size_t width = call->attributes.head_width;
    const int32_t *positions = hs_in_i32(call, 1);
    uint64_t seen = 0;
#pragma omp parallel for num_threads(run->threads) if (rows * columns > HS_PARALLEL_CHEAP) reduction(| : seen)
    for (size_t row = 0; row < rows; row++) {
        const double *x = hs_read_row(&call->inputs[0], row, hs_row_room(&call->inputs[0], 2, 0, run->scratch));
        const double *cosine = hs_in_row(call, 2, (size_t)positions[row]),
                     *sine = hs_in_row(call, 3, (size_t)positions[row]);
        double *y = hs_place_row(&call->outputs[0], row, hs_row_room(&call->outputs[0], 2, 1, run->scratch));
        for (size_t head = 0; head < columns; head += width)
            seen |= rotate(width / 2, x + head, cosine, sine, y + head);
        hs_write_row(&call->outputs[0], row, y);
    }
    run->nonfinite = run->nonfinite || hs_any_nonfinite(seen);
}

size_t HS_EXACT(rotary_scratch)(const hs_call *call, const hs_kernel_run *run) {
    return hs_row_rooms_bytes(&call->outputs[0], 2, run->threads);
}

void HS_EXACT(rotary)(const hs_call *call, hs_kernel_run *run) { turn_rows(call, run, turn); }

void HS_EXACT(rotary_backward)(const hs_call *call, hs_kernel_run *run) { turn_rows(call, run, turn_back); }
