/* The first record of a run: its configuration, from the table of options, and what it stands on. */
#include <stdlib.h>
#include <string.h>

#include "trainer/report.h"
#include "trainer/train/records/changes.h"
#include "trainer/train/records/settings.h"
#include "trainer/train/run.h"

static hstep_status write_run(hs_run *run, const hstep_setting *settings, size_t count, const char *data_name,
                              hstep_error *error) {
    const hs_options *o = run->options;
    const size_t tokens = hstep_dataset_tokens(run->dataset);
    const size_t training = hstep_dataset_training_tokens(run->dataset);
    const hstep_data_source source = {
        .name = data_name != NULL ? data_name : "built-in sums",
        .tokens = tokens,
        .training_tokens = training,
        .evaluation_tokens = tokens - training,
        .checksum = hstep_dataset_checksum(run->dataset),
        .unigram_loss = run->unigram_loss,
    };
    hstep_run_record record = {
        .precision = (hstep_precision)o->precision,
        .settings = settings,
        .setting_count = count,
        .decoder = &run->decoder,
        .parameter_tensors = hstep_model_parameter_count(run->model),
        .parameters = hstep_model_scalar_count(run->model),
        .backend = hstep_context_backend_name(run->context),
        .device = hstep_context_device_name(run->context),
        .threads = hstep_context_threads(run->context),
        .data = &source,
        .data_count = 1,
        .seed = o->seed,
    };
    record.lever_count = hstep_context_levers(run->context, &record.levers);
    return hstep_records_write_run(run->records, &record, error);
}

static hstep_status write_resume(hs_run *run, hstep_error *error) {
    const hs_resumed *resumed = &run->options->resumed;
    hs_changes changes;
    if (!hs_changes_find(run->options, &changes))
        return hs_no_memory(error);
    const hstep_resume_record record = {.step = run->tally.steps,
                                        .path = resumed->path,
                                        .passed_over = (const char *const *)resumed->passed_over,
                                        .passed_over_count = resumed->passed_over_count,
                                        .changes = changes.items,
                                        .change_count = changes.count};
    hs_progress_say(&run->progress, "going on after step %llu from %s", (unsigned long long)record.step, record.path);
    const hstep_status status = hstep_records_write_resume(run->records, &record, error);
    hs_changes_free(&changes);
    return status;
}

static hstep_status write_settings(hs_run *run, hstep_error *error) {
    const hs_options *o = run->options;
    char *data = NULL, *eval_data = NULL, *precision_for = NULL;
    hstep_status status = HSTEP_OK;
    if (hs_texts_join(&o->data, " + ", &data) && hs_texts_join(&o->eval_data, " + ", &eval_data) &&
        hs_texts_join(&o->precision_for, ",", &precision_for)) {
        hstep_setting settings[HS_OPTIONS_MAX];
        size_t rows, count = 0;
        const hs_option *table = hs_option_table(&rows);
        for (size_t i = 0; i < rows; ++i) {
            const void *value = hs_option_value(&table[i], o);
            if (strcmp(table[i].name, "help") != 0)
                settings[count++] = hs_setting_of(&table[i], o,
                                                  value == &o->data        ? data
                                                  : value == &o->eval_data ? eval_data
                                                                           : precision_for);
        }
        status = write_run(run, settings, count, data, error);
    } else {
        status = hs_no_memory(error);
    }
    free(data);
    free(eval_data);
    free(precision_for);
    return status;
}

hstep_status hs_run_write_start(hs_run *run, hstep_error *error) {
    const hstep_status status = run->continued ? HSTEP_OK : write_settings(run, error);
    return status == HSTEP_OK && run->options->resumed.found ? write_resume(run, error) : status;
}
