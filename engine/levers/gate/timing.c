/*
 * Whether a lever is worth having: against the exact kernels, in blocks that alternate A B B A, so that a machine that
 * slows down in between slows both. Threads that one of them left turning come to rest before the other is timed.
 */
#include <math.h>
#include <stdlib.h>

#include "engine/levers/gate/clock.h"
#include "engine/levers/gate/gate.h"
#include "engine/levers/gate/inputs.h"
#include "engine/levers/gate/product.h"

enum { SHAPES = HS_GATE_TIMINGS / HS_FORMS, REPEATS = 8, FEW_REPEATS = 2 };
static const size_t shapes[SHAPES][3] = {{64, 128, 128}, {256, 512, 512}};

/* A sample takes about this long, the clock's own cost being small against it; where one run takes very long, a few
 * tell enough. */
static const double SAMPLE_SECONDS = 2e-3, VERY_LONG = 20e-3;
enum { MOST_RUNS = 1024, CALLS = HS_PRODUCT_CALLS };

/* The process is at rest when it computes less than a tenth of a pause; a program may have other work, which is not
 * waited for longer than this in all. */
static const double PAUSE = 1e-3, MOST_SECONDS_OF_REST = 1.0;

typedef struct stopwatch {
    const hs_product *product;
    double rested; /* seconds */
} stopwatch;

static void come_to_rest(stopwatch *watch) {
    const struct timespec pause = {.tv_nsec = (long)(1e9 * PAUSE)};
    bool at_rest = false;
    while (!at_rest && watch->rested < MOST_SECONDS_OF_REST) {
        const double start = hs_clock(), work = hs_processor_clock();
        (void)nanosleep(&pause, NULL);
        at_rest = hs_processor_clock() - work < PAUSE / 10;
        watch->rested += hs_clock() - start;
    }
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of an even number of values. */
static double median(double *values, size_t count) {
    qsort(values, count, sizeof *values, compare);
    return (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* Runs the product so many times, as a step does: one call after another, and waiting at the end alone. A program has
 * CALLS calls, so that what a device takes to begin and to answer is shared by many. */
static hstep_status run(const hs_product *p, hs_program *program, size_t runs, hstep_error *error) {
    for (size_t done = 0; done < runs; done += CALLS)
        HS_FORWARD(
            p->backend->api->program_run(p->backend, program, 0, runs - done < CALLS ? runs - done : CALLS, error));
    return p->backend->api->program_finish(p->backend, program, NULL, error);
}

/* Seconds of one run, after one that wakes the threads. */
static hstep_status sample(stopwatch *watch, hs_program *program, size_t runs, double *seconds, hstep_error *error) {
    come_to_rest(watch);
    HS_FORWARD(run(watch->product, program, 1, error));
    const double start = hs_clock();
    HS_FORWARD(run(watch->product, program, runs, error));
    *seconds = (hs_clock() - start) / (double)runs;
    return HSTEP_OK;
}

/* The first sample of each warms up and tells how many runs fill a sample. */
static hstep_status time_programs(stopwatch *watch, hs_program *const programs[2], hstep_gate_timing *timing,
                                  hstep_error *error) {
    double seconds[2][REPEATS], ratios[REPEATS];
    size_t runs[2], repeats = REPEATS;
    for (int i = 0; i < 2; i++) {
        double once;
        HS_FORWARD(sample(watch, programs[i], 1, &once, error));
        const double wanted = SAMPLE_SECONDS / (once + 1e-9);
        runs[i] = wanted < 1 ? 1 : wanted > MOST_RUNS ? MOST_RUNS : (size_t)wanted;
        repeats = once > VERY_LONG ? FEW_REPEATS : repeats;
    }
    for (size_t repeat = 0; repeat < repeats; repeat++)
        for (size_t turn = 0; turn < 2; turn++) {
            const size_t i = (repeat + turn) % 2;
            HS_FORWARD(sample(watch, programs[i], runs[i], &seconds[i][repeat], error));
        }
    for (size_t repeat = 0; repeat < repeats; repeat++)
        ratios[repeat] = seconds[0][repeat] / seconds[1][repeat];
    timing->speed = median(ratios, repeats);
    timing->exact_seconds = median(seconds[0], repeats);
    timing->lever_seconds = median(seconds[1], repeats);
    return HSTEP_OK;
}

/* One program of exact kernels, one with the lever. */
static hstep_status time_form(stopwatch *watch, size_t lever, hstep_gate_timing *timing, hstep_error *error) {
    const hs_product *p = watch->product;
    const hs_backend_api *api = p->backend->api;
    hs_program *programs[2] = {NULL, NULL};
    *timing = (hstep_gate_timing){
        .m = p->m, .n = p->n, .k = p->k, .a_form = hs_forms[p->form][0], .b_form = hs_forms[p->form][1]};
    api->lever_set(p->backend, lever, HSTEP_LEVER_DISABLED, "being timed");
    hstep_status status = hs_product_program(p, false, CALLS, &programs[0], error);
    api->lever_set(p->backend, lever, HSTEP_LEVER_ACTIVE, "being timed");
    if (status == HSTEP_OK)
        status = hs_product_program(p, false, CALLS, &programs[1], error);
    if (status == HSTEP_OK)
        status = time_programs(watch, programs, timing, error);
    for (int i = 0; i < 2; i++)
        if (programs[i] != NULL)
            api->program_destroy(p->backend, programs[i]);
    return status;
}

/* Operands stand in 16 bits where they can: so they do in a run. */
static hstep_status time_shape(hs_backend *backend, size_t lever, hstep_precision precision, const size_t *shape,
                               hstep_gate_timing *timings, hstep_error *error) {
    const size_t m = shape[0], n = shape[1], k = shape[2];
    hs_product product;
    HS_FORWARD(hs_product_create(backend, precision, m, n, k, &product, error));
    stopwatch watch = {.product = &product};
    const hs_storage *storage = &hs_storages[hs_product_can_stand(&product, &hs_storages[1]) ? 1 : 0];
    double *a = malloc(m * k * sizeof *a), *b = malloc(k * n * sizeof *b);
    hstep_status status = a != NULL && b != NULL ? HSTEP_OK : hs_fail_memory(error, "the gate of a lever");
    if (status == HSTEP_OK)
        hs_inputs_fill(HS_INPUTS_UNIFORM, precision, m, n, k, a, b);
    for (size_t form = 0; form < HS_FORMS && status == HSTEP_OK; form++) {
        status = hs_product_load(&product, storage, form, a, b, error);
        if (status == HSTEP_OK)
            status = time_form(&watch, lever, &timings[form], error);
    }
    free(a);
    free(b);
    hs_product_destroy(&product);
    return status;
}

hstep_status hs_gate_time(hs_backend *backend, size_t lever, hstep_precision precision, hs_verdict *verdict,
                          hstep_error *error) {
    free(verdict->timings);
    verdict->timings = calloc(HS_GATE_TIMINGS, sizeof *verdict->timings);
    if (verdict->timings == NULL)
        return hs_fail_memory(error, "the gate of a lever");
    for (size_t i = 0; i < SHAPES; i++)
        HS_FORWARD(time_shape(backend, lever, precision, shapes[i], verdict->timings + i * HS_FORMS, error));
    verdict->gate.timing_count = HS_GATE_TIMINGS;
    return HSTEP_OK;
}
