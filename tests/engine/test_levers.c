/* Choosing levers: selections, verdicts on kernels that are wrong on purpose, and verdicts that are kept. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cpu/cpu.h"
#include "engine/levers/levers.h"
#include "support/planted.h"
#include "support/program.h"

/* Everything happens in an empty folder that is also the user's cache directory. */
static void enter(void) {
    char folder[256];
    hs_test_enter_folder();
    cr_assert_not_null(getcwd(folder, sizeof folder));
    cr_assert_eq(setenv("XDG_CACHE_HOME", folder, 1), 0);
}

TestSuite(levers, .init = enter, .fini = hs_test_leave_folder, .timeout = 120);

/* So that no large vocabulary is tried. */
static const hstep_product_depth both[] = {{HSTEP_PRECISION_BF16, 48}, {HSTEP_PRECISION_F64, 48}};

typedef struct chosen {
    hs_backend *backend;
    hs_lever_table table;
    const hstep_lever *lever; /* the planted one */
    hstep_status status;
    hstep_error error;
} chosen;

static chosen *choose_with(hs_planted planted, unsigned threads, const hs_lever_request *request) {
    chosen *c = calloc(1, sizeof *c);
    cr_assert_not_null(c);
    cr_assert_eq(hs_cpu_create_tier(hs_planted_tier(planted), threads, &c->backend, &c->error), HSTEP_OK);
    c->status = hs_levers_choose(c->backend, request, &c->table, &c->error);
    for (size_t i = 0; i < c->table.count; i++)
        if (strcmp(c->table.levers[i].name, hs_planted_name(planted)) == 0)
            c->lever = &c->table.levers[i];
    return c;
}

static chosen *choose(hs_planted planted, const char *selection) {
    return choose_with(planted, 1, &(hs_lever_request){.selection = selection, .products = both, .product_count = 2});
}

static void release(chosen *c) {
    hs_lever_table_free(&c->table);
    c->backend->api->destroy(c->backend);
    free(c);
}

static const hstep_lever *find(const chosen *c, const char *name) {
    for (size_t i = 0; i < c->table.count; i++)
        if (strcmp(c->table.levers[i].name, name) == 0)
            return &c->table.levers[i];
    cr_assert_fail("no lever %s", name);
    return NULL;
}

/* ---- The gate ---- */

/* What the gate must find first, at which orientation: NULL for any. */
static const struct {
    const char *inputs, *form;
} faults[HS_PLANTED_FAULTS] = {
    [HS_PLANTED_LOST_BIT] = {"uniform", NULL},        [HS_PLANTED_BF16_SUMS] = {"uniform", NULL},
    [HS_PLANTED_TRUNCATED] = {"uniform", NULL},       [HS_PLANTED_FLUSHED] = {"subnormal", NULL},
    [HS_PLANTED_LAST_STEP] = {"uniform", NULL},       [HS_PLANTED_F32_SUMS] = {"uniform", NULL},
    [HS_PLANTED_SKIPPED_ZEROS] = {"nonfinite", NULL}, [HS_PLANTED_SILENT] = {"nonfinite", NULL},
    [HS_PLANTED_NEIGHBOUR] = {"uniform", "A Bt"},     [HS_PLANTED_UNWRITTEN] = {"uniform", NULL},
};

static void expect_rejection(hs_planted planted) {
    chosen *c = choose(planted, "auto");
    const hstep_lever *lever = c->lever;
    cr_assert_eq(c->status, HSTEP_OK, "a rejected lever is never fatal: %s", c->error.message);
    cr_assert_eq(lever->state, HSTEP_LEVER_REJECTED, "%s: %s", lever->name, lever->reason);
    cr_assert_not_null(lever->gate);
    const hstep_gate_case *worst = &lever->gate->worst;
    cr_assert_not(worst->passed);
    cr_assert_str_eq(worst->failed_inputs, faults[planted].inputs, "%s", lever->reason);
    cr_expect(worst->max_abs >= worst->max_abs_limit || worst->mean_rel >= worst->mean_rel_limit ||
                  worst->cells_beyond > 0 || worst->cells_wrong > 0,
              "%s: no figure is out of bounds", lever->name);
    cr_expect_not_null(strstr(lever->reason, faults[planted].inputs), "%s", lever->reason);
    cr_expect_eq(lever->gate->timing_count, 0, "what is wrong is not timed");
    for (size_t i = 0; i < lever->gate->case_count && faults[planted].form; i++)
        cr_expect(lever->gate->cases[i].passed || lever->gate->cases[i].b_form == HSTEP_TRANSPOSE);
    release(c);
}

Test(levers, wrong_kernels_are_rejected_with_their_figures) {
    for (int planted = 0; planted < HS_PLANTED_FAULTS; planted++)
        expect_rejection((hs_planted)planted);
}

