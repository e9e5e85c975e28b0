/* The overflow probe: fp16 from a scale far too large, halved by skips until an update commits. */
#include <stdlib.h>
#include <string.h>

#include "trainer/demonstration/fixture.h"
#include "trainer/demonstration/parts.h"
#include "trainer/exit.h"
#include "trainer/report.h"

enum { MAXIMUM_ATTEMPTS = 32 };

typedef struct hs_probe {
    hs_fixture fixture;
    hstep_update warm_up, first_skip, retry;
    uint64_t step_before, step_after; /* committed updates around the first skip */
    int preserved;
    int cleared;
    int skipped_attempts;
    json_t *attempts;
} hs_probe;

/* The state's bytes, to be freed; NULL where memory or the trainer fails, with the fixture's error filled. */
static void *take_snapshot(hs_fixture *fixture, size_t *size) {
    if (hstep_trainer_snapshot(fixture->trainer, NULL, size, &fixture->error) != HSTEP_OK)
        return NULL;
    void *bytes = malloc(*size);
    if (bytes == NULL) {
        fixture->error = (hstep_error){.status = HSTEP_ERROR_MEMORY, .message = "no memory for a snapshot"};
        return NULL;
    }
    if (hstep_trainer_snapshot(fixture->trainer, bytes, size, &fixture->error) != HSTEP_OK) {
        free(bytes);
        return NULL;
    }
    return bytes;
}

static json_t *describe_attempt(const hstep_update *update) {
    if (update->outcome == HSTEP_APPLIED)
        return json_pack("{s:f, s:s}", "loss_scale", update->loss_scale, "outcome", "applied");
    const hstep_overflow *overflow = &update->overflow;
    return json_pack("{s:f, s:s, s:{s:s, s:s, s:s, s:s, s:I}}", "loss_scale", update->loss_scale, "outcome", "skipped",
                     "overflow", "operation", overflow->operation, "tensor", overflow->tensor, "phase", overflow->phase,
                     "kind", overflow->kind, "index", (json_int_t)overflow->index);
}

/* The first attempt, held between two snapshots. */
static hstep_status attempt_first(hs_probe *probe) {
    hs_fixture *fixture = &probe->fixture;
    size_t before_size = 0, after_size = 0;
    void *after = NULL;
    void *before = take_snapshot(fixture, &before_size);
    probe->step_before = hstep_trainer_optimizer_step(fixture->trainer);
    hstep_status status = before == NULL ? fixture->error.status : hs_fixture_update(fixture, &probe->first_skip);
    if (status == HSTEP_OK && (after = take_snapshot(fixture, &after_size)) == NULL)
        status = fixture->error.status;
    probe->step_after = hstep_trainer_optimizer_step(fixture->trainer);
    probe->preserved = status == HSTEP_OK && before_size == after_size && memcmp(before, after, before_size) == 0;
    free(after);
    free(before);
    return status;
}

static hstep_status find_cleared(hs_probe *probe) {
    hs_fixture *fixture = &probe->fixture;
    double *values = calloc(hstep_model_scalar_count(fixture->model), sizeof *values);
    hstep_status status = values == NULL ? HSTEP_ERROR_MEMORY : HSTEP_OK;
    probe->cleared = 1;
    for (size_t i = 0; status == HSTEP_OK && i < hstep_model_parameter_count(fixture->model); i++) {
        hstep_parameter parameter;
        status = hstep_model_parameter(fixture->model, i, &parameter, &fixture->error);
        if (status == HSTEP_OK)
            status = hstep_trainer_read_gradient(fixture->trainer, i, values, &fixture->error);
        for (size_t j = 0; status == HSTEP_OK && j < parameter.elements; j++)
            probe->cleared = probe->cleared && values[j] == 0;
    }
    if (values == NULL)
        fixture->error = (hstep_error){.status = status, .message = "no memory for gradients"};
    free(values);
    return status;
}

static hstep_status run(hs_probe *probe) {
    const hstep_scaler large = {.initial = 16777216, .minimum = 1, .maximum = 16777216, .growth_interval = 2};
    hs_fixture *fixture = &probe->fixture;
    hstep_status status = hs_fixture_update(fixture, &probe->warm_up);
    if (status == HSTEP_OK)
        status = hstep_trainer_set_scaler(fixture->trainer, &large, &fixture->error);
    if (status == HSTEP_OK)
        status = attempt_first(probe);
    probe->retry = probe->first_skip;
    for (int attempt = 1; status == HSTEP_OK; attempt++) {
        hs_append(&probe->attempts, describe_attempt(&probe->retry));
        if (probe->retry.outcome == HSTEP_APPLIED || attempt == MAXIMUM_ATTEMPTS)
            break;
        probe->skipped_attempts++;
        status = hs_fixture_update(fixture, &probe->retry);
    }
    return status == HSTEP_OK ? find_cleared(probe) : status;
}

static json_t *describe(hs_probe *probe) {
    const hstep_update *warm_up = &probe->warm_up, *skip = &probe->first_skip, *retry = &probe->retry;
    json_t *first_skip = json_pack("{s:f, s:f, s:I, s:I, s:b, s:s}", "loss_scale", skip->loss_scale, "next_loss_scale",
                                   skip->next_loss_scale, "optimizer_step_before", (json_int_t)probe->step_before,
                                   "optimizer_step_after", (json_int_t)probe->step_after,
                                   "weights_moments_powers_gradients_revisions_preserved", probe->preserved,
                                   "overflow_operation", skip->overflow.operation);
    json_t *committed = json_pack("{s:I, s:I, s:f, s:f, s:f, s:b, s:b}", "scheduled_step", (json_int_t)retry->step,
                                  "optimizer_step", (json_int_t)retry->optimizer_step, "loss_scale", retry->loss_scale,
                                  "next_loss_scale", retry->next_loss_scale, "gradient_norm", retry->gradient_norm,
                                  "clipped", retry->clipped, "cleared_gradients", probe->cleared);
    json_t *before = json_pack("{s:f, s:f, s:f}", "loss", warm_up->loss, "loss_scale", warm_up->loss_scale,
                               "gradient_norm", warm_up->gradient_norm);
    return json_pack("{s:s, s:o, s:o, s:i, s:o, s:i, s:O}", "precision", hstep_precision_name(HSTEP_PRECISION_FP16),
                     "warm_up", before, "first_skip", first_skip, "skipped_attempts", probe->skipped_attempts, "retry",
                     committed, "maximum_attempts", MAXIMUM_ATTEMPTS, "attempts", probe->attempts);
}

int hs_demonstrate_overflow(json_t *record) {
    const hstep_scaler capped = {.initial = 128, .minimum = 1, .maximum = 128, .growth_interval = 2};
    hs_probe probe = {.skipped_attempts = 0};
    if (hs_fixture_create(&probe.fixture, HSTEP_PRECISION_FP16, &capped) != HSTEP_OK)
        return hs_report_error(&probe.fixture.error);
    probe.attempts = json_array();
    int status;
    if (run(&probe) != HSTEP_OK) {
        status = hs_report_error(&probe.fixture.error);
    } else if (probe.skipped_attempts == 0 || probe.retry.outcome != HSTEP_APPLIED) {
        hs_report("the overflow probe should skip and then commit within %d attempts; it skipped %d times",
                  MAXIMUM_ATTEMPTS, probe.skipped_attempts);
        status = HS_EXIT_NUMERICAL_STOP;
    } else {
        status = hs_put_part(record, "overflow_probe", describe(&probe));
    }
    json_decref(probe.attempts);
    hs_fixture_destroy(&probe.fixture);
    return status;
}
