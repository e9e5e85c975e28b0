/*
 * The demonstration record as the program prints it, against the golden vectors and, where those hold nothing, against
 * numbers that the independent model in tests/vectors/model.py gives (docs/demonstration.md says what they mean).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <jansson.h>

#include "support/vectors.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

typedef struct expectation {
    char option[8], precision[16], half[8], vectors[32];
    double loss;               /* to eight decimals */
    double largest_difference; /* of any gradient, relative to the tensor's largest */
} expectation;

static expectation expectations[] = {
    {"fp16", "fp16-fp32", "fp16", "fixture-fp16-fp32.json", 5.56204253, 0.005},
    {"bf16", "bf16-fp32", "bf16", "fixture-bf16-fp32.json", 5.56129199, 0.04},
    {"f64", "f64", "f64", "fixture-f64.json", 5.56203941, 0},
};

ParameterizedTestParameters(demonstration, record) {
    return cr_make_param_array(expectation, expectations, COUNT(expectations));
}

/* What the program prints, which must be one JSON object and nothing else. */
static json_t *run(const char *arguments) {
    char command[1024];
    snprintf(command, sizeof command, "'%s' %s 2>&1", HS_TEST_TRAINER, arguments);
    FILE *pipe = popen(command, "r");
    cr_assert_not_null(pipe);
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    for (int byte; (byte = fgetc(pipe)) != EOF;)
        fputc(byte, memory);
    fclose(memory);
    cr_assert_eq(pclose(pipe), 0, "%s: %s", command, text);
    json_error_t error;
    json_t *record = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    cr_assert_not_null(record, "%s: %s", error.text, text);
    free(text);
    return record;
}

static const json_t *member(const json_t *object, const char *key) { return hs_vectors_member(object, key); }
static double number(const json_t *object, const char *key) { return hs_vectors_number(object, key); }
static const json_t *element(const json_t *array, size_t index) { return json_array_get(array, index); }

static long long integer(const json_t *object, const char *key) {
    cr_assert(json_is_integer(member(object, key)), "%s is no integer", key);
    return json_integer_value(member(object, key));
}

static const char *text(const json_t *object, const char *key) {
    cr_assert(json_is_string(member(object, key)), "%s is no text", key);
    return json_string_value(member(object, key));
}

static bool truth(const json_t *object, const char *key) {
    cr_assert(json_is_boolean(member(object, key)), "%s is no truth value", key);
    return json_is_true(member(object, key));
}

static void check_dtypes(const json_t *dtypes, const expectation *expected) {
    const char *accumulator = strcmp(expected->half, "f64") == 0 ? "f64" : "f32";
    cr_assert_str_eq(text(dtypes, "host_storage"), "f64");
    cr_assert_str_eq(text(dtypes, "matmul_operands"), expected->half);
    cr_assert_str_eq(text(dtypes, "matmul_accumulator"), accumulator);
    cr_assert_str_eq(text(dtypes, "matmul_result"), expected->half);
    cr_assert_str_eq(text(dtypes, "master_weights"), "f64");
    cr_assert_str_eq(text(dtypes, "adamw_moments"), "f64");
    cr_assert_eq(json_object_size(dtypes), 6);
}

static void check_stored(const json_t *stored, const char *format, double input, const char *bits, double value) {
    cr_assert_str_eq(text(stored, "format"), format);
    cr_assert_eq(number(stored, "input"), input);
    cr_assert_str_eq(text(stored, "bits"), bits);
    cr_assert_eq(number(stored, "value"), value);
    cr_assert_eq(json_object_size(stored), 4);
}