/* Each fault shows in the figures that it should show in. */
Test(levers, figures_tell_faults_apart) {
    chosen *c = choose(HS_PLANTED_SKIPPED_ZEROS, "auto");
    const hstep_gate_case *worst = &c->lever->gate->worst;
    cr_expect_gt(worst->cells_wrong, 0);
    cr_expect_eq(worst->cells_beyond, 0);
    cr_expect_lt(worst->max_abs, worst->max_abs_limit);
    release(c);
    c = choose(HS_PLANTED_F32_SUMS, "auto");
    worst = &c->lever->gate->worst;
    cr_expect_gt(worst->cells_beyond, worst->cells / 2);
    cr_expect_lt(worst->max_abs, worst->max_abs_limit, "f32 sums are within 1%% all the same");
    release(c);
    c = choose(HS_PLANTED_LAST_STEP, "auto");
    worst = &c->lever->gate->worst;
    cr_expect_geq(worst->max_abs, worst->max_abs_limit);
    release(c);
}

Test(levers, a_right_and_slow_kernel_is_slower) {
    chosen *c = choose(HS_PLANTED_REVERSED, "auto");
    cr_assert_eq(c->lever->state, HSTEP_LEVER_SLOWER, "%s", c->lever->reason);
    const hstep_lever_gate *gate = c->lever->gate;
    cr_expect(gate->worst.passed);
    cr_expect_gt(gate->speed, 0);
    cr_expect_lt(gate->speed, 1);
    cr_expect_eq(gate->precision, HSTEP_PRECISION_BF16);
    cr_expect_gt(gate->worst.max_rel, 0, "another order of sums has other bits");
    cr_expect_gt(gate->timing_count, 2);
    /* Every orientation, at the depths that are judged always and at the one to come. */
    static const size_t depths[] = {48, 128, 256, 1024};
    for (size_t i = 0; i < 4; i++) {
        size_t orientations = 0;
        for (size_t j = 0; j < gate->case_count; j++)
            orientations += gate->cases[j].k == depths[i] && gate->cases[j].m == 64 && gate->cases[j].n == 128;
        cr_expect_eq(orientations, 3, "k = %zu", depths[i]);
    }
    release(c);
}

