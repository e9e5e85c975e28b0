/* The gate: verdicts on kernels that are wrong on purpose, and on some that are right. */
#include <criterion/criterion.h>
#include <string.h>

#include "cpu/cpu.h"
#include "support/choosing.h"
#include "support/program.h"

TestSuite(lever_gate, .init = hs_test_enter_cache, .fini = hs_test_leave_folder, .timeout = 300);

/* What the gate must find first, at which orientation and in which storage, NULL for any, and the depth that it shows
 * at, 0 for any. */
static const struct {
    const char *inputs, *form, *storage;
    size_t k;
} faults[HS_PLANTED_FAULTS] = {
    [HS_PLANTED_PITCH_BLIND] = {"uniform", NULL, "pitched f64", 0},
    [HS_PLANTED_SPILLED] = {"uniform", NULL, "pitched f64", 0},
    [HS_PLANTED_COMPACT_BLIND] = {"uniform", NULL, "16-bit", 0},
    [HS_PLANTED_NARROWED] = {"nonfinite", NULL, NULL, 0},
    [HS_PLANTED_DEEP_FLUSHED] = {"subnormal", NULL, NULL, 2049},
    [HS_PLANTED_DEEP_LAST_STEP] = {"uniform", NULL, NULL, 65537},
    [HS_PLANTED_LOST_BIT] = {"uniform", NULL, NULL, 0},
    [HS_PLANTED_BF16_SUMS] = {"uniform", NULL, NULL, 0},
    [HS_PLANTED_FP16_SUMS] = {"uniform", NULL, NULL, 0},
    [HS_PLANTED_TRUNCATED] = {"uniform", NULL, NULL, 0},
    [HS_PLANTED_FLUSHED] = {"subnormal", NULL, NULL, 0},
    [HS_PLANTED_LAST_STEP] = {"uniform", NULL, NULL, 0},
    [HS_PLANTED_ODD_LAST_STEP] = {"uniform", NULL, NULL, 0},
    [HS_PLANTED_F32_SUMS] = {"uniform", NULL, NULL, 0},
    [HS_PLANTED_SKIPPED_ZEROS] = {"nonfinite", NULL, NULL, 0},
    [HS_PLANTED_SILENT] = {"nonfinite", NULL, NULL, 0},
    [HS_PLANTED_NEIGHBOUR] = {"uniform", "A Bt", NULL, 0},
    [HS_PLANTED_UNWRITTEN] = {"uniform", NULL, NULL, 0},
};

static void expect_rejection(hs_planted planted) {
    const size_t k = faults[planted].k > 0 ? faults[planted].k : 48;
    const hstep_product_depth depths[] = {
        {HSTEP_PRECISION_BF16, k}, {HSTEP_PRECISION_FP16, k}, {HSTEP_PRECISION_F64, k}};
    const hs_lever_request request = {.selection = "auto", .products = depths, .product_count = 3};
    hs_test_chosen *c = hs_test_choose_with(planted, 1, &request);
    const hstep_lever *lever = c->lever;
    cr_assert_eq(c->status, HSTEP_OK, "a rejected lever is never fatal: %s", c->error.message);
    cr_assert_eq(lever->state, HSTEP_LEVER_REJECTED, "%s: %s", lever->name, lever->reason);
    cr_assert_not_null(lever->gate);
    const hstep_gate_case *worst = &lever->gate->worst;
    cr_assert_not(worst->passed);
    cr_assert_str_eq(worst->failed_inputs, faults[planted].inputs, "%s", lever->reason);
    if (faults[planted].storage != NULL)
        cr_expect_str_eq(worst->failed_storage, faults[planted].storage, "%s", lever->reason);
    if (faults[planted].k > 0)
        cr_expect_eq(worst->k, k, "%s: %zu", lever->reason, worst->k);
    cr_expect(worst->max_abs >= worst->max_abs_limit || worst->mean_rel >= worst->mean_rel_limit ||
                  worst->cells_beyond > 0 || worst->cells_wrong > 0,
              "%s: no figure is out of bounds", lever->name);
    cr_expect_not_null(strstr(lever->reason, faults[planted].inputs), "%s", lever->reason);
    cr_expect_eq(lever->gate->timing_count, 0, "what is wrong is not timed");
    for (size_t i = 0; i < lever->gate->case_count && faults[planted].form; i++)
        cr_expect(lever->gate->cases[i].passed || lever->gate->cases[i].b_form == HSTEP_TRANSPOSE);
    hs_test_release(c);
}

Test(lever_gate, wrong_kernels_are_rejected_with_their_figures) {
    for (int planted = 0; planted < HS_PLANTED_FAULTS; planted++)
        expect_rejection((hs_planted)planted);
}

/* Each fault shows in the figures that it should show in. */
Test(lever_gate, figures_tell_faults_apart) {
    hs_test_chosen *c = hs_test_choose(HS_PLANTED_SKIPPED_ZEROS, "auto");
    const hstep_gate_case *worst = &c->lever->gate->worst;
    cr_expect_gt(worst->cells_wrong, 0);
    cr_expect_eq(worst->cells_beyond, 0);
    cr_expect_lt(worst->max_abs, worst->max_abs_limit);
    hs_test_release(c);
    c = hs_test_choose(HS_PLANTED_F32_SUMS, "auto");
    worst = &c->lever->gate->worst;
    cr_expect_gt(worst->cells_beyond, worst->cells / 2);
    cr_expect_lt(worst->max_abs, worst->max_abs_limit, "f32 sums are within 1%% all the same");
    hs_test_release(c);
    c = hs_test_choose(HS_PLANTED_LAST_STEP, "auto");
    worst = &c->lever->gate->worst;
    cr_expect_geq(worst->max_abs, worst->max_abs_limit);
    hs_test_release(c);
}

