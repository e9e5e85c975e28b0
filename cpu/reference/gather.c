#include "cpu/reference/reference.h"

void hs_reference_gather(const hs_call *call, hs_kernel_run *run) {
    (void)run;
    const size_t rows = call->outputs[0].dims[0], d = call->outputs[0].dims[1];
    const double *table = hs_in(call, 0);
    const int32_t *indices = hs_in_i32(call, 1);
    double *y = hs_out(call, 0);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < d; c++)
            y[r * d + c] = table[(size_t)indices[r] * d + c];
}

void hs_reference_gather_backward(const hs_call *call, hs_kernel_run *run) {
    (void)run;
    const size_t rows = call->inputs[0].dims[0], d = call->inputs[0].dims[1];
    const double *dy = hs_in(call, 0);
    const int32_t *indices = hs_in_i32(call, 1);
    const double *base = call->input_count == 3 ? hs_in(call, 2) : NULL;
    double *dtable = hs_out(call, 0);
    for (size_t i = 0; i < hs_view_elements(&call->outputs[0]); i++)
        dtable[i] = base ? base[i] : 0.0;
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < d; c++)
            dtable[(size_t)indices[r] * d + c] += dy[r * d + c];
}

void hs_reference_store_rows(const hs_call *call, hs_kernel_run *run) {
    (void)run;
    const size_t rows = call->inputs[0].dims[0], d = call->inputs[0].dims[1];
    const double *x = hs_in(call, 0);
    const int32_t *indices = hs_in_i32(call, 1);
    double *state = hs_out(call, 0);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < d; c++)
            state[(size_t)indices[r] * d + c] = x[r * d + c];
}
