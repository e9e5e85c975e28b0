/* Sums down rows: blocks of 64 rows ascending, then the blocks ascending (policy, section 3). */
#include <string.h>

#include "cpu/exact/kernels.h"
#include "cpu/exact/reduction/rows.h"
#include "cpu/exact/view.h"

static size_t blocks_of(const hs_call *call) {
    return (hs_rows(&call->inputs[0]) + HS_SUM_ROWS_BLOCK - 1) / HS_SUM_ROWS_BLOCK;
}

size_t HS_EXACT(sum_rows_scratch)(const hs_call *call, const hs_kernel_run *run) {
    (void)run;
    return blocks_of(call) * hs_columns(&call->inputs[0]) * sizeof(double);
}

/* Adds row `row` of a call's terms to `sums`. */
typedef void add_row(const hs_call *call, size_t row, size_t columns, double *sums);

static void add_plain(const hs_call *call, size_t row, size_t columns, double *sums) {
    const double *x = hs_in_row(call, 0, row);
    for (size_t i = 0; i < columns; i++)
        sums[i] += x[i];
}

/* dy times the normalised x. */
static void add_gain(const hs_call *call, size_t row, size_t columns, double *sums) {
    const hs_view *view = &call->inputs[0];
    const double *x = hs_in_row(call, 1, row);
    const double r = hs_reciprocal_rms(columns, x, call->attributes.epsilon);
    double room[HS_SPAN];
    for (size_t first = 0; first < columns; first += HS_SPAN) {
        const size_t count = columns - first < HS_SPAN ? columns - first : HS_SPAN;
        const double *dy = hs_read(view, row * hs_pitch(view) + first, count, room);
        for (size_t i = 0; i < count; i++)
            sums[first + i] += dy[i] * (x[first + i] * r);
    }
}

static void sum_rows(const hs_call *call, hs_kernel_run *run, add_row *add) {
    const size_t rows = hs_rows(&call->inputs[0]), columns = hs_columns(&call->inputs[0]), blocks = blocks_of(call);
    double *sums = run->scratch, *y = hs_out(call, 0);
    uint64_t seen = 0;
#pragma omp parallel for num_threads(run->threads) if (rows * columns > HS_PARALLEL_CHEAP)
    for (size_t block = 0; block < blocks; block++) {
        const size_t first = block * HS_SUM_ROWS_BLOCK;
        const size_t last = first + HS_SUM_ROWS_BLOCK < rows ? first + HS_SUM_ROWS_BLOCK : rows;
        memset(sums + block * columns, 0, columns * sizeof *sums);
        for (size_t row = first; row < last; row++)
            add(call, row, columns, sums + block * columns);
    }
    for (size_t i = 0; i < columns; i++) {
        y[i] = 0.0;
        for (size_t block = 0; block < blocks; block++)
            y[i] += sums[block * columns + i];
        seen |= hs_nonfinite(y[i]);
    }
    run->nonfinite = run->nonfinite || hs_any_nonfinite(seen);
}

void HS_EXACT(sum_rows)(const hs_call *call, hs_kernel_run *run) { sum_rows(call, run, add_plain); }

void HS_EXACT(rmsnorm_backward_gain)(const hs_call *call, hs_kernel_run *run) { sum_rows(call, run, add_gain); }
