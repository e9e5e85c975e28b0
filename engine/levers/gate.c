#include "engine/levers/gate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/levers/inputs.h"
#include "engine/levers/product.h"
#include "precision/format.h"
#include "precision/gate.h"
#include "precision/matmul.h"

/* At each depth M and N are these; the other shapes end tiles at every place. */
enum { ROWS = 64, COLUMNS = 128, EDGES = 7 };
static const size_t edges[EDGES][3] = {{1, 1, 1},   {1, 128, 256}, {65, 1, 129},  {63, 127, 255},
                                       {7, 9, 130}, {17, 33, 96},  {66, 130, 257}};

/* Beyond this depth only the inputs that decide and those with infinities are tried, which the others add little to. */
enum { DEEP = 2048 };

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

static hstep_status bench_create(hs_backend *backend, hstep_precision precision, const size_t *shape, bench *t,
                                 hstep_error *error) {
    const size_t m = shape[0], n = shape[1], k = shape[2];
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

static double larger(double a, double b) { return a > b ? a : b; }

/* How much of a limit a figure uses up; what is not finite uses up all. */
static double share(double figure, double limit) {
    const double s = figure / limit;
    return isfinite(s) ? s : (figure == 0 ? 0 : (double)INFINITY);
}

static void widen_metrics(hstep_gate_case *worst, double max_abs, double max_abs_limit, double mean_rel,
                          double mean_rel_limit, double max_rel) {
    if (worst->max_abs_limit == 0 || share(max_abs, max_abs_limit) > share(worst->max_abs, worst->max_abs_limit)) {
        worst->max_abs = max_abs;
        worst->max_abs_limit = max_abs_limit;
    }
    worst->mean_rel = larger(worst->mean_rel, mean_rel);
    worst->mean_rel_limit = mean_rel_limit;
    worst->max_rel = larger(worst->max_rel, max_rel);
}

void hs_gate_widen(hstep_gate_case *worst, const hstep_gate_case *one) {
    widen_metrics(worst, one->max_abs, one->max_abs_limit, one->mean_rel, one->mean_rel_limit, one->max_rel);
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
        worst->passed = 0;
    }
}

/* Cells whose result is not the sum rounded once. */
static size_t misrounded(const bench *t, size_t count) {
    if (t->product.precision == HSTEP_PRECISION_F64)
        return 0;
    const hstep_format format = hs_precision_format(t->product.precision);
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        const double expected = hs_decode(format, hs_encode(format, t->sums[i]));
        const bool same = memcmp(&expected, &t->results[i], sizeof expected) == 0;
        wrong += !(same || (isnan(expected) && isnan(t->results[i])));
    }
    return wrong;
}

/* The figures for one kind of inputs, whose sums and results are there. `raised`: the kernel's flag. */
static void judge(const bench *t, hs_inputs inputs, bool raised, hstep_gate_case *c) {
    const size_t count = t->product.m * t->product.n;
    const double step = t->product.precision == HSTEP_PRECISION_F64 ? 0x1p-52 : 0x1p-23;
    size_t wrong = 0, beyond = 0;
    bool nonfinite = false, passed = true;
    for (size_t i = 0; i < count; i++) {
        wrong += isfinite(t->sums[i]) != isfinite(t->reference[i]);
        nonfinite = nonfinite || !isfinite(t->results[i]);
    }
    wrong += misrounded(t, count) + (raised != nonfinite);
    if (inputs != HS_INPUTS_NONFINITE) {
        beyond = hs_gate_cells(count, t->sums, t->reference, t->magnitudes, t->product.k, step);
        c->cells += count;
    }
    if (hs_inputs_decide(inputs)) {
        const hs_gate g = hs_gate_measure(count, t->sums, t->reference);
        widen_metrics(c, g.max_abs, g.max_abs_limit, g.mean_rel, g.mean_rel_limit, g.max_rel);
        passed = g.pass;
    }
    c->cells_wrong += wrong;
    c->cells_beyond += beyond;
    if ((!passed || wrong > 0 || beyond > 0) && c->passed) {
        c->passed = 0;
        c->failed_inputs = hs_inputs_name(inputs);
    }
}

