/* Operations that take each element, or each row, by itself. */
#include "cpu/reference/reference.h"
#include "precision/arithmetic.h"

void hs_reference_add(const hs_call *call, hs_kernel_run *run) {
    (void)run;
    for (size_t row = 0; row < hs_rows(&call->outputs[0]); row++) {
        const double *a = hs_in(call, 0) + row * hs_reference_pitch(&call->inputs[0]);
        const double *b = hs_in(call, 1) + row * hs_reference_pitch(&call->inputs[1]);
        double *y = hs_out(call, 0) + row * hs_reference_pitch(&call->outputs[0]);
        for (size_t i = 0; i < hs_columns(&call->outputs[0]); i++)
            y[i] = a[i] + b[i];
    }
}

void hs_reference_add_bias(const hs_call *call, hs_kernel_run *run) {
    (void)run;
    const size_t rows = call->outputs[0].dims[0], d = call->outputs[0].dims[1];
    const double *x = hs_in(call, 0), *bias = hs_in(call, 1);
    double *y = hs_out(call, 0);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < d; c++)
            y[r * d + c] = x[r * d + c] + bias[c];
}

void hs_reference_multiply(const hs_call *call, hs_kernel_run *run) {
    (void)run;
    const double *a = hs_in(call, 0), *b = hs_in(call, 1);
    double *y = hs_out(call, 0);
    for (size_t i = 0; i < hs_view_elements(&call->outputs[0]); i++)
        y[i] = a[i] * b[i];
}

void hs_reference_scale(const hs_call *call, hs_kernel_run *run) {
    (void)run;
    const double *x = hs_in(call, 0);
    double *y = hs_out(call, 0);
    for (size_t i = 0; i < hs_view_elements(&call->outputs[0]); i++)
        y[i] = call->attributes.factor * x[i];
}

void hs_reference_fill(const hs_call *call, hs_kernel_run *run) {
    (void)run;
    const double x = hs_in(call, 0)[0];
    double *y = hs_out(call, 0);
    for (size_t i = 0; i < hs_view_elements(&call->outputs[0]); i++)
        y[i] = x;
}

void hs_reference_transpose(const hs_call *call, hs_kernel_run *run) {
    (void)run;
    const size_t m = call->inputs[0].dims[0], n = call->inputs[0].dims[1];
    const double *x = hs_in(call, 0);
    double *y = hs_out(call, 0);
    for (size_t r = 0; r < m; r++)
        for (size_t c = 0; c < n; c++)
            y[c * m + r] = x[r * n + c];
}

void hs_reference_log(const hs_call *call, hs_kernel_run *run) {
    (void)run;
    const double *x = hs_in(call, 0);
    double *y = hs_out(call, 0);
    for (size_t i = 0; i < hs_view_elements(&call->outputs[0]); i++)
        y[i] = hs_log(x[i]);
}

void hs_reference_log_backward(const hs_call *call, hs_kernel_run *run) {
    (void)run;
    const double *dy = hs_in(call, 0), *x = hs_in(call, 1);
    double *dx = hs_out(call, 0);
    for (size_t i = 0; i < hs_view_elements(&call->outputs[0]); i++)
        dx[i] = dy[i] / x[i];
}
