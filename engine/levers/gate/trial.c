#include "engine/levers/gate/trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/levers/gate/inputs.h"
#include "engine/levers/gate/judge.h"
#include "precision/matmul.h"

typedef struct bench {
    hs_product product;
    double *a, *b, *reference, *magnitudes, *sums, *results;
} bench;

static void bench_destroy(bench *t) {
    hs_product_destroy(&t->product);
    free(t->a);
    free(t->b);
    free(t->reference);
    free(t->magnitudes);
    free(t->sums);
    free(t->results);
}

static hstep_status bench_create(hs_backend *backend, hstep_precision precision, const hs_shape *shape, bench *t,
                                 hstep_error *error) {
    const size_t m = shape->m, n = shape->n, k = shape->k;
    *t = (bench){0};
    HS_FORWARD(hs_product_create(backend, precision, m, n, k, &t->product, error));
    t->a = malloc(m * k * sizeof(double));
    t->b = malloc(k * n * sizeof(double));
    t->reference = malloc(m * n * sizeof(double));
    t->magnitudes = malloc(m * n * sizeof(double));
    t->sums = malloc(m * n * sizeof(double));
    t->results = malloc(m * n * sizeof(double));
    if (t->a != NULL && t->b != NULL && t->reference != NULL && t->magnitudes != NULL && t->sums != NULL &&
        t->results != NULL)
        return HSTEP_OK;
    bench_destroy(t);
    return hs_fail_memory(error, "the gate of a lever");
}

/* ---- Figures ---- */

void hs_gate_widen(hstep_gate_case *worst, const hstep_gate_case *one) {
    hs_gate_widen_metrics(worst, one);
    worst->cells += one->cells;
    worst->cells_beyond += one->cells_beyond;
    worst->cells_wrong += one->cells_wrong;
    if (!one->passed && worst->passed) {
        worst->m = one->m;
        worst->n = one->n;
        worst->k = one->k;
        worst->a_form = one->a_form;
        worst->b_form = one->b_form;
        worst->failed_inputs = one->failed_inputs;
        worst->failed_storage = one->failed_storage;
        worst->passed = 0;
    }
}

bool hs_gate_within(const hstep_gate_case *one) {
    return one->max_abs < one->max_abs_limit && one->mean_rel < one->mean_rel_limit && one->cells_beyond == 0 &&
           one->cells_wrong == 0;
}

/* ---- Judging ---- */

/* The figures for one kind of inputs, whose sums and results are there. */
static void judge(const bench *t, hs_inputs inputs, const hs_product_traces *traces, hstep_gate_case *c) {
    const size_t count = t->product.m * t->product.n;
    const hs_candidate candidate = {.precision = t->product.precision,
                                    .count = count,
                                    .k = t->product.k,
                                    .reference = t->reference,
                                    .magnitudes = t->magnitudes,
                                    .sums = t->sums,
                                    .results = t->results};
    bool nonfinite = false;
    for (size_t i = 0; i < count; i++)
        nonfinite = nonfinite || !isfinite(t->results[i]);
    const size_t wrong = (traces->nonfinite != nonfinite) + traces->strays;
    const bool passed = hs_gate_judge(&candidate, hs_inputs_decide(inputs), c) && wrong == 0;
    c->cells_wrong += wrong;
    if (!passed && c->passed) {
        c->passed = 0;
        c->failed_inputs = hs_inputs_name(inputs);
        c->failed_storage = t->product.storage->name;
    }
}

static hstep_status run(bench *t, bool sums, double *y, hs_product_traces *traces, hstep_error *error) {
    hs_program *program = NULL;
    HS_FORWARD(hs_product_program(&t->product, sums, 1, &program, error));
    const hstep_status status = hs_product_run(&t->product, program, sums, y, traces, error);
    t->product.backend->api->program_destroy(t->product.backend, program);
    return status;
}

/* One orientation of inputs whose reference is known. */
static hstep_status try_form(bench *t, const hs_storage *storage, size_t form, hs_inputs inputs, hstep_gate_case *c,
                             hstep_error *error) {
    hs_product_traces traces = {0}, rounded = {0};
    HS_FORWARD(hs_product_load(&t->product, storage, form, t->a, t->b, error));
    const hstep_status status = run(t, true, t->sums, &traces, error);
    /* Only gated kernels store sums: a lever that takes no compact operands leaves them to the exact ones. */
    if (status == HSTEP_ERROR_UNSUPPORTED && storage != &hs_storages[0])
        return HSTEP_OK;
    HS_FORWARD(status);
    if (t->product.precision == HSTEP_PRECISION_F64) {
        memcpy(t->results, t->sums, t->product.m * t->product.n * sizeof *t->sums);
    } else {
        HS_FORWARD(run(t, false, t->results, &rounded, error));
        traces = (hs_product_traces){rounded.nonfinite, traces.strays + rounded.strays};
    }
    judge(t, inputs, &traces, c);
    return HSTEP_OK;
}

/* Inputs and their reference. A lever that declares to flush subnormals is compared with flushed operands, and gets
 * them as they are. */
static void prepare(bench *t, const hs_lever_facts *facts, hs_inputs inputs) {
    const size_t m = t->product.m, n = t->product.n, k = t->product.k;
    hs_inputs_fill(inputs, facts->precision, m, n, k, t->a, t->b);
    if (facts->flushes_subnormals) {
        hs_inputs_flush(facts->precision, m * k, t->a);
        hs_inputs_flush(facts->precision, k * n, t->b);
    }
    hs_policy_sums(facts->precision, m, n, k, t->a, t->b, t->reference, t->magnitudes);
    if (facts->flushes_subnormals)
        hs_inputs_fill(inputs, facts->precision, m, n, k, t->a, t->b);
}

/* One kind of inputs in all storages and orientations. */
static hstep_status try_inputs(bench *t, const hs_lever_facts *facts, hs_inputs inputs, size_t storages,
                               hstep_gate_case *cases, hstep_error *error) {
    prepare(t, facts, inputs);
    for (size_t s = 0; s < storages; s++)
        for (size_t form = 0; form < HS_FORMS && hs_product_can_stand(&t->product, &hs_storages[s]); form++)
            HS_FORWARD(try_form(t, &hs_storages[s], form, inputs, &cases[form], error));
    return HSTEP_OK;
}

hstep_status hs_trial(hs_backend *backend, const hs_lever_facts *facts, const hs_shape *shape, hstep_gate_case *cases,
                      hstep_error *error) {
    bench t;
    HS_FORWARD(bench_create(backend, facts->precision, shape, &t, error));
    for (size_t form = 0; form < HS_FORMS; form++)
        cases[form] = (hstep_gate_case){.m = shape->m,
                                        .n = shape->n,
                                        .k = shape->k,
                                        .a_form = hs_forms[form][0],
                                        .b_form = hs_forms[form][1],
                                        .passed = 1};
    hstep_status status = HSTEP_OK;
    bool passed = true;
    for (int i = 0; i < HS_INPUTS_COUNT && passed && status == HSTEP_OK; i++) {
        status = try_inputs(&t, facts, (hs_inputs)i, shape->dense ? HS_STORAGES_DENSE : HS_STORAGES, cases, error);
        for (size_t form = 0; form < HS_FORMS; form++)
            passed = passed && cases[form].passed;
    }
    bench_destroy(&t);
    return status;
}
