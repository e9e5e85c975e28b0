/* m = max, e = exp(x-m), r = 1/z, p = e*r; adjoint p*(g - sum(p*g)) (policy, section 3). */
#include "cpu/reference/reference.h"
#include "precision/arithmetic.h"
#include "precision/reduce.h"

void hs_reference_softmax(const hs_call *call, hs_kernel_run *run) {
    (void)run;
    const size_t rows = call->inputs[0].dims[0], d = call->inputs[0].dims[1];
    for (size_t row = 0; d > 0 && row < rows; row++) {
        const double *x = hs_in(call, 0) + row * d;
        double *p = hs_out(call, 0) + row * d;
        const double m = hs_reference_maximum(d, x);
        for (size_t i = 0; i < d; i++)
            p[i] = hs_exp(x[i] - m);
        const double r = 1.0 / hs_sum_row(d, p);
        for (size_t i = 0; i < d; i++)
            p[i] = p[i] * r;
    }
}

size_t hs_reference_softmax_backward_scratch(const hs_call *call, const hs_kernel_run *run) {
    (void)run;
    return call->inputs[0].dims[1] * sizeof(double);
}

void hs_reference_softmax_backward(const hs_call *call, hs_kernel_run *run) {
    const size_t rows = call->inputs[0].dims[0], d = call->inputs[0].dims[1];
    double *terms = run->scratch;
    for (size_t row = 0; row < rows; row++) {
        const double *g = hs_in(call, 0) + row * d, *p = hs_in(call, 1) + row * d;
        double *dx = hs_out(call, 0) + row * d;
        for (size_t i = 0; i < d; i++)
            terms[i] = p[i] * g[i];
        const double sum = hs_sum_row(d, terms);
        for (size_t i = 0; i < d; i++)
            dx[i] = p[i] * (g[i] - sum);
    }
}
