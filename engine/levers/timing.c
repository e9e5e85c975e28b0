/* Whether a lever is worth having: against the exact kernels, in interleaved repeats, so that a machine that slows down
 * in between slows both. */
#include <math.h>
#include <stdlib.h>

#include "engine/levers/clock.h"
#include "engine/levers/gate.h"
#include "engine/levers/inputs.h"
#include "engine/levers/product.h"

enum { SHAPES = 2, REPEATS = 7, FEW_REPEATS = 3 };
static const size_t shapes[SHAPES][3] = {{64, 128, 128}, {256, 512, 512}};

/* A sample takes about this long, the clock's own cost being small against it; where one run takes very long, a few
 * tell enough. */
static const double SAMPLE_SECONDS = 2e-3, VERY_LONG = 20e-3;
enum { MOST_RUNS = 1000 };

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t count) {
    qsort(values, count, sizeof *values, compare);
    return values[count / 2];
}

static hstep_status sample(const hs_product *p, hs_program *program, size_t runs, double *seconds, hstep_error *error) {
    const double start = hs_clock();
    for (size_t i = 0; i < runs; i++)
        HS_FORWARD(hs_run_and_wait(p->backend, program, 0, 1, NULL, error));
    *seconds = (hs_clock() - start) / (double)runs;
    return HSTEP_OK;
}

/* The first sample of each warms up and tells how many runs fill a sample. */
static hstep_status time_programs(const hs_product *p, hs_program *const programs[2], hstep_gate_timing *timing,
                                  hstep_error *error) {
    double seconds[2][REPEATS];
    size_t runs[2], repeats = REPEATS;
    for (int i = 0; i < 2; i++) {
        double once;
        HS_FORWARD(sample(p, programs[i], 1, &once, error));
        HS_FORWARD(sample(p, programs[i], 1, &once, error));
        const double wanted = SAMPLE_SECONDS / (once + 1e-9);
        runs[i] = wanted < 1 ? 1 : wanted > MOST_RUNS ? MOST_RUNS : (size_t)wanted;
        repeats = once > VERY_LONG ? FEW_REPEATS : repeats;
    }
    for (size_t repeat = 0; repeat < repeats; repeat++)
        for (int i = 0; i < 2; i++)
            HS_FORWARD(sample(p, programs[i], runs[i], &seconds[i][repeat], error));
    timing->exact_seconds = median(seconds[0], repeats);
    timing->lever_seconds = median(seconds[1], repeats);
    return HSTEP_OK;
}

/* One program of exact kernels, one with the lever. */
static hstep_status time_form(const hs_product *p, size_t lever, size_t form, hstep_gate_timing *timing,
                              hstep_error *error) {
    const hs_backend_api *api = p->backend->api;
    hs_program *programs[2] = {NULL, NULL};
    *timing =
        (hstep_gate_timing){.m = p->m, .n = p->n, .k = p->k, .a_form = hs_forms[form][0], .b_form = hs_forms[form][1]};
    api->lever_set(p->backend, lever, HSTEP_LEVER_DISABLED, "being timed");
    hstep_status status = hs_product_program(p, form, false, &programs[0], error);
    api->lever_set(p->backend, lever, HSTEP_LEVER_ACTIVE, "being timed");
    if (status == HSTEP_OK)
        status = hs_product_program(p, form, false, &programs[1], error);
    if (status == HSTEP_OK)
        status = time_programs(p, programs, timing, error);
    for (int i = 0; i < 2; i++)
        if (programs[i] != NULL)
            api->program_destroy(p->backend, programs[i]);
    return status;
}

static hstep_status time_shape(hs_backend *backend, size_t lever, hstep_precision precision, const size_t *shape,
                               hstep_gate_timing *timings, hstep_error *error) {
    const size_t m = shape[0], n = shape[1], k = shape[2];
    hs_product product;
    HS_FORWARD(hs_product_create(backend, precision, m, n, k, &product, error));
    double *a = malloc(m * k * sizeof *a), *b = malloc(k * n * sizeof *b);
    hstep_status status = a != NULL && b != NULL ? HSTEP_OK : hs_fail_memory(error, "the gate of a lever");
    if (status == HSTEP_OK)
        hs_inputs_fill(HS_INPUTS_UNIFORM, precision, m, n, k, a, b);
    for (size_t form = 0; form < HS_FORMS && status == HSTEP_OK; form++) {
        status = hs_product_load(&product, form, a, b, error);
        if (status == HSTEP_OK)
            status = time_form(&product, lever, form, &timings[form], error);
    }
    free(a);
    free(b);
    hs_product_destroy(&product);
    return status;
}

hstep_status hs_gate_time(hs_backend *backend, size_t lever, hstep_precision precision, hs_verdict *verdict,
                          hstep_error *error) {
    verdict->timings = calloc(SHAPES * HS_FORMS, sizeof *verdict->timings);
    if (verdict->timings == NULL)
        return hs_fail_memory(error, "the gate of a lever");
    for (size_t i = 0; i < SHAPES; i++)
        HS_FORWARD(time_shape(backend, lever, precision, shapes[i], verdict->timings + i * HS_FORMS, error));
    double ratios = 0;
    for (size_t i = 0; i < SHAPES * HS_FORMS; i++)
        ratios += log(verdict->timings[i].exact_seconds / verdict->timings[i].lever_seconds);
    verdict->gate.speed = exp(ratios / (SHAPES * HS_FORMS));
    verdict->gate.timings = verdict->timings;
    verdict->gate.timing_count = SHAPES * HS_FORMS;
    return HSTEP_OK;
}
