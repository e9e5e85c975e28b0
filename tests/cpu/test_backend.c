/* Memory, programs, and what the processor backend refuses. */
#define _GNU_SOURCE

#include <criterion/criterion.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "cpu/cpu.h"
#include "cpu/kernel.h"
#include "cpu/processor.h"
#include "support/calls.h"
#include "support/choosing.h"

static hs_backend *backend;

static void setup(void) {
    hstep_error error = {0};
    cr_assert_eq(hs_cpu_reference_create(&backend, &error), HSTEP_OK, "%s", error.message);
}

static void teardown(void) { backend->api->destroy(backend); }

TestSuite(backend, .init = setup, .fini = teardown);

Test(backend, names_itself_and_its_lever) {
    cr_assert_str_eq(backend->api->name, "cpu-reference");
    cr_assert_eq(backend->api->threads(backend), 1);
    cr_assert_gt(strlen(backend->api->device(backend)), 0);
    cr_assert_null(strchr(backend->api->device(backend), '\n'));
    const hstep_lever *levers;
    cr_assert_eq(backend->api->levers(backend, &levers), 1);
    cr_assert_str_eq(levers[0].name, "cpu.reference");
    cr_assert_eq(levers[0].state, HSTEP_LEVER_ACTIVE);
    cr_assert_not_null(backend->api->locate);
}

/* The state of a lever of a backend. */
static const hstep_lever *lever_of(const hs_backend *cpu, const char *name) {
    const hstep_lever *levers;
    (void)cpu->api->levers(cpu, &levers);
    return &levers[hs_test_lever_index(cpu, name)];
}

static const char *const avx_levers[] = {"cpu.avx2", "cpu.avx512"};

/* Every lever has a state and says why; the fastest that is there does the work of the others. */
Test(backend, levers_tell_their_states) {
    const hstep_lever_state detected[] = {hs_detect_avx2(), hs_detect_avx512()};
    hs_backend *cpu;
    cr_assert_eq(hs_cpu_create(1, &cpu, NULL), HSTEP_OK);
    const bool replaced = detected[0] == HSTEP_LEVER_ACTIVE || detected[1] == HSTEP_LEVER_ACTIVE;
    cr_assert_eq(lever_of(cpu, "cpu.portable")->state, replaced ? HSTEP_LEVER_DISABLED : HSTEP_LEVER_ACTIVE);
    cr_assert_eq(lever_of(cpu, "cpu.avx512")->state, detected[1]);
    if (detected[1] != HSTEP_LEVER_ACTIVE)
        cr_assert_eq(lever_of(cpu, "cpu.avx2")->state, detected[0]);
    else if (detected[0] == HSTEP_LEVER_ACTIVE)
        cr_assert_eq(lever_of(cpu, "cpu.avx2")->state, HSTEP_LEVER_DISABLED);
    for (size_t i = 0; i < 2; i++) {
        cr_assert(lever_of(cpu, avx_levers[i])->exact);
        cr_assert_gt(strlen(lever_of(cpu, avx_levers[i])->reason), 0);
    }
    cpu->api->destroy(cpu);
}

/* What one backend leaves out, another one has. */
Test(backend, levers_can_be_left_out) {
    const hstep_lever_state detected[] = {hs_detect_avx2(), hs_detect_avx512()};
    hs_backend *cpu, *plain;
    hstep_error error = {0};
    for (size_t i = 0; i < 2; i++) {
        const hstep_status status = hs_cpu_create_with_lever(1, avx_levers[i], &cpu, &error);
        cr_assert_eq(status, detected[i] == HSTEP_LEVER_ACTIVE ? HSTEP_OK : HSTEP_ERROR_BACKEND_UNAVAILABLE);
        if (status != HSTEP_OK)
            continue;
        cr_assert_eq(hs_cpu_create_with_lever(1, "cpu.portable", &plain, &error), HSTEP_OK);
        cr_assert_eq(lever_of(cpu, avx_levers[i])->state, HSTEP_LEVER_ACTIVE);
        cr_assert_eq(lever_of(cpu, avx_levers[1 - i])->state,
                     detected[1 - i] == HSTEP_LEVER_ACTIVE ? HSTEP_LEVER_DISABLED : detected[1 - i]);
        cr_assert_eq(lever_of(plain, avx_levers[i])->state, HSTEP_LEVER_DISABLED);
        cr_assert_eq(lever_of(plain, "cpu.portable")->state, HSTEP_LEVER_ACTIVE);
        plain->api->destroy(plain);
        cpu->api->destroy(cpu);
    }
    cr_assert_eq(hs_cpu_create_with_lever(1, "cpu.none", &cpu, &error), HSTEP_ERROR_ARGUMENT);
    cr_assert_not_null(strstr(error.message, "cpu.none"));
}

