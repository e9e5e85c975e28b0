/* Checkpoints: the same bits after a break, refusals that change nothing, weights alone. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/checkpoint/checkpoint.h"
#include "support/folder.h"
#include "support/models.h"

static const hs_test_setup small = {.vocabulary = 12, .width = 8, .feed_forward = 6, .precision = HSTEP_PRECISION_BF16};

static void train(const hs_test_run *run, uint64_t first, uint64_t last) {
    hstep_error e = {0};
    for (uint64_t step = first; step <= last; step++) {
        hs_test_batch batch = hs_test_batch_create(2, 5, 12, true, step);
        hstep_update update;
        hs_test_expect_ok(hstep_trainer_update(run->trainer, &batch.batch, 1, &update, &e), &e);
        hs_test_batch_destroy(&batch);
    }
}

static void save(const hs_test_run *run, const char *path) {
    hstep_error e = {0};
    hs_test_expect_ok(hstep_checkpoint_save(run->trainer, path, NULL, &e), &e);
}

static void load(const hs_test_run *run, const char *path) {
    hstep_error e = {0};
    hs_test_expect_ok(hstep_checkpoint_load(run->trainer, path, &e), &e);
}

/* ---- The same bits ---- */

/* One run of `last` steps, and one that is broken off after `first` and goes on in a trainer that did something else.
 */
static void expect_same_bits(const hs_test_setup *setup, uint64_t first, uint64_t last) {
    hs_test_run whole = hs_test_run_create(setup);
    train(&whole, 1, last);
    save(&whole, "whole");
    hs_test_run_destroy(&whole);

    hs_test_run before = hs_test_run_create(setup);
    train(&before, 1, first);
    save(&before, "middle");
    hs_test_run_destroy(&before);
    hs_test_setup other = *setup;
    other.seed = 7;
    hs_test_run after = hs_test_run_create(&other);
    train(&after, 1, 2); /* so that there is something to replace: moments, counts, casts of weights */
    load(&after, "middle");
    save(&after, "again");
    cr_expect(hs_test_same_file("middle", "again"), "loading and saving changes no byte");
    train(&after, first + 1, last);
    save(&after, "resumed");
    hs_test_run_destroy(&after);
    cr_expect(hs_test_same_file("whole", "resumed"), "after %d of %d steps", (int)first, (int)last);
}

Test(checkpoint, going_on_has_the_same_bits, .init = hs_test_enter_folder, .fini = hs_test_leave_folder) {
    for (int precision = HSTEP_PRECISION_F64; precision <= HSTEP_PRECISION_BF16; precision++) {
        hs_test_setup setup = small;
        setup.precision = (hstep_precision)precision;
        expect_same_bits(&setup, 1, 4);
        expect_same_bits(&setup, 3, 4);
    }
}

/* With a scale that overflows at first and grows afterwards, the break falls before, among and after the skips. */
Test(checkpoint, going_on_among_skips, .init = hs_test_enter_folder, .fini = hs_test_leave_folder) {
    hs_test_setup setup = small;
    setup.precision = HSTEP_PRECISION_FP16;
    setup.scaler = (hstep_scaler){16777216, 1, 16777216, 3};
    hs_test_run run = hs_test_run_create(&setup);
    train(&run, 1, 20);
    const uint64_t applied = hstep_trainer_optimizer_step(run.trainer);
    hs_test_run_destroy(&run);
    cr_assert(applied > 4 && applied < 18, "%d of 20 attempts", (int)applied);
    for (uint64_t first = 1; first < 20; first += 3)
        expect_same_bits(&setup, first, 20);
}

/* ---- Every bit of every number ---- */

/* Numbers that a decimal text, a float or a comparison with 0 would lose. */
static const double special[] = {-0.0, 5e-324, -2.2250738585072009e-308, 0x1.fffffffffffffp1023, INFINITY, -INFINITY,
                                 NAN,  0.1};

enum { SPECIAL = sizeof special / sizeof special[0] };

