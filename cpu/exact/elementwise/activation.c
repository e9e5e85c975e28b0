/* SiLU and SwiGLU (policy, section 3). */
#include "cpu/exact/map.h"

/* The derivative of x * sigmoid(x), with s = sigmoid(x). */
static inline double silu_slope(double x, double s) { return s * (1.0 + x * (1.0 - s)); }

HS_MAP_SPAN(silu_span, a[i] * hs_sigmoid(a[i]))
HS_MAP_SPAN(silu_backward_span, a[i] * silu_slope(b[i], hs_sigmoid(b[i])))
HS_MAP_SPAN(swiglu_span, (a[i] * hs_sigmoid(a[i])) * b[i])

void HS_EXACT(silu)(const hs_call *call, hs_kernel_run *run) { hs_map(call, run, 1, HS_PARALLEL_COSTLY, silu_span); }

void HS_EXACT(silu_backward)(const hs_call *call, hs_kernel_run *run) {
    hs_map(call, run, 2, HS_PARALLEL_COSTLY, silu_backward_span);
}

void HS_EXACT(swiglu)(const hs_call *call, hs_kernel_run *run) {
    hs_map(call, run, 2, HS_PARALLEL_COSTLY, swiglu_span);
}

void HS_EXACT(swiglu_backward)(const hs_call *call, hs_kernel_run *run) {
    const hs_spans spans = hs_spans_of(call, 3);
    uint64_t seen = 0;
#pragma omp parallel for num_threads(run->threads) if (spans.total > HS_PARALLEL_COSTLY) reduction(| : seen)
    for (size_t span = 0; span < spans.count; span++) {
        const size_t count = hs_span_length(&spans, span);
        const double *dy = hs_span_in(call, 0, &spans, span), *gate = hs_span_in(call, 1, &spans, span),
                     *up = hs_span_in(call, 2, &spans, span);
        double *dgate = hs_span_out(call, 0, &spans, span), *dup = hs_span_out(call, 1, &spans, span);
#pragma omp simd reduction(| : seen)
        for (size_t i = 0; i < count; i++) {
            const double s = hs_sigmoid(gate[i]);
            const double a = (dy[i] * up[i]) * silu_slope(gate[i], s), b = dy[i] * (gate[i] * s);
            dgate[i] = a;
            dup[i] = b;
            seen |= hs_nonfinite(a) | hs_nonfinite(b);
        }
    }
    run->nonfinite = run->nonfinite || hs_any_nonfinite(seen);
}