Test(backend, serves_every_operation) {
    for (int op = 0; op < HS_OP_COUNT; op++)
        for (int precision = 0; precision <= HSTEP_PRECISION_BF16; precision++) {
            const hs_call call = {.operation = (hs_operation)op, .precision = (hstep_precision)precision};
            cr_assert(backend->api->supports(backend, &call), "%s", hs_operation_name(call.operation));
        }
    cr_assert_not(backend->api->supports(backend, &(hs_call){.operation = HS_OP_COUNT}));
}

/* A product's operands may stand in 16 bits of its own format, where the lever for that is in use. */
Test(backend, takes_compact_operands_of_the_right_format) {
    hs_backend *exact = NULL, *reference = NULL;
    cr_assert_eq(hs_cpu_create(1, &exact, NULL), HSTEP_OK);
    cr_assert_eq(hs_cpu_reference_create(&reference, NULL), HSTEP_OK);
    hs_call call = {.operation = HS_OP_MATMUL,
                    .precision = HSTEP_PRECISION_BF16,
                    .input_count = 2,
                    .output_count = 1,
                    .inputs = {{.dtype = HSTEP_DTYPE_BF16}}};
    cr_assert(exact->api->supports(exact, &call));
    cr_assert_not(reference->api->supports(reference, &call));
    call.precision = HSTEP_PRECISION_FP16;
    cr_assert_not(exact->api->supports(exact, &call));
    call.inputs[0].dtype = HSTEP_DTYPE_FP16;
    call.outputs[0].dtype = HSTEP_DTYPE_FP16;
    cr_assert(exact->api->supports(exact, &call));
    call.attributes.sums = true;
    cr_assert_not(exact->api->supports(exact, &call));
    call = (hs_call){.operation = HS_OP_LOG, .input_count = 1, .inputs = {{.dtype = HSTEP_DTYPE_BF16}}};
    cr_assert_not(exact->api->supports(exact, &call));
    call.operation = HS_OP_SCALE;
    cr_assert(exact->api->supports(exact, &call));
    const hstep_lever *levers;
    (void)exact->api->levers(exact, &levers);
    exact->api->lever_set(exact, (size_t)(lever_of(exact, "cpu.compact") - levers), HSTEP_LEVER_DISABLED, "left out");
    cr_assert_not(exact->api->supports(exact, &call));
    exact->api->destroy(exact);
    reference->api->destroy(reference);
}

Test(backend, takes_the_threads_it_may_run_on) {
    cpu_set_t set;
    cr_assert_eq(sched_getaffinity(0, sizeof set, &set), 0);
    hs_backend *cpu;
    cr_assert_eq(hs_cpu_create(0, &cpu, NULL), HSTEP_OK);
    cr_assert_eq(cpu->api->threads(cpu), (unsigned)CPU_COUNT(&set));
    cr_assert_str_eq(cpu->api->name, "cpu");
    cr_assert_null(cpu->api->locate);
    cpu->api->destroy(cpu);
    cr_assert_eq(hs_cpu_create(3, &cpu, NULL), HSTEP_OK);
    cr_assert_eq(cpu->api->threads(cpu), 3);
    cpu->api->destroy(cpu);
}