Test(checkpoint, stores_bits, .init = hs_test_enter_folder, .fini = hs_test_leave_folder) {
    hs_test_run run = hs_test_run_create(&small);
    hstep_error e = {0};
    const size_t gain = hstep_model_find_parameter(run.model, "final_norm.gain");
    train(&run, 1, 2);
    hs_test_expect_ok(hstep_model_write_parameter(run.model, gain, special, &e), &e);
    run.trainer->adamw.power1 = 5e-324;
    run.trainer->attempts = (UINT64_C(1) << 53) + 1; /* no f64 */
    save(&run, "file");
    hs_test_run other = hs_test_run_create(&small);
    load(&other, "file");
    double read[SPECIAL];
    hs_test_expect_ok(hstep_model_read_parameter(other.model, gain, read, &e), &e);
    cr_expect(memcmp(read, special, sizeof read) == 0);
    cr_expect_eq(other.trainer->adamw.power1, 5e-324);
    cr_expect_eq(hstep_trainer_attempts(other.trainer), (UINT64_C(1) << 53) + 1);
    cr_expect_eq(hstep_trainer_optimizer_step(other.trainer), 2);
    hs_test_run_destroy(&run);
    hs_test_run_destroy(&other);
}

/* A tensor of more than one piece, and one byte into the last piece. */
Test(checkpoint, large_tensors_go_in_pieces, .init = hs_test_enter_folder, .fini = hs_test_leave_folder) {
    const hs_test_setup large = {.vocabulary = 32769, .width = 8, .layers = 1};
    hs_test_run run = hs_test_run_create(&large), other = hs_test_run_create(&large);
    hstep_error e = {0};
    cr_assert_gt(32769u * 8 * sizeof(double), 2u * HS_CHUNK);
    save(&run, "file");
    hs_test_expect_ok(hstep_model_initialize(other.model, HSTEP_INIT_NORMAL, 5, &e), &e);
    load(&other, "file");
    uint64_t left = 0, right = 1;
    hs_test_expect_ok(hstep_model_checksum(run.model, &left, &e), &e);
    hs_test_expect_ok(hstep_model_checksum(other.model, &right, &e), &e);
    cr_expect_eq(left, right);
    hs_test_run_destroy(&run);
    hs_test_run_destroy(&other);
}

/* ---- State, sections, what is in a file ---- */

Test(checkpoint, tells_its_state_and_sections, .init = hs_test_enter_folder, .fini = hs_test_leave_folder) {
    hs_test_run run = hs_test_run_create(&small);
    hstep_error e = {0};
    train(&run, 1, 3);
    const hstep_section sections[] = {
        {"configuration", "{\"width\": 8}", 12}, {"random", "\0\1\2", 3}, {"empty", NULL, 0}};
    const hstep_checkpoint_extras extras = {sections, 3, 1.25};
    hs_test_expect_ok(hstep_checkpoint_save(run.trainer, "file", &extras, &e), &e);
    hstep_tensor_file *file = NULL;
    hs_test_expect_ok(hstep_tensor_file_open("file", &file, &e), &e);
    hstep_checkpoint_state state;
    hs_test_expect_ok(hstep_checkpoint_read_state(file, &state, &e), &e);
    cr_expect(state.optimizer_step == 3 && state.attempts == 3 && state.finite_updates == 3 && state.micro_batch == 0);
    cr_expect(state.loss_scale == 1 && state.held_out_loss == 1.25);
    cr_expect(state.config.adamw.beta2 == 0.999 && state.config.replicas == 1 &&
              state.config.schedule.learning_rate == 1e-3);
    char bytes[16];
    size_t size = 0;
    hs_test_expect_ok(hstep_checkpoint_section(file, "random", NULL, &size, &e), &e);
    cr_expect_eq(size, 3);
    hs_test_expect_ok(hstep_checkpoint_section(file, "random", bytes, &size, &e), &e);
    cr_expect(memcmp(bytes, "\0\1\2", 3) == 0);
    size = sizeof bytes;
    hs_test_expect_ok(hstep_checkpoint_section(file, "configuration", bytes, &size, &e), &e);
    cr_expect(size == 12 && memcmp(bytes, "{\"width\": 8}", 12) == 0);
    size = 11;
    cr_expect_eq(hstep_checkpoint_section(file, "configuration", bytes, &size, &e), HSTEP_ERROR_ARGUMENT);
    hs_test_expect_ok(hstep_checkpoint_section(file, "empty", NULL, &size, &e), &e);
    cr_expect_eq(size, 0);
    cr_expect_eq(hstep_checkpoint_section(file, "weights", NULL, &size, &e), HSTEP_ERROR_ARGUMENT);
    size_t parts[HSTEP_PART_SECTION + 1] = {0};
    for (size_t i = 0; i < hstep_tensor_file_count(file); i++) {
        hstep_tensor_info info;
        hs_test_expect_ok(hstep_tensor_file_tensor(file, i, &info, &e), &e);
        parts[hstep_checkpoint_part(info.name, NULL)]++;
    }
    cr_expect(parts[HSTEP_PART_WEIGHTS] == 20 && parts[HSTEP_PART_MOMENTS] == 40 && parts[HSTEP_PART_SECTION] == 3);
    hstep_tensor_file_close(file);
    hs_test_run_destroy(&run);
}

