#include "trainer/verify/side.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/model/build.h"
#include "trainer/report.h"
#include "trainer/text/sample.h"
#include "trainer/train/evaluate.h"
#include "trainer/train/watching/interrupt.h"

/* As trainer train gives up; and the beginning that tokens are generated from. */
enum { SKIPS_IN_A_ROW = 32, PROMPT = 8 };

hstep_status hs_side_begin(hs_side *side, size_t vocabulary, hstep_error *error) {
    const hs_options *o = &side->options;
    const hstep_decoder_config decoder = hs_decoder_of(o, vocabulary);
    const hstep_trainer_config config = hs_trainer_config_of(o);
    side->losses = calloc(o->steps, sizeof *side->losses);
    side->norms = calloc(o->steps, sizeof *side->norms);
    side->tokens = calloc(PROMPT + HS_VERIFY_TOKENS, sizeof *side->tokens);
    side->held_out_loss = NAN;
    if (side->losses == NULL || side->norms == NULL || side->tokens == NULL)
        return hs_no_memory(error);
    hstep_status status = hstep_model_create_decoder(side->context, &decoder, &side->model, error);
    if (status == HSTEP_OK)
        status = hstep_model_initialize(side->model, (hstep_initialization)o->init, o->seed, error);
    return status == HSTEP_OK ? hstep_trainer_create(side->model, &config, &side->trainer, error) : status;
}

void hs_side_end(hs_side *side) {
    hstep_trainer_destroy(side->trainer);
    hstep_model_destroy(side->model);
    hstep_context_destroy(side->context);
    free(side->losses);
    free(side->norms);
    free(side->tokens);
    *side = (hs_side){.exact = false};
}

static bool goes_on(const hs_side *side) { return side->rejection[0] == '\0' && side->stopped[0] == '\0'; }

static void stop(hs_side *side, const char *why) {
    snprintf(side->stopped, sizeof side->stopped, "stopped in step %" PRIu64 ": %.200s", side->steps + 1, why);
}

/* A numerical error is this side's own end; any other is everybody's. */
static hstep_status stop_by(hs_side *side, hstep_status status, const hstep_error *error) {
    if (status != HSTEP_ERROR_NONFINITE_FORWARD)
        return status;
    stop(side, error->message);
    return HSTEP_OK;
}

/* Attempts at the window until one is applied. */
static hstep_status take_step(const hs_run *data, hs_side *side, hstep_error *error) {
    for (int skips = 0; skips < SKIPS_IN_A_ROW && !hs_interrupted(); ++skips) {
        hstep_update update;
        const hstep_status status =
            hstep_trainer_update(side->trainer, data->window, data->window_count, &update, error);
        if (status != HSTEP_OK)
            return stop_by(side, status, error);
        if (update.outcome == HSTEP_SKIPPED) {
            ++side->skipped;
            continue;
        }
        if (update.nonfinite_weights) {
            stop(side, "its weights are not finite");
            return HSTEP_OK;
        }
        side->losses[side->steps] = update.loss;
        side->norms[side->steps++] = update.gradient_norm;
        return HSTEP_OK;
    }
    if (!hs_interrupted())
        stop(side, "too many skips in a row");
    return HSTEP_OK;
}

static void say(const hs_run *data, const hs_side *sides) {
    const uint64_t every = data->options->steps / 10 > 0 ? data->options->steps / 10 : 1;
    const uint64_t steps = sides[0].steps;
    if (!data->options->quiet && steps > 0 && steps % every == 0)
        hs_report("step %" PRIu64 " of %" PRIu64 ", loss %.4f", steps, data->options->steps,
                  sides[0].losses[steps - 1]);
}

/* Adds to the squared norms of the reference's moments of one parameter, and of what the side's differ by. */
static hstep_status add_distance(const hs_side *reference, const hs_side *side, size_t index, double *room,
                                 double sums[2], hstep_error *error) {
    hstep_parameter parameter;
    hstep_status status = hstep_model_parameter(reference->model, index, &parameter, error);
    if (status == HSTEP_OK)
        status = hstep_trainer_read_moments(reference->trainer, index, room, NULL, error);
    if (status == HSTEP_OK)
        status = hstep_trainer_read_moments(side->trainer, index, room + parameter.elements, NULL, error);
    for (size_t i = 0; status == HSTEP_OK && i < parameter.elements; ++i) {
        const double difference = room[parameter.elements + i] - room[i];
        sums[0] += room[i] * room[i];
        sums[1] += difference * difference;
    }
    return status;
}