Test(backend, buffers_keep_what_is_written) {
    hs_buffer *buffer;
    unsigned char bytes[100], back[100];
    for (int i = 0; i < 100; i++)
        bytes[i] = (unsigned char)(i + 1);
    cr_assert_eq(backend->api->buffer_create(backend, 100, &buffer, NULL), HSTEP_OK);
    cr_assert_eq(backend->api->read(backend, buffer, 0, back, 100, NULL), HSTEP_OK);
    for (int i = 0; i < 100; i++)
        cr_assert_eq(back[i], 0, "fresh memory is zero");
    cr_assert_eq(backend->api->write(backend, buffer, 0, bytes, 100, NULL), HSTEP_OK);
    cr_assert_eq(backend->api->clear(backend, buffer, 10, 5, NULL), HSTEP_OK);
    cr_assert_eq(backend->api->write(backend, buffer, 98, bytes, 2, NULL), HSTEP_OK);
    cr_assert_eq(backend->api->read(backend, buffer, 0, back, 100, NULL), HSTEP_OK);
    memset(bytes + 10, 0, 5);
    bytes[98] = 1;
    bytes[99] = 2;
    cr_assert_arr_eq(back, bytes, 100);
    cr_assert_eq(backend->api->read(backend, buffer, 97, back, 3, NULL), HSTEP_OK);
    cr_assert_arr_eq(back, bytes + 97, 3);
    backend->api->buffer_destroy(backend, buffer);
}

Test(backend, buffers_refuse_what_lies_outside) {
    hs_buffer *buffer;
    unsigned char bytes[8] = {0};
    hstep_error error = {0};
    cr_assert_eq(backend->api->buffer_create(backend, 8, &buffer, NULL), HSTEP_OK);
    const size_t bad[][2] = {{0, 9}, {8, 1}, {9, 0}, {1, 8}, {4, SIZE_MAX}, {SIZE_MAX, 4}, {SIZE_MAX, SIZE_MAX}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_assert_eq(backend->api->write(backend, buffer, bad[i][0], bytes, bad[i][1], &error), HSTEP_ERROR_ARGUMENT);
        cr_assert_eq(backend->api->read(backend, buffer, bad[i][0], bytes, bad[i][1], &error), HSTEP_ERROR_ARGUMENT);
        cr_assert_eq(backend->api->clear(backend, buffer, bad[i][0], bad[i][1], &error), HSTEP_ERROR_ARGUMENT);
    }
    cr_assert_eq(error.status, HSTEP_ERROR_ARGUMENT);
    cr_assert_eq(backend->api->write(backend, buffer, 8, NULL, 0, NULL), HSTEP_OK);
    backend->api->buffer_destroy(backend, buffer);
    cr_assert_eq(backend->api->buffer_create(backend, SIZE_MAX, &buffer, &error), HSTEP_ERROR_MEMORY);
    cr_assert_eq(backend->api->buffer_create(backend, SIZE_MAX / 2, &buffer, &error), HSTEP_ERROR_MEMORY);
}

Test(backend, buffers_may_be_empty_and_are_aligned) {
    hs_buffer *buffer;
    for (size_t bytes = 0; bytes < 200; bytes += 33) {
        cr_assert_eq(backend->api->buffer_create(backend, bytes, &buffer, NULL), HSTEP_OK);
        cr_assert_not_null(buffer->data);
        cr_assert_eq((uintptr_t)buffer->data % 64, 0);
        backend->api->buffer_destroy(backend, buffer);
    }
    backend->api->buffer_destroy(backend, NULL);
}

static hs_view vector(hs_buffer *buffer, size_t first, size_t count) {
    return (hs_view){buffer, first * sizeof(double), HSTEP_DTYPE_F64, 1, {count}, {1}};
}