/* ---- Refusals ---- */

/* Loading must fail with this status and leave the trainer; the message holds all of `says`. */
static void expect_refused(const hs_test_run *run, const char *path, hstep_status expected, const char *const *says) {
    hs_test_snapshot before = hs_test_snapshot_take(run->trainer);
    const double scale = hstep_trainer_loss_scale(run->trainer);
    hstep_error e = {0};
    const hstep_status status = hstep_checkpoint_load(run->trainer, path, &e);
    cr_expect_eq(status, expected, "%s: %s", hstep_status_name(status), e.message);
    for (; *says != NULL; says++)
        cr_expect(strstr(e.message, *says) != NULL, "no '%s' in: %s", *says, e.message);
    hs_test_snapshot after = hs_test_snapshot_take(run->trainer);
    cr_expect(hs_test_snapshot_equal(&before, &after));
    cr_expect_eq(hstep_trainer_loss_scale(run->trainer), scale);
    hs_test_snapshot_free(&before);
    hs_test_snapshot_free(&after);
}
#define EXPECT_REFUSED(run, path, status, ...)                                                                         \
    expect_refused(run, path, status, (const char *const[]){__VA_ARGS__, NULL})

Test(checkpoint, refuses_another_model, .init = hs_test_enter_folder, .fini = hs_test_leave_folder) {
    hs_test_run run = hs_test_run_create(&small);
    train(&run, 1, 1);
    save(&run, "file");
    hs_test_run_destroy(&run);
    hs_test_setup other = small;
    other.feed_forward = 10;
    run = hs_test_run_create(&other);
    EXPECT_REFUSED(&run, "file", HSTEP_ERROR_SHAPE, "'file'",
                   "blocks.0.feed_forward.gate.weight is F64 [6, 8] in the file and F64 [10, 8] here", "...");
    hs_test_run_destroy(&run);
    other = small;
    other.layers = 1;
    run = hs_test_run_create(&other);
    EXPECT_REFUSED(&run, "file", HSTEP_ERROR_SHAPE,
                   "blocks.1.attention_norm.gain is F64 [8] in the file and missing here");
    hs_test_run_destroy(&run);
    other.layers = 3;
    run = hs_test_run_create(&other);
    EXPECT_REFUSED(&run, "file", HSTEP_ERROR_SHAPE,
                   "blocks.2.attention_norm.gain is missing in the file and F64 [8] here");
    hs_test_run_destroy(&run);
}

