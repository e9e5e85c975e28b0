#define _GNU_SOURCE

#include "support/gated_product.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cpu/cpu.h"
#include "cpu/kernel.h"
#include "cpu/processor.h"
#include "precision/format.h"
#include "support/choosing.h"
#include "support/partial.h"

enum { ROOM = 1 << 20, OPERANDS = 3 };

void hs_gated_open(hs_gated_product *product, const char *lever, hstep_precision precision,
                   hs_gated_emulator *emulator) {
    *product = (hs_gated_product){.precision = precision, .emulator = emulator};
    if (hs_detect_avx512() != HSTEP_LEVER_ACTIVE)
        cr_skip_test("skipped: packing needs AVX-512");
    cr_assert_eq(hs_cpu_reference_create(&product->reference, NULL), HSTEP_OK);
    for (unsigned i = 0; i < HS_GATED_THREADS; i++) {
        cr_assert_eq(hs_cpu_create(i + 1, &product->backends[i], NULL), HSTEP_OK);
        product->lever = hs_test_lever_index(product->backends[i], lever);
        hs_lever_findings findings;
        product->backends[i]->api->lever_find(product->backends[i], product->lever, &findings);
        if (findings.state == HSTEP_LEVER_NOT_BUILT)
            cr_skip_test("skipped: the compiler does not know the instructions");
        product->backends[i]->api->lever_set(product->backends[i], product->lever, HSTEP_LEVER_ACTIVE, "for a test");
    }
}

void hs_gated_close(hs_gated_product *product) {
    product->reference->api->destroy(product->reference);
    for (unsigned i = 0; i < HS_GATED_THREADS; i++)
        product->backends[i]->api->destroy(product->backends[i]);
}

/* ---- Operands between pages that may not be touched ---- */

typedef struct fenced {
    unsigned char *bytes; /* ROOM of them */
    hs_buffer buffer;
} fenced;

static unsigned char *room(size_t operand) {
    static unsigned char *rooms[OPERANDS];
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (!rooms[operand]) {
        unsigned char *all = mmap(NULL, ROOM + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        cr_assert_neq(all, MAP_FAILED);
        cr_assert_eq(mprotect(all + page, ROOM, PROT_READ | PROT_WRITE), 0);
        rooms[operand] = all + page;
    }
    return rooms[operand];
}

/* Puts an operand right behind the first forbidden page or right before the second. */
static void place(size_t operand, hs_view *view, hs_buffer *buffer, bool at_the_end) {
    const size_t rows = view->dims[0], columns = view->dims[1];
    const size_t elements = rows * columns == 0 ? 0 : (rows - 1) * view->strides[0] + columns;
    const size_t bytes = elements * hs_dtype_size(view->dtype);
    cr_assert_leq(bytes, ROOM);
    *buffer = (hs_buffer){room(operand) + (at_the_end ? ROOM - bytes : 0), bytes};
    view->buffer = buffer;
    view->offset = 0;
    memset(buffer->data, 0xff, bytes); /* NaN */
}

static unsigned char *element(const hs_view *view, size_t row, size_t column) {
    return view->buffer->data + (row * view->strides[0] + column) * hs_dtype_size(view->dtype);
}

static void fill(const hs_view *view, const hs_test_operand *operand) {
    for (size_t i = 0; i < operand->elements; i++) {
        unsigned char *at = element(view, i / view->dims[1], i % view->dims[1]);
        const uint16_t half = operand->compact ? hs_encode(operand->format, operand->f64[i]) : 0;
        if (operand->compact)
            memcpy(at, &half, sizeof half);
        else
            memcpy(at, &operand->f64[i], sizeof operand->f64[i]);
    }
}

static double result(const hs_view *view, size_t row, size_t column, hstep_format format) {
    double y;
    uint16_t half;
    if (view->dtype == HSTEP_DTYPE_F64) {
        memcpy(&y, element(view, row, column), sizeof y);
        return y;
    }
    memcpy(&half, element(view, row, column), sizeof half);
    return hs_decode(format, half);
}

/* ---- Comparing ---- */

/* Operand bits with the steps of a line side by side: of the left operand's rows, of the right one's columns. */
static uint16_t *gather(const hs_test_operand *x, hstep_format format, size_t lines, size_t steps, bool step_is_row) {
    uint16_t *bits = malloc((lines * steps + 1) * sizeof *bits);
    cr_assert_not_null(bits);
    for (size_t line = 0; line < lines; line++)
        for (size_t k = 0; k < steps; k++)
            bits[line * steps + k] = hs_encode(format, x->f64[step_is_row ? k * lines + line : line * steps + k]);
    return bits;
}

static bool same(double a, double b) { return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b)); }

