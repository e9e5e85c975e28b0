/* Sums, each in the one order that the policy gives it (section 3). */
#include "precision/reduce.h"

#include "cpu/reference/reference.h"

void hs_reference_sum_down(size_t rows, size_t columns, const double *x, double *y, double *block) {
    for (size_t c = 0; c < columns; c++)
        y[c] = 0.0;
    for (size_t first = 0; first < rows; first += HS_SUM_ROWS_BLOCK) {
        const size_t end = rows - first < HS_SUM_ROWS_BLOCK ? rows : first + HS_SUM_ROWS_BLOCK;
        for (size_t c = 0; c < columns; c++)
            block[c] = 0.0;
        for (size_t r = first; r < end; r++)
            for (size_t c = 0; c < columns; c++)
                block[c] += x[r * columns + c];
        for (size_t c = 0; c < columns; c++)
            y[c] = first == 0 ? block[c] : y[c] + block[c];
    }
}

size_t hs_reference_sum_rows_scratch(const hs_call *call, const hs_kernel_run *run) {
    (void)run;
    return call->inputs[0].dims[1] * sizeof(double);
}

void hs_reference_sum_rows(const hs_call *call, hs_kernel_run *run) {
    hs_reference_sum_down(call->inputs[0].dims[0], call->inputs[0].dims[1], hs_in(call, 0), hs_out(call, 0),
                          run->scratch);
}

void hs_reference_sum(const hs_call *call, hs_kernel_run *run) {
    (void)run;
    hs_out(call, 0)[0] = hs_sum_tensor(hs_view_elements(&call->inputs[0]), hs_in(call, 0));
}

size_t hs_reference_square_sum_scratch(const hs_call *call, const hs_kernel_run *run) {
    (void)run;
    return hs_view_elements(&call->inputs[0]) * sizeof(double);
}

void hs_reference_square_sum(const hs_call *call, hs_kernel_run *run) {
    const size_t count = hs_view_elements(&call->inputs[0]);
    const double *g = hs_in(call, 0), unscale = hs_in(call, 1)[0];
    double *squares = run->scratch;
    for (size_t i = 0; i < count; i++) {
        const double value = g[i] * unscale;
        squares[i] = value * value;
    }
    hs_out(call, 0)[0] = hs_sum_tensor(count, squares);
}
