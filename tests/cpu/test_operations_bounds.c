/* No kernel reads or writes outside its operands: each stands against a page that may not be touched. */
#define _GNU_SOURCE

#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cpu/kernel.h"
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
    const size_t bytes = extent(view) * (view->dtype == HSTEP_DTYPE_I32 ? sizeof(int32_t) : sizeof(double));
    cr_assert_leq(bytes, ROOM);
    f->buffer = (hs_buffer){f->bytes + (at_the_end ? ROOM - bytes : 0), bytes};
    view->buffer = &f->buffer;
    view->offset = 0;
}

static void fill(const fenced *f, const hs_view *view, const hs_test_operand *operand) {
    memset(f->bytes, 0, ROOM);
    for (size_t i = 0; i < operand->elements; i++) {
        const size_t columns = hs_columns(view), at = i / columns * view->strides[0] + i % columns;
        if (operand->is_index)
            ((int32_t *)(void *)view->buffer->data)[view->rank == 1 ? i : at] = operand->i32[i];
        else
            ((double *)(void *)view->buffer->data)[view->rank == 1 ? i : at] = operand->f64[i];
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
    enum { SIZES = sizeof sizes / sizeof *sizes };
    fenced_world world = open_world();
    for (size_t i = 0; i < SIZES * SIZES * SIZES; i++) {
        hs_test_description d = hs_test_describe(HS_OP_MATMUL);
        d.rows = sizes[i % SIZES], d.columns = sizes[i / SIZES % SIZES], d.inner = sizes[i / SIZES / SIZES];
        d.precision = (hstep_precision)(i % 3);
        d.pitch = i % 2 * 3;
        for (int forms = 0; forms < 4; forms++) {
            d.a_form = forms & 1 ? HSTEP_TRANSPOSE : HSTEP_NO_TRANSPOSE;
            d.b_form = forms & 2 ? HSTEP_TRANSPOSE : HSTEP_NO_TRANSPOSE;
            run_on_all(&d, world.backends, world.operands);
        }
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
