/* SiLU and SwiGLU (policy, section 3). */
#include "cpu/exact/elementwise/map.h"

/* The derivative of x * sigmoid(x), with s = sigmoid(x). */
static inline double silu_slope(double x, double s) { return s * (1.0 + x * (1.0 - s)); }

HS_MAP_SPAN(silu_span, a[i] * hs_sigmoid(a[i]))
HS_MAP_SPAN(silu_backward_span, a[i] * silu_slope(b[i], hs_sigmoid(b[i])))
HS_MAP_SPAN(swiglu_span, (a[i] * hs_sigmoid(a[i])) * b[i])

void HS_EXACT(silu)(const hs_call *call, hs_kernel_run *run) {
    HS_EXACT(map)(call, run, 1, HS_PARALLEL_COSTLY, silu_span);
}

void HS_EXACT(silu_backward)(const hs_call *call, hs_kernel_run *run) {
    HS_EXACT(map)(call, run, 2, HS_PARALLEL_COSTLY, silu_backward_span);
}

void HS_EXACT(swiglu)(const hs_call *call, hs_kernel_run *run) {
    HS_EXACT(map)(call, run, 2, HS_PARALLEL_COSTLY, swiglu_span);
}

static uint64_t swiglu_backward_span(size_t count, const double *dy, const double *gate, const double *up,
                                     double *dgate, double *dup) {
    uint64_t seen = 0;
#pragma omp simd reduction(| : seen)
    for (size_t i = 0; i < count; i++) {
        const double s = hs_sigmoid(gate[i]);
        const double a = (dy[i] * up[i]) * silu_slope(gate[i], s), b = dy[i] * (gate[i] * s);
        dgate[i] = a;
        dup[i] = b;
        seen |= hs_nonfinite(a) | hs_nonfinite(b);
    }
    return seen;
}

void HS_EXACT(swiglu_backward)(const hs_call *call, hs_kernel_run *run) {
    const hs_spans spans = hs_spans_of(call, 3);
    uint64_t seen = 0;
#pragma omp parallel for num_threads(run->threads) if (spans.total > HS_PARALLEL_COSTLY) reduction(| : seen)
    for (size_t i = 0; i < spans.count; i++) {
        double rooms[5][HS_SPAN];
        const hs_span span = hs_span_at(&spans, i);
        double *dgate = hs_place_span(&call->outputs[0], &span, rooms[3]),
               *dup = hs_place_span(&call->outputs[1], &span, rooms[4]);
        seen |= swiglu_backward_span(span.length, hs_read_span(&call->inputs[0], &span, rooms[0]),
                                     hs_read_span(&call->inputs[1], &span, rooms[1]),
                                     hs_read_span(&call->inputs[2], &span, rooms[2]), dgate, dup);
        hs_write_span(&call->outputs[0], &span, dgate);
        hs_write_span(&call->outputs[1], &span, dup);
    }
    run->nonfinite = run->nonfinite || hs_any_nonfinite(seen);
}
