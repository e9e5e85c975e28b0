/*
 * The memory of a run, by making all of it: what is not written to yet takes none. The rest of the process counts as it
 * stands before, with its data read.
 */
#include "trainer/train/dry_run.h"

#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

#include "trainer/exit.h"
#include "trainer/report.h"
#include "trainer/train/run.h"

/* Bytes that a run holds on its backend. */
typedef struct footprint {
    size_t state;   /* weights, their casts, moments, gradients */
    size_t working; /* activations and scratch, of training and of evaluation */
} footprint;

/* Bytes of this process in memory; 0 where the system does not tell. */
static size_t resident(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL)
        return 0;
    unsigned long long size = 0, pages = 0;
    const int read = fscanf(file, "%llu %llu", &size, &pages);
    (void)fclose(file);
    return read == 2 ? (size_t)pages * (size_t)sysconf(_SC_PAGESIZE) : 0;
}

static hstep_status prepare(const hs_run *run, footprint *f, hstep_error *error) {
    const hs_options *o = run->options;
    f->state = hstep_context_memory(run->context);
    hstep_status status = hstep_trainer_prepare(run->trainer, o->batch_size, o->context, error);
    if (status == HSTEP_OK && o->trace != 0)
        status = hstep_trainer_set_trace(run->trainer, 1, error);
    if (status == HSTEP_OK && o->trace != 0)
        status = hstep_trainer_prepare(run->trainer, o->batch_size, o->context, error);
    if (status == HSTEP_OK && hstep_dataset_evaluation_windows(run->dataset, o->context, 0) > 0)
        status = hstep_model_prepare_loss(run->model, o->batch_size, o->context, error);
    f->working = hstep_context_memory(run->context) - f->state;
    return status;
}

static int print(const hs_run *run, const footprint *f, size_t process) {
    json_t *plan = json_pack("{s:s, s:I, s:I, s:{s:I, s:I, s:I, s:I}}", "schema", "halfstep.dry-run/1", "parameters",
                             (json_int_t)hstep_model_scalar_count(run->model), "tokens_per_update",
                             (json_int_t)(run->window_count * run->batch_tokens), "memory_bytes", "state",
                             (json_int_t)f->state, "working", (json_int_t)f->working, "process", (json_int_t)process,
                             "peak", (json_int_t)(f->state + f->working + process));
    if (plan == NULL)
        return hs_report_no_memory();
    const int written = json_dumpf(plan, stdout, JSON_INDENT(2));
    json_decref(plan);
    if (written == 0 && printf("\n") > 0 && fflush(stdout) == 0)
        return HS_EXIT_DONE;
    hs_report("cannot write to standard output");
    return HS_EXIT_OUTPUT;
}

int hs_dry_run(const hs_options *options) {
    hs_run run;
    hstep_error error = {0};
    footprint f = {0};
    hstep_status status = hs_run_read_data(options, &run, &error);
    const size_t process = resident();
    if (status == HSTEP_OK)
        status = hs_run_make(&run, &error);
    if (status == HSTEP_OK)
        status = prepare(&run, &f, &error);
    const int result = status == HSTEP_OK ? print(&run, &f, process) : hs_report_error(&error);
    (void)hs_run_destroy(&run, NULL);
    return result;
}