/* The worked values of the policy, with bits written out from the formats: sign, exponent and fraction. */
static void check_representation(const json_t *values) {
    check_stored(member(values, "tiny_fp16"), "fp16", 0x1p-25, "0x0000", 0);
    check_stored(member(values, "tiny_bf16"), "bf16", 0x1p-25, "0x3300", 0x1p-25);
    check_stored(member(values, "tiny_scaled_by_128_fp16"), "fp16", 0x1p-18, "0x0040", 0x1p-18);
    check_stored(member(values, "one_and_half_a_step_fp16"), "fp16", 1 + 0x1p-11, "0x3c00", 1);
    check_stored(member(values, "one_and_half_a_step_bf16"), "bf16", 1 + 0x1p-8, "0x3f80", 1);
    const json_t *master = member(values, "master_and_copy_fp16");
    cr_assert_eq(number(master, "master_before"), 1);
    cr_assert_eq(number(master, "step"), 0.0001);
    cr_assert_eq(number(master, "master_after"), 0.9999);
    check_stored(member(master, "copy"), "fp16", 0.9999, "0x3c00", 1);
    cr_assert_eq(json_object_size(master), 4);
    cr_assert_eq(json_object_size(values), 6);
}

/* The scaler's golden trace whose note begins like this. */
static const json_t *find_trace(const json_t *scaler, const char *note) {
    const json_t *traces = member(scaler, "traces");
    for (size_t i = 0; i < json_array_size(traces); i++)
        if (strncmp(text(element(traces, i), "note"), note, strlen(note)) == 0)
            return element(traces, i);
    cr_assert_fail("no trace '%s'", note);
    return NULL;
}

static double traced(const json_t *trace, size_t event, size_t column) {
    return json_number_value(element(element(member(trace, "after"), event), column));
}

static void check_finite_updates(const json_t *updates, const json_t *scaler, const expectation *expected) {
    const json_t *trace = find_trace(scaler, "seed: two commits");
    cr_assert_eq(json_array_size(updates), 2);
    double scale = number(trace, "initial");
    cr_assert_eq(scale, 128);
    for (size_t i = 0; i < 2; i++) {
        const json_t *update = element(updates, i);
        cr_assert_eq(integer(update, "step"), (long long)i + 1);
        cr_assert_eq(integer(update, "optimizer_step"), (long long)i + 1);
        cr_assert_str_eq(text(update, "outcome"), "applied");
        cr_assert_eq(number(update, "loss_scale"), scale);
        cr_assert_eq(number(update, "next_loss_scale"), scale = traced(trace, i, 0));
        cr_assert_eq((double)integer(update, "finite_updates"), traced(trace, i, 1));
        cr_assert_eq(truth(update, "clipped"), number(update, "gradient_norm") > 1);
        cr_assert_eq(number(update, "learning_rate"), 1e-3);
        cr_assert_eq(json_object_size(update), 10);
    }
    cr_assert_eq(scale, 256);
    cr_assert_float_eq(number(element(updates, 0), "loss"), expected->loss, 0.5e-8);
    cr_assert_lt(number(element(updates, 1), "loss"), number(element(updates, 0), "loss"));
}

/* The norm of all the gradients, out of the norms of the tensors. */
static double norm_of(const json_t *fixture) {
    double sum = 0;
    const char *name;
    json_t *tensor;
    json_object_foreach((json_t *)member(fixture, "gradients"), name, tensor) sum +=
        number(tensor, "l2") * number(tensor, "l2");
    return sqrt(sum);
}

static void check_tensor(const json_t *tensor, const char *name, const json_t *f64, const json_t *selected,
                         const expectation *expected, json_int_t *scalars) {
    cr_assert_str_eq(text(tensor, "name"), name);
    cr_assert(json_equal(member(tensor, "shape"), member(f64, "shape")), "%s", name);
    json_int_t elements = 1;
    for (size_t i = 0; i < json_array_size(member(tensor, "shape")); i++)
        elements *= json_integer_value(element(member(tensor, "shape"), i));
    *scalars += elements;
    const double largest = number(f64, "max_abs");
    const double difference = number(tensor, "largest_absolute_difference");
    const double ours = number(tensor, "largest_absolute_gradient");
    cr_assert_float_eq(number(tensor, "largest_absolute_gradient_f64"), largest, 1e-12 * largest, "%s", name);
    cr_assert_float_eq(ours, number(selected, "max_abs"), 1e-12 * largest, "%s", name);
    cr_assert_leq(difference, expected->largest_difference * largest, "%s", name);
    cr_assert_geq(difference, fabs(ours - largest) - 1e-12 * largest, "%s", name);
    cr_assert_eq(difference > 0, expected->largest_difference > 0, "%s", name);
    cr_assert_eq(json_object_size(tensor), 5);
}

