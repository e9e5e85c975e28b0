/* Updates that commit: two of the fixture, and one that shows what clipping is applied to. */
#include <math.h>

#include "trainer/demonstration/fixture.h"
#include "trainer/demonstration/parts.h"
#include "trainer/exit.h"
#include "trainer/report.h"

static json_t *describe(const hstep_update *update) {
    return json_pack("{s:I, s:s, s:f, s:f, s:f, s:I, s:f, s:b, s:f, s:I}", "step", (json_int_t)update->step, "outcome",
                     update->outcome == HSTEP_APPLIED ? "applied" : "skipped", "loss", update->loss, "loss_scale",
                     update->loss_scale, "next_loss_scale", update->next_loss_scale, "finite_updates",
                     (json_int_t)update->finite_updates, "gradient_norm", update->gradient_norm, "clipped",
                     update->clipped, "learning_rate", update->learning_rate, "optimizer_step",
                     (json_int_t)update->optimizer_step);
}

int hs_demonstrate_finite_updates(hstep_precision precision, json_t *record) {
    const hstep_scaler scaler = {.initial = 128, .minimum = 1, .maximum = 65536, .growth_interval = 2};
    hs_fixture fixture;
    if (hs_fixture_create(&fixture, precision, &scaler) != HSTEP_OK)
        return hs_report_error(&fixture.error);
    json_t *updates = json_array();
    hstep_status status = HSTEP_OK;
    for (int i = 0; i < 2 && status == HSTEP_OK; i++) {
        hstep_update update;
        status = hs_fixture_update(&fixture, &update);
        if (status == HSTEP_OK)
            hs_append(&updates, describe(&update));
    }
    hs_fixture_destroy(&fixture);
    if (status != HSTEP_OK) {
        json_decref(updates);
        return hs_report_error(&fixture.error);
    }
    return hs_put_part(record, "finite_updates", updates);
}

/* loss = sum(2 w) for one w: a gradient of 2, and of 8 while the scale is 4. */
static hstep_status build_slope(hstep_context *context, hstep_model **model, hstep_error *error) {
    const int64_t one = 1;
    hstep_graph *graph = NULL;
    hstep_value weight = 0, doubled = 0, loss = 0;
    hstep_status status = hstep_graph_create(&graph, error);
    if (status == HSTEP_OK)
        status = hstep_graph_parameter(graph, "weight", 1, &one, &weight, error);
    if (status == HSTEP_OK)
        status = hstep_graph_scale(graph, "doubled", weight, 2, &doubled, error);
    if (status == HSTEP_OK)
        status = hstep_graph_sum(graph, "loss", doubled, &loss, error);
    if (status == HSTEP_OK)
        status = hstep_graph_set_loss(graph, loss, error);
    if (status == HSTEP_OK)
        status = hstep_model_create(context, graph, model, error);
    if (status != HSTEP_OK)
        hstep_graph_destroy(graph);
    return status;
}

typedef struct clip_result {
    double gradient; /* as backward left it, scaled */
    double moment;   /* the first moment after the commit */
    hstep_update update;
} clip_result;

static hstep_status clip_once(hstep_model *model, const hstep_trainer_config *config, clip_result *result,
                              hstep_error *error) {
    const hstep_batch batch = {.sequences = 1, .length = 1};
    hstep_trainer *trainer = NULL;
    double loss = 0;
    hstep_status status = hstep_trainer_create(model, config, &trainer, error);
    if (status == HSTEP_OK)
        status = hstep_trainer_record(trainer, &batch, &loss, error);
    if (status == HSTEP_OK)
        status = hstep_trainer_backward(trainer, error);
    if (status == HSTEP_OK)
        status = hstep_trainer_read_gradient(trainer, 0, &result->gradient, error);
    if (status == HSTEP_OK)
        status = hstep_trainer_commit(trainer, &result->update, error);
    if (status == HSTEP_OK)
        status = hstep_trainer_read_moments(trainer, 0, &result->moment, NULL, error);
    hstep_trainer_destroy(trainer);
    return status;
}

int hs_demonstrate_clipping(json_t *record) {
    const hstep_context_options options = {.backend = HSTEP_BACKEND_CPU_REFERENCE, .levers = "exact"};
    hstep_trainer_config config = hstep_trainer_defaults(HSTEP_PRECISION_F64);
    config.scaler = (hstep_scaler){.initial = 4, .minimum = 1, .maximum = 4, .growth_interval = 2};
    hstep_error error;
    hstep_context *context = NULL;
    hstep_model *model = NULL;
    clip_result result = {0};
    hstep_status status = hstep_context_create(&options, &context, &error);
    if (status == HSTEP_OK)
        status = build_slope(context, &model, &error);
    if (status == HSTEP_OK)
        status = clip_once(model, &config, &result, &error);
    hstep_model_destroy(model);
    hstep_context_destroy(context);
    if (status != HSTEP_OK)
        return hs_report_error(&error);

    /* The first moment after one update is (1 - beta1) g, so that it tells which g the optimizer was given. */
    const double applied = result.moment / (1 - config.adamw.beta1);
    const double scale = result.update.loss_scale, limit = config.adamw.grad_clip;
    const double clipping_first = result.gradient * fmin(1, limit / fabs(result.gradient)) / scale;
    return hs_put_part(record, "clip_example",
                       json_pack("{s:f, s:f, s:f, s:f, s:b, s:f, s:f}", "gradient", result.gradient, "scale", scale,
                                 "limit", limit, "unscaled_norm", result.update.gradient_norm, "clipped",
                                 result.update.clipped, "applied_gradient", applied, "clipping_first", clipping_first));
}