/* One orientation of inputs whose reference is known. */
static hstep_status try_form(bench *t, size_t form, hs_inputs inputs, hstep_gate_case *c, hstep_error *error) {
    const hs_backend_api *api = t->product.backend->api;
    const bool mixed = t->product.precision != HSTEP_PRECISION_F64;
    hs_program *program = NULL;
    bool raised = false;
    HS_FORWARD(hs_product_load(&t->product, form, t->a, t->b, error));
    HS_FORWARD(hs_product_program(&t->product, form, true, &program, error));
    hstep_status status = hs_product_run(&t->product, program, t->sums, &raised, error);
    api->program_destroy(t->product.backend, program);
    if (status == HSTEP_OK && mixed) {
        HS_FORWARD(hs_product_program(&t->product, form, false, &program, error));
        status = hs_product_run(&t->product, program, t->results, &raised, error);
        api->program_destroy(t->product.backend, program);
    } else if (status == HSTEP_OK) {
        memcpy(t->results, t->sums, t->product.m * t->product.n * sizeof *t->sums);
    }
    if (status == HSTEP_OK)
        judge(t, inputs, raised, c);
    return status;
}

/* All inputs and orientations at one shape: HS_FORMS cases. */
static hstep_status try_shape(hs_backend *backend, hstep_precision precision, const size_t *shape,
                              hstep_gate_case *cases, hstep_error *error) {
    bench t;
    HS_FORWARD(bench_create(backend, precision, shape, &t, error));
    const size_t m = shape[0], n = shape[1], k = shape[2];
    for (size_t form = 0; form < HS_FORMS; form++)
        cases[form] = (hstep_gate_case){
            .m = m, .n = n, .k = k, .a_form = hs_forms[form][0], .b_form = hs_forms[form][1], .passed = 1};
    hstep_status status = HSTEP_OK;
    for (int i = 0; i < HS_INPUTS_COUNT && status == HSTEP_OK; i++) {
        const hs_inputs inputs = (hs_inputs)i;
        if (k > DEEP && !hs_inputs_decide(inputs) && inputs != HS_INPUTS_NONFINITE)
            continue;
        hs_inputs_fill(inputs, precision, m, n, k, t.a, t.b);
        hs_policy_sums(precision, m, n, k, t.a, t.b, t.reference, t.magnitudes);
        for (size_t form = 0; form < HS_FORMS && status == HSTEP_OK; form++)
            status = try_form(&t, form, inputs, &cases[form], error);
    }
    bench_destroy(&t);
    return status;
}

static hstep_status try_all(hs_backend *backend, hstep_precision precision, const hs_depths *depths,
                            hs_verdict *verdict, hstep_error *error) {
    const size_t shapes = depths->count + EDGES;
    verdict->cases = calloc(shapes * HS_FORMS, sizeof *verdict->cases);
    if (verdict->cases == NULL)
        return hs_fail_memory(error, "the gate of a lever");
    hstep_lever_gate *gate = &verdict->gate;
    gate->worst.passed = 1;
    for (size_t i = 0; i < shapes; i++) {
        const size_t deep[3] = {ROWS, COLUMNS, i < depths->count ? depths->k[i] : 0};
        const size_t *shape = i < depths->count ? deep : edges[i - depths->count];
        HS_FORWARD(try_shape(backend, precision, shape, verdict->cases + gate->case_count, error));
        for (size_t form = 0; form < HS_FORMS; form++)
            hs_gate_widen(&gate->worst, &verdict->cases[gate->case_count++]);
        gate->cases = verdict->cases;
    }
    return HSTEP_OK;
}

hstep_status hs_gate_hold(hs_backend *backend, size_t lever, hstep_precision precision, const hs_depths *depths,
                          hs_verdict *verdict, hstep_error *error) {
    *verdict = (hs_verdict){.gate.precision = precision};
    backend->api->lever_set(backend, lever, HSTEP_LEVER_ACTIVE, "being judged");
    hstep_status status = try_all(backend, precision, depths, verdict, error);
    if (status == HSTEP_OK && verdict->gate.worst.passed)
        status = hs_gate_time(backend, lever, precision, verdict, error);
    backend->api->lever_set(backend, lever, HSTEP_LEVER_DISABLED, "judged");
    if (status != HSTEP_OK)
        hs_verdict_free(verdict);
    return status;
}
