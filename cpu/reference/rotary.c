/* Pairs (i, i + half the head width) turn by the angle of the row's position (policy, section 3). */
#include "cpu/reference/reference.h"

/* Turns every pair of every head; turning back is the adjoint. */
static void rotate(const hs_call *call, bool back) {
    const size_t width = call->attributes.head_width, half = width / 2;
    const size_t heads = hs_columns(&call->inputs[0]) / width;
    const int32_t *positions = hs_in_i32(call, 1);
    for (size_t row = 0; row < hs_rows(&call->inputs[0]); row++) {
        const double *cosine = hs_in(call, 2) + (size_t)positions[row] * half;
        const double *sine = hs_in(call, 3) + (size_t)positions[row] * half;
        for (size_t head = 0; head < heads; head++) {
            const double *x = hs_in(call, 0) + row * hs_reference_pitch(&call->inputs[0]) + head * width;
            double *y = hs_out(call, 0) + row * hs_reference_pitch(&call->outputs[0]) + head * width;
            for (size_t i = 0; i < half; i++) {
                const double x1 = x[i], x2 = x[i + half], c = cosine[i], s = sine[i];
                y[i] = back ? x1 * c + x2 * s : x1 * c - x2 * s;
                y[i + half] = back ? x2 * c - x1 * s : x2 * c + x1 * s;
            }
        }
    }
}

void hs_reference_rotary(const hs_call *call, hs_kernel_run *run) {
    (void)run;
    rotate(call, false);
}

void hs_reference_rotary_backward(const hs_call *call, hs_kernel_run *run) {
    (void)run;
    rotate(call, true);
}