Test(lever_gate, a_right_and_slow_kernel_is_slower) {
    hs_test_chosen *c = hs_test_choose(HS_PLANTED_REVERSED, "auto");
    cr_assert_eq(c->lever->state, HSTEP_LEVER_SLOWER, "%s", c->lever->reason);
    const hstep_lever_gate *gate = c->lever->gate;
    cr_expect(gate->worst.passed);
    cr_expect_gt(gate->speed, 0);
    cr_expect_lt(gate->speed, 1);
    cr_expect_eq(gate->precision, HSTEP_PRECISION_BF16);
    cr_expect_gt(gate->worst.max_rel, 0, "another order of sums has other bits");
    cr_expect_gt(gate->timing_count, 2);
    cr_expect_not(gate->flushes_subnormals);
    cr_expect_null(strstr(c->lever->reason, "subnormal"), "%s", c->lever->reason);
    /* Every orientation, at the depths that are judged always and at the one to come. */
    static const size_t depths[] = {48, 128, 256, 1024};
    for (size_t i = 0; i < 4; i++) {
        size_t orientations = 0;
        for (size_t j = 0; j < gate->case_count; j++)
            orientations += gate->cases[j].k == depths[i] && gate->cases[j].m == 64 && gate->cases[j].n == 128;
        cr_expect_eq(orientations, 3, "k = %zu", depths[i]);
    }
    hs_test_release(c);
}

/* The reference is flushed where the lever says that it flushes, in every set, and it is said wherever it counts. */
Test(lever_gate, a_lever_may_declare_that_it_flushes_subnormals) {
    hs_test_chosen *c = hs_test_choose(HS_PLANTED_DECLARED, "+planted.declared");
    cr_assert_eq(c->status, HSTEP_OK, "%s", c->error.message);
    cr_expect_eq(c->lever->state, HSTEP_LEVER_ACTIVE, "%s", c->lever->reason);
    cr_expect(c->lever->gate->flushes_subnormals);
    cr_expect_not_null(strstr(c->lever->reason, "subnormal operands count as zero"), "%s", c->lever->reason);
    hs_test_release(c);
    c = hs_test_choose(HS_PLANTED_DECLARED, "auto");
    cr_expect(c->lever->gate->from_cache && c->lever->gate->flushes_subnormals);
    hs_test_release(c);
}

/* What no gate judged is not dispatched. */
Test(lever_gate, products_of_two_turned_operands_stay_with_exact_kernels) {
    enum { N = 3 };
    static const double values[N * N] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    hs_test_chosen *c = hs_test_choose(HS_PLANTED_TURNED, "+planted.turned");
    cr_assert_eq(c->status, HSTEP_OK, "%s", c->error.message);
    const hs_backend_api *api = c->backend->api;
    hs_buffer *buffer;
    cr_assert_eq(api->buffer_create(c->backend, 2 * sizeof values, &buffer, NULL), HSTEP_OK);
    cr_assert_eq(api->write(c->backend, buffer, 0, values, sizeof values, NULL), HSTEP_OK);
    const hs_view view = {.buffer = buffer, .dtype = HSTEP_DTYPE_F64, .rank = 2, .dims = {N, N}, .strides = {N, 1}};
    hs_call call = {.operation = HS_OP_MATMUL, .input_count = 2, .output_count = 1};
    call.attributes.a_form = call.attributes.b_form = HSTEP_TRANSPOSE;
    call.inputs[0] = call.inputs[1] = call.outputs[0] = view;
    call.outputs[0].offset = sizeof values;
    hs_program *program;
    cr_assert_eq(api->program_create(c->backend, &call, 1, &program, NULL), HSTEP_OK);
    cr_assert_eq(hs_run_and_wait(c->backend, program, 0, 1, NULL, NULL), HSTEP_OK);
    double first = 0;
    cr_assert_eq(api->read(c->backend, buffer, sizeof values, &first, sizeof first, NULL), HSTEP_OK);
    cr_expect_eq(first, 1 * 1 + 4 * 2 + 7 * 3);
    api->program_destroy(c->backend, program);
    api->buffer_destroy(c->backend, buffer);
    hs_test_release(c);
}

Test(lever_gate, sums_before_the_rounding_are_for_gated_kernels) {
    hs_backend *cpu;
    cr_assert_eq(hs_cpu_create(1, &cpu, NULL), HSTEP_OK);
    hs_buffer *buffer;
    cr_assert_eq(cpu->api->buffer_create(cpu, 64, &buffer, NULL), HSTEP_OK);
    const hs_view view = {.buffer = buffer, .dtype = HSTEP_DTYPE_F64, .rank = 2, .dims = {1, 1}, .strides = {1, 1}};
    hs_call call = {.operation = HS_OP_MATMUL, .attributes = {.sums = true}, .input_count = 2, .output_count = 1};
    call.inputs[0] = call.inputs[1] = call.outputs[0] = view;
    call.inputs[1].offset = 16;
    call.outputs[0].offset = 32;
    hs_program *program;
    call.precision = HSTEP_PRECISION_BF16;
    cr_assert_eq(cpu->api->program_create(cpu, &call, 1, &program, NULL), HSTEP_ERROR_UNSUPPORTED);
    call.precision = HSTEP_PRECISION_F64;
    cr_assert_eq(cpu->api->program_create(cpu, &call, 1, &program, NULL), HSTEP_OK);
    cpu->api->program_destroy(cpu, program);
    cpu->api->buffer_destroy(cpu, buffer);
    cpu->api->destroy(cpu);
}
