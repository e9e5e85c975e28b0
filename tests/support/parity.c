#include "support/parity.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cpu/cpu.h"
#include "precision/random.h"
#include "support/device.h"
#include "support/flushing.h"

const char *const hs_test_levers[HS_TEST_LEVERS] = {"cpu.portable", "cpu.avx2", "cpu.avx512", "cpu.avx512-bf16"};

hs_backend *hs_test_exact(unsigned threads, const char *lever) {
    hs_backend *backend = NULL;
    hstep_error error = {0};
    const hstep_status status = hs_cpu_create_with_lever(threads, lever, &backend, &error);
    cr_assert(status == HSTEP_OK || status == HSTEP_ERROR_BACKEND_UNAVAILABLE, "%s: %s", lever, error.message);
    return backend;
}

void hs_test_leave_compact_out(hs_backend *backend) {
    const hstep_lever *levers;
    const size_t count = backend->api->levers(backend, &levers);
    size_t compact = 0;
    while (compact < count && strcmp(levers[compact].name, "cpu.compact") != 0)
        compact++;
    cr_assert_lt(compact, count);
    backend->api->lever_set(backend, compact, HSTEP_LEVER_DISABLED, "left out");
}

void hs_parity_open(hs_parity *parity) {
    *parity = (hs_parity){0};
    cr_assert_eq(hs_cpu_reference_create(&parity->reference, NULL), HSTEP_OK);
    for (size_t lever = 0; lever < HS_TEST_LEVERS; lever++)
        for (unsigned i = 0; i < HS_TEST_THREADS; i++)
            parity->exact[lever][i] = hs_test_exact(i + 1, hs_test_levers[lever]);
    cr_assert_not_null(parity->exact[0][0]);
}

void hs_parity_open_on(hs_parity *parity, hs_backend *backend) {
    *parity = (hs_parity){.only = backend->api->name};
    cr_assert_eq(hs_cpu_reference_create(&parity->reference, NULL), HSTEP_OK);
    parity->exact[0][0] = backend;
    if (hs_test_flushes_subnormals(backend))
        parity->flushing = hs_test_flushing_reference();
}

void hs_parity_close(hs_parity *parity) {
    parity->reference->api->destroy(parity->reference);
    if (parity->flushing)
        parity->flushing->api->destroy(parity->flushing);
    for (size_t lever = 0; lever < HS_TEST_LEVERS; lever++)
        for (unsigned i = 0; i < HS_TEST_THREADS; i++)
            if (parity->exact[lever][i])
                parity->exact[lever][i]->api->destroy(parity->exact[lever][i]);
}

bool hs_parity_has_products(hs_operation operation) {
    return operation == HS_OP_MATMUL || operation == HS_OP_ATTENTION || operation == HS_OP_ATTENTION_BACKWARD;
}

bool hs_parity_heeds_precision(hs_operation operation) {
    return hs_parity_has_products(operation) || operation == HS_OP_MEASURE;
}

bool hs_parity_can_flag(hs_operation operation) { return operation != HS_OP_MEASURE; }

static void describe(const hs_test_call *call, char *text, size_t size) {
    const hs_test_description *d = &call->description;
    snprintf(text, size,
             "%s in %s, rows %zu columns %zu inner %zu table %zu, %zu sequences of %zu queries and %zu keys, %zu/%zu "
             "heads of %zu, forms %d %d, pitch %zu, compact %#x%s%s%s",
             hs_operation_name(d->operation), hstep_precision_name(d->precision), d->rows, d->columns, d->inner,
             d->table, d->sequences, d->queries, d->keys, d->heads, d->kv_heads, d->head_width, (int)d->a_form,
             (int)d->b_form, d->pitch, d->compact, d->in_place ? ", in place" : "",
             d->without_base ? ", without base" : "", d->random_positions ? ", random positions" : "");
}

/* What the reference gave; both are the same where the device keeps subnormals. */
typedef struct expectation {
    hs_test_result *kept, *flushed;
} expectation;

static expectation expect(const hs_parity *parity, const hs_test_call *call, const char *shape) {
    expectation expected = {.kept = hs_test_call_run_wide(call, parity->reference)};
    cr_assert_eq(expected.kept->status, HSTEP_OK, "%s: %s", shape, expected.kept->error.message);
    expected.flushed = parity->flushing ? hs_test_call_run_wide(call, parity->flushing) : expected.kept;
    cr_assert_eq(expected.flushed->status, HSTEP_OK, "%s: %s", shape, expected.flushed->error.message);
    return expected;
}

