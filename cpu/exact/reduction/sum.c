/* Sums of a tensor, and of its squares. */
#include "cpu/exact/kernels.h"
#include "cpu/exact/reduction/tensor_sum.h"
#include "cpu/exact/view.h"

size_t HS_EXACT(sum_scratch)(const hs_call *call, const hs_kernel_run *run) {
    (void)run;
    return hs_tensor_sum_rows(hs_view_elements(&call->inputs[0])) * sizeof(double);
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
    const size_t count = hs_view_elements(&call->inputs[0]), rows = hs_tensor_sum_rows(count);
    const double *x = hs_in(call, 0);
    double *sums = run->scratch, total;
#pragma omp parallel for num_threads(run->threads) if (count > HS_PARALLEL_CHEAP)
    for (size_t row = 0; row < rows; row++) {
        const size_t first = row * HS_SUM_ROW, rest = count - first, length = rest < HS_SUM_ROW ? rest : HS_SUM_ROW;
        sums[row] = sum_row(length, x + first, factor);
    }
    HS_SUM_OVER(total, rows, i, sums[i]);
    *hs_out(call, 0) = total;
    run->nonfinite = run->nonfinite || hs_any_nonfinite(hs_nonfinite(total));
}

void HS_EXACT(sum)(const hs_call *call, hs_kernel_run *run) { sum_tensor(call, run, sum_plain, 1.0); }

void HS_EXACT(square_sum)(const hs_call *call, hs_kernel_run *run) {
    sum_tensor(call, run, sum_squares, *hs_in(call, 1));
}
