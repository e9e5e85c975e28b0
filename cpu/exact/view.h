/* How the exact kernels walk through views: by rows, and by spans where every view is dense. */
#ifndef HS_CPU_EXACT_VIEW_H
#define HS_CPU_EXACT_VIEW_H

#include "cpu/kernel.h"

/*
 * Elements from which a loop is worth waking the other threads: cheap ones move memory, costly ones divide or take
 * exponentials.
 */
enum { HS_PARALLEL_CHEAP = 16384, HS_PARALLEL_COSTLY = 2048 };

/* Length of a span: three operands of it fit in a first-level cache. */
enum { HS_SPAN = 1024 };

/* Elements between rows. Only rows may have a pitch: further dimensions are without gaps. */
static inline size_t hs_pitch(const hs_view *view) {
    return view->rank > 1 ? view->strides[view->rank - 2] : hs_columns(view);
}

static inline const double *hs_in_row(const hs_call *call, unsigned i, size_t row) {
    return hs_in(call, i) + row * hs_pitch(&call->inputs[i]);
}

static inline double *hs_out_row(const hs_call *call, unsigned i, size_t row) {
    return hs_out(call, i) + row * hs_pitch(&call->outputs[i]);
}

static inline bool hs_dense(const hs_view *view) { return hs_pitch(view) == hs_columns(view); }

/* The work of an element-by-element operation cut into pieces that are contiguous in every operand. */
typedef struct hs_spans {
    size_t count, length, total;
    bool flat; /* all operands dense: spans ignore rows */
} hs_spans;

/* Over output 0, with all outputs and the first `inputs` inputs alike in shape. */
static inline hs_spans hs_spans_of(const hs_call *call, unsigned inputs) {
    const size_t total = hs_view_elements(&call->outputs[0]);
    bool flat = true;
    for (unsigned i = 0; i < inputs; i++)
        flat = flat && hs_dense(&call->inputs[i]);
    for (unsigned i = 0; i < call->output_count; i++)
        flat = flat && hs_dense(&call->outputs[i]);
    if (flat)
        return (hs_spans){(total + HS_SPAN - 1) / HS_SPAN, HS_SPAN, total, true};
    return (hs_spans){total > 0 ? hs_rows(&call->outputs[0]) : 0, hs_columns(&call->outputs[0]), total, false};
}

static inline size_t hs_span_length(const hs_spans *spans, size_t span) {
    const size_t rest = spans->total - span * spans->length;
    return rest < spans->length ? rest : spans->length;
}

static inline const double *hs_span_in(const hs_call *call, unsigned i, const hs_spans *spans, size_t span) {
    return spans->flat ? hs_in(call, i) + span * spans->length : hs_in_row(call, i, span);
}

static inline double *hs_span_out(const hs_call *call, unsigned i, const hs_spans *spans, size_t span) {
    return spans->flat ? hs_out(call, i) + span * spans->length : hs_out_row(call, i, span);
}

#endif
