/* The fixture model against values of an independent model (tests/vectors). */
#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/models.h"

static json_t *load(const char *name) {
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", HS_TEST_VECTORS, name);
    json_error_t error;
    json_t *root = json_load_file(path, 0, &error);
    cr_assert_not_null(root, "%s: %s", path, error.text);
    return root;
}

static double number(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    cr_assert(json_is_number(value), "%s", key);
    return json_number_value(value);
}

static void check_gradient(const char *name, const double *gradient, size_t count, const json_t *expected,
                           double tolerance) {
    double sum = 0, largest = 0;
    for (size_t i = 0; i < count; i++) {
        sum += gradient[i] * gradient[i];
        largest = fmax(largest, fabs(gradient[i]));
    }
    cr_expect_float_eq(sqrt(sum), number(expected, "l2"), tolerance * number(expected, "l2"), "l2 of %s: %.17g", name,
                       sqrt(sum));
    cr_expect_float_eq(largest, number(expected, "max_abs"), tolerance * number(expected, "max_abs"),
                       "largest of %s: %.17g", name, largest);
}

static void check_fixture(hstep_precision precision, hstep_backend backend, const char *file, double loss_tolerance,
                          double tolerance) {
    json_t *expected = load(file);
    const hs_test_setup setup = {.backend = backend,
                                 .precision = precision,
                                 .scaler = {.initial = 1, .minimum = 1, .maximum = 1, .growth_interval = 2000}};
    hs_test_run run = hs_test_run_create(&setup);
    const hstep_batch batch = hs_test_fixture_batch();
    hstep_error error = {0};
    double loss = 0, logits[3 * 258];
    hs_test_expect_ok(hstep_model_output(run.model, &batch, logits, &error), &error);
    const json_t *first = json_object_get(expected, "logits");
    for (size_t i = 0; i < json_array_size(first); i++) {
        const double value = json_number_value(json_array_get(first, i));
        cr_expect_float_eq(logits[i], value, loss_tolerance * fabs(value), "logit %zu: %.17g", i, logits[i]);
    }
    hs_test_expect_ok(hstep_trainer_record(run.trainer, &batch, &loss, &error), &error);
    cr_expect_float_eq(loss, number(expected, "loss"), loss_tolerance * loss, "loss %.17g", loss);
    hs_test_expect_ok(hstep_trainer_backward(run.trainer, &error), &error);
    double *gradients = hs_test_read_gradients(&run), *at = gradients;
    cr_expect_eq(hstep_model_parameter_count(run.model), 20);
    cr_expect_eq(hstep_model_scalar_count(run.model), 1372);
    size_t index = 0;
    const char *name;
    json_t *entry;
    json_object_foreach(json_object_get(expected, "gradients"), name, entry) {
        hstep_parameter parameter;
        hs_test_expect_ok(hstep_model_parameter(run.model, index++, &parameter, &error), &error);
        cr_expect_str_eq(parameter.name, name);
        check_gradient(name, at, parameter.elements, entry, tolerance);
        at += parameter.elements;
    }
    cr_expect_eq(index, 20);
    free(gradients);
    hs_test_run_destroy(&run);
    json_decref(expected);
}

Test(fixture, f64_on_reference) {
    check_fixture(HSTEP_PRECISION_F64, HSTEP_BACKEND_CPU_REFERENCE, "fixture-f64.json", 1e-12, 1e-12);
}

Test(fixture, f64_on_cpu) { check_fixture(HSTEP_PRECISION_F64, HSTEP_BACKEND_CPU, "fixture-f64.json", 1e-12, 1e-12); }

/* A last-place difference of exp just before a rounding may move single half ulps, 2^-11 of a value. */
Test(fixture, fp16_on_reference) {
    check_fixture(HSTEP_PRECISION_FP16, HSTEP_BACKEND_CPU_REFERENCE, "fixture-fp16-fp32.json", 1e-12, 0x1p-11);
}

Test(fixture, fp16_on_cpu) {
    check_fixture(HSTEP_PRECISION_FP16, HSTEP_BACKEND_CPU, "fixture-fp16-fp32.json", 1e-12, 0x1p-11);
}

/* The same in bf16, whose half ulp is 2^-8 of a value. */
Test(fixture, bf16_on_reference) {
    check_fixture(HSTEP_PRECISION_BF16, HSTEP_BACKEND_CPU_REFERENCE, "fixture-bf16-fp32.json", 1e-12, 0x1p-8);
}

Test(fixture, bf16_on_cpu) {
    check_fixture(HSTEP_PRECISION_BF16, HSTEP_BACKEND_CPU, "fixture-bf16-fp32.json", 1e-12, 0x1p-8);
}