/* How a product is run. */
typedef struct way {
    unsigned thread;
    size_t part; /* steps of a call; SIZE_MAX for all of them in one */
    bool sums, at_the_end;
} way;

/* Runs the calls that a product takes; returns the last one's flag. Only what is finished may be flagged. */
static uint32_t run_calls(hs_backend *backend, const hs_call *product, const way *w) {
    const hs_view *a = &product->inputs[0];
    const size_t most = w->part == SIZE_MAX ? 1 : a->dims[0] + a->dims[1];
    hs_call *calls = calloc(most, sizeof *calls);
    uint32_t *flags = calloc(most, sizeof *flags);
    cr_assert(calls != NULL && flags != NULL);
    calls[0] = *product;
    const size_t count = w->part == SIZE_MAX ? 1 : hs_test_divide_product(product, w->part, calls);
    hs_program *program = NULL;
    hstep_error error = {0};
    cr_assert_eq(backend->api->program_create(backend, calls, count, &program, &error), HSTEP_OK, "%s", error.message);
    cr_assert_eq(hs_run_and_wait(backend, program, 0, count, flags, &error), HSTEP_OK);
    backend->api->program_destroy(backend, program);
    for (size_t i = 0; i + 1 < count; i++)
        cr_assert_eq(flags[i], 0);
    const uint32_t flag = flags[count - 1];
    free(calls);
    free(flags);
    return flag;
}

static void run_once(hs_gated_product *p, const hs_test_call *t, const way *w, const float *expected,
                     const char *what) {
    const hs_test_description *d = &t->description;
    const hstep_format format = hs_precision_format(p->precision);
    hs_call call = t->call;
    hs_buffer buffers[OPERANDS];
    call.attributes.sums = w->sums;
    if (w->sums || w->part != SIZE_MAX)
        call.outputs[0].dtype = HSTEP_DTYPE_F64;
    for (size_t i = 0; i < 2; i++) {
        place(i, &call.inputs[i], &buffers[i], w->at_the_end);
        fill(&call.inputs[i], &t->inputs[i]);
    }
    place(2, &call.outputs[0], &buffers[2], w->at_the_end);
    const uint32_t flag = run_calls(p->backends[w->thread], &call, w);
    bool nonfinite = false;
    for (size_t i = 0; i < d->rows * d->columns; i++) {
        const size_t row = i / d->columns, column = i % d->columns;
        const double sum = (double)expected[i], y = w->sums ? sum : hs_decode(format, hs_encode(format, sum));
        const double got = result(&call.outputs[0], row, column, format);
        cr_assert(
            same(got, y),
            "%s: %zu x %zu x %zu by %zu, forms %d %d, pitch %zu, compact %x, %u threads%s: %a is not %a at %zu, %zu",
            what, d->rows, d->columns, d->inner, w->part, (int)d->a_form, (int)d->b_form, d->pitch, d->compact,
            w->thread + 1, w->sums ? ", sums" : "", got, y, row, column);
        nonfinite = nonfinite || !isfinite(y);
    }
    cr_assert_eq(flag, nonfinite, "%s: the flag", what);
    p->cells += d->rows * d->columns;
}

/* The emulator's sum of one cell. */
static float emulate(const hs_gated_product *p, size_t steps, size_t part, const uint16_t *a, const uint16_t *b) {
    float sum = 0.0F;
    for (size_t first = 0, here; first < steps; first += here) {
        here = steps - first < part ? steps - first : part;
        sum = p->emulator(sum, here, a + first, b + first);
    }
    return sum;
}

/* On every number of threads, in calls of up to `part` steps. */
static void check(hs_gated_product *p, const hs_test_call *call, size_t part, const char *what) {
    const hs_test_description *d = &call->description;
    const hstep_format format = hs_precision_format(p->precision);
    uint16_t *a = gather(&call->inputs[0], format, d->rows, d->inner, d->a_form == HSTEP_TRANSPOSE);
    uint16_t *b = gather(&call->inputs[1], format, d->columns, d->inner, d->b_form != HSTEP_TRANSPOSE);
    float *expected = malloc((d->rows * d->columns + 1) * sizeof *expected);
    cr_assert_not_null(expected);
    for (size_t i = 0; i < d->rows * d->columns; i++)
        expected[i] = emulate(p, d->inner, part, a + i / d->columns * d->inner, b + i % d->columns * d->inner);
    /* Each number of threads takes its turn with sums and results, at either end of the memory. */
    for (unsigned thread = 0; thread < HS_GATED_THREADS; thread++, p->runs++) {
        const way w = {
            .thread = thread, .part = part, .sums = part == SIZE_MAX && (p->runs & 1), .at_the_end = p->runs & 2};
        run_once(p, call, &w, expected, what);
    }
    free(a);
    free(b);
    free(expected);
}

