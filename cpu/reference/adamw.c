/* One update of one tensor (policy, section 6). */
#include <math.h>

#include "cpu/reference/reference.h"

void hs_reference_adamw(const hs_call *call, hs_kernel_run *run) {
    (void)run;
    const double *s = hs_in(call, 1);
    const double beta1 = s[HS_ADAMW_BETA1], beta2 = s[HS_ADAMW_BETA2];
    double *gradient = (double *)(void *)(call->inputs[0].buffer->data + call->inputs[0].offset);
    double *w = hs_out(call, 0), *m = hs_out(call, 1), *v = hs_out(call, 2);
    for (size_t i = 0; i < hs_view_elements(&call->outputs[0]); i++) {
        const double g = (gradient[i] * s[HS_ADAMW_UNSCALE]) * s[HS_ADAMW_CLIP];
        m[i] = beta1 * m[i] + (1.0 - beta1) * g;
        v[i] = beta2 * v[i] + ((1.0 - beta2) * g) * g;
        const double step = (s[HS_ADAMW_RATE] * m[i]) / (sqrt(v[i]) * s[HS_ADAMW_ROOT] + s[HS_ADAMW_EPSILON]);
        const double kept = call->attributes.decay ? w[i] - s[HS_ADAMW_DECAY] * w[i] : w[i];
        w[i] = kept - step;
        gradient[i] = 0.0;
    }
}
