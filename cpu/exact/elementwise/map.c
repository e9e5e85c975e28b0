#include "cpu/exact/elementwise/map.h"

void HS_EXACT(map)(const hs_call *call, hs_kernel_run *run, unsigned inputs, size_t threshold, hs_map_span *map) {
    const hs_spans spans = hs_spans_of(call, inputs);
    uint64_t seen = 0;
#pragma omp parallel for num_threads(run->threads) if (spans.total > threshold) reduction(| : seen)
    for (size_t i = 0; i < spans.count; i++) {
        double rooms[3][HS_SPAN];
        const hs_span span = hs_span_at(&spans, i);
        const double *a = hs_read_span(&call->inputs[0], &span, rooms[0]);
        const double *b = inputs > 1 ? hs_read_span(&call->inputs[1], &span, rooms[1]) : a;
        double *y = hs_place_span(&call->outputs[0], &span, rooms[2]);
        seen |= map(&call->attributes, span.length, a, b, y);
        hs_write_span(&call->outputs[0], &span, y);
    }
    run->nonfinite = run->nonfinite || hs_any_nonfinite(seen);
}
