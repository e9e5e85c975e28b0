#include "trainer/verify/print.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "trainer/exit.h"
#include "trainer/options/places.h"
#include "trainer/report.h"

enum { FIGURE = 40, NAME = 22 };

static const char *data_of(const hs_verification *v) {
    return v->settings->options.data.count > 0 ? v->settings->options.data.items[0] : "built-in sums";
}

void hs_side_explain(const hs_side *side, double within, char *text, size_t size) {
    const hs_first_limits limits = hs_first_limits_of(side->options.in_use);
    if (side->rejection[0] != '\0')
        snprintf(text, size, "rejected: %s", side->rejection);
    else if (side->stopped[0] != '\0')
        snprintf(text, size, "%s", side->stopped);
    else if (side->exact && side->first_difference != 0)
        snprintf(text, size, "an exact lever must give the reference's bits");
    else if (side->gated && !hs_side_starts_right(side))
        snprintf(text, size,
                 "its first gradient is %.3g%% off the reference's, with the same weights (limit %.3g%%), and the norm "
                 "%.3g%% (limit %.3g%%)",
                 100 * side->first_gradient_gap, 100 * limits.gradient, 100 * side->first_norm_gap, 100 * limits.norm);
    else if (!hs_side_passes(side, within))
        snprintf(text, size, "its loss curve is %.3g%% off the reference's in step %" PRIu64 " (limit %.3g%%)",
                 100 * side->gap.largest, side->gap.step, 100 * within);
    else
        text[0] = '\0';
}

/* ---- For people ---- */

static void describe_loss(double loss, char text[FIGURE]) {
    if (isnan(loss))
        text[0] = '\0';
    else
        snprintf(text, FIGURE, "%.6f", loss);
}

static void print_reference(const hs_side *side) {
    char loss[FIGURE];
    describe_loss(side->held_out_loss, loss);
    printf("%-*s  %-8s  %-21s  %-14s  %-10s  %-16s  %-6" PRIu64 "  %-13s\n", NAME, side->name, "", "", "", "", "",
           side->skipped, loss);
}

static void print_side(const hs_side *side, double within) {
    char loss[FIGURE] = "", gap[FIGURE] = "", gradient[FIGURE], norm[FIGURE], first[FIGURE] = "none",
         tokens[FIGURE] = "", why[512];
    hs_side_explain(side, within, why, sizeof why);
    if (side->rejection[0] != '\0') {
        printf("%-*s  %-8s  %s\n", NAME, side->name, "outside", why);
        return;
    }
    describe_loss(side->held_out_loss, loss);
    snprintf(gradient, sizeof gradient, "%.2g%%", 100 * side->first_gradient_gap);
    snprintf(norm, sizeof norm, "%.2g%%", 100 * side->first_norm_gap);
    if (side->gap.step > 0)
        snprintf(gap, sizeof gap, "%.3g%% in step %" PRIu64, 100 * side->gap.largest, side->gap.step);
    if (side->first_difference > 0)
        snprintf(first, sizeof first, "step %" PRIu64, side->first_difference);
    if (side->stopped[0] == '\0')
        snprintf(tokens, sizeof tokens, "%zu of %d", side->equal_tokens, HS_VERIFY_TOKENS);
    printf("%-*s  %-8s  %-21s  %-14s  %-10s  %-16s  %-6" PRIu64 "  %-13s  %-12s  %s\n", NAME, side->name,
           side->passed ? "within" : "outside", gap, gradient, norm, first, side->skipped, loss, tokens, why);
}

void hs_verification_print(const hs_verification *v) {
    const hs_verify_settings *s = v->settings;
    const hs_side *reference = &v->sides[0];
    char precision[200];
    hs_places_describe(&s->options, precision, sizeof precision);
    printf("%s against %s with exact levers on %s, %s; %" PRIu64 " steps on %s, seed %" PRIu64 "\n\n",
           s->against >= 0 ? precision : "levers",
           s->against >= 0 ? hstep_precision_name((hstep_precision)reference->options.precision) : precision,
           hstep_context_backend_name(reference->context), hstep_context_device_name(reference->context),
           s->options.steps, data_of(v), s->options.seed);
    printf("%-*s  %-8s  %-21s  %-14s  %-10s  %-16s  %-6s  %-13s  %-12s  %s\n", NAME, "side", "verdict",
           "gap of loss curves", "first gradient", "first norm", "first difference", "skips", "held-out loss",
           "equal tokens", "why");
    print_reference(reference);
    for (size_t i = 1; i < v->count; ++i)
        print_side(&v->sides[i], s->within);
    printf("\nCurves are means over %d steps; the gap is relative to the reference, limit %.3g%%.\n", HS_CURVE_WINDOW,
           100 * s->within);
    if (v->count == 1)
        puts("No gated lever is active here for this precision: there was nothing to verify.");
}

