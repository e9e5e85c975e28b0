/* The passes of an attempt: a whole window at once, or step by step. The verdict is in verdict.c. */
#include <math.h>
#include <string.h>

#include "engine/error.h"
#include "engine/transaction/diagnose.h"
#include "engine/transaction/trainer.h"

hstep_status hs_trainer_plan(hstep_trainer *trainer, size_t sequences, size_t length, hs_plan **plan,
                             hstep_error *error) {
    const hs_trace *trace = &trainer->trace;
    const hs_plan_request request = {
        .backend = trainer->model->context->backend,
        .graph = trainer->recomputing != NULL ? trainer->recomputing : trainer->model->graph,
        .mode = HS_MODE_TRAIN,
        .sequences = sequences,
        .length = length,
        .parameters = trainer->model->parameters,
        .casts = trainer->model->casts,
        .head_rows = trainer->config.head_rows,
        .gradients = trainer->reduction.batch,
        .measured = trace->on && trace->rows.measured_count > 0 ? trace->rows.measured : NULL,
        .measured_count = trace->on ? trace->rows.measured_count : 0};
    return hs_plan_cache_get(&trainer->plans, &request, plan, error);
}

hstep_status hs_trainer_clear_gradients(hstep_trainer *trainer, hstep_error *error) {
    hs_backend *backend = trainer->model->context->backend;
    for (size_t i = 0; i < trainer->model->parameter_count; i++)
        HS_FORWARD(backend->api->clear(backend, trainer->gradients[i], 0,
                                       hs_model_elements(trainer->model, i) * sizeof(double), error));
    trainer->gradient_state = HS_GRADIENTS_CLEAR;
    trainer->tape = (hs_tape){0};
    return HSTEP_OK;
}

/* ---- One micro-batch ---- */

hstep_status hs_trainer_forward_failure(hstep_trainer *trainer, hs_plan *plan, size_t call, hstep_error *error) {
    hstep_overflow where = {0};
    (void)hs_diagnose(trainer->model, plan, call, &where);
    const bool inside = strcmp(where.tensor, where.operation) != 0;
    return hs_fail_operation(error, HSTEP_ERROR_NONFINITE_FORWARD, where.operation,
                             "operation \"%s\" gave a forward value that is not finite (%s at index %llu%s%s); a "
                             "smaller loss scale cannot mend it: lower the learning rate, or compute in a wider "
                             "precision",
                             where.operation, where.kind, (unsigned long long)where.index, inside ? " of " : "",
                             inside ? where.tensor : "");
}

/* Which passes were submitted. */
typedef struct passes {
    bool forward, backward;
} passes;

/* Waits for the calls that were submitted; a nonfinite forward value is an error, an adjoint's an overflow. */
static hstep_status finish_passes(hstep_trainer *trainer, hs_plan *plan, passes ran, double *loss, bool *overflowed,
                                  hstep_overflow *overflow, hstep_error *error) {
    size_t flagged = 0;
    HS_FORWARD(hs_plan_finish(plan, &flagged, error));
    if (hs_plan_is_forward(plan, flagged))
        return hs_trainer_forward_failure(trainer, plan, flagged, error);
    HS_FORWARD(hs_plan_read_loss(plan, loss, error));
    HS_FORWARD(hs_trace_take(trainer, plan, ran.forward, ran.backward, error));
    if (flagged < plan->calls && !*overflowed) {
        (void)hs_diagnose(trainer->model, plan, flagged, overflow);
        *overflowed = true;
    }
    return HSTEP_OK;
}

hstep_status hs_trainer_submit(hstep_trainer *trainer, const hstep_batch *batch, double seed, bool backward,
                               hs_plan **plan, hstep_error *error) {
    HS_FORWARD(hs_trainer_plan(trainer, batch->sequences, batch->length, plan, error));
    HS_FORWARD(hs_model_refresh_casts(trainer->model, error));
    HS_FORWARD(hs_plan_feed(*plan, batch, error));
    HS_FORWARD(hs_plan_write_seed(*plan, seed, error));
    return backward ? hs_plan_both_passes(*plan, error) : hs_plan_forward(*plan, error);
}

/* After an overflow only the losses of the remaining batches are still wanted. */
static hstep_status run_batch(hstep_trainer *trainer, const hstep_batch *batch, double seed, hs_attempt *attempt,
                              double *loss, hstep_error *error) {
    hs_plan *plan = NULL;
    const passes wanted = {.forward = true, .backward = !attempt->overflowed};
    HS_FORWARD(hs_trainer_submit(trainer, batch, seed, wanted.backward, &plan, error));
    return finish_passes(trainer, plan, wanted, loss, &attempt->overflowed, &attempt->overflow, error);
}