Test(levers, sums_before_the_rounding_are_for_gated_kernels) {
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

/* ---- Selections ---- */

static void expect_refusal(hs_planted planted, const char *selection, hstep_status status, const char *word) {
    chosen *c = choose(planted, selection);
    cr_expect_eq(c->status, status, "%s: %s", selection, c->error.message);
    cr_expect_not_null(strstr(c->error.message, word), "%s: no '%s' in: %s", selection, word, c->error.message);
    cr_expect_eq(c->table.count, 0);
    release(c);
}

Test(levers, selections_that_make_no_sense_are_refused) {
    static const char *const wrong[] = {"",           "fast",   "+", "cpu.portable", "+cpu.none",
                                        "auto,exact", "exact,", ",", "+cpu.portabl", "+cpu.portable2"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        expect_refusal(HS_PLANTED_REVERSED, wrong[i], HSTEP_ERROR_ARGUMENT, "cpu.avx512, cpu.avx2, cpu.portable");
    expect_refusal(HS_PLANTED_REVERSED, "-cpu.portable", HSTEP_ERROR_ARGUMENT, "cannot be left out");
    expect_refusal(HS_PLANTED_REVERSED, "+planted.reversed,-planted.reversed", HSTEP_ERROR_ARGUMENT, "named twice");
    cr_expect_eq(hs_planted_looks(), 0, "a selection is read before anything is looked for");
}

Test(levers, a_required_lever_that_cannot_be_had_is_an_error) {
    expect_refusal(HS_PLANTED_ABSENT, "+planted.absent", HSTEP_ERROR_BACKEND_UNAVAILABLE, "made to be absent");
    expect_refusal(HS_PLANTED_LAST_STEP, "+planted.last-step", HSTEP_ERROR_BACKEND_UNAVAILABLE, "rejected");
}

Test(levers, a_required_lever_runs_though_it_is_slower) {
    chosen *c = choose(HS_PLANTED_REVERSED, "+planted.reversed");
    cr_assert_eq(c->status, HSTEP_OK, "%s", c->error.message);
    cr_expect_eq(c->lever->state, HSTEP_LEVER_ACTIVE);
    cr_expect_not_null(strstr(c->lever->reason, "required"), "%s", c->lever->reason);
    cr_expect_not(hstep_levers_exact(c->table.levers, c->table.count, HSTEP_PRECISION_BF16));
    cr_expect(hstep_levers_exact(c->table.levers, c->table.count, HSTEP_PRECISION_F64));
    release(c);
}

Test(levers, exact_looks_for_nothing_and_writes_nothing) {
    static const char *const selections[] = {NULL, "exact", "none", "-planted.reversed"};
    for (size_t i = 0; i < 4; i++) {
        chosen *c = choose(HS_PLANTED_REVERSED, selections[i]);
        cr_assert_eq(c->status, HSTEP_OK, "%s", c->error.message);
        cr_expect_eq(c->lever->state, HSTEP_LEVER_DISABLED);
        cr_expect_null(c->lever->gate);
        release(c);
    }
    chosen *c = choose(HS_PLANTED_REVERSED, "none");
    cr_expect_eq(find(c, "cpu.portable")->state, HSTEP_LEVER_ACTIVE);
    release(c);
    cr_expect_eq(hs_planted_looks(), 0);
    cr_expect_neq(access("halfstep", F_OK), 0);
}

Test(levers, a_lever_for_another_precision_is_left_alone) {
    const hs_lever_request request = {.selection = "auto", .products = both + 1, .product_count = 1}; /* f64 */
    chosen *c = choose_with(HS_PLANTED_REVERSED, 1, &request);
    cr_expect_eq(c->lever->state, HSTEP_LEVER_DISABLED);
    cr_expect_not_null(strstr(c->lever->reason, "bf16-fp32"), "%s", c->lever->reason);
    release(c);
}

Test(levers, without_avx512_avx2_works) {
    chosen *c = choose(HS_PLANTED_ABSENT, "-cpu.avx512");
    cr_assert_eq(c->status, HSTEP_OK);
    cr_expect_neq(find(c, "cpu.avx512")->state, HSTEP_LEVER_ACTIVE);
    cr_expect_eq(c->lever->state, HSTEP_LEVER_ABSENT);
    cr_expect(find(c, "cpu.avx2")->state == HSTEP_LEVER_ACTIVE || find(c, "cpu.avx2")->state == HSTEP_LEVER_ABSENT ||
              find(c, "cpu.avx2")->state == HSTEP_LEVER_NOT_BUILT);
    release(c);
}

/* ---- Verdicts that are kept ---- */

/* A wrong lever is not timed, so that its verdict is quick. */
static bool from_cache(unsigned threads, const hs_lever_request *request) {
    chosen *c = choose_with(HS_PLANTED_NEIGHBOUR, threads, request);
    cr_assert_eq(c->status, HSTEP_OK, "%s", c->error.message);
    cr_assert_eq(c->lever->state, HSTEP_LEVER_REJECTED, "%s", c->lever->reason);
    cr_assert_gt(c->lever->gate->case_count, 20);
    const bool cached = c->lever->gate->from_cache != 0;
    release(c);
    return cached;
}

Test(levers, a_verdict_is_kept_for_the_same_key_alone) {
    const hstep_product_depth other[] = {{HSTEP_PRECISION_F64, 33}, {HSTEP_PRECISION_F64, 48}};
    const hs_lever_request usual = {.selection = "auto", .products = both, .product_count = 2},
                           deeper = {.selection = "auto", .products = other, .product_count = 2},
                           anew = {.selection = "auto", .products = both, .product_count = 2, .judge_anew = true},
                           narrower = {.selection = "-cpu.avx512", .products = both, .product_count = 2};
    cr_expect_not(from_cache(1, &usual));
    cr_expect(from_cache(1, &usual));
    cr_expect_not(from_cache(2, &usual), "other threads, other times");
    cr_expect(from_cache(2, &usual), "one key does not push out another");
    cr_expect(from_cache(1, &usual));
    cr_expect_not(from_cache(1, &anew));
    cr_expect_not(from_cache(1, &deeper), "a depth that was not judged");
    cr_expect(from_cache(1, &deeper));
    cr_expect(from_cache(1, &usual), "and the depths before it still count");
    chosen *c = choose(HS_PLANTED_ABSENT, "auto");
    const bool has_avx512 = find(c, "cpu.avx512")->state == HSTEP_LEVER_ACTIVE;
    release(c);
    cr_expect_eq(from_cache(1, &narrower), !has_avx512, "timed against other exact levers");
}

Test(levers, a_rejection_is_kept_with_its_figures) {
    chosen *first = choose(HS_PLANTED_NEIGHBOUR, "auto"), *second = choose(HS_PLANTED_NEIGHBOUR, "auto");
    cr_assert(!first->lever->gate->from_cache && second->lever->gate->from_cache);
    cr_expect_eq(second->lever->state, HSTEP_LEVER_REJECTED);
    cr_expect_str_eq(first->lever->reason, second->lever->reason);
    cr_expect_eq(first->lever->gate->case_count, second->lever->gate->case_count);
    cr_expect_eq(memcmp(&first->lever->gate->worst, &second->lever->gate->worst, sizeof(hstep_gate_case)), 0);
    release(first);
    release(second);
}

Test(levers, nowhere_to_keep_a_verdict_is_no_failure) {
    const hs_lever_request usual = {.selection = "auto", .products = both, .product_count = 2};
    cr_assert_eq(setenv("XDG_CACHE_HOME", "/proc/nowhere", 1), 0);
    cr_expect_not(from_cache(1, &usual));
}