/* After step 1 the first moments are the gradients, times a constant. */
static hstep_status compare_gradients(const hs_side *reference, hs_side *side, hstep_error *error) {
    const size_t count = hstep_model_parameter_count(side->model);
    double *room = calloc(2 * hstep_model_scalar_count(side->model), sizeof *room), sums[2] = {0};
    hstep_status status = room != NULL ? HSTEP_OK : hs_no_memory(error);
    for (size_t i = 0; i < count && status == HSTEP_OK; ++i)
        status = add_distance(reference, side, i, room, sums, error);
    free(room);
    side->first_gradient_gap = sums[1] == 0 ? 0 : sqrt(sums[1]) / sqrt(sums[0]);
    return status;
}

hstep_status hs_sides_train(hs_run *data, hs_side *sides, size_t count, hstep_error *error) {
    while (sides[0].steps < data->options->steps && goes_on(&sides[0]) && !hs_interrupted()) {
        hstep_status status = hs_run_fill_window(data, error);
        for (size_t i = 0; i < count && status == HSTEP_OK; ++i)
            if (goes_on(&sides[i]))
                status = take_step(data, &sides[i], error);
        for (size_t i = 1; i < count && status == HSTEP_OK && sides[0].steps == 1; ++i)
            if (sides[i].steps == 1)
                status = compare_gradients(&sides[0], &sides[i], error);
        if (status != HSTEP_OK)
            return status;
        hs_run_advance(data);
        say(data, sides);
    }
    return HSTEP_OK;
}

/* From the first tokens of the held-out part, or of all where nothing is held out. */
static hstep_status generate(const hs_run *data, hs_side *side, hstep_error *error) {
    const size_t tokens = hstep_dataset_tokens(data->dataset), first = hstep_dataset_training_tokens(data->dataset);
    const size_t begin = first < tokens ? first : 0, left = tokens - begin, prompt = left < PROMPT ? left : PROMPT;
    const hs_generation greedy = {.model = side->model, .context = data->options->context};
    hstep_status status = hstep_dataset_read(data->dataset, begin, prompt, side->tokens, error);
    if (status == HSTEP_OK)
        status = hs_generate(&greedy, side->tokens, 1, prompt, HS_VERIFY_TOKENS, error);
    memmove(side->tokens, side->tokens + prompt, HS_VERIFY_TOKENS * sizeof *side->tokens);
    return status;
}

hstep_status hs_side_conclude(hs_run *data, hs_side *side, hstep_error *error) {
    if (!goes_on(side))
        return HSTEP_OK;
    const hs_options *o = data->options;
    hs_evaluation evaluation = {.loss = NAN};
    hstep_status status = hstep_model_checksum(side->model, &side->checksum, error);
    if (status == HSTEP_OK && hstep_dataset_evaluation_windows(data->dataset, o->context, 0) > 0)
        status = hs_evaluate(side->model, data->dataset, o->context, 0, o->batch_size, data->tokens, data->targets,
                             false, &evaluation, error);
    side->held_out_loss = evaluation.loss;
    if (status == HSTEP_OK && !hs_interrupted())
        status = generate(data, side, error);
    return status == HSTEP_OK ? status : stop_by(side, status, error);
}

static void compare_tokens(hs_side *side, const hs_side *reference) {
    while (side->equal_tokens < HS_VERIFY_TOKENS &&
           side->tokens[side->equal_tokens] == reference->tokens[side->equal_tokens])
        ++side->equal_tokens;
}

/* Losses and norms tell of all weights but those that the last update left. */
static void find_difference(hs_side *side, const hs_side *reference) {
    const uint64_t losses = hs_first_difference(reference->losses, side->losses, side->steps),
                   norms = hs_first_difference(reference->norms, side->norms, side->steps);
    side->first_difference = losses == 0 || (norms != 0 && norms < losses) ? norms : losses;
    if (side->first_difference == 0 && (side->stopped[0] != '\0' || side->checksum != reference->checksum))
        side->first_difference = side->steps + (side->stopped[0] != '\0');
}

bool hs_side_starts_right(const hs_side *side) {
    const hs_first_limits limits = hs_first_limits_of(side->options.in_use);
    return side->first_gradient_gap <= limits.gradient && side->first_norm_gap <= limits.norm;
}

bool hs_side_passes(const hs_side *side, double within) {
    return side->rejection[0] == '\0' && side->stopped[0] == '\0' && side->gap.largest <= within &&
           !(side->gated && !hs_side_starts_right(side)) && !(side->exact && side->first_difference != 0);
}

void hs_side_judge(hs_side *side, const hs_side *reference, double within) {
    if (side->rejection[0] != '\0')
        return;
    find_difference(side, reference);
    side->gap = hs_curve_gap_of(reference->losses, side->losses, side->steps, HS_CURVE_WINDOW);
    side->first_norm_gap = side->steps > 0 ? hs_relative_gap(reference->norms[0], side->norms[0]) : 0;
    if (side->stopped[0] == '\0')
        compare_tokens(side, reference);
    side->passed = hs_side_passes(side, within);
}