/* ---- A whole window ---- */

hstep_status hs_trainer_check_whole(const hstep_trainer *trainer, hstep_error *error) {
    HS_RETURN_IF(trainer->half_loaded, error, HSTEP_ERROR_ARGUMENT,
                 "reading a checkpoint into the trainer broke off in the middle; load one that can be read");
    return hs_model_check_whole(trainer->model, error);
}

hstep_status hs_trainer_check_state(const hstep_trainer *trainer, hstep_error *error) {
    HS_FORWARD(hs_trainer_check_whole(trainer, error));
    HS_RETURN_IF(trainer->gradient_state != HS_GRADIENTS_CLEAR, error, HSTEP_ERROR_DIRTY_GRADIENT,
                 "gradients of an earlier backward pass are still there; commit or clear them first");
    return HSTEP_OK;
}

hstep_status hs_trainer_check_window(hstep_trainer *trainer, const hstep_batch *window, size_t count,
                                     hs_attempt *attempt, hstep_error *error) {
    HS_RETURN_IF(count != trainer->config.replicas * trainer->config.micro_batches, error, HSTEP_ERROR_SHAPE,
                 "a window of %zu batches where %zu replicas x %zu micro-batches are configured", count,
                 trainer->config.replicas, trainer->config.micro_batches);
    for (size_t i = 0; i < count; i++) {
        double weight = 0;
        HS_FORWARD(hs_batch_check(trainer->model->graph, HS_MODE_TRAIN, &window[i], error));
        HS_FORWARD(hs_model_batch_weight(trainer->model, &window[i], &weight, error));
        attempt->weight += weight;
        attempt->tokens += (uint64_t)(window[i].sequences * window[i].length);
    }
    HS_RETURN_IF(!(attempt->weight > 0), error, HSTEP_ERROR_NO_TARGETS, "the window has no targets: every one is -1");
    HS_RETURN_IF(!isfinite(attempt->weight) || !isfinite(trainer->config.scaler.maximum / attempt->weight), error,
                 HSTEP_ERROR_ARGUMENT, "the batches' weights add up to %.17g, too %s for loss scales up to %.17g",
                 attempt->weight, attempt->weight < 1 ? "little" : "much", trainer->config.scaler.maximum);
    return HSTEP_OK;
}

hstep_status hstep_trainer_prepare(hstep_trainer *trainer, size_t sequences, size_t length, hstep_error *error) {
    HS_RETURN_IF(trainer == NULL, error, HSTEP_ERROR_ARGUMENT, "hstep_trainer_prepare needs a trainer");
    HS_FORWARD(hs_batch_check_shape(sequences, length, error));
    HS_FORWARD(hs_trainer_check_state(trainer, error));
    hs_plan *plan = NULL;
    trainer->tape = (hs_tape){0};
    return hs_trainer_plan(trainer, sequences, length, &plan, error);
}

static hstep_status run_window(hstep_trainer *trainer, const hstep_batch *window, hs_attempt *attempt,
                               hstep_error *error) {
    const double seed = trainer->scaler.scale / attempt->weight;
    for (size_t replica = 0; replica < trainer->config.replicas; replica++) {
        double replica_loss = 0;
        for (size_t i = 0; i < trainer->config.micro_batches; i++) {
            double loss = 0;
            HS_FORWARD(
                run_batch(trainer, &window[replica * trainer->config.micro_batches + i], seed, attempt, &loss, error));
            if (!attempt->overflowed)
                HS_FORWARD(hs_reduction_take(&trainer->reduction, replica, i, error));
            replica_loss = i == 0 ? loss : replica_loss + loss;
        }
        attempt->loss = replica == 0 ? replica_loss : attempt->loss + replica_loss;
    }
    attempt->loss /= attempt->weight;
    return HSTEP_OK;
}

hstep_status hstep_trainer_update(hstep_trainer *trainer, const hstep_batch *window, size_t count, hstep_update *update,
                                  hstep_error *error) {
    HS_RETURN_IF(trainer == NULL || window == NULL || update == NULL, error, HSTEP_ERROR_ARGUMENT,
                 "hstep_trainer_update needs a trainer, a window and a place for the outcome");
    HS_FORWARD(hs_trainer_check_state(trainer, error));
    hs_attempt attempt = {0};
    HS_FORWARD(hs_trainer_check_window(trainer, window, count, &attempt, error));
    trainer->tape = (hs_tape){0};
    hs_trace_begin(trainer);
    hstep_status status = run_window(trainer, window, &attempt, error);
    if (status == HSTEP_OK)
        status = hs_trainer_decide(trainer, &attempt, update, error);
    if (status != HSTEP_OK)
        (void)hs_trainer_clear_gradients(trainer, NULL);
    return status;
}