static void check_tokens(const json_t *tokens, int first, int second, int third) {
    const int expected[] = {first, second, third};
    cr_assert_eq(json_array_size(tokens), 3);
    for (size_t i = 0; i < 3; i++)
        cr_assert_eq(json_integer_value(element(tokens, i)), expected[i]);
}

static void check_text_reference(const json_t *reference, const expectation *expected) {
    json_t *f64 = hs_vectors_load("fixture-f64.json");
    json_t *selected = hs_vectors_load(expected->vectors);
    cr_assert_str_eq(text(reference, "text"), "ab");
    check_tokens(member(reference, "inputs"), 0, 'a' + 2, 'b' + 2);
    check_tokens(member(reference, "targets"), 'a' + 2, 'b' + 2, 1);
    cr_assert_float_eq(number(reference, "loss"), expected->loss, 0.5e-8);
    cr_assert_float_eq(number(reference, "loss_f64"), number(f64, "loss"), 1e-13);
    cr_assert_float_eq(number(reference, "loss"), number(selected, "loss"), 1e-13);
    cr_assert_eq(integer(reference, "gradient_tensors"), 20);
    cr_assert_eq(integer(reference, "learned_scalars"), 1372);
    cr_assert(truth(reference, "tied_table"));
    const json_t *tensors = member(reference, "gradients");
    const json_t *expected_tensors = member(f64, "gradients");
    cr_assert_eq(json_array_size(tensors), 20);
    cr_assert_eq(json_object_size(expected_tensors), 20);
    size_t index = 0;
    json_int_t scalars = 0;
    const char *name;
    json_t *tensor;
    json_object_foreach((json_t *)expected_tensors, name, tensor) check_tensor(
        element(tensors, index++), name, tensor, member(member(selected, "gradients"), name), expected, &scalars);
    cr_assert_eq(scalars, 1372);
    cr_assert_eq(json_object_size(reference), 9);
    json_decref(selected);
    json_decref(f64);
}

static void check_clip_example(const json_t *example) {
    cr_assert_eq(number(example, "gradient"), 8);
    cr_assert_eq(number(example, "scale"), 4);
    cr_assert_eq(number(example, "limit"), 1);
    cr_assert_eq(number(example, "unscaled_norm"), 2);
    cr_assert(truth(example, "clipped"));
    cr_assert_eq(number(example, "applied_gradient"), 1);
    cr_assert_eq(number(example, "clipping_first"), 0.25);
    cr_assert_eq(json_object_size(example), 7);
}

/*
 * Every attempt follows the golden trace. The first nonfinite element is the head's gradient of the table; the indices
 * are those that `tests/vectors/model.py probe` finds.
 */
static void check_attempts(const json_t *attempts, const json_t *trace) {
    static const json_int_t lowest[] = {2, 4, 4, 4, 4, 4, 4, 6};
    const char *events = text(trace, "events");
    double scale = number(trace, "initial");
    cr_assert_eq(json_array_size(attempts), 9);
    for (size_t i = 0; i < 9; i++) {
        const json_t *attempt = element(attempts, i);
        cr_assert_eq(number(attempt, "loss_scale"), scale);
        scale = traced(trace, i, 0);
        cr_assert_str_eq(text(attempt, "outcome"), events[i] == 'O' ? "skipped" : "applied");
        if (events[i] != 'O') {
            cr_assert_eq(json_object_size(attempt), 2);
            continue;
        }
        const json_t *overflow = member(attempt, "overflow");
        cr_assert_str_eq(text(overflow, "operation"), "head");
        cr_assert_str_eq(text(overflow, "tensor"), "token_embedding.weight");
        cr_assert_str_eq(text(overflow, "phase"), "backward");
        cr_assert_str_eq(text(overflow, "kind"), "inf");
        cr_assert_eq(integer(overflow, "index"), lowest[i], "attempt %zu: %lld", i, integer(overflow, "index"));
        cr_assert_eq(json_object_size(overflow), 5);
        cr_assert_eq(json_object_size(attempt), 3);
    }
}

