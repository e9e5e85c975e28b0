/* Allocations within calls fail in turn: the call says so, and everything is as it was. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "memory/failing_memory.h"
#include "support/folder.h"
#include "support/models.h"
#include "support/untouched.h"

/*
 * `call`, which names its error `e`, with the first allocation failing, then the second, until none fails. A call may
 * do without what it could not have; `undo` takes back what one has made that succeeds.
 */
#define runs_out(call, undo)                                                                                           \
    do {                                                                                                               \
        size_t refused = 0;                                                                                            \
        for (size_t at = 1; at < 100000; at += 1 + at / 32) {                                                          \
            hstep_error told, *e = &told;                                                                              \
            hs_test_before_call(e);                                                                                    \
            hs_test_memory_start(at, false);                                                                           \
            const hstep_status status = (call);                                                                        \
            hs_test_memory_stop();                                                                                     \
            const bool failed = hs_test_memory_state.failed;                                                           \
            if (status == HSTEP_OK) {                                                                                  \
                hs_test_forget_call();                                                                                 \
                undo;                                                                                                  \
                hs_test_out_fill();                                                                                    \
            } else {                                                                                                   \
                cr_expect(failed, "line %d: %s: %s without a failing allocation", __LINE__, #call, told.message);      \
                hs_test_after_call(HSTEP_ERROR_MEMORY, status, e, #call, __LINE__);                                    \
                refused++;                                                                                             \
            }                                                                                                          \
            if (!failed)                                                                                               \
                break;                                                                                                 \
        }                                                                                                              \
        cr_expect_gt(refused, 0, "line %d: %s: no allocation was made to fail", __LINE__, #call);                      \
    } while (0)

static const int32_t TOKENS[3] = {0, 1, 2};
static const hstep_batch BATCH = {.sequences = 1, .length = 3, .tokens = TOKENS, .targets = TOKENS};

static hs_test_run run;
static hstep_error error;

static void start(void) {
    const hs_test_setup setup = {.backend = HSTEP_BACKEND_CPU, .precision = HSTEP_PRECISION_FP16};
    run = hs_test_run_create(&setup);
    hs_test_out_fill();
    hs_test_watch(run.trainer, NULL);
}

static void stop(void) {
    hs_test_watch(NULL, NULL);
    hs_test_run_destroy(&run);
}

Test(failing_memory, contexts_and_models, .init = hs_test_out_fill, .timeout = 60) {
    hs_test_places *o = &hs_test_out;
    const hstep_context_options options = {.backend = HSTEP_BACKEND_CPU, .threads = 2};
    runs_out(hstep_context_create(&options, &o->context, e), hstep_context_destroy(o->context));

    hstep_context *context = NULL;
    hs_test_expect_ok(hstep_context_create(&options, &context, &error), &error);
    hstep_decoder_config config = hstep_decoder_defaults();
    config.vocabulary = 10;
    config.width = config.feed_forward = 8;
    config.layers = 1;
    config.heads = 2;
    runs_out(hstep_model_create_decoder(context, &config, &o->model, e), hstep_model_destroy(o->model));
    const double a[4] = {1, 2, 3, 4};
    runs_out(hstep_matmul(context, HSTEP_PRECISION_BF16, HSTEP_NO_TRANSPOSE, HSTEP_NO_TRANSPOSE, 2, 2, 2, a, a,
                          o->numbers, e),
             (void)0);
    hstep_context_destroy(context);
}

Test(failing_memory, graphs, .init = hs_test_out_fill, .timeout = 60) {
    hs_test_places *o = &hs_test_out;
    const int64_t dims[2] = {HSTEP_ROWS, 4}, square[2] = {4, 4};
    hstep_graph *g = NULL;
    hstep_value x = 0, w = 0, y = 0, loss = 0;
    runs_out(hstep_graph_create(&o->graph, e), hstep_graph_destroy(o->graph));
    hs_test_expect_ok(hstep_graph_create(&g, &error), &error);
    hs_test_watch(NULL, g);
    runs_out(hstep_graph_input(g, "x", HSTEP_DTYPE_F64, 2, dims, &o->value, e), x = o->value);
    runs_out(hstep_graph_parameter(g, "w", 2, square, &o->value, e), w = o->value);
    runs_out(
        hstep_graph_matmul(g, "xw", HSTEP_PRECISION_BF16, x, HSTEP_NO_TRANSPOSE, w, HSTEP_NO_TRANSPOSE, &o->value, e),
        y = o->value);
    runs_out(hstep_graph_rotary(g, "turned", y, 2, 10000, &o->value, e), y = o->value);
    runs_out(hstep_graph_attention(g, "attention", HSTEP_PRECISION_BF16, y, y, y, 2, 2, &o->value, e), y = o->value);
    runs_out(hstep_graph_sum(g, "loss", y, &o->value, e), loss = o->value);
    runs_out(hstep_graph_set_loss(g, loss, e), (void)0);

    hstep_context *context = NULL;
    hs_test_expect_ok(hstep_context_create(NULL, &context, &error), &error);
    runs_out(hstep_model_create(context, g, &o->model, e), hs_test_watch(NULL, NULL); hstep_model_destroy(o->model));
    hstep_context_destroy(context);
}

static void look_away(void *data, const hstep_traced_value *value) {
    (void)data;
    (void)value;
}

Test(failing_memory, passes, .init = start, .fini = stop, .timeout = 60) {
    hs_test_places *o = &hs_test_out;
    runs_out(hstep_model_prepare_loss(run.model, 1, 2, e), (void)0);
    runs_out(hstep_model_loss(run.model, &BATCH, &o->sum, &o->weight, e), (void)0);
    runs_out(hstep_model_trace(run.model, &BATCH, look_away, &o->sum, e), (void)0);
    runs_out(hstep_model_checksum(run.model, &o->checksum, e), (void)0);
    double *output = calloc(hstep_model_output_size(run.model, 1, 3), sizeof *output);
    runs_out(hstep_model_output(run.model, &BATCH, output, e), (void)0);
    free(output);

    const double logits[3] = {0, 1, 2};
    const hstep_sampling sampling = {.temperature = 1, .top_k = 2};
    runs_out(hstep_choose_token(&sampling, logits, 3, NULL, 0, 0.5, o->tokens, e), (void)0);
    runs_out(hstep_decoding_create(run.model, 1, 4, &o->decoding, e), hstep_decoding_destroy(o->decoding));
}

Test(failing_memory, updates, .init = start, .fini = stop, .timeout = 60) {
    hs_test_places *o = &hs_test_out;
    runs_out(hstep_trainer_prepare(run.trainer, 2, 2, e), (void)0);
    runs_out(hstep_trainer_update(run.trainer, &BATCH, 1, &o->update, e), (void)0);
    const hstep_batch shorter = {.sequences = 1, .length = 2, .tokens = TOKENS, .targets = TOKENS};
    runs_out(hstep_trainer_record(run.trainer, &shorter, &o->loss, e), (void)0);

    /* An attempt that overflows and is explained, then one that is skipped; each of a shape that is new. */
    const hstep_batch single = {.sequences = 1, .length = 1, .tokens = TOKENS, .targets = TOKENS};
    const hstep_batch pair = {.sequences = 2, .length = 1, .tokens = TOKENS, .targets = TOKENS};
    const hstep_scaler high = {16777216, 1, 16777216, 2000};
    hs_test_expect_ok(hstep_trainer_set_scaler(run.trainer, &high, &error), &error);
    runs_out(hstep_trainer_explain(run.trainer, &single, 1, &o->explanation, e),
             cr_expect_eq(o->explanation.overflowed, 1));
    bool skipped = false;
    runs_out(hstep_trainer_update(run.trainer, &pair, 1, &o->update, e), skipped = o->update.outcome == HSTEP_SKIPPED);
    cr_expect(skipped);
    runs_out(hstep_trainer_set_trace(run.trainer, 1, e), (void)0);
    runs_out(hstep_trainer_update(run.trainer, &single, 1, &o->update, e), (void)0);
}

Test(failing_memory, a_model_without_trainer, .timeout = 60) {
    const hs_test_setup setup = {.backend = HSTEP_BACKEND_CPU_REFERENCE};
    run = hs_test_run_create(&setup);
    hstep_trainer_destroy(run.trainer);
    run.trainer = NULL;
    hs_test_places *o = &hs_test_out;
    hs_test_out_fill();
    const hstep_trainer_config config = hstep_trainer_defaults(HSTEP_PRECISION_F64);
    runs_out(hstep_trainer_create(run.model, &config, &o->trainer, e), hstep_trainer_destroy(o->trainer));
    hs_test_run_destroy(&run);
}

Test(failing_memory, data, .init = hs_test_out_fill, .timeout = 60) {
    hs_test_enter_folder();
    hs_test_places *o = &hs_test_out;
    hs_test_write_file("text", "some bytes to learn from");
    const char *const paths[] = {"text"};
    runs_out(hstep_dataset_from_bytes("some bytes", 10, &o->dataset, e), hstep_dataset_destroy(o->dataset));
    runs_out(hstep_dataset_load(paths, 1, NULL, &o->dataset, e), hstep_dataset_destroy(o->dataset));

    hstep_dataset *dataset = NULL;
    hs_test_expect_ok(hstep_dataset_load(paths, 1, NULL, &dataset, &error), &error);
    const hstep_data_position position = {1, 4, 7};
    char text[4096];
    size_t size = sizeof text;
    hs_test_expect_ok(hstep_dataset_save_position(dataset, &position, text, &size, &error), &error);
    runs_out(hstep_dataset_save_position(dataset, &position, NULL, &o->size, e), (void)0);
    runs_out(hstep_dataset_unigram_loss(dataset, &o->loss, e), (void)0);
    hstep_dataset_destroy(dataset);
    hs_test_leave_folder();
}

Test(failing_memory, files, .init = start, .fini = stop, .timeout = 60) {
    hs_test_enter_folder();
    hs_test_places *o = &hs_test_out;
    runs_out(hstep_records_open("records", &o->records, e), (void)hstep_records_close(o->records, NULL));
    hstep_records *records = NULL;
    hs_test_expect_ok(hstep_records_open("records", &records, &error), &error);
    runs_out(hstep_records_write_end(records, &(hstep_end_record){0}, e), (void)0);
    hs_test_expect_ok(hstep_records_close(records, &error), &error);

    const hstep_section section = {"notes", "bytes", 5};
    const hstep_checkpoint_extras extras = {&section, 1, NAN};
    const char *const path = "checkpoint-00000000.safetensors";
    /* Saving and loading out of memory is the matter of test_checkpoint_memory.c. */
    hs_test_expect_ok(hstep_checkpoint_save(run.trainer, path, &extras, &error), &error);
    runs_out(hstep_tensor_file_open(path, &o->file, e), hstep_tensor_file_close(o->file));
    runs_out(hstep_checkpoint_export(path, "weights", HSTEP_STORAGE_F16, &o->report, e), (void)0);

    hstep_tensor_file *file = NULL;
    hs_test_expect_ok(hstep_tensor_file_open(path, &file, &error), &error);
    o->size = sizeof o->text;
    runs_out(hstep_checkpoint_section(file, "notes", o->text, &o->size, e), (void)0);
    const hstep_tensor_place place = {file, hstep_tensor_file_find(file, "final_norm.gain")};
    runs_out(hstep_tensor_compare(&place, &place, NULL, &o->comparison, e), (void)0);
    runs_out(hstep_tensor_file_verify(file, e), (void)0);
    runs_out(hstep_checkpoint_restore(run.trainer, file, 0, e), (void)0);
    hstep_tensor_file_close(file);
    hs_test_leave_folder();
}
