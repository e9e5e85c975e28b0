/* The verdict on an attempt: its gradient norm, then all of the commit or nothing (policy, section 5). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/error.h"
#include "engine/transaction/diagnose.h"
#include "engine/transaction/trainer.h"
#include "optim/schedule.h"

/* ---- The norm ---- */

/* The sum of the unscaled gradients' squares: by tensor, then tensors in parameter order. */
static hstep_status compute_square_total(hstep_trainer *trainer, double unscale, double *total, hstep_error *error) {
    hs_backend *backend = trainer->model->context->backend;
    HS_FORWARD(backend->api->write(backend, trainer->unscale, 0, &unscale, sizeof unscale, error));
    HS_FORWARD(hs_run_and_wait(backend, trainer->norm, 0, trainer->model->parameter_count + 1, NULL, error));
    return backend->api->read(backend, trainer->square_total, 0, total, sizeof *total, error);
}

/* The first element whose square is not finite; 0 when only the sum overflowed, or when memory for a look is short. */
static void locate_in_norm(hstep_trainer *trainer, size_t parameter, double unscale, hstep_overflow *overflow) {
    const size_t count = hs_model_elements(trainer->model, parameter);
    double *values = malloc(count * sizeof *values);
    double square = INFINITY;
    if (values != NULL && hstep_trainer_read_gradient(trainer, parameter, values, NULL) == HSTEP_OK) {
        size_t i = 0;
        while (i < count && isfinite((values[i] * unscale) * (values[i] * unscale)))
            i++;
        if (i < count) {
            square = (values[i] * unscale) * (values[i] * unscale);
            overflow->index = i;
        }
    }
    overflow->kind = hs_nonfinite_kind(square);
    free(values);
}

static void describe_norm(hstep_trainer *trainer, const double *sums, double unscale, hstep_overflow *overflow) {
    const hstep_model *model = trainer->model;
    size_t parameter = 0;
    double total = sums[0];
    while (parameter + 1 < model->parameter_count && isfinite(total))
        total += sums[++parameter];
    (void)snprintf(overflow->operation, sizeof overflow->operation, "gradient_norm");
    (void)snprintf(overflow->tensor, sizeof overflow->tensor, "%s",
                   hs_graph_value(model->graph, model->parameter_values[parameter])->name);
    overflow->phase = "norm";
    overflow->index = 0;
    locate_in_norm(trainer, parameter, unscale, overflow);
}

static hstep_status read_and_describe(hstep_trainer *trainer, double unscale, hstep_overflow *overflow,
                                      hstep_error *error) {
    const size_t count = trainer->model->parameter_count;
    hs_backend *backend = trainer->model->context->backend;
    double *sums = calloc(count + 1, sizeof *sums);
    if (sums == NULL)
        return hs_fail_memory(error, "the gradient norm");
    const hstep_status status = backend->api->read(backend, trainer->square_sums, 0, sums, count * sizeof *sums, error);
    if (status == HSTEP_OK)
        describe_norm(trainer, sums, unscale, overflow);
    free(sums);
    return status;
}

hstep_status hs_trainer_norm(hstep_trainer *trainer, double unscale, double *norm, bool *overflowed,
                             hstep_overflow *overflow, hstep_error *error) {
    double total = 0;
    HS_FORWARD(compute_square_total(trainer, unscale, &total, error));
    *norm = sqrt(total);
    *overflowed = !isfinite(*norm);
    return *overflowed ? read_and_describe(trainer, unscale, overflow, error) : HSTEP_OK;
}

/* ---- Skip or commit ---- */

static hstep_status skip(hstep_trainer *trainer, const hstep_overflow *overflow, hstep_update *update,
                         hstep_error *error) {
    HS_FORWARD(hs_trainer_clear_gradients(trainer, error));
    hs_scaler_on_skip(&trainer->scaler);
    update->outcome = HSTEP_SKIPPED;
    update->overflow = *overflow;
    return HSTEP_OK;
}