/* y = x, y2 = y + y, y3 = y2 * y2: calls see what earlier calls wrote. */
Test(backend, programs_run_in_order_and_in_parts) {
    hs_buffer *buffer;
    cr_assert_eq(backend->api->buffer_create(backend, 4 * sizeof(double), &buffer, NULL), HSTEP_OK);
    hs_call calls[3] = {{.operation = HS_OP_SCALE, .attributes.factor = 3.0, .input_count = 1, .output_count = 1},
                        {.operation = HS_OP_ADD, .input_count = 2, .output_count = 1},
                        {.operation = HS_OP_MULTIPLY, .input_count = 2, .output_count = 1}};
    for (size_t i = 0; i < 3; i++) {
        calls[i].inputs[0] = calls[i].inputs[1] = vector(buffer, i, 1);
        calls[i].outputs[0] = vector(buffer, i + 1, 1);
    }
    hs_program *program;
    cr_assert_eq(backend->api->program_create(backend, calls, 3, &program, NULL), HSTEP_OK);
    memset(calls, 0xff, sizeof calls); /* they were copied */
    double x[4] = {2.0, 0.0, 0.0, 0.0};
    cr_assert_eq(backend->api->write(backend, buffer, 0, x, sizeof x, NULL), HSTEP_OK);
    cr_assert_eq(backend->api->program_run(backend, program, 0, 2, NULL), HSTEP_OK);
    cr_assert_eq(backend->api->read(backend, buffer, 0, x, sizeof x, NULL), HSTEP_OK);
    cr_assert(x[1] == 6.0 && x[2] == 12.0 && x[3] == 0.0);
    cr_assert_eq(backend->api->program_run(backend, program, 2, 1, NULL), HSTEP_OK);
    cr_assert_eq(backend->api->read(backend, buffer, 0, x, sizeof x, NULL), HSTEP_OK);
    cr_assert(x[3] == 144.0);
    cr_assert_eq(backend->api->program_run(backend, program, 3, 0, NULL), HSTEP_OK);
    cr_assert_eq(backend->api->program_run(backend, program, 2, 2, NULL), HSTEP_ERROR_ARGUMENT);
    cr_assert_eq(backend->api->program_run(backend, program, 1, SIZE_MAX, NULL), HSTEP_ERROR_ARGUMENT);
    backend->api->program_destroy(backend, program);
    backend->api->program_destroy(backend, NULL);
    cr_assert_eq(backend->api->program_create(backend, NULL, 0, &program, NULL), HSTEP_OK);
    cr_assert_eq(backend->api->program_finish(backend, program, NULL, NULL), HSTEP_OK);
    backend->api->program_destroy(backend, program);
    backend->api->buffer_destroy(backend, buffer);
}

/* The flag stays until finish, while locate speaks of the last run. */
Test(backend, flags_are_kept_until_finish) {
    hs_buffer *buffer;
    cr_assert_eq(backend->api->buffer_create(backend, 4 * sizeof(double), &buffer, NULL), HSTEP_OK);
    const hs_call call = {.operation = HS_OP_SCALE,
                          .attributes.factor = 1.0,
                          .input_count = 1,
                          .output_count = 1,
                          .inputs[0] = vector(buffer, 0, 2),
                          .outputs[0] = vector(buffer, 2, 2)};
    const hs_call calls[2] = {call, call};
    hs_program *program;
    uint32_t flags[2];
    cr_assert_eq(backend->api->program_create(backend, calls, 2, &program, NULL), HSTEP_OK);
    const double bad[2] = {1.0, -INFINITY}, good[2] = {1.0, 2.0};
    cr_assert_eq(backend->api->write(backend, buffer, 0, bad, sizeof bad, NULL), HSTEP_OK);
    cr_assert_eq(backend->api->program_run(backend, program, 1, 1, NULL), HSTEP_OK);
    const hs_fault fault = backend->api->locate(backend, program, 1);
    cr_assert(fault.found && fault.output == 0 && fault.part == NULL && fault.index == 1 && fault.value == -INFINITY);
    cr_assert_eq(backend->api->write(backend, buffer, 0, good, sizeof good, NULL), HSTEP_OK);
    cr_assert_eq(backend->api->program_run(backend, program, 0, 2, NULL), HSTEP_OK);
    cr_assert_not(backend->api->locate(backend, program, 1).found);
    cr_assert_eq(backend->api->program_finish(backend, program, flags, NULL), HSTEP_OK);
    cr_assert(flags[0] == 0 && flags[1] == 1);
    cr_assert_eq(backend->api->program_finish(backend, program, flags, NULL), HSTEP_OK);
    cr_assert(flags[0] == 0 && flags[1] == 0);
    backend->api->program_destroy(backend, program);
    backend->api->buffer_destroy(backend, buffer);
}
