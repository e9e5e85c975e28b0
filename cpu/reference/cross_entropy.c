/* log z - (x_t - m) for each row, and its adjoint (p - [j = t]) * seed (policy, section 3). */
#include "cpu/reference/reference.h"
#include "precision/arithmetic.h"
#include "precision/reduce.h"

/* One row's exponentials and one loss for each row. */
size_t hs_reference_cross_entropy_scratch(const hs_call *call, const hs_kernel_run *run) {
    (void)run;
    return (call->inputs[0].dims[0] + call->inputs[0].dims[1]) * sizeof(double);
}

void hs_reference_cross_entropy(const hs_call *call, hs_kernel_run *run) {
    const size_t rows = call->inputs[0].dims[0], vocabulary = call->inputs[0].dims[1];
    const int32_t *targets = hs_in_i32(call, 1);
    const bool unfinished = call->attributes.unfinished;
    double *e = run->scratch, *losses = unfinished ? hs_out(call, 0) : e + vocabulary;
    for (size_t row = 0; row < rows; row++) {
        losses[row] = 0.0;
        if (targets[row] == -1)
            continue;
        const double *x = hs_in(call, 0) + row * vocabulary;
        const double m = hs_reference_maximum(vocabulary, x);
        for (size_t i = 0; i < vocabulary; i++)
            e[i] = hs_exp(x[i] - m);
        losses[row] = hs_log(hs_sum_row(vocabulary, e)) - (x[targets[row]] - m);
    }
    if (!unfinished)
        hs_out(call, 0)[0] = hs_sum_tensor(rows, losses);
}

void hs_reference_cross_entropy_backward(const hs_call *call, hs_kernel_run *run) {
    (void)run;
    const size_t rows = call->inputs[1].dims[0], vocabulary = call->inputs[1].dims[1];
    const double seed = hs_in(call, 0)[0];
    const int32_t *targets = hs_in_i32(call, 2);
    for (size_t row = 0; row < rows; row++) {
        const double *x = hs_in(call, 1) + row * vocabulary;
        double *dx = hs_out(call, 0) + row * vocabulary;
        if (targets[row] == -1) {
            for (size_t i = 0; i < vocabulary; i++)
                dx[i] = 0.0;
            continue;
        }
        const double m = hs_reference_maximum(vocabulary, x);
        for (size_t i = 0; i < vocabulary; i++)
            dx[i] = hs_exp(x[i] - m);
        const double r = 1.0 / hs_sum_row(vocabulary, dx);
        for (size_t i = 0; i < vocabulary; i++) {
            const double p = dx[i] * r, hit = (size_t)targets[row] == i ? 1.0 : 0.0;
            dx[i] = (p - hit) * seed;
        }
    }
}