Test(checkpoint, refuses_other_settings_unless_asked, .init = hs_test_enter_folder, .fini = hs_test_leave_folder) {
    hs_test_setup setup = small;
    setup.precision = HSTEP_PRECISION_FP16;
    hs_test_run run = hs_test_run_create(&setup);
    train(&run, 1, 3);
    save(&run, "file");
    hs_test_run_destroy(&run);
    setup.learning_rate = 0.5;
    setup.scaler = (hstep_scaler){1024, 1, 4096, 2};
    run = hs_test_run_create(&setup);
    EXPECT_REFUSED(&run, "file", HSTEP_ERROR_ARGUMENT, "learning_rate is 0.001", "in the file and 0.5 here");
    hstep_tensor_file *file = NULL;
    hstep_error e = {0};
    hstep_difference differences[4];
    size_t count = 0;
    hs_test_expect_ok(hstep_tensor_file_open("file", &file, &e), &e);
    hs_test_expect_ok(hstep_checkpoint_differences(file, run.trainer, differences, 2, &count, &e), &e);
    cr_expect_eq(count, 3, "the first scale is no difference");
    cr_expect_str_eq(differences[1].name, "max_loss_scale");
    cr_expect_str_eq(differences[1].file, "16777216");
    cr_expect_str_eq(differences[1].trainer, "4096");
    hs_test_expect_ok(hstep_checkpoint_restore(run.trainer, file, 1, &e), &e);
    cr_expect_eq(hstep_trainer_loss_scale(run.trainer), 4096, "65536 moved into the bounds");
    cr_expect_eq(hstep_trainer_finite_updates(run.trainer), 0, "3 of an interval of 2");
    cr_expect_eq(hstep_trainer_optimizer_step(run.trainer), 3);
    cr_expect_eq(run.trainer->config.schedule.learning_rate, 0.5);
    hstep_tensor_file_close(file);
    hs_test_run_destroy(&run);
}

Test(checkpoint, schedule_length_counts_where_it_decides, .init = hs_test_enter_folder, .fini = hs_test_leave_folder) {
    hs_test_run run = hs_test_run_create(&small);
    train(&run, 1, 1);
    save(&run, "constant");
    run.trainer->config.schedule.steps = 99;
    load(&run, "constant");
    run.trainer->config.schedule = (hstep_schedule){HSTEP_SCHEDULE_COSINE, 1e-3, 0, 0, 99};
    save(&run, "cosine");
    EXPECT_REFUSED(&run, "constant", HSTEP_ERROR_ARGUMENT, "schedule is constant in the file and cosine here", "steps");
    run.trainer->config.schedule.steps = 100;
    EXPECT_REFUSED(&run, "cosine", HSTEP_ERROR_ARGUMENT, "steps is 99 in the file and 100 here");
    hs_test_run_destroy(&run);
}

Test(checkpoint, refuses_files_of_other_kinds, .init = hs_test_enter_folder, .fini = hs_test_leave_folder) {
    hs_test_run run = hs_test_run_create(&small);
    hstep_error e = {0};
    save(&run, "file");
    hs_test_expect_ok(hstep_checkpoint_export("file", "weights", HSTEP_STORAGE_F64, NULL, &e), &e);
    hs_test_write_file("text", "no tensors at all");
    EXPECT_REFUSED(&run, "weights", HSTEP_ERROR_INPUT_FILE, "halfstep.weights/1", "no checkpoint");
    EXPECT_REFUSED(&run, "text", HSTEP_ERROR_INPUT_FILE, "'text'");
    EXPECT_REFUSED(&run, "missing", HSTEP_ERROR_INPUT_FILE, "'missing'", "No such file");
    hs_test_run_destroy(&run);
}

Test(checkpoint, stands_between_updates, .init = hs_test_enter_folder, .fini = hs_test_leave_folder) {
    hs_test_run run = hs_test_run_create(&small);
    hs_test_batch batch = hs_test_batch_create(2, 5, 12, false, 1);
    hstep_error e = {0};
    hstep_update update;
    save(&run, "before");
    hs_test_expect_ok(hstep_trainer_record(run.trainer, &batch.batch, NULL, &e), &e);
    hs_test_expect_ok(hstep_trainer_backward(run.trainer, &e), &e);
    cr_expect_eq(hstep_checkpoint_save(run.trainer, "file", NULL, &e), HSTEP_ERROR_DIRTY_GRADIENT);
    load(&run, "before"); /* takes gradients and tape away */
    cr_expect_eq(hstep_trainer_commit(run.trainer, &update, &e), HSTEP_ERROR_MISSING_GRADIENT);
    cr_expect_eq(hstep_trainer_backward(run.trainer, &e), HSTEP_ERROR_STALE_TAPE);
    save(&run, "file");
    cr_expect(hs_test_same_file("before", "file"));
    hs_test_expect_ok(hstep_trainer_update(run.trainer, &batch.batch, 1, &update, &e), &e);
    hs_test_batch_destroy(&batch);
    hs_test_run_destroy(&run);
}