/* One backend against it. */
static void compare_one(const hs_test_call *call, hs_backend *backend, const expectation *expected, const char *where) {
    char difference[256] = "";
    hs_test_result *result = hs_test_call_run(call, backend);
    cr_assert_eq(result->status, HSTEP_OK, "%s: %s", where, result->error.message);
    const size_t differences =
        hs_test_differences_from_both(expected->kept, expected->flushed, result, difference, sizeof difference);
    cr_assert_eq(differences, 0, "%s: %zu cells differ: %s", where, differences, difference);
    cr_assert(result->flag == expected->kept->flag || result->flag == expected->flushed->flag, "%s: flag %u, not %u",
              where, result->flag, expected->kept->flag);
    cr_assert_eq(result->spoiled, 0, "%s: %zu bytes spoiled", where, result->spoiled);
    hs_test_result_destroy(result);
}

void hs_parity_compare(hs_parity *parity, const hs_test_call *call, const char *what) {
    char shape[512], where[768];
    describe(call, shape, sizeof shape);
    const expectation expected = expect(parity, call, shape);
    for (size_t lever = 0; lever < HS_TEST_LEVERS; lever++)
        for (unsigned i = 0; i < HS_TEST_THREADS; i++)
            if (parity->exact[lever][i]) {
                snprintf(where, sizeof where, "%s, %s, %s with %u threads", shape, what,
                         parity->only ? parity->only : hs_test_levers[lever], i + 1);
                compare_one(call, parity->exact[lever][i], &expected, where);
            }
    parity->calls++;
    parity->raised += expected.kept->flag;
    if (expected.flushed != expected.kept)
        hs_test_result_destroy(expected.flushed);
    hs_test_result_destroy(expected.kept);
}

static void scale_values(hs_test_call *call, double factor) {
    for (uint32_t i = 0; i < call->call.input_count; i++)
        for (size_t j = 0; call->inputs[i].f64 && j < call->inputs[i].elements; j++)
            call->inputs[i].f64[j] *= factor;
    for (uint32_t i = 0; i < call->call.output_count; i++)
        for (size_t j = 0; j < call->outputs[i].elements; j++)
            call->outputs[i].f64[j] *= factor;
}

/* One nonfinite value in each operand in turn. */
static void plant(hs_parity *parity, hs_test_call *call) {
    static const double planted[] = {INFINITY, -INFINITY, NAN};
    hs_random random = {call->description.rows + 31 * call->description.columns};
    hs_test_call_fill(call, HS_TEST_UNIFORM, 3);
    for (uint32_t i = 0; i < call->call.input_count; i++) {
        hs_test_operand *operand = &call->inputs[i];
        if (!operand->f64 || operand->elements == 0)
            continue;
        for (size_t p = 0; p < sizeof planted / sizeof *planted; p++) {
            char what[64];
            const size_t place = hs_random_next(&random) % operand->elements;
            const double before = operand->f64[place];
            operand->f64[place] = planted[p];
            snprintf(what, sizeof what, "%g at %zu of input %u", planted[p], place, i);
            hs_parity_compare(parity, call, what);
            operand->f64[place] = before;
        }
    }
}

void hs_parity_check(hs_parity *parity, const hs_test_description *description, hs_parity_depth depth) {
    static const hs_test_fill fills[] = {HS_TEST_SMALL,  HS_TEST_SPECIAL, HS_TEST_UNIFORM,
                                         HS_TEST_POWERS, HS_TEST_WIDE,    HS_TEST_HUGE};
    static const char *const names[] = {"small", "special", "uniform", "powers of two", "wide", "huge"};
    const size_t counts[] = {1, 2, sizeof fills / sizeof *fills, sizeof fills / sizeof *fills};
    hs_test_call *call = hs_test_call_create(description);
    for (size_t i = 0; i < counts[depth]; i++) {
        hs_test_call_fill(call, fills[i], 7 + i);
        hs_parity_compare(parity, call, names[i]);
    }
    if (depth >= HS_PARITY_FULL) {
        hs_test_call_fill(call, HS_TEST_UNIFORM, 5);
        scale_values(call, 0x1p-68);
        hs_parity_compare(parity, call, "f32 subnormals");
        scale_values(call, 0x1p-462);
        hs_parity_compare(parity, call, "f64 subnormals");
    }
    if (depth == HS_PARITY_PLANTED)
        plant(parity, call);
    hs_test_call_destroy(call);
}
