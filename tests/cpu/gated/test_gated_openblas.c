/* The kernel that calls OpenBLAS, where the library is there: within its bounds of the reference, on any shape. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "cpu/cpu.h"
#include "cpu/gated/openblas.h"
#include "precision/matmul.h"
#include "support/calls.h"

static hs_backend *reference, *gated;
static size_t lever;

static void enter(void) {
    cr_assert_eq(hs_cpu_reference_create(&reference, NULL), HSTEP_OK);
    cr_assert_eq(hs_cpu_create(2, &gated, NULL), HSTEP_OK);
    const hstep_lever *levers;
    const size_t count = gated->api->levers(gated, &levers);
    while (lever < count && strcmp(levers[lever].name, "cpu.openblas") != 0)
        lever++;
    cr_assert_lt(lever, count);
    cr_assert_eq(levers[lever].state, HSTEP_LEVER_DISABLED, "no gated lever is active unless it is switched on");
    if (hs_openblas_detect() != HSTEP_LEVER_ACTIVE)
        cr_skip_test("skipped: OpenBLAS is not there");
    gated->api->lever_set(gated, lever, HSTEP_LEVER_ACTIVE, "for a test");
}

static void leave(void) {
    reference->api->destroy(reference);
    gated->api->destroy(gated);
}

TestSuite(gated_openblas, .init = enter, .fini = leave, .timeout = 60);

/* Cells farther from the reference than K * 2^-52 * sum |p_k|, or nonfinite where it is not. */
static size_t wrong_cells(const hs_test_call *call, const hs_test_result *expected, const hs_test_result *actual) {
    const hs_test_description *d = &call->description;
    const double *a = call->inputs[0].f64, *b = call->inputs[1].f64;
    const bool a_turned = d->a_form == HSTEP_TRANSPOSE, b_turned = d->b_form == HSTEP_TRANSPOSE;
    size_t wrong = 0;
    for (size_t i = 0; i < d->rows * d->columns; i++) {
        const size_t row = i / d->columns, column = i % d->columns;
        const double f = actual->outputs[0][i], r = expected->outputs[0][i];
        double total = 0;
        for (size_t k = 0; k < d->inner; k++)
            total += fabs(a[a_turned ? k * d->rows + row : row * d->inner + k] *
                          b[b_turned ? column * d->inner + k : k * d->columns + column]);
        if (isfinite(r))
            wrong += fabs(f - r) <= (double)d->inner * 0x1p-52 * total ? 0 : 1;
        else
            wrong += isfinite(f) ? 1 : 0;
    }
    return wrong;
}

static void compare(const hs_test_description *d, hs_test_fill fill) {
    hs_test_call *call = hs_test_call_create(d);
    hs_test_call_fill(call, fill, d->rows * 100 + d->columns);
    hs_test_result *expected = hs_test_call_run_well(call, reference), *actual = hs_test_call_run_well(call, gated);
    cr_assert_eq(wrong_cells(call, expected, actual), 0, "%zu x %zu x %zu, forms %d %d, pitch %zu, fill %d", d->rows,
                 d->columns, d->inner, (int)d->a_form, (int)d->b_form, d->pitch, (int)fill);
    cr_assert_eq(actual->flag, expected->flag);
    hs_test_result_destroy(expected);
    hs_test_result_destroy(actual);
    hs_test_call_destroy(call);
}

Test(gated_openblas, stays_within_its_bounds_on_any_shape) {
    static const size_t shapes[][3] = {{1, 1, 1}, {1, 1, 300}, {1, 70, 3},  {70, 1, 3},   {0, 5, 3},     {5, 0, 3},
                                       {4, 5, 0}, {3, 5, 7},   {33, 65, 9}, {64, 48, 96}, {129, 33, 70}, {97, 81, 400}};
    static const hs_test_fill fills[] = {HS_TEST_UNIFORM, HS_TEST_SMALL, HS_TEST_POWERS, HS_TEST_SPECIAL};
    hs_test_description d = hs_test_describe(HS_OP_MATMUL);
    d.precision = HSTEP_PRECISION_F64;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (unsigned way = 0; way < 32; way++) {
            d.rows = shapes[i][0];
            d.columns = shapes[i][1];
            d.inner = shapes[i][2];
            d.a_form = way & 1 ? HSTEP_TRANSPOSE : HSTEP_NO_TRANSPOSE;
            d.b_form = way & 2 ? HSTEP_TRANSPOSE : HSTEP_NO_TRANSPOSE;
            d.pitch = way & 4 ? 3 : 0;
            compare(&d, fills[way / 8]);
        }
}

/* Its own bits differ from the reference's somewhere, or the test above compared the exact kernels with themselves. */
Test(gated_openblas, takes_part_in_f64_alone) {
    hs_test_description d = hs_test_describe_matmul(HSTEP_PRECISION_F64, 40, 40, 700);
    char text[256];
    for (int precision = 0; precision <= HSTEP_PRECISION_BF16; precision++) {
        d.precision = (hstep_precision)precision;
        hs_test_call *call = hs_test_call_create(&d);
        hs_test_result *expected = hs_test_call_run_well(call, reference), *actual = hs_test_call_run_well(call, gated);
        cr_expect_eq(hs_test_differences(expected, actual, text, sizeof text) > 0, precision == HSTEP_PRECISION_F64);
        hs_test_result_destroy(expected);
        hs_test_result_destroy(actual);
        hs_test_call_destroy(call);
    }
}