static hstep_status commit(hstep_trainer *trainer, double unscale, double clip, const hs_adamw_update *step,
                           hstep_update *update, hstep_error *error) {
    const size_t count = trainer->model->parameter_count;
    hs_backend *backend = trainer->model->context->backend;
    double scalars[HS_ADAMW_SCALARS];
    scalars[HS_ADAMW_UNSCALE] = unscale;
    scalars[HS_ADAMW_CLIP] = clip;
    scalars[HS_ADAMW_BETA1] = trainer->config.adamw.beta1;
    scalars[HS_ADAMW_BETA2] = trainer->config.adamw.beta2;
    scalars[HS_ADAMW_RATE] = step->rate;
    scalars[HS_ADAMW_ROOT] = step->root;
    scalars[HS_ADAMW_EPSILON] = trainer->config.adamw.epsilon;
    scalars[HS_ADAMW_DECAY] = step->decay;
    /* A commit that is traced has more calls for each parameter than this one, which is its second. */
    const bool traced = trainer->trace.on;
    const size_t calls = traced ? HS_TRACE_COMMIT_CALLS : 1;
    uint32_t *flags = calloc(count * calls + 1, sizeof *flags);
    if (flags == NULL)
        return hs_fail_memory(error, "a commit");
    hstep_status status = backend->api->write(backend, trainer->scalars, 0, scalars, sizeof scalars, error);
    if (status == HSTEP_OK)
        status =
            hs_run_and_wait(backend, traced ? trainer->trace.commit : trainer->commit, 0, count * calls, flags, error);
    for (size_t i = 0; i < count && status == HSTEP_OK; i++)
        update->nonfinite_weights |= flags[i * calls + traced] != 0;
    free(flags);
    HS_FORWARD(status);
    for (size_t i = 0; i < count; i++)
        hs_model_touch(trainer->model, i);
    trainer->model->cast_revision = trainer->model->revision;
    trainer->adamw = step->after;
    hs_scaler_on_commit(&trainer->scaler);
    trainer->gradient_state = HS_GRADIENTS_CLEAR; /* ADAMW left them +0 */
    trainer->tape = (hs_tape){0};
    return HSTEP_OK;
}

hstep_status hs_trainer_decide(hstep_trainer *trainer, const hs_attempt *attempt, hstep_update *update,
                               hstep_error *error) {
    const double scale = trainer->scaler.scale, unscale = 1.0 / scale;
    const uint64_t scheduled = trainer->adamw.step + 1;
    const double rate = hs_schedule_rate(&trainer->config.schedule, scheduled);
    hstep_update result = {.step = scheduled,
                           .loss = attempt->loss,
                           .loss_scale = scale,
                           .gradient_norm = NAN,
                           .learning_rate = rate,
                           .tokens = attempt->tokens,
                           .threads = hs_context_threads_now(trainer->model->context)};
    bool overflowed = attempt->overflowed, clipped = false;
    hstep_overflow overflow = attempt->overflow;
    if (!overflowed)
        HS_FORWARD(hs_trainer_norm(trainer, unscale, &result.gradient_norm, &overflowed, &overflow, error));
    HS_FORWARD(hs_trace_look(trainer, !attempt->overflowed, error));
    if (overflowed) {
        HS_FORWARD(skip(trainer, &overflow, &result, error));
    } else {
        const double clip = hs_clip_factor(result.gradient_norm, trainer->config.adamw.grad_clip, &clipped);
        const hs_adamw_update step = hs_adamw_prepare(&trainer->config.adamw, &trainer->adamw, rate);
        HS_FORWARD(commit(trainer, unscale, clip, &step, &result, error));
    }
    result.clipped = clipped;
    result.attempt = ++trainer->attempts;
    result.next_loss_scale = trainer->scaler.scale;
    result.finite_updates = trainer->scaler.finite_updates;
    result.optimizer_step = trainer->adamw.step;
    if (trainer->trace.on)
        hs_trace_end(trainer, unscale, !overflowed);
    if (trainer->observer != NULL)
        trainer->observer(&result, trainer->observer_user);
    *update = result;
    return HSTEP_OK;
}