/* ---- JSON ---- */

static json_t *number(double x) { return isfinite(x) ? json_real(x) : json_null(); }

static json_t *numbers(const double *x, uint64_t count) {
    json_t *list = json_array();
    for (uint64_t i = 0; i < count; ++i)
        json_array_append_new(list, number(x[i]));
    return list;
}

static json_t *tokens_of(const hs_side *side) {
    json_t *list = json_array();
    for (size_t i = 0; i < HS_VERIFY_TOKENS && side->stopped[0] == '\0'; ++i)
        json_array_append_new(list, json_integer(side->tokens[i]));
    return list;
}

static json_t *side_as_json(const hs_side *side) {
    char precision[512];
    hs_places_describe(&side->options, precision, sizeof precision);
    json_t *object = json_pack("{s:s, s:s}", "name", side->name, "precision", precision);
    if (side->rejection[0] != '\0')
        return object;
    json_object_set_new(object, "backend", json_string(hstep_context_backend_name(side->context)));
    json_object_set_new(object, "levers", json_loads(hstep_context_lever_set(side->context), 0, NULL));
    json_object_set_new(object, "steps", json_integer((json_int_t)side->steps));
    json_object_set_new(object, "skipped", json_integer((json_int_t)side->skipped));
    json_object_set_new(object, "held_out_loss", number(side->held_out_loss));
    json_object_set_new(object, "losses", numbers(side->losses, side->steps));
    json_object_set_new(object, "tokens", tokens_of(side));
    return object;
}

static json_t *judged_as_json(const hs_side *side, double within) {
    char why[512];
    json_t *object = side_as_json(side);
    hs_side_explain(side, within, why, sizeof why);
    json_object_set_new(object, "passed", json_boolean(side->passed));
    json_object_set_new(object, "reason", why[0] != '\0' ? json_string(why) : json_null());
    if (side->rejection[0] != '\0')
        return object;
    json_object_set_new(object, "gap", side->gap.step > 0 ? number(side->gap.largest) : json_null());
    json_object_set_new(object, "gap_step",
                        side->gap.step > 0 ? json_integer((json_int_t)side->gap.step) : json_null());
    json_object_set_new(object, "first_difference",
                        side->first_difference > 0 ? json_integer((json_int_t)side->first_difference) : json_null());
    json_object_set_new(object, "first_gradient_gap", number(side->first_gradient_gap));
    json_object_set_new(object, "first_norm_gap", number(side->first_norm_gap));
    json_object_set_new(object, "equal_tokens", json_integer((json_int_t)side->equal_tokens));
    return object;
}

int hs_verification_print_json(const hs_verification *v) {
    const hs_verify_settings *s = v->settings;
    json_t *list = json_array();
    bool passed = true;
    for (size_t i = 1; i < v->count; ++i) {
        passed = passed && v->sides[i].passed;
        json_array_append_new(list, judged_as_json(&v->sides[i], s->within));
    }
    json_t *root = json_pack("{s:s, s:b, s:o, s:I, s:i, s:I, s:s, s:o, s:o}", "schema", "halfstep.verification/1",
                             "passed", passed, "within", number(s->within), "steps", (json_int_t)s->options.steps,
                             "window", (int)HS_CURVE_WINDOW, "seed", (json_int_t)s->options.seed, "data", data_of(v),
                             "reference", side_as_json(&v->sides[0]), "sides", list);
    if (root == NULL)
        return hs_report_no_memory();
    const int written = json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    putchar('\n');
    json_decref(root);
    return written == 0 ? HS_EXIT_DONE : HS_EXIT_OUTPUT;
}
