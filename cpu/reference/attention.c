/* Causal attention with grouped heads, one query after another (policy, sections 2 and 3). */
#include "cpu/reference/attention.h"

#include <math.h>

#include "cpu/reference/reference.h"
#include "precision/arithmetic.h"
#include "precision/reduce.h"

hs_reference_attention_shape hs_reference_attention_open(const hs_call *call, unsigned first) {
    const hs_attributes *attributes = &call->attributes;
    const hs_view *q = &call->inputs[first], *k = &call->inputs[first + 1], *v = &call->inputs[first + 2];
    return (hs_reference_attention_shape){.precision = call->precision,
                                          .sequences = attributes->sequences,
                                          .heads = attributes->heads,
                                          .group = attributes->heads / attributes->kv_heads,
                                          .width = attributes->head_width,
                                          .queries = q->dims[0] / attributes->sequences,
                                          .keys = k->dims[0] / attributes->sequences,
                                          .factor = 1.0 / sqrt((double)attributes->head_width),
                                          .positions = hs_in_i32(call, first + 3),
                                          .q = hs_in(call, first),
                                          .k = hs_in(call, first + 1),
                                          .v = hs_in(call, first + 2),
                                          .q_pitch = hs_reference_pitch(q),
                                          .k_pitch = hs_reference_pitch(k),
                                          .v_pitch = hs_reference_pitch(v)};
}

size_t hs_reference_attention_formed(const hs_reference_attention_shape *a, size_t sequence, size_t query) {
    const size_t seen = (size_t)a->positions[sequence * a->queries + query] + 1;
    return seen < a->keys ? seen : a->keys;
}

const double *hs_reference_attention_query(const hs_reference_attention_shape *a, const double *x, size_t pitch,
                                           size_t sequence, size_t head, size_t query) {
    return x + (sequence * a->queries + query) * pitch + head * a->width;
}

const double *hs_reference_attention_keys(const hs_reference_attention_shape *a, const double *x, size_t pitch,
                                          size_t sequence, size_t head) {
    return x + sequence * a->keys * pitch + head / a->group * a->width;
}

void hs_reference_attention_inspect(const hs_reference_attention_shape *a, size_t sequence, size_t head, size_t query,
                                    hs_reference_attention_part part, size_t count, const double *values,
                                    hs_reference_attention_faults *faults) {
    for (size_t j = 0; j < count && !faults->first[part].found; j++)
        if (!isfinite(values[j]))
            faults->first[part] = (hs_fault){
                .found = true,
                .index = ((sequence * a->heads + head) * a->queries + query) * a->keys + j,
                .value = values[j],
            };
}

void hs_reference_attention_report(const hs_reference_attention_faults *faults, hs_kernel_run *run) {
    static const char *const names[HS_ATTENTION_PARTS] = {"scores", "probabilities", "probabilities_adjoint",
                                                          "scores_adjoint"};
    for (int part = 0; part < HS_ATTENTION_PARTS; part++)
        if (faults->first[part].found)
            hs_fault_note(run, names[part], faults->first[part].index, faults->first[part].value);
}

size_t hs_reference_attention_probabilities(const hs_reference_attention_shape *a, size_t sequence, size_t head,
                                            size_t query, double *p, hs_reference_attention_faults *faults) {
    const size_t formed = hs_reference_attention_formed(a, sequence, query);
    if (formed == 0)
        return 0;
    const hs_matrix q = {hs_reference_attention_query(a, a->q, a->q_pitch, sequence, head, query), 0, 1};
    const hs_matrix k = {hs_reference_attention_keys(a, a->k, a->k_pitch, sequence, head), 1, a->k_pitch};
    hs_policy_matmul(a->precision, 1, formed, a->width, q, k, p, formed, NULL);
    hs_reference_attention_inspect(a, sequence, head, query, HS_ATTENTION_SCORES, formed, p, faults);
    for (size_t j = 0; j < formed; j++)
        p[j] = p[j] * a->factor;
    const double m = hs_reference_maximum(formed, p);
    for (size_t j = 0; j < formed; j++)
        p[j] = hs_exp(p[j] - m);
    const double r = 1.0 / hs_sum_row(formed, p);
    for (size_t j = 0; j < formed; j++)
        p[j] = p[j] * r;
    hs_reference_attention_inspect(a, sequence, head, query, HS_ATTENTION_PROBABILITIES, formed, p, faults);
    return formed;
}

size_t hs_reference_attention_scratch(const hs_call *call, const hs_kernel_run *run) {
    (void)run;
    return hs_reference_attention_open(call, 0).keys * sizeof(double);
}

void hs_reference_attention(const hs_call *call, hs_kernel_run *run) {
    const hs_reference_attention_shape a = hs_reference_attention_open(call, 0);
    const size_t pitch = hs_reference_pitch(&call->outputs[0]);
    double *p = run->scratch;
    hs_reference_attention_faults faults = {0};
    for (size_t sequence = 0; sequence < a.sequences; sequence++)
        for (size_t head = 0; head < a.heads; head++)
            for (size_t query = 0; query < a.queries; query++) {
                const size_t formed = hs_reference_attention_probabilities(&a, sequence, head, query, p, &faults);
                const hs_matrix v = {hs_reference_attention_keys(&a, a.v, a.v_pitch, sequence, head), a.v_pitch, 1};
                double *y = hs_out(call, 0) + (sequence * a.queries + query) * pitch + head * a.width;
                hs_policy_matmul(a.precision, 1, a.width, formed, (hs_matrix){p, 0, 1}, v, y, pitch, NULL);
            }
    hs_reference_attention_report(&faults, run);
}
