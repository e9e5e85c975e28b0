/* The scalars of an update, clipping, and section 6 of the policy written out on top of them, against golden traces. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "optim/adamw.h"
#include "optim/scaler.h"
#include "support/vectors.h"

enum { WEIGHTS = 5 };

typedef struct tensors {
    double w[WEIGHTS], m[WEIGHTS], v[WEIGHTS];
} tensors;

static double bits_member(const json_t *object, const char *key) {
    return hs_test_double(hs_vectors_hex(hs_vectors_member(object, key)));
}

static void read_weights(const json_t *object, const char *key, double values[WEIGHTS]) {
    json_t *array = hs_vectors_member(object, key);
    cr_assert_eq(json_array_size(array), WEIGHTS);
    for (size_t i = 0; i < WEIGHTS; i++)
        values[i] = hs_test_double(hs_vectors_hex(json_array_get(array, i)));
}

static void expect_weights(const json_t *object, const char *key, const double got[WEIGHTS]) {
    double want[WEIGHTS];
    read_weights(object, key, want);
    for (size_t i = 0; i < WEIGHTS; i++)
        cr_assert(fabs(got[i] - want[i]) <= 1e-13 * fabs(want[i]), "%s[%zu] is %.17g, not %.17g", key, i, got[i],
                  want[i]);
}

static void apply(const hstep_adamw *settings, const hs_adamw_update *update, const double g[WEIGHTS], tensors *t) {
    for (size_t i = 0; i < WEIGHTS; i++) {
        t->m[i] = settings->beta1 * t->m[i] + (1 - settings->beta1) * g[i];
        t->v[i] = settings->beta2 * t->v[i] + ((1 - settings->beta2) * g[i]) * g[i];
        t->w[i] = (t->w[i] - update->decay * t->w[i]) -
                  (update->rate * t->m[i]) / (sqrt(t->v[i]) * update->root + settings->epsilon);
    }
}

/* Unscales, measures, clips. */
static double settle(const json_t *step, double scale, double limit, double g[WEIGHTS], bool *clipped) {
    double square = 0;
    read_weights(step, "scaled_gradient", g);
    for (size_t i = 0; i < WEIGHTS; i++) {
        g[i] /= scale;
        square += g[i] * g[i];
    }
    double factor = hs_clip_factor(sqrt(square), limit, clipped);
    for (size_t i = 0; i < WEIGHTS; i++)
        g[i] *= factor;
    return sqrt(square);
}

static void check_applied(const json_t *step, const hs_adamw_state *state, const double g[WEIGHTS], double norm,
                          bool clipped) {
    double want = bits_member(step, "norm");
    cr_assert(fabs(norm - want) <= 1e-13 * want);
    cr_assert_eq(clipped, json_is_true(hs_vectors_member(step, "clipped")));
    expect_weights(step, "gradient", g);
    cr_assert_eq((double)state->step, hs_vectors_number(step, "optimizer_step"));
    cr_assert_eq(state->power1, bits_member(step, "beta1_power"));
    cr_assert_eq(state->power2, bits_member(step, "beta2_power"));
}

static size_t run_trace(const json_t *trace) {
    hstep_adamw settings = hstep_adamw_defaults();
    settings.beta1 = bits_member(trace, "beta1");
    settings.beta2 = bits_member(trace, "beta2");
    settings.epsilon = bits_member(trace, "eps");
    settings.weight_decay = bits_member(trace, "weight_decay");
    settings.grad_clip = bits_member(trace, "clip");
    cr_assert_null(hs_adamw_refusal(&settings));
    json_t *s = hs_vectors_member(trace, "scaler");
    hs_scaler scaler = hs_scaler_init(&(hstep_scaler){hs_vectors_number(s, "initial"), hs_vectors_number(s, "minimum"),
                                                      hs_vectors_number(s, "maximum"),
                                                      (uint64_t)hs_vectors_number(s, "growth_interval")});
    hs_adamw_state state = hs_adamw_init();
    tensors t = {0};
    read_weights(trace, "w0", t.w);
    json_t *steps = hs_vectors_member(trace, "steps");
    size_t clips = 0;
    for (size_t i = 0; i < json_array_size(steps); i++) {
        json_t *step = json_array_get(steps, i);
        double g[WEIGHTS];
        bool clipped;
        cr_assert_str_eq(json_string_value(hs_vectors_member(step, "status")), "applied");
        cr_assert_eq(scaler.scale, hs_vectors_number(step, "loss_scale"));
        double norm = settle(step, scaler.scale, settings.grad_clip, g, &clipped);
        hs_adamw_update update = hs_adamw_prepare(&settings, &state, bits_member(trace, "lr"));
        apply(&settings, &update, g, &t);
        state = update.after;
        hs_scaler_on_commit(&scaler);
        check_applied(step, &state, g, norm, clipped);
        expect_weights(step, "w", t.w);
        expect_weights(step, "m", t.m);
        expect_weights(step, "v", t.v);
        cr_assert_eq(scaler.scale, hs_vectors_number(step, "next_scale"));
        cr_assert_eq((double)scaler.finite_updates, hs_vectors_number(step, "finite_updates"));
        clips += clipped;
    }
    return clips;
}

