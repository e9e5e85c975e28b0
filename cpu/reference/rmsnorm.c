/* r = 1/sqrt(ss/d + eps), n = x*r, y = n*gain, and its adjoints (policy, section 3). */
#include <math.h>

#include "cpu/reference/reference.h"
#include "precision/reduce.h"

static double reciprocal_rms(size_t d, const double *x, double epsilon, double *squares) {
    for (size_t i = 0; i < d; i++)
        squares[i] = x[i] * x[i];
    return 1.0 / sqrt(hs_sum_row(d, squares) / (double)d + epsilon);
}

size_t hs_reference_rmsnorm_scratch(const hs_call *call, const hs_kernel_run *run) {
    (void)run;
    return hs_columns(&call->inputs[0]) * sizeof(double);
}

void hs_reference_rmsnorm(const hs_call *call, hs_kernel_run *run) {
    const size_t d = hs_columns(&call->inputs[0]);
    const double *gain = hs_in(call, 1);
    for (size_t row = 0; row < hs_rows(&call->inputs[0]); row++) {
        const double *x = hs_in(call, 0) + row * hs_reference_pitch(&call->inputs[0]);
        double *y = hs_out(call, 0) + row * hs_reference_pitch(&call->outputs[0]);
        const double r = reciprocal_rms(d, x, call->attributes.epsilon, run->scratch);
        for (size_t i = 0; i < d; i++) {
            const double n = x[i] * r;
            y[i] = n * gain[i];
        }
    }
}

void hs_reference_rmsnorm_backward_input(const hs_call *call, hs_kernel_run *run) {
    const size_t d = hs_columns(&call->inputs[0]);
    const double *gain = hs_in(call, 2);
    double *terms = run->scratch;
    for (size_t row = 0; row < hs_rows(&call->inputs[0]); row++) {
        const double *dy = hs_in(call, 0) + row * hs_reference_pitch(&call->inputs[0]);
        const double *x = hs_in(call, 1) + row * hs_reference_pitch(&call->inputs[1]);
        double *dx = hs_out(call, 0) + row * hs_reference_pitch(&call->outputs[0]);
        const double r = reciprocal_rms(d, x, call->attributes.epsilon, terms);
        for (size_t i = 0; i < d; i++) {
            const double n = x[i] * r, u = dy[i] * gain[i];
            terms[i] = u * n;
        }
        const double mean = hs_sum_row(d, terms) / (double)d;
        for (size_t i = 0; i < d; i++) {
            const double n = x[i] * r, u = dy[i] * gain[i];
            dx[i] = r * (u - n * mean);
        }
    }
}

/* The terms dy*n, one row of squares, and one block. */
size_t hs_reference_rmsnorm_backward_gain_scratch(const hs_call *call, const hs_kernel_run *run) {
    (void)run;
    return (hs_rows(&call->inputs[0]) + 2) * hs_columns(&call->inputs[0]) * sizeof(double);
}

void hs_reference_rmsnorm_backward_gain(const hs_call *call, hs_kernel_run *run) {
    const size_t rows = hs_rows(&call->inputs[0]), d = hs_columns(&call->inputs[0]);
    double *terms = run->scratch, *squares = terms + rows * d, *block = squares + d;
    for (size_t row = 0; row < rows; row++) {
        const double *dy = hs_in(call, 0) + row * hs_reference_pitch(&call->inputs[0]);
        const double *x = hs_in(call, 1) + row * hs_reference_pitch(&call->inputs[1]);
        const double r = reciprocal_rms(d, x, call->attributes.epsilon, squares);
        for (size_t i = 0; i < d; i++) {
            const double n = x[i] * r;
            terms[row * d + i] = dy[i] * n;
        }
    }
    hs_reference_sum_down(rows, d, terms, hs_out(call, 0), block);
}
