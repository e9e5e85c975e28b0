/* AdamW in one pass over memory, with one division for each weight (policy, section 6). */
#include "cpu/exact/kernels.h"
#include "cpu/exact/sums.h"
#include "cpu/exact/view.h"

typedef struct rates {
    double unscale, clip, beta1, beta2, rest1, rest2, rate, root, epsilon, decay;
    bool decays;
} rates;

static rates rates_of(const hs_call *call) {
    const double *s = hs_in(call, 1);
    return (rates){
        .unscale = s[HS_ADAMW_UNSCALE],
        .clip = s[HS_ADAMW_CLIP],
        .beta1 = s[HS_ADAMW_BETA1],
        .beta2 = s[HS_ADAMW_BETA2],
        .rest1 = 1.0 - s[HS_ADAMW_BETA1],
        .rest2 = 1.0 - s[HS_ADAMW_BETA2],
        .rate = s[HS_ADAMW_RATE],
        .root = s[HS_ADAMW_ROOT],
        .epsilon = s[HS_ADAMW_EPSILON],
        .decay = s[HS_ADAMW_DECAY],
        .decays = call->attributes.decay,
    };
}

static uint64_t update(const rates *rates_in, size_t count, double *w, double *m, double *v, double *gradient) {
    const rates r = *rates_in;
    uint64_t seen = 0;
#pragma omp simd reduction(| : seen)
    for (size_t i = 0; i < count; i++) {
        const double g = (gradient[i] * r.unscale) * r.clip;
        const double first = r.beta1 * m[i] + r.rest1 * g;
        const double second = r.beta2 * v[i] + (r.rest2 * g) * g;
        const double kept = r.decays ? w[i] - r.decay * w[i] : w[i];
        const double weight = kept - (r.rate * first) / (sqrt(second) * r.root + r.epsilon);
        w[i] = weight;
        m[i] = first;
        v[i] = second;
        gradient[i] = 0.0;
        seen |= hs_nonfinite(weight) | hs_nonfinite(first) | hs_nonfinite(second);
    }
    return seen;
}

/* All operands are contiguous. */
void HS_EXACT(adamw)(const hs_call *call, hs_kernel_run *run) {
    const hs_spans spans = hs_spans_of(call, 1);
    const rates r = rates_of(call);
    const bool casts = call->output_count > HS_ADAMW_CAST;
    /* An input that the operation clears. */
    double *gradient = (double *)(void *)(call->inputs[0].buffer->data + call->inputs[0].offset);
    uint64_t seen = 0;
#pragma omp parallel for num_threads(run->threads) if (spans.total > HS_PARALLEL_COSTLY) reduction(| : seen)
    for (size_t i = 0; i < spans.count; i++) {
        const hs_span span = hs_span_at(&spans, i);
        double *w = hs_out(call, 0) + span.column;
        seen |= update(&r, span.length, w, hs_out(call, 1) + span.column, hs_out(call, 2) + span.column,
                       gradient + span.column);
        if (casts)
            hs_write_span(&call->outputs[HS_ADAMW_CAST], &span, w);
    }
    run->nonfinite = run->nonfinite || hs_any_nonfinite(seen);
}
