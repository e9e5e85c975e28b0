/* The policy's product is the reference's product (policy, section 2). */
#include "precision/matmul.h"

#include "cpu/reference/reference.h"

static hs_matrix operand(const hs_call *call, unsigned i, hstep_transpose form) {
    const size_t pitch = hs_reference_pitch(&call->inputs[i]);
    if (form == HSTEP_TRANSPOSE)
        return (hs_matrix){hs_in(call, i), 1, pitch};
    return (hs_matrix){hs_in(call, i), pitch, 1};
}

/* Part of the steps of longer chains, whose sums stand in y. */
static void multiply_part(const hs_call *call, size_t k) {
    const hs_view *y = &call->outputs[0];
    const size_t m = y->dims[0], n = y->dims[1], pitch = hs_reference_pitch(y);
    double *sums = hs_out(call, 0);
    for (size_t i = 0; i < m && !call->attributes.continues; i++)
        for (size_t j = 0; j < n; j++)
            sums[i * pitch + j] = 0.0;
    hs_policy_continue(call->precision, m, n, k, operand(call, 0, call->attributes.a_form),
                       operand(call, 1, call->attributes.b_form), sums, pitch);
    if (!call->attributes.unfinished)
        hs_policy_round(call->precision, m, n, sums, pitch);
}

void hs_reference_matmul(const hs_call *call, hs_kernel_run *run) {
    (void)run;
    const hs_attributes *attributes = &call->attributes;
    const hs_view *y = &call->outputs[0];
    const size_t k = call->inputs[0].dims[attributes->a_form == HSTEP_TRANSPOSE ? 0 : 1];
    if (attributes->continues || attributes->unfinished) {
        multiply_part(call, k);
        return;
    }
    hs_policy_matmul(call->precision, y->dims[0], y->dims[1], k, operand(call, 0, attributes->a_form),
                     operand(call, 1, attributes->b_form), hs_out(call, 0), hs_reference_pitch(y), NULL);
}
