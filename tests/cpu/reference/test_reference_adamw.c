/* AdamW: the golden traces, the exact form, and what it leaves of the gradient. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"
#include "support/calls.h"
#include "support/vectors.h"

static hs_backend *backend;

static void setup(void) { cr_assert_eq(hs_cpu_reference_create(&backend, NULL), HSTEP_OK); }

static void teardown(void) { backend->api->destroy(backend); }

TestSuite(adamw, .init = setup, .fini = teardown);

static double hex(const json_t *object, const char *key) {
    return hs_test_double(hs_vectors_hex(hs_vectors_member(object, key)));
}

static void expect_values(const json_t *step, const char *key, const double *actual, size_t count) {
    size_t given;
    double *expected = hs_vectors_doubles(hs_vectors_member(step, key), &given);
    cr_assert_eq(given, count);
    for (size_t i = 0; i < count; i++)
        cr_expect_leq(fabs(actual[i] - expected[i]), 1e-13 * fabs(expected[i]), "%s[%zu]: %.17g, not %.17g", key, i,
                      actual[i], expected[i]);
    free(expected);
}

/* One applied attempt, from what the trace says came before it. */
static void apply(const json_t *trace, const json_t *step, hs_test_call *t) {
    double *scalars = t->inputs[1].f64;
    const double lr = hex(trace, "lr"), norm = hex(step, "norm"), limit = hex(trace, "clip");
    scalars[HS_ADAMW_UNSCALE] = 1.0 / hs_vectors_number(step, "loss_scale");
    scalars[HS_ADAMW_CLIP] = norm > limit ? limit / norm : 1.0;
    scalars[HS_ADAMW_BETA1] = hex(trace, "beta1");
    scalars[HS_ADAMW_BETA2] = hex(trace, "beta2");
    scalars[HS_ADAMW_RATE] = lr / (1.0 - hex(step, "beta1_power"));
    scalars[HS_ADAMW_ROOT] = 1.0 / sqrt(1.0 - hex(step, "beta2_power"));
    scalars[HS_ADAMW_EPSILON] = hex(trace, "eps");
    scalars[HS_ADAMW_DECAY] = lr * hex(trace, "weight_decay");
    size_t count;
    double *gradient = hs_vectors_doubles(hs_vectors_member(step, "scaled_gradient"), &count);
    memcpy(t->inputs[0].f64, gradient, count * sizeof *gradient);
    free(gradient);
    hs_test_result *result = hs_test_call_run_well(t, backend);
    expect_values(step, "w", result->outputs[0], count);
    expect_values(step, "m", result->outputs[1], count);
    expect_values(step, "v", result->outputs[2], count);
    for (int i = 0; i < 3; i++)
        memcpy(t->outputs[i].f64, result->outputs[i], count * sizeof(double));
    hs_test_result_destroy(result);
}

Test(adamw, golden_traces) {
    json_t *file = hs_vectors_load("adamw.json");
    size_t index, applied = 0;
    json_t *trace;
    json_array_foreach(hs_vectors_member(file, "traces"), index, trace) {
        size_t count;
        double *w = hs_vectors_doubles(hs_vectors_member(trace, "w0"), &count);
        hs_test_description d = hs_test_describe(HS_OP_ADAMW);
        d.rows = 1;
        d.columns = count;
        d.decay = true;
        hs_test_call *t = hs_test_call_create(&d);
        memcpy(t->outputs[0].f64, w, count * sizeof *w);
        memset(t->outputs[1].f64, 0, count * sizeof *w);
        memset(t->outputs[2].f64, 0, count * sizeof *w);
        free(w);
        size_t number;
        json_t *step;
        json_array_foreach(hs_vectors_member(trace, "steps"), number, step) {
            if (strcmp(json_string_value(hs_vectors_member(step, "status")), "applied") != 0)
                continue;
            apply(trace, step, t);
            applied++;
        }
        hs_test_call_destroy(t);
    }
    cr_assert_geq(applied, 10);
    json_decref(file);
}

/* The form of policy section 6 in bits, with decay and without, and gradients left +0. */
Test(adamw, form) {
    for (int i = 0; i < 4; i++) {
        hs_test_description d = hs_test_describe(HS_OP_ADAMW);
        d.rows = 11;
        d.decay = i % 2 != 0;
        hs_test_call *t = hs_test_call_create(&d);
        hs_test_call_fill(t, i < 2 ? HS_TEST_UNIFORM : HS_TEST_WIDE, 3);
        t->inputs[1].f64[HS_ADAMW_UNSCALE] = 0.3; /* no power of two, so that the order of the factors shows */
        hs_test_result *result = hs_test_call_run_well(t, backend);
        const double *s = t->inputs[1].f64;
        const double b1 = s[HS_ADAMW_BETA1], b2 = s[HS_ADAMW_BETA2];
        for (size_t j = 0; j < result->elements[0]; j++) {
            const double w = t->outputs[0].f64[j], m = t->outputs[1].f64[j], v = t->outputs[2].f64[j];
            const double unscaled = t->inputs[0].f64[j] * s[HS_ADAMW_UNSCALE], g = unscaled * s[HS_ADAMW_CLIP];
            const double m_next = b1 * m + (1.0 - b1) * g, v_next = b2 * v + ((1.0 - b2) * g) * g;
            const double denominator = sqrt(v_next) * s[HS_ADAMW_ROOT] + s[HS_ADAMW_EPSILON];
            const double decayed = d.decay ? w - s[HS_ADAMW_DECAY] * w : w;
            cr_expect(result->outputs[0][j] == decayed - (s[HS_ADAMW_RATE] * m_next) / denominator, "w[%zu]", j);
            cr_expect(result->outputs[1][j] == m_next, "m[%zu]", j);
            cr_expect(result->outputs[2][j] == v_next, "v[%zu]", j);
            cr_expect(result->gradient[j] == 0.0 && !signbit(result->gradient[j]), "gradient[%zu]", j);
        }
        cr_expect_eq(result->flag, 0);
        hs_test_result_destroy(result);
        hs_test_call_destroy(t);
    }
}
