/* Every allocation of saving, loading, finding and exporting fails in turn: an error, nothing lost, nothing leaked. */
#include <criterion/criterion.h>
#include <string.h>

#include "engine/checkpoint/checkpoint.h"
#include "memory/failing_memory.h"
#include "support/folder.h"
#include "support/models.h"

static const char PATH[] = "checkpoint-00000001.safetensors";

typedef struct scene {
    hs_files files; /* the system's, without waiting for the disk */
    hs_test_run run;
    hs_test_snapshot state;
} scene;

static hstep_status do_save(const scene *of, hstep_error *e) {
    const hstep_section section = {"configuration", "{}", 2};
    return hs_checkpoint_save(&of->files, of->run.trainer, PATH, &(hstep_checkpoint_extras){&section, 1, 1}, e);
}

static hstep_status do_load(const scene *of, hstep_error *e) { return hstep_checkpoint_load(of->run.trainer, PATH, e); }

static hstep_status do_load_weights(const scene *of, hstep_error *e) {
    return hstep_checkpoint_load_weights(of->run.model, PATH, e);
}

static hstep_status do_export(const scene *of, hstep_error *e) {
    return hs_checkpoint_export(&of->files, PATH, "weights", HSTEP_STORAGE_BF16, NULL, e);
}

static hstep_status do_find(const scene *of, hstep_error *e) {
    (void)of;
    hstep_found_checkpoint found;
    const hstep_status status = hstep_checkpoint_find(".", &found, NULL, 0, e);
    if (status == HSTEP_OK)
        cr_expect(found.found && found.skipped == 0, "a checkpoint is not bad because memory is short");
    return status;
}

static hstep_status do_keep(const scene *of, hstep_error *e) {
    (void)of;
    return hstep_checkpoint_keep(".", 1, 1, NULL, e);
}

static hstep_status do_differences(const scene *of, hstep_error *e) {
    hstep_tensor_file *file = NULL;
    size_t count = 0;
    hstep_status status = hstep_tensor_file_open(PATH, &file, e);
    if (status == HSTEP_OK)
        status = hstep_checkpoint_differences(file, of->run.trainer, NULL, 0, &count, e);
    hstep_tensor_file_close(file);
    return status;
}

typedef hstep_status action(const scene *of, hstep_error *e);

/* Neither the trainer nor the checkpoint, and nothing lies about. */
static void expect_unchanged(const scene *of, size_t at) {
    hs_test_snapshot now = hs_test_snapshot_take(of->run.trainer);
    cr_expect(hs_test_snapshot_equal(&now, &of->state), "allocation %zu", at);
    hs_test_snapshot_free(&now);
    cr_expect(hs_test_same_file(PATH, "kept"), "allocation %zu", at);
    cr_expect_eq(hs_test_count_names(".tmp"), 0, "allocation %zu", at);
}

static void fail_in_turn(scene *of, action *act, size_t least) {
    for (int from_there = 0; from_there < 2; from_there++) {
        bool done = false;
        size_t at = 0; /* every one alone; every third together with all that follow */
        while (!done) {
            hstep_error e = {0};
            at += from_there ? 3 : 1;
            hs_test_memory_start(at, from_there != 0);
            const hstep_status status = act(of, &e);
            hs_test_memory_stop();
            cr_expect_eq(hs_test_memory_state.live, 0, "allocation %zu: %d blocks leaked", at,
                         (int)hs_test_memory_state.live);
            done = !hs_test_memory_state.failed;
            if (done) {
                hs_test_expect_ok(status, &e);
                hs_test_snapshot_free(&of->state);
                of->state = hs_test_snapshot_take(of->run.trainer);
            } else {
                cr_expect_eq(status, HSTEP_ERROR_MEMORY, "allocation %zu: %s: %s", at, hstep_status_name(status),
                             e.message);
                expect_unchanged(of, at);
            }
        }
        cr_expect_geq(at, least, "%zu allocations", at);
    }
}

static int do_not_wait(void *state, int file) {
    (void)state;
    (void)file;
    return 0;
}

static scene make_scene(void) {
    scene made = {.files = hs_files_posix};
    hstep_context *context = NULL;
    hstep_error e = {0};
    made.files.sync = do_not_wait;
    hs_test_expect_ok(hstep_context_create(NULL, &context, &e), &e);
    made.run = hs_test_general_run_create_in(context);
    hs_test_expect_ok(do_save(&made, &e), &e);
    hs_test_expect_ok(
        hstep_checkpoint_save(made.run.trainer, "kept",
                              &(hstep_checkpoint_extras){&(hstep_section){"configuration", "{}", 2}, 1, 1}, &e),
        &e);
    made.state = hs_test_snapshot_take(made.run.trainer);
    return made;
}

static void fail_all(action *act, size_t least) {
    hs_test_enter_folder();
    scene of = make_scene();
    fail_in_turn(&of, act, least);
    hs_test_snapshot_free(&of.state);
    hs_test_run_destroy(&of.run);
    hs_test_leave_folder();
}

Test(checkpoint_memory, saving) { fail_all(do_save, 300); }
Test(checkpoint_memory, loading) { fail_all(do_load, 300); }
Test(checkpoint_memory, loading_weights) { fail_all(do_load_weights, 300); }
Test(checkpoint_memory, exporting) { fail_all(do_export, 300); }
Test(checkpoint_memory, finding) { fail_all(do_find, 300); }
Test(checkpoint_memory, keeping) { fail_all(do_keep, 300); }
Test(checkpoint_memory, comparing) { fail_all(do_differences, 300); }