static hs_test_run run_with_parameter(const char *name) {
    hs_test_run run = {0};
    hstep_graph *g = NULL;
    hstep_error e = {0};
    hstep_value w = 0, loss = 0;
    const hstep_trainer_config config = hstep_trainer_defaults(HSTEP_PRECISION_F64);
    hs_test_expect_ok(hstep_context_create(NULL, &run.context, &e), &e);
    hs_test_expect_ok(hstep_graph_create(&g, &e), &e);
    hs_test_expect_ok(hstep_graph_parameter(g, name, 1, (int64_t[]){2}, &w, &e), &e);
    hs_test_expect_ok(hstep_graph_sum(g, "loss", w, &loss, &e), &e);
    hs_test_expect_ok(hstep_graph_set_loss(g, loss, &e), &e);
    hs_test_expect_ok(hstep_model_create(run.context, g, &run.model, &e), &e);
    hs_test_expect_ok(hstep_trainer_create(run.model, &config, &run.trainer, &e), &e);
    return run;
}

Test(checkpoint, refuses_names_of_its_own, .init = hs_test_enter_folder, .fini = hs_test_leave_folder) {
    static const char *const names[] = {"adamw.m.w", "trainer.attempts", "section.x", "settings.", "__metadata__"};
    hstep_error e = {0};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        hs_test_run run = run_with_parameter(names[i]);
        cr_expect_eq(hstep_checkpoint_save(run.trainer, "file", NULL, &e), HSTEP_ERROR_ARGUMENT, "%s", names[i]);
        cr_expect(strstr(e.message, names[i]) != NULL, "%s", e.message);
        hs_test_run_destroy(&run);
    }
    hs_test_run run = run_with_parameter("header");
    save(&run, "header");
    load(&run, "header");
    const hstep_section twice[] = {{"a", "1", 1}, {"a", "2", 1}}, nameless = {NULL, "1", 1};
    cr_expect_eq(hstep_checkpoint_save(run.trainer, "file", &(hstep_checkpoint_extras){twice, 2, 0}, &e),
                 HSTEP_ERROR_ARGUMENT);
    cr_expect_eq(hstep_checkpoint_save(run.trainer, "file", &(hstep_checkpoint_extras){&nameless, 1, 0}, &e),
                 HSTEP_ERROR_ARGUMENT);
    cr_expect_not(hs_test_exists("file"));
    hs_test_run_destroy(&run);
}

/* ---- Weights alone ---- */