/* No orientation that the gate does not judge reaches the lever. */
Test(gated_openblas, both_operands_turned_are_for_exact_kernels) {
    hs_test_description d = hs_test_describe_matmul(HSTEP_PRECISION_F64, 40, 40, 700);
    d.a_form = d.b_form = HSTEP_TRANSPOSE;
    char text[256];
    hs_test_call *call = hs_test_call_create(&d);
    hs_test_result *expected = hs_test_call_run_well(call, reference), *actual = hs_test_call_run_well(call, gated);
    cr_expect_eq(hs_test_differences(expected, actual, text, sizeof text), 0, "%s", text);
    hs_test_result_destroy(expected);
    hs_test_result_destroy(actual);
    hs_test_call_destroy(call);
}

static void rest(long milliseconds) { (void)nanosleep(&(struct timespec){.tv_nsec = 1000000 * milliseconds}, NULL); }

static double processor_seconds(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Threads that keep turning would slow whatever is timed next. */
Test(gated_openblas, nothing_keeps_turning_after_a_product) {
    hs_test_description d = hs_test_describe_matmul(HSTEP_PRECISION_F64, 300, 300, 300);
    hs_test_call *call = hs_test_call_create(&d);
    rest(200); /* the library's own threads have turned since it was loaded */
    hs_test_result_destroy(hs_test_call_run_well(call, gated));
    rest(30); /* those of OpenMP rest soon */
    const double before = processor_seconds();
    rest(15);
    const double turned = processor_seconds() - before;
    cr_expect_lt(turned, 2e-3, "%g s", turned);
    hs_test_call_destroy(call);
}

Test(openblas, pieces_follow_from_shape_and_threads) {
    static const struct {
        size_t m, n, k;
        unsigned threads;
        hs_openblas_grid grid;
    } rows[] = {{1, 1, 1, 8, {1, 1}},        {64, 128, 128, 1, {1, 1}},
                {64, 128, 128, 2, {1, 1}},   {64, 128, 256, 2, {1, 2}},
                {1024, 128, 128, 2, {2, 1}}, {512, 512, 64, 4, {2, 2}},
                {64, 128, 512, 64, {1, 4}},  {1, 64, 1 << 20, 4, {1, 4}},
                {1, 64, 1 << 20, 7, {1, 4}}, {4096, 4096, 4096, 1000, {8, 8}}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const hs_openblas_grid grid = hs_openblas_cut(rows[i].m, rows[i].n, rows[i].k, rows[i].threads);
        cr_expect(grid.rows == rows[i].grid.rows && grid.columns == rows[i].grid.columns, "row %zu: %zu x %zu", i,
                  grid.rows, grid.columns);
    }
}

/* ---- Address space ---- */

/* This process may have `bytes` more than it has. */
static void limit_address_space(size_t bytes) {
    FILE *file = fopen("/proc/self/statm", "r");
    size_t pages = 0;
    cr_assert_not_null(file);
    cr_assert_eq(fscanf(file, "%zu", &pages), 1);
    (void)fclose(file);
    struct rlimit limit;
    cr_assert_eq(getrlimit(RLIMIT_AS, &limit), 0);
    limit.rlim_cur = pages * (size_t)sysconf(_SC_PAGESIZE) + bytes;
    cr_assert_eq(setrlimit(RLIMIT_AS, &limit), 0);
}

TestSuite(openblas, .timeout = 60);

/* Where it would wait forever for memory, it is not loaded. */
Test(openblas, is_absent_where_it_has_no_room_to_load) {
    limit_address_space((size_t)100 << 20);
    const char *why = hs_openblas_refusal(1);
    cr_assert_not_null(why);
    cr_expect_not_null(strstr(why, "address space"));
    cr_expect_eq(hs_openblas_detect(), HSTEP_LEVER_ABSENT);
}

/* Buffers that it took once serve again; more of them are refused before it is asked for them. */
Test(gated_openblas, is_absent_where_threads_have_no_room_to_multiply) {
    const char *const here = hs_openblas_refusal(2);
    cr_assert_null(here, "%s", here);
    limit_address_space((size_t)100 << 20);
    cr_expect_null(hs_openblas_refusal(2));
    const char *why = hs_openblas_refusal(8);
    cr_assert_not_null(why);
    cr_expect_not_null(strstr(why, "fewer threads"));
    hs_test_description d = hs_test_describe_matmul(HSTEP_PRECISION_F64, 100, 100, 100);
    compare(&d, HS_TEST_UNIFORM); /* on two threads */
}

Test(gated_openblas, a_backend_says_why_it_is_absent) {
    hs_backend *wide = NULL;
    cr_assert_eq(hs_cpu_create(12, &wide, NULL), HSTEP_OK);
    limit_address_space((size_t)100 << 20);
    hs_lever_findings findings;
    wide->api->lever_find(wide, lever, &findings);
    cr_expect_eq(findings.state, HSTEP_LEVER_ABSENT);
    cr_expect_not_null(strstr(findings.reason, "address space"), "%s", findings.reason);
    wide->api->destroy(wide);
}

/* A verdict must not outlive the file that it was measured on. */
Test(gated_openblas, its_identity_names_the_file) {
    hs_lever_findings findings;
    gated->api->lever_find(gated, lever, &findings);
    cr_assert_eq(findings.state, HSTEP_LEVER_ACTIVE);
    cr_expect_not_null(strstr(findings.identity, "OpenBLAS"), "%s", findings.identity);
    cr_expect_not_null(strstr(findings.identity, hs_openblas_load()->core()), "%s", findings.identity);
    const char *path = strstr(findings.identity, " in /");
    cr_assert_not_null(path, "%s", findings.identity);
    cr_expect_eq(access(path + 4, R_OK), 0, "%s", path);
    cr_expect_not_null(strstr(findings.identity, " bytes of "), "%s", findings.identity);
}

/* A program can be run again with the reference's bits. */
Test(gated_openblas, a_program_has_exact_kernels_too) {
    enum { SIZE = 64 };
    static double values[SIZE * SIZE], y[2][SIZE * SIZE], expected[SIZE * SIZE];
    for (size_t i = 0; i < SIZE * SIZE; i++)
        values[i] = sin((double)i);
    hs_buffer *x, *out;
    cr_assert_eq(gated->api->buffer_create(gated, sizeof values, &x, NULL), HSTEP_OK);
    cr_assert_eq(gated->api->buffer_create(gated, sizeof values, &out, NULL), HSTEP_OK);
    cr_assert_eq(gated->api->write(gated, x, 0, values, sizeof values, NULL), HSTEP_OK);
    const hs_view view = {.buffer = x, .dtype = HSTEP_DTYPE_F64, .rank = 2, .dims = {SIZE, SIZE}, .strides = {SIZE, 1}};
    hs_call call = {.operation = HS_OP_MATMUL, .input_count = 2, .output_count = 1};
    call.inputs[0] = call.inputs[1] = call.outputs[0] = view;
    call.outputs[0].buffer = out;
    hs_program *program;
    cr_assert_eq(gated->api->program_create(gated, &call, 1, &program, NULL), HSTEP_OK);
    for (int exact = 0; exact < 2; exact++) {
        cr_assert_eq((exact ? gated->api->program_run_exact : gated->api->program_run)(gated, program, 0, 1, NULL),
                     HSTEP_OK);
        cr_assert_eq(gated->api->read(gated, out, 0, y[exact], sizeof values, NULL), HSTEP_OK);
    }
    hs_policy_matmul(HSTEP_PRECISION_F64, SIZE, SIZE, SIZE, (hs_matrix){values, SIZE, 1}, (hs_matrix){values, SIZE, 1},
                     expected, SIZE, NULL);
    cr_expect_neq(memcmp(y[0], expected, sizeof expected), 0);
    cr_expect_eq(memcmp(y[1], expected, sizeof expected), 0);
    gated->api->program_destroy(gated, program);
    gated->api->buffer_destroy(gated, x);
    gated->api->buffer_destroy(gated, out);
}

Test(gated_openblas, the_same_product_gives_the_same_bits) {
    hs_test_description d = hs_test_describe_matmul(HSTEP_PRECISION_F64, 150, 150, 300);
    char text[256];
    hs_test_call *call = hs_test_call_create(&d);
    hs_test_result *first = hs_test_call_run_well(call, gated);
    for (int i = 0; i < 5; i++) {
        hs_test_result *again = hs_test_call_run_well(call, gated);
        cr_expect_eq(hs_test_differences(first, again, text, sizeof text), 0, "%s", text);
        hs_test_result_destroy(again);
    }
    hs_test_result_destroy(first);
    hs_test_call_destroy(call);
}

Test(openblas, kernels_that_leave_the_processor_unused_are_remarked_on) {
    static const struct {
        const char *core;
        bool avx2, avx512;
        const char *remark; /* NULL: none */
    } rows[] = {{"Prescott", true, true, "OPENBLAS_CORETYPE=SkylakeX"},
                {"Prescott", true, false, "OPENBLAS_CORETYPE=Haswell"},
                {"Sandybridge", true, false, "OPENBLAS_CORETYPE=Haswell"},
                {"Zen", true, true, "OPENBLAS_CORETYPE=SkylakeX"},
                {"Zen", true, false, NULL},
                {"Haswell", true, false, NULL},
                {"haswell", true, false, NULL},
                {"SkylakeX", true, true, NULL},
                {"Cooperlake", true, true, NULL},
                {"Prescott", false, false, NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[192];
        hs_openblas_remark(rows[i].core, rows[i].avx2, rows[i].avx512, text, sizeof text);
        if (rows[i].remark == NULL)
            cr_expect_str_empty(text, "%s", rows[i].core);
        else
            cr_expect(strstr(text, rows[i].remark) && strstr(text, rows[i].core), "%s", text);
    }
}