void hs_gated_check(hs_gated_product *p, const hs_test_call *call, const char *what) { check(p, call, SIZE_MAX, what); }

static void keep_finite(hs_test_call *call) {
    for (uint32_t i = 0; i < 2; i++)
        for (size_t j = 0; j < call->inputs[i].elements; j++)
            call->inputs[i].f64[j] = fmax(-65504.0, fmin(call->inputs[i].f64[j], 65504.0));
}

/* ---- Many products ---- */

static const hs_test_fill fills[] = {HS_TEST_UNIFORM, HS_TEST_WIDE, HS_TEST_HUGE, HS_TEST_SPECIAL};
static const char *const names[] = {"uniform", "wide", "huge", "special"};
static const hstep_transpose forms[][2] = {{HSTEP_NO_TRANSPOSE, HSTEP_NO_TRANSPOSE},
                                           {HSTEP_NO_TRANSPOSE, HSTEP_TRANSPOSE},
                                           {HSTEP_TRANSPOSE, HSTEP_NO_TRANSPOSE}};

/* What is huge is infinite in fp16. */
static size_t fills_of(bool specials) { return specials ? 4 : 2; }

static void fill_call(hs_test_call *call, size_t with, bool specials, uint64_t seed) {
    hs_test_call_fill(call, fills[with], seed);
    if (!specials)
        keep_finite(call);
}

void hs_gated_check_shapes(hs_gated_product *p, bool specials) {
    static const size_t shapes[][3] = {{1, 1, 1},    {1, 1, 33},   {2, 40, 3},  {17, 31, 64},  {33, 1, 31},
                                       {16, 32, 32}, {31, 33, 65}, {0, 3, 5},   {3, 0, 5},     {5, 4, 0},
                                       {65, 97, 34}, {1, 70, 129}, {9, 5, 511}, {33, 20, 513}, {2, 33, 1100}};
    static const unsigned compact[] = {0, HS_TEST_INPUT(0), HS_TEST_INPUT(1) | HS_TEST_OUTPUT(0),
                                       HS_TEST_INPUT(0) | HS_TEST_INPUT(1) | HS_TEST_OUTPUT(0)};
    const size_t fill_count = fills_of(specials);
    unsigned turn = 0;
    hs_test_description d = hs_test_describe(HS_OP_MATMUL);
    d.precision = p->precision;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (size_t form = 0; form < 3; form++, turn++) {
            d.rows = shapes[i][0];
            d.columns = shapes[i][1];
            d.inner = shapes[i][2];
            d.a_form = forms[form][0];
            d.b_form = forms[form][1];
            d.pitch = turn % 2 * 3;
            d.compact = compact[turn % 4];
            hs_test_call *call = hs_test_call_create(&d);
            for (size_t f = 0; f < fill_count; f++) {
                fill_call(call, f, specials, 11 + turn);
                hs_gated_check(p, call, names[f]);
            }
            hs_test_call_destroy(call);
        }
}

void hs_gated_check_parts(hs_gated_product *p, bool specials) {
    static const size_t shapes[][4] = {
        {2, 35, 5, 1}, {17, 31, 64, 32}, {33, 9, 70, 45}, {1, 33, 129, 7}, {9, 5, 1100, 530}};
    unsigned turn = 0;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (size_t form = 0; form < 3; form++, turn++) {
            hs_test_description d = hs_test_describe_matmul(p->precision, shapes[i][0], shapes[i][1], shapes[i][2]);
            d.a_form = forms[form][0];
            d.b_form = forms[form][1];
            d.pitch = turn % 2 * 3;
            d.compact = turn % 4 * HS_TEST_INPUT(0); /* either operand, both or none */
            hs_test_call *call = hs_test_call_create(&d);
            fill_call(call, turn % fills_of(specials), specials, 11 + turn);
            check(p, call, shapes[i][3], names[turn % fills_of(specials)]);
            hs_test_call_destroy(call);
        }
}

void hs_gated_check_nonfinite(hs_gated_product *p, const hs_test_call *call, bool alike) {
    hs_test_result *expected = hs_test_call_run_well(call, p->reference);
    for (unsigned thread = 0; thread < HS_GATED_THREADS; thread++) {
        hs_test_result *got = hs_test_call_run_well(call, p->backends[thread]);
        for (size_t i = 0; i < got->elements[0]; i++) {
            const double y = got->outputs[0][i], r = expected->outputs[0][i];
            cr_assert(isfinite(r) ? isfinite(y) : alike ? same(y, r) : !isfinite(y), "%a is not %a at %zu", y, r, i);
        }
        cr_assert_eq(got->flag, expected->flag);
        hs_test_result_destroy(got);
    }
    hs_test_result_destroy(expected);
}