static void check_overflow_probe(const json_t *probe, const json_t *scaler) {
    const json_t *trace = find_trace(scaler, "seed probe");
    cr_assert_str_eq(text(probe, "precision"), "fp16-fp32");
    const json_t *warm_up = member(probe, "warm_up");
    cr_assert_float_eq(number(warm_up, "loss"), 5.56204253, 0.5e-8);
    cr_assert_eq(number(warm_up, "loss_scale"), 128);
    json_t *fixture = hs_vectors_load("fixture-fp16-fp32.json");
    cr_assert_float_eq(number(warm_up, "gradient_norm"), norm_of(fixture), 1e-4);
    json_decref(fixture);

    const json_t *skip = member(probe, "first_skip");
    cr_assert_eq(number(skip, "loss_scale"), 16777216);
    cr_assert_eq(number(skip, "next_loss_scale"), 8388608);
    cr_assert_eq(integer(skip, "optimizer_step_before"), 1);
    cr_assert_eq(integer(skip, "optimizer_step_after"), 1);
    cr_assert(truth(skip, "weights_moments_powers_gradients_revisions_preserved"));
    cr_assert_str_eq(text(skip, "overflow_operation"), "head");
    cr_assert_eq(json_object_size(skip), 6);

    cr_assert_eq(integer(probe, "skipped_attempts"), 8);
    cr_assert_eq(integer(probe, "maximum_attempts"), 32);
    const json_t *retry = member(probe, "retry");
    cr_assert_eq(integer(retry, "scheduled_step"), 2);
    cr_assert_eq(integer(retry, "optimizer_step"), 2);
    cr_assert_eq(number(retry, "loss_scale"), 65536);
    cr_assert_eq(number(retry, "next_loss_scale"), traced(trace, 8, 0));
    /* The norm is that of the independent model: tests/vectors/model.py probe. */
    cr_assert_float_eq(number(retry, "gradient_norm"), 1.6613793101748024, 1e-6);
    cr_assert(truth(retry, "clipped"));
    cr_assert(truth(retry, "cleared_gradients"));
    cr_assert_eq(json_object_size(retry), 7);
    check_attempts(member(probe, "attempts"), trace);
    cr_assert_eq(json_object_size(probe), 7);
}

ParameterizedTest(expectation *expected, demonstration, record) {
    char arguments[32];
    snprintf(arguments, sizeof arguments, "--precision %s", expected->option);
    json_t *record = run(arguments);
    json_t *scaler = hs_vectors_load("scaler.json");
    cr_assert_str_eq(text(record, "schema"), "halfstep.demonstration/1");
    cr_assert_str_eq(text(record, "precision"), expected->precision);
    check_dtypes(member(record, "dtypes"), expected);
    check_representation(member(record, "representation"));
    check_finite_updates(member(record, "finite_updates"), scaler, expected);
    check_text_reference(member(record, "text_reference"), expected);
    check_clip_example(member(record, "clip_example"));
    check_overflow_probe(member(record, "overflow_probe"), scaler);
    cr_assert_eq(json_object_size(record), 8);
    json_decref(scaler);
    json_decref(record);
}

Test(demonstration, default_is_fp16_and_long_names_are_the_same) {
    json_t *by_default = run(""), *by_name = run("--precision fp16-fp32");
    cr_assert(json_equal(by_default, by_name));
    cr_assert_str_eq(text(by_default, "precision"), "fp16-fp32");
    json_decref(by_name);
    json_decref(by_default);
}

Test(demonstration, full_disk_is_status_4) {
    char command[1024];
    snprintf(command, sizeof command, "'%s' --precision f64 2>&1 >/dev/full", HS_TEST_TRAINER);
    FILE *pipe = popen(command, "r");
    char message[512] = "";
    const size_t size = fread(message, 1, sizeof message - 1, pipe);
    const int status = pclose(pipe);
    cr_assert_gt(size, 0, "no message");
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 4, "%s", message);
}
