/* SiLU and SwiGLU with s = 1/(1+exp(-g)) (policy, section 3). */
#include "cpu/reference/reference.h"
#include "precision/arithmetic.h"

/* The derivative of g*s. */
static double slope(double g) {
    const double s = hs_sigmoid(g);
    return s * (1.0 + g * (1.0 - s));
}

void hs_reference_swiglu(const hs_call *call, hs_kernel_run *run) {
    (void)run;
    for (size_t row = 0; row < hs_rows(&call->outputs[0]); row++) {
        const double *gate = hs_in(call, 0) + row * hs_reference_pitch(&call->inputs[0]);
        const double *up = hs_in(call, 1) + row * hs_reference_pitch(&call->inputs[1]);
        double *y = hs_out(call, 0) + row * hs_reference_pitch(&call->outputs[0]);
        for (size_t i = 0; i < hs_columns(&call->outputs[0]); i++)
            y[i] = (gate[i] * hs_sigmoid(gate[i])) * up[i];
    }
}

void hs_reference_swiglu_backward(const hs_call *call, hs_kernel_run *run) {
    (void)run;
    for (size_t row = 0; row < hs_rows(&call->outputs[0]); row++) {
        const double *dy = hs_in(call, 0) + row * hs_reference_pitch(&call->inputs[0]);
        const double *gate = hs_in(call, 1) + row * hs_reference_pitch(&call->inputs[1]);
        const double *up = hs_in(call, 2) + row * hs_reference_pitch(&call->inputs[2]);
        double *dgate = hs_out(call, 0) + row * hs_reference_pitch(&call->outputs[0]);
        double *dup = hs_out(call, 1) + row * hs_reference_pitch(&call->outputs[1]);
        for (size_t i = 0; i < hs_columns(&call->outputs[0]); i++) {
            dgate[i] = (dy[i] * up[i]) * slope(gate[i]);
            dup[i] = dy[i] * (gate[i] * hs_sigmoid(gate[i]));
        }
    }
}

void hs_reference_silu(const hs_call *call, hs_kernel_run *run) {
    (void)run;
    const double *x = hs_in(call, 0);
    double *y = hs_out(call, 0);
    for (size_t i = 0; i < hs_view_elements(&call->outputs[0]); i++)
        y[i] = x[i] * hs_sigmoid(x[i]);
}

void hs_reference_silu_backward(const hs_call *call, hs_kernel_run *run) {
    (void)run;
    const double *dy = hs_in(call, 0), *x = hs_in(call, 1);
    double *dx = hs_out(call, 0);
    for (size_t i = 0; i < hs_view_elements(&call->outputs[0]); i++)
        dx[i] = dy[i] * slope(x[i]);
}