Test(checkpoint, exports_round_once_and_count, .init = hs_test_enter_folder, .fini = hs_test_leave_folder) {
    hs_test_run run = hs_test_run_create(&small);
    hstep_error e = {0};
    /* 1 + 2^-11 + 2^-40 is above the middle in fp16, and its f32 is the middle: rounding twice gives 1. */
    const double gain[8] = {1 + 0x1p-11 + 0x1p-40, 70000, -1e300, 1e-30, -0.0, INFINITY, NAN, 0x1p-25};
    const double fp16[8] = {1 + 0x1p-10, INFINITY, -INFINITY, 0, -0.0, INFINITY, NAN, 0};
    const size_t index = hstep_model_find_parameter(run.model, "final_norm.gain");
    hs_test_expect_ok(hstep_model_write_parameter(run.model, index, gain, &e), &e);
    save(&run, "file");
    hstep_export_report report;
    hs_test_expect_ok(hstep_checkpoint_export("file", "half", HSTEP_STORAGE_F16, &report, &e), &e);
    cr_expect_eq(report.tensors, 20);
    cr_expect_eq(report.elements, hstep_model_scalar_count(run.model));
    cr_expect_eq(report.overflowed, 2);
    cr_expect_eq(report.underflowed, 2);
    cr_expect_eq(report.nonfinite, 2);
    cr_expect_str_eq(report.first_overflow, "final_norm.gain");
    cr_expect_eq(report.first_index, 1);
    hstep_tensor_file *file = NULL;
    double read[8];
    hs_test_expect_ok(hstep_tensor_file_open("half", &file, &e), &e);
    cr_expect_str_eq(hstep_tensor_file_text(file, "schema"), "halfstep.weights/1");
    cr_expect_str_eq(hstep_tensor_file_text(file, "optimizer_step"), "0");
    hs_test_expect_ok(hstep_tensor_file_verify(file, &e), &e);
    hs_test_expect_ok(hstep_tensor_file_read(file, hstep_tensor_file_find(file, "final_norm.gain"), 0, 8, read, &e),
                      &e);
    for (int i = 0; i < 8; i++)
        cr_expect(i == 6 ? isnan(read[i]) : memcmp(&read[i], &fp16[i], sizeof *read) == 0, "%d: %a", i, read[i]);
    hstep_tensor_file_close(file);
    hs_test_expect_ok(hstep_checkpoint_export("file", "single", HSTEP_STORAGE_F32, &report, &e), &e);
    cr_expect(report.overflowed == 1 && report.underflowed == 0);
    hs_test_expect_ok(hstep_checkpoint_export("file", "brain", HSTEP_STORAGE_BF16, &report, &e), &e);
    cr_expect(report.overflowed == 1 && report.underflowed == 0);
    cr_expect_eq(hstep_checkpoint_export("file", "integers", HSTEP_STORAGE_I32, &report, &e), HSTEP_ERROR_ARGUMENT);
    hs_test_run_destroy(&run);
}

Test(checkpoint, weights_go_into_any_model_of_their_shape, .init = hs_test_enter_folder, .fini = hs_test_leave_folder) {
    hs_test_run run = hs_test_run_create(&small);
    hstep_error e = {0};
    train(&run, 1, 2);
    save(&run, "file");
    hs_test_setup other = small;
    other.precision = HSTEP_PRECISION_FP16; /* a choice of the run, not of the model */
    hs_test_run target = hs_test_run_create(&other);
    uint64_t wanted = 0, got = 1;
    hs_test_expect_ok(hstep_model_checksum(run.model, &wanted, &e), &e);
    hs_test_expect_ok(hstep_checkpoint_load_weights(target.model, "file", &e), &e);
    hs_test_expect_ok(hstep_model_checksum(target.model, &got, &e), &e);
    cr_expect_eq(got, wanted);
    cr_expect_eq(hstep_trainer_optimizer_step(target.trainer), 0, "the weights alone");
    hs_test_expect_ok(hstep_checkpoint_export("file", "half", HSTEP_STORAGE_BF16, NULL, &e), &e);
    hs_test_expect_ok(hstep_checkpoint_load_weights(target.model, "half", &e), &e);
    double wide[96], rounded[96];
    hs_test_expect_ok(hstep_model_read_parameter(run.model, 0, wide, &e), &e);
    hs_test_expect_ok(hstep_model_read_parameter(target.model, 0, rounded, &e), &e);
    for (int i = 0; i < 96; i++)
        cr_expect_eq(rounded[i], hstep_decode(HSTEP_BF16, hstep_encode(HSTEP_BF16, wide[i])));
    hs_test_run_destroy(&run);
    hs_test_run_destroy(&target);
    other.layers = 1;
    target = hs_test_run_create(&other);
    cr_expect_eq(hstep_checkpoint_load_weights(target.model, "file", &e), HSTEP_ERROR_SHAPE);
    cr_expect(strstr(e.message, "blocks.1.") != NULL && strstr(e.message, "adamw") == NULL, "%s", e.message);
    hs_test_run_destroy(&target);
}