/* ---- Step by step ---- */

static hstep_status check_fresh(const hstep_trainer *trainer, hstep_error *error) {
    HS_RETURN_IF(trainer->tape.plan == NULL, error, HSTEP_ERROR_STALE_TAPE,
                 "no forward pass is recorded; call hstep_trainer_record first");
    HS_RETURN_IF(trainer->tape.revision != trainer->model->revision, error, HSTEP_ERROR_STALE_TAPE,
                 "parameters changed after the forward pass was recorded; record it again");
    return HSTEP_OK;
}

hstep_status hstep_trainer_record(hstep_trainer *trainer, const hstep_batch *batch, double *loss, hstep_error *error) {
    HS_RETURN_IF(trainer == NULL || batch == NULL, error, HSTEP_ERROR_ARGUMENT,
                 "hstep_trainer_record needs a trainer and a batch");
    HS_FORWARD(hs_trainer_check_state(trainer, error));
    hs_attempt attempt = {.overflowed = true}; /* so that only the forward pass runs */
    HS_FORWARD(hs_trainer_check_window(trainer, batch, 1, &attempt, error));
    trainer->tape = (hs_tape){0};
    hs_trace_begin(trainer);
    hs_tape tape = {.revision = trainer->model->revision, .weight = attempt.weight};
    const hstep_status status =
        run_batch(trainer, batch, trainer->scaler.scale / tape.weight, &attempt, &tape.loss, error);
    if (status != HSTEP_OK) { /* looking for what failed may have run more than the forward pass */
        (void)hs_trainer_clear_gradients(trainer, NULL);
        return status;
    }
    tape.loss /= tape.weight;
    HS_FORWARD(hs_trainer_plan(trainer, batch->sequences, batch->length, &tape.plan, error));
    trainer->tape = tape;
    if (loss != NULL)
        *loss = tape.loss;
    return HSTEP_OK;
}

hstep_status hstep_trainer_backward(hstep_trainer *trainer, hstep_error *error) {
    HS_RETURN_IF(trainer == NULL, error, HSTEP_ERROR_ARGUMENT, "hstep_trainer_backward needs a trainer");
    HS_FORWARD(hs_trainer_check_state(trainer, error));
    HS_FORWARD(check_fresh(trainer, error));
    hs_tape *tape = &trainer->tape;
    double sum = 0;
    hstep_status status = hs_plan_write_seed(tape->plan, trainer->scaler.scale / tape->weight, error);
    if (status == HSTEP_OK)
        status = hs_plan_backward(tape->plan, error);
    if (status == HSTEP_OK)
        status = finish_passes(trainer, tape->plan, (passes){.backward = true}, &sum, &tape->overflowed,
                               &tape->overflow, error);
    if (status != HSTEP_OK) {
        (void)hs_trainer_clear_gradients(trainer, NULL);
        return status;
    }
    trainer->gradient_state = HS_GRADIENTS_PRESENT;
    return HSTEP_OK;
}

hstep_status hstep_trainer_commit(hstep_trainer *trainer, hstep_update *update, hstep_error *error) {
    HS_RETURN_IF(trainer == NULL || update == NULL, error, HSTEP_ERROR_ARGUMENT,
                 "hstep_trainer_commit needs a trainer and a place for the outcome");
    HS_RETURN_IF(trainer->gradient_state != HS_GRADIENTS_PRESENT, error, HSTEP_ERROR_MISSING_GRADIENT,
                 "there are no gradients; call hstep_trainer_record and hstep_trainer_backward first");
    HS_FORWARD(check_fresh(trainer, error));
    const hs_tape *tape = &trainer->tape;
    const hs_attempt attempt = {.loss = tape->loss,
                                .weight = tape->weight,
                                .tokens = (uint64_t)(tape->plan->request.sequences * tape->plan->request.length),
                                .overflowed = tape->overflowed,
                                .overflow = tape->overflow};
    return hs_trainer_decide(trainer, &attempt, update, error);
}

hstep_status hstep_trainer_clear(hstep_trainer *trainer, hstep_error *error) {
    HS_RETURN_IF(trainer == NULL, error, HSTEP_ERROR_ARGUMENT, "hstep_trainer_clear needs a trainer");
    return hs_trainer_clear_gradients(trainer, error);
}