Test(adamw, follows_the_golden_traces) {
    json_t *root = hs_vectors_load("adamw.json");
    json_t *traces = hs_vectors_member(root, "traces");
    cr_assert_eq(json_array_size(traces), 2);
    size_t sometimes = run_trace(json_array_get(traces, 0)), always = run_trace(json_array_get(traces, 1));
    cr_assert(sometimes == 2 && always == 10);
    json_decref(root);
}

Test(adamw, prepares_without_touching_the_state) {
    hstep_adamw settings = hstep_adamw_defaults();
    hs_adamw_state state = hs_adamw_init(), before = state;
    cr_assert(state.power1 == 1 && state.power2 == 1 && state.step == 0);
    hs_adamw_update first = hs_adamw_prepare(&settings, &state, 0.5);
    cr_assert_eq(memcmp(&state, &before, sizeof state), 0);
    cr_assert(first.after.power1 == 0.9 && first.after.power2 == 0.999 && first.after.step == 1);
    cr_assert_eq(first.rate, 0.5 / (1 - 0.9));
    cr_assert_eq(first.root, 1 / sqrt(1 - 0.999));
    cr_assert_eq(first.decay, 0.5 * 0.01);
    hs_adamw_update second = hs_adamw_prepare(&settings, &first.after, 0.5);
    cr_assert(second.after.power1 == 0.9 * 0.9 && second.after.power2 == 0.999 * 0.999 && second.after.step == 2);
    /* Without momentum nothing is to be corrected. */
    settings.beta1 = 0;
    settings.beta2 = 0;
    hs_adamw_update plain = hs_adamw_prepare(&settings, &state, 0.5);
    cr_assert(plain.rate == 0.5 && plain.root == 1);
}

/* Gradient 8 at scale 4 and limit 1: 8 / 4 = 2, clipped to 1. Clipping first would give 0.25. */
Test(adamw, clips_after_unscaling) {
    bool clipped = false;
    double g = 8.0 / 4;
    cr_assert_eq(g * hs_clip_factor(g, 1, &clipped), 1);
    cr_assert(clipped);
    cr_assert_eq(hs_clip_factor(1, 1, &clipped), 1);
    cr_assert_not(clipped, "a norm equal to the limit is not clipped");
    cr_assert_lt(hs_clip_factor(nextafter(1, 2), 1, &clipped), 1);
    cr_assert(clipped);
    cr_assert_eq(hs_clip_factor(0, 1, &clipped), 1);
    cr_assert_not(clipped);
    cr_assert_eq(hs_clip_factor(10, 4, &clipped), 4.0 / 10);
}

Test(adamw, refuses_each_bad_field) {
    const hstep_adamw good = hstep_adamw_defaults();
    cr_assert_null(hs_adamw_refusal(&good));
    const double bad_betas[] = {-0.1, 1, 2, INFINITY, NAN};
    const double not_positive[] = {0, -1, INFINITY, -INFINITY, NAN};
    for (size_t i = 0; i < 5; i++) {
        hstep_adamw s = good;
        s.beta1 = bad_betas[i];
        cr_assert(hs_adamw_refusal(&s) != NULL && strstr(hs_adamw_refusal(&s), "beta1"));
        s = good, s.beta2 = bad_betas[i];
        cr_assert(hs_adamw_refusal(&s) != NULL && strstr(hs_adamw_refusal(&s), "beta2"));
        s = good, s.epsilon = not_positive[i];
        cr_assert(hs_adamw_refusal(&s) != NULL && strstr(hs_adamw_refusal(&s), "epsilon"));
        s = good, s.grad_clip = not_positive[i];
        cr_assert(hs_adamw_refusal(&s) != NULL && strstr(hs_adamw_refusal(&s), "clip"));
        s = good, s.weight_decay = i == 0 ? -1e-9 : not_positive[i];
        cr_assert(hs_adamw_refusal(&s) != NULL && strstr(hs_adamw_refusal(&s), "decay"));
    }
    hstep_adamw edge = {0, 0, 0x1p-1074, 0, 0x1p-1074, 1};
    cr_assert_null(hs_adamw_refusal(&edge));
}

Test(adamw, has_the_defaults_of_the_policy) {
    hstep_adamw s = hstep_adamw_defaults();
    cr_assert(s.beta1 == 0.9 && s.beta2 == 0.999 && s.epsilon == 1e-8 && s.weight_decay == 0.01);
    cr_assert(s.grad_clip == 1 && s.decay_vectors == 0);
}
