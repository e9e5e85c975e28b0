/* Models, trainers and batches for tests of the engine. Every failure ends the test. */
#ifndef HS_TESTS_SUPPORT_MODELS_H
#define HS_TESTS_SUPPORT_MODELS_H

#include <halfstep/halfstep.h>

#include <stdbool.h>

/* A context, a decoder in it, and a trainer. */
typedef struct hs_test_run {
    hstep_context *context;
    hstep_model *model;
    hstep_trainer *trainer;
} hs_test_run;

/* What hs_test_run_create makes; zero fields take the fixture's values, one thread, and the defaults of
 * the precisions. */
typedef struct hs_test_setup {
    hstep_backend backend;
    unsigned threads;
    hstep_precision precision;
    const hstep_precision_rule *rules;
    size_t rule_count;
    size_t vocabulary, width, layers, heads, kv_heads, feed_forward;
    uint64_t seed;
    hstep_scaler scaler;
    size_t replicas, micro_batches;
    hstep_recompute recompute;
    size_t head_rows;
    double learning_rate;
    double grad_clip;
} hs_test_setup;

hs_test_run hs_test_run_create(const hs_test_setup *setup);

/* The same on a context that exists; the run then owns it. */
hs_test_run hs_test_run_create_in(hstep_context *context, const hs_test_setup *setup);

/* A model that uses every general operation once, some values more than once, in f64; and a batch for it. */
hs_test_run hs_test_general_run_create_in(hstep_context *context);
hstep_batch hs_test_general_batch(void);

void hs_test_run_destroy(hs_test_run *run);

/* The fixture's text `ab`: one sequence of three. */
hstep_batch hs_test_fixture_batch(void);

/* Random tokens and targets below the vocabulary; about one target in eight is -1 where `holes`. */
typedef struct hs_test_batch {
    hstep_batch batch;
    int32_t *tokens, *targets;
} hs_test_batch;

hs_test_batch hs_test_batch_create(size_t sequences, size_t length, size_t vocabulary, bool holes, uint64_t seed);
void hs_test_batch_destroy(hs_test_batch *batch);

/* The bytes that a skip must keep. The caller frees. */
typedef struct hs_test_snapshot {
    unsigned char *bytes;
    size_t size;
} hs_test_snapshot;

hs_test_snapshot hs_test_snapshot_take(hstep_trainer *trainer);
bool hs_test_snapshot_equal(const hs_test_snapshot *a, const hs_test_snapshot *b);
void hs_test_snapshot_free(hs_test_snapshot *snapshot);

/* All gradients, in parameter order, as they stand (scaled). The caller frees. */
double *hs_test_read_gradients(const hs_test_run *run);

/* Ends the test unless `status` is HSTEP_OK, with the error's words. */
void hs_test_expect_ok(hstep_status status, const hstep_error *error);

#endif
