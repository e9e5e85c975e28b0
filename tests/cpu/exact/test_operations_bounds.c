/* No kernel reads or writes outside its operands: each stands against a page that may not be touched. */
#define _GNU_SOURCE

#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cpu/kernel.h"
#include "precision/format.h"
#include "support/parity.h"

enum { ROOM = 1 << 16 };

/* Memory between two forbidden pages. */
typedef struct fenced {
    unsigned char *bytes; /* ROOM of them */
    hs_buffer buffer;
} fenced;

static fenced fence(void) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *all = mmap(NULL, ROOM + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(all, MAP_FAILED);
    cr_assert_eq(mprotect(all + page, ROOM, PROT_READ | PROT_WRITE), 0);
    return (fenced){.bytes = all + page};
}

/* Elements from the first to the last one of a view, the gaps between rows included. */
static size_t extent(const hs_view *view) {
    const size_t rows = hs_rows(view), columns = hs_columns(view);
    return rows * columns == 0 ? 0 : (rows - 1) * (view->rank > 1 ? view->strides[0] : 0) + columns;
}

/* Puts an operand right behind the first forbidden page or right before the second. */
static void place(fenced *f, hs_view *view, bool at_the_end) {
    const size_t bytes = extent(view) * hs_dtype_size(view->dtype);
    cr_assert_leq(bytes, ROOM);
    f->buffer = (hs_buffer){f->bytes + (at_the_end ? ROOM - bytes : 0), bytes};
    view->buffer = &f->buffer;
    view->offset = 0;
}

static void fill(const fenced *f, const hs_view *view, const hs_test_operand *operand) {
    memset(f->bytes, 0, ROOM);
    for (size_t i = 0; i < operand->elements; i++) {
        const size_t columns = hs_columns(view), row = i / columns * (view->rank == 1 ? columns : view->strides[0]);
        unsigned char *at = view->buffer->data + (row + i % columns) * hs_dtype_size(view->dtype);
        const uint16_t half = operand->compact ? hs_encode(operand->format, operand->f64[i]) : 0;
        if (operand->is_index)
            memcpy(at, &operand->i32[i], sizeof operand->i32[i]);
        else if (operand->compact)
            memcpy(at, &half, sizeof half);
        else
            memcpy(at, &operand->f64[i], sizeof operand->f64[i]);
    }
}

static void run(const hs_test_description *d, hs_backend *backend, fenced *operands, bool at_the_end) {
    hs_test_call *t = hs_test_call_create(d);
    hs_call call = t->call;
    for (uint32_t i = 0; i < call.input_count; i++) {
        place(&operands[i], &call.inputs[i], at_the_end);
        fill(&operands[i], &call.inputs[i], &t->inputs[i]);
    }
    for (uint32_t i = 0; i < call.output_count; i++)
        place(&operands[HS_MAX_INPUTS + i], &call.outputs[i], at_the_end);
    hs_program *program = NULL;
    hstep_error error = {0};
    cr_assert_eq(backend->api->program_create(backend, &call, 1, &program, &error), HSTEP_OK, "%s", error.message);
    cr_assert_eq(backend->api->program_run(backend, program, 0, 1, &error), HSTEP_OK);
    backend->api->program_destroy(backend, program);
    hs_test_call_destroy(t);
}

static void run_on_all(const hs_test_description *d, hs_backend *const *backends, fenced *operands) {
    for (size_t lever = 0; lever < HS_TEST_LEVERS; lever++)
        for (int end = 0; end < 2 && backends[lever]; end++)
            run(d, backends[lever], operands, end);
}

typedef struct fenced_world {
    hs_backend *backends[HS_TEST_LEVERS];
    fenced operands[HS_MAX_INPUTS + HS_MAX_OUTPUTS];
} fenced_world;

static fenced_world open_world(void) {
    fenced_world world;
    for (size_t i = 0; i < HS_TEST_LEVERS; i++)
        world.backends[i] = hs_test_exact(1, hs_test_levers[i]);
    for (size_t i = 0; i < HS_MAX_INPUTS + HS_MAX_OUTPUTS; i++)
        world.operands[i] = fence();
    return world;
}

static void close_world(fenced_world *world) {
    for (size_t i = 0; i < HS_TEST_LEVERS; i++)
        if (world->backends[i])
            world->backends[i]->api->destroy(world->backends[i]);
}

Test(bounds, products, .timeout = 60) {
    static const size_t sizes[] = {1, 2, 3, 7, 8, 9, 13, 15, 17, 31, 33, 65};
    static const unsigned compact[] = {0, HS_TEST_INPUT(0), HS_TEST_INPUT(1) | HS_TEST_OUTPUT(0),
                                       HS_TEST_INPUT(0) | HS_TEST_INPUT(1) | HS_TEST_OUTPUT(0)};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    fenced_world world = open_world();
    for (size_t i = 0; i < SIZES * SIZES * SIZES; i++) {
        hs_test_description d = hs_test_describe_matmul((hstep_precision)(i % 3), sizes[i % SIZES],
                                                        sizes[i / SIZES % SIZES], sizes[i / SIZES / SIZES]);
        d.pitch = i % 2 * 3;
        for (int forms = 0; forms < 4; forms++) {
            d.a_form = forms & 1 ? HSTEP_TRANSPOSE : HSTEP_NO_TRANSPOSE;
            d.b_form = forms & 2 ? HSTEP_TRANSPOSE : HSTEP_NO_TRANSPOSE;
            d.compact = d.precision == HSTEP_PRECISION_F64 ? 0 : compact[i / 3 % 4];
            run_on_all(&d, world.backends, world.operands);
        }
    }
    close_world(&world);
}

/* Attention whose values all have 16 bits. */
Test(bounds, attention, .timeout = 60) {
    static const unsigned compact[] = {0xffU & ~HS_TEST_INPUT(3), 0xffU & ~HS_TEST_INPUT(4)};
    fenced_world world = open_world();
    for (int backward = 0; backward < 2; backward++)
        for (size_t size = 1; size < 40; size += 2) {
            hs_test_description d = hs_test_describe(backward ? HS_OP_ATTENTION_BACKWARD : HS_OP_ATTENTION);
            d.precision = size % 4 == 1 ? HSTEP_PRECISION_FP16 : HSTEP_PRECISION_BF16;
            d.queries = size, d.keys = size + size % 3;
            d.head_width = 1 + size % 19;
            d.pitch = size % 5;
            d.compact = compact[backward] | HS_TEST_OUTPUT(0) | HS_TEST_OUTPUT(1) | HS_TEST_OUTPUT(2);
            run_on_all(&d, world.backends, world.operands);
        }
    close_world(&world);
}

Test(bounds, every_operation, .timeout = 60) {
    fenced_world world = open_world();
    for (int operation = 0; operation < HS_OP_COUNT; operation++)
        for (size_t size = 1; size < 40; size += 3) {
            hs_test_description d = hs_test_describe((hs_operation)operation);
            d.precision = (hstep_precision)(size % 3);
            d.rows = size, d.columns = 41 - size, d.queries = size, d.keys = size + size % 2, d.table = size + 2;
            d.head_width = 2 * (1 + size % 9);
            run_on_all(&d, world.backends, world.operands);
        }
    close_world(&world);
}

/* What the fences are worth: a step beyond one ends the process. */
Test(bounds, a_step_beyond_is_fatal, .signal = SIGSEGV) {
    const fenced f = fence();
    signal(SIGSEGV, SIG_DFL);
    *(volatile unsigned char *)(f.bytes + ROOM) = 1;
}
