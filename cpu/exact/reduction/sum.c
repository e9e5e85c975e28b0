/* Sums of a tensor, and of its squares. */
#include "cpu/exact/kernels.h"
#include "cpu/exact/reduction/tensor_sum.h"
#include "cpu/exact/view.h"

size_t hs_exact_sum_scratch(const hs_call *call, unsigned threads) {
    (void)threads;
    return hs_tensor_sum_rows(hs_elements(&call->inputs[0])) * sizeof(double);
}

/* `count` elements from element `first` on, row-major; in place where they are contiguous, else copied to `buffer`. */
static const double *elements(const hs_call *call, bool dense, size_t first, size_t count, double *buffer) {
    const size_t columns = hs_columns(&call->inputs[0]);
    if (dense)
        return hs_in(call, 0) + first;
    for (size_t i = 0; i < count; i++)
        buffer[i] = hs_in_row(call, 0, (first + i) / columns)[(first + i) % columns];
    return buffer;
}

static double sum_plain(size_t count, const double *x, double unused) {
    double sum;
    (void)unused;
    HS_SUM_OVER(sum, count, i, x[i]);
    return sum;
}

static double sum_squares(size_t count, const double *x, double unscale) {
    double sum;
    HS_SUM_OVER(sum, count, i, (x[i] * unscale) * (x[i] * unscale));
    return sum;
}

static void sum_tensor(const hs_call *call, hs_kernel_run *run, double (*sum_row)(size_t, const double *, double),
                       double factor) {
    const size_t count = hs_elements(&call->inputs[0]), rows = hs_tensor_sum_rows(count);
    const bool dense = hs_dense(&call->inputs[0]);
    double *sums = run->scratch, total;
#pragma omp parallel for num_threads(run->threads) if (count > HS_PARALLEL_CHEAP)
    for (size_t row = 0; row < rows; row++) {
        double buffer[HS_SUM_ROW];
        const size_t first = row * HS_SUM_ROW, rest = count - first, length = rest < HS_SUM_ROW ? rest : HS_SUM_ROW;
        sums[row] = sum_row(length, elements(call, dense, first, length, buffer), factor);
    }
    HS_SUM_OVER(total, rows, i, sums[i]);
    *hs_out(call, 0) = total;
    run->nonfinite = run->nonfinite || hs_any_nonfinite(hs_nonfinite(total));
}

void hs_exact_sum(const hs_call *call, hs_kernel_run *run) { sum_tensor(call, run, sum_plain, 1.0); }

void hs_exact_square_sum(const hs_call *call, hs_kernel_run *run) {
    sum_tensor(call, run, sum_squares, *hs_in(call, 1));
}
