#include "cpu/exact/map.h"

void hs_map(const hs_call *call, hs_kernel_run *run, unsigned inputs, size_t threshold, hs_map_span *map) {
    const hs_spans spans = hs_spans_of(call, inputs);
    uint64_t seen = 0;
#pragma omp parallel for num_threads(run->threads) if (spans.total > threshold) reduction(| : seen)
    for (size_t span = 0; span < spans.count; span++)
        seen |= map(&call->attributes, hs_span_length(&spans, span), hs_span_in(call, 0, &spans, span),
                    hs_span_in(call, inputs - 1, &spans, span), hs_span_out(call, 0, &spans, span));
    run->nonfinite = run->nonfinite || hs_any_nonfinite(seen);
}
