#include "cpu/exact/elementwise/map.h"

HS_MAP_SPAN(add_span, a[i] + b[i])
HS_MAP_SPAN(multiply_span, a[i] * b[i])
HS_MAP_SPAN(scale_span, a[i] * attributes->factor)
HS_MAP_SPAN(log_span, hs_log(a[i]))
HS_MAP_SPAN(log_backward_span, a[i] / b[i])

void HS_EXACT(add)(const hs_call *call, hs_kernel_run *run) {
    HS_EXACT(map)(call, run, 2, HS_PARALLEL_CHEAP, add_span);
}

void HS_EXACT(multiply)(const hs_call *call, hs_kernel_run *run) {
    HS_EXACT(map)(call, run, 2, HS_PARALLEL_CHEAP, multiply_span);
}

void HS_EXACT(scale)(const hs_call *call, hs_kernel_run *run) {
    HS_EXACT(map)(call, run, 1, HS_PARALLEL_CHEAP, scale_span);
}

void HS_EXACT(log)(const hs_call *call, hs_kernel_run *run) {
    HS_EXACT(map)(call, run, 1, HS_PARALLEL_COSTLY, log_span);
}

void HS_EXACT(log_backward)(const hs_call *call, hs_kernel_run *run) {
    HS_EXACT(map)(call, run, 2, HS_PARALLEL_CHEAP, log_backward_span);
}

void HS_EXACT(add_bias)(const hs_call *call, hs_kernel_run *run) {
    const size_t rows = hs_rows(&call->outputs[0]), columns = hs_columns(&call->outputs[0]);
    const double *bias = hs_in(call, 1);
    uint64_t seen = 0;
#pragma omp parallel for num_threads(run->threads) if (rows * columns > HS_PARALLEL_CHEAP) reduction(| : seen)
    for (size_t row = 0; row < rows; row++) {
        const double *x = hs_in_row(call, 0, row);
        double *y = hs_out_row(call, 0, row);
#pragma omp simd reduction(| : seen)
        for (size_t i = 0; i < columns; i++) {
            y[i] = x[i] + bias[i];
            seen |= hs_nonfinite(y[i]);
        }
    }
    run->nonfinite = run->nonfinite || hs_any_nonfinite(seen);
}

void HS_EXACT(fill)(const hs_call *call, hs_kernel_run *run) {
    const hs_spans spans = hs_spans_of(call, 0);
    if (spans.total == 0)
        return;
    const double value = *hs_in(call, 0);
#pragma omp parallel for num_threads(run->threads) if (spans.total > HS_PARALLEL_CHEAP)
    for (size_t i = 0; i < spans.count; i++) {
        const hs_span span = hs_span_at(&spans, i);
        double *y = hs_place_span(&call->outputs[0], &span, NULL);
        for (size_t j = 0; j < span.length; j++)
            y[j] = value;
    }
    run->nonfinite = run->nonfinite || hs_any_nonfinite(hs_nonfinite(value));
}
