/* Every operation on files fails in turn: an error that says which, no older file touched, nothing left behind. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/checkpoint/checkpoint.h"
#include "support/faulty_files.h"
#include "support/folder.h"
#include "support/models.h"

static hs_test_run make_run(void) {
    hstep_context *context = NULL;
    hstep_error e = {0};
    hs_test_expect_ok(hstep_context_create(NULL, &context, &e), &e);
    return hs_test_general_run_create_in(context);
}

static void train(const hs_test_run *run) {
    hstep_error e = {0};
    hstep_update update;
    const hstep_batch batch = hs_test_general_batch();
    hs_test_expect_ok(hstep_trainer_update(run->trainer, &batch, 1, &update, &e), &e);
}

static void save(const hs_test_run *run, const char *path) {
    hstep_error e = {0};
    hs_test_expect_ok(hstep_checkpoint_save(run->trainer, path, NULL, &e), &e);
}

/* Calls of a save that succeeds. */
static size_t count_calls(const hs_test_run *run, const char *path) {
    hs_test_faults faults = {0};
    const hs_files files = hs_test_faulty_files(&faults);
    hstep_error e = {0};
    hs_test_expect_ok(hs_checkpoint_save(&files, run->trainer, path, NULL, &e), &e);
    cr_expect_eq(faults.open, 0);
    return faults.calls;
}

/*
 * A save over `path` of which call `at` fails. What may fail without harm is a lock, where a file system has none, and
 * the closing of the folder at the very end. Once the file has its new name only the promise about a loss of power can
 * still fail, and the file is the new one.
 */
static void fail_save(const hs_test_run *run, const char *path, size_t at, bool last, int reason, const char *old,
                      const char *new) {
    hs_test_faults faults = {.fails_at = at, .reason = reason};
    const hs_files files = hs_test_faulty_files(&faults);
    hstep_error e = {0};
    const hstep_status status = hs_checkpoint_save(&files, run->trainer, path, NULL, &e);
    cr_expect_eq(faults.open, 0, "call %zu (%s) leaves a file open", at, faults.failed);
    cr_expect_eq(hs_test_count_names(".tmp"), 0, "call %zu (%s) leaves a temporary file", at, faults.failed);
    if (status == HSTEP_OK) {
        cr_expect(strcmp(faults.failed, "lock") == 0 || (last && strcmp(faults.failed, "close") == 0),
                  "call %zu (%s) is not noticed", at, faults.failed);
        cr_expect(hs_test_same_file(path, new));
        return;
    }
    cr_expect_eq(status, HSTEP_ERROR_OUTPUT_FILE);
    cr_expect(strstr(e.message, path) != NULL && strstr(e.message, strerror(reason)) != NULL, "call %zu (%s): %s", at,
              faults.failed, e.message);
    const bool named = strstr(e.message, "written whole") != NULL;
    cr_expect(hs_test_same_file(path, named ? new : old), "call %zu (%s)", at, faults.failed);
}

/* Synced before it gets its name, locked until it has it, and the folder synced after. */
Test(checkpoint_faults, the_order_of_operations, .init = hs_test_enter_folder, .fini = hs_test_leave_folder) {
    hs_test_run run = make_run();
    hs_test_faults faults = {0};
    const hs_files files = hs_test_faulty_files(&faults);
    hstep_error e = {0};
    hs_test_expect_ok(hs_checkpoint_save(&files, run.trainer, "file", NULL, &e), &e);
    cr_expect_str_eq(faults.log, "status_of_path open lock status write sync rename close open sync close");
    hs_test_run_destroy(&run);
}

Test(checkpoint_faults, saving, .init = hs_test_enter_folder, .fini = hs_test_leave_folder) {
    hs_test_run run = make_run();
    hstep_error e = {0};
    save(&run, "first");
    train(&run);
    const size_t calls = count_calls(&run, "second");
    cr_expect_gt(calls, 12);
    for (size_t at = 1; at <= calls; at++) {
        /* over an older checkpoint of that name */
        const hs_test_bytes first = hs_test_read_bytes("first");
        hs_test_write_bytes("file", first.at, first.size);
        free(first.at);
        fail_save(&run, "file", at, at == calls, at % 2 == 0 ? ENOSPC : EIO, "first", "second");
        /* What is there loads, whichever of the two it is. */
        hs_test_expect_ok(hstep_checkpoint_load(run.trainer, "file", &e), &e);
        hs_test_expect_ok(hstep_checkpoint_load(run.trainer, "second", &e), &e);
    }
    hs_test_run_destroy(&run);
}

Test(checkpoint_faults, a_disk_that_is_gone, .init = hs_test_enter_folder, .fini = hs_test_leave_folder) {
    hs_test_run run = make_run();
    hstep_error e = {0};
    save(&run, "first");
    train(&run);
    save(&run, "second");
    const size_t calls = count_calls(&run, "third");
    for (size_t at = 1; at < calls; at++) {
        hs_test_faults faults = {.fails_at = at, .from_there = true, .reason = EIO};
        const hs_files files = hs_test_faulty_files(&faults);
        cr_expect_eq(hs_checkpoint_save(&files, run.trainer, "first", NULL, &e), HSTEP_ERROR_OUTPUT_FILE, "call %zu",
                     at);
        cr_expect_eq(faults.open, 0);
        hs_test_expect_ok(hstep_checkpoint_load(run.trainer, "first", &e), &e);
        hs_test_expect_ok(hstep_checkpoint_load(run.trainer, "second", &e), &e);
    }
    hs_test_run_destroy(&run);
}

Test(checkpoint_faults, a_full_disk_is_named_with_advice, .init = hs_test_enter_folder, .fini = hs_test_leave_folder) {
    hs_test_run run = make_run();
    hstep_error e = {0};
    const char *failed = "";
    for (size_t at = 1; strcmp(failed, "write") != 0; at++) {
        hs_test_faults faults = {.fails_at = at, .reason = ENOSPC};
        const hs_files files = hs_test_faulty_files(&faults);
        if (hs_checkpoint_save(&files, run.trainer, "file", NULL, &e) == HSTEP_OK)
            cr_assert_eq(remove("file"), 0);
        failed = faults.failed;
    }
    cr_expect_str_eq(e.message, "cannot write 'file': writing: No space left on device; nothing was changed, make room "
                                "or choose another folder");
    cr_expect_not(hs_test_exists("file"));
    hs_test_run_destroy(&run);
}

Test(checkpoint_faults, pieces_and_interruptions_are_no_failures, .init = hs_test_enter_folder,
     .fini = hs_test_leave_folder) {
    hs_test_run run = make_run();
    hs_test_faults faults = {.piecemeal = true};
    const hs_files files = hs_test_faulty_files(&faults);
    hstep_error e = {0};
    train(&run);
    save(&run, "whole");
    hs_test_expect_ok(hs_checkpoint_save(&files, run.trainer, "pieces", NULL, &e), &e);
    cr_expect(hs_test_same_file("whole", "pieces"));
    hs_test_expect_ok(hs_checkpoint_load(&files, run.trainer, "pieces", &e), &e);
    cr_expect_gt(faults.interruptions, 100);
    cr_expect_eq(faults.open, 0);
    hs_test_run_destroy(&run);
}

/*
 * Up to the second reading nothing is changed. A failure in that leaves no state of any run, so that nothing computes
 * with it until a load has succeeded.
 */
Test(checkpoint_faults, loading, .init = hs_test_enter_folder, .fini = hs_test_leave_folder) {
    hs_test_run run = make_run();
    hstep_error e = {0};
    hstep_update update;
    const hstep_batch batch = hs_test_general_batch();
    save(&run, "first");
    train(&run);
    save(&run, "second");
    bool done = false;
    size_t unchanged = 0, refusing = 0;
    for (size_t at = 1; !done; at++) {
        hs_test_faults faults = {.fails_at = at, .reason = EIO};
        const hs_files files = hs_test_faulty_files(&faults);
        hs_test_snapshot before = hs_test_snapshot_take(run.trainer);
        const hstep_status status = hs_checkpoint_load(&files, run.trainer, "first", &e);
        hs_test_snapshot after = hs_test_snapshot_take(run.trainer);
        cr_expect_eq(faults.open, 0);
        done = status == HSTEP_OK;
        if (done) {
            cr_expect(faults.failed == NULL || strcmp(faults.failed, "close") == 0, "%s", faults.failed);
        } else {
            cr_expect_eq(status, HSTEP_ERROR_INPUT_FILE);
            cr_expect(strstr(e.message, "first") != NULL && strstr(e.message, strerror(EIO)) != NULL, "%s", e.message);
            if (hs_test_snapshot_equal(&before, &after)) {
                unchanged++;
            } else {
                double sum = 0, weight = 0;
                refusing++;
                cr_expect_eq(hstep_trainer_update(run.trainer, &batch, 1, &update, &e), HSTEP_ERROR_ARGUMENT);
                cr_expect_eq(hstep_trainer_record(run.trainer, &batch, NULL, &e), HSTEP_ERROR_ARGUMENT);
                cr_expect_eq(hstep_checkpoint_save(run.trainer, "bad", NULL, &e), HSTEP_ERROR_ARGUMENT);
                cr_expect_eq(hstep_model_loss(run.model, &batch, &sum, &weight, &e), HSTEP_ERROR_ARGUMENT);
                cr_expect(strstr(e.message, "broke off in the middle") != NULL, "%s", e.message);
                hs_test_expect_ok(hstep_checkpoint_load(run.trainer, "second", &e), &e);
                hs_test_expect_ok(hstep_model_loss(run.model, &batch, &sum, &weight, &e), &e);
            }
        }
        hs_test_snapshot_free(&before);
        hs_test_snapshot_free(&after);
    }
    cr_expect_gt(unchanged, 30, "the checks read every tensor");
    cr_expect_eq(refusing, 6, "one read for each of two weights and four moments");
    hs_test_run_destroy(&run);
}

Test(checkpoint_faults, loading_weights, .init = hs_test_enter_folder, .fini = hs_test_leave_folder) {
    hs_test_run run = make_run();
    hstep_error e = {0};
    double sum = 0, weight = 0;
    const hstep_batch batch = hs_test_general_batch();
    save(&run, "file");
    hstep_status status = HSTEP_ERROR_ARGUMENT;
    size_t refusing = 0;
    for (size_t at = 1; status != HSTEP_OK; at++) {
        hs_test_faults faults = {.fails_at = at, .reason = EIO};
        const hs_files files = hs_test_faulty_files(&faults);
        status = hs_checkpoint_load_weights(&files, run.model, "file", &e);
        cr_expect_eq(faults.open, 0);
        if (hstep_model_loss(run.model, &batch, &sum, &weight, &e) != HSTEP_OK) {
            refusing++;
            hs_test_expect_ok(hstep_checkpoint_load_weights(run.model, "file", &e), &e);
        }
    }
    cr_expect_eq(refusing, 2);
    hs_test_run_destroy(&run);
}

Test(checkpoint_faults, exporting, .init = hs_test_enter_folder, .fini = hs_test_leave_folder) {
    hs_test_run run = make_run();
    hstep_error e = {0};
    save(&run, "file");
    hs_test_write_file("weights", "older");
    hstep_status status = HSTEP_ERROR_ARGUMENT;
    for (size_t at = 1; status != HSTEP_OK || at < 20; at++) {
        hs_test_faults faults = {.fails_at = at, .reason = EIO};
        const hs_files files = hs_test_faulty_files(&faults);
        status = hs_checkpoint_export(&files, "file", "weights", HSTEP_STORAGE_F32, NULL, &e);
        cr_expect_eq(faults.open, 0);
        cr_expect_eq(hs_test_count_names(".tmp"), 0);
        if (status == HSTEP_OK || strstr(e.message, "written whole") != NULL) {
            hs_test_write_file("weights", "older");
            continue;
        }
        char *text = hs_test_read_file("weights");
        cr_expect_str_eq(text, "older", "call %zu (%s)", at, faults.failed);
        free(text);
    }
    hs_test_run_destroy(&run);
}

static void save_step(const hs_test_run *run, uint64_t step) {
    char path[64];
    hstep_error e = {0};
    hs_test_expect_ok(hstep_checkpoint_path(".", step, path, sizeof path, &e), &e);
    save(run, path);
}

/* A checkpoint that cannot be read is passed over, with the reason; one that cannot be looked at is never removed. */
Test(checkpoint_faults, finding_and_keeping, .init = hs_test_enter_folder, .fini = hs_test_leave_folder) {
    hs_test_run run = make_run();
    hstep_error e = {0};
    bool clean = false;
    size_t passed_over = 0;
    for (size_t at = 1; !clean; at++) {
        for (uint64_t step = 1; step <= 3; step++)
            save_step(&run, step);
        hs_test_faults faults = {.fails_at = at, .reason = EIO};
        hs_files files = hs_test_faulty_files(&faults);
        hstep_found_checkpoint found = {0};
        hstep_skipped_checkpoint skipped[2];
        const hstep_status status = hs_checkpoint_find(&files, ".", &found, skipped, 2, &e);
        cr_expect_eq(faults.open, 0);
        clean = faults.failed == NULL;
        if (status != HSTEP_OK) {
            cr_expect_str_eq(faults.failed, "list");
        } else if (found.step == 2) {
            passed_over++;
            cr_expect(found.found && found.skipped == 1 && skipped[0].step == 3);
            cr_expect(strstr(skipped[0].reason, strerror(EIO)) != NULL, "%s", skipped[0].reason);
        } else {
            cr_expect(found.step == 3 && (clean || strcmp(faults.failed, "close") == 0), "%s", faults.failed);
        }
        faults = (hs_test_faults){.fails_at = at, .reason = EIO};
        size_t removed = 0;
        const hstep_status kept = hs_checkpoint_keep(&files, ".", 1, 0, &removed, &e);
        cr_expect_eq(faults.open, 0);
        clean = clean && faults.failed == NULL;
        cr_expect(kept == HSTEP_OK || kept == HSTEP_ERROR_INPUT_FILE || kept == HSTEP_ERROR_OUTPUT_FILE);
        cr_expect(hs_test_exists("checkpoint-00000003.safetensors"), "the newest is gone after call %zu (%s)", at,
                  faults.failed);
        hs_test_expect_ok(hstep_checkpoint_find(".", &found, NULL, 0, &e), &e);
        cr_expect(found.found && found.step == 3 && found.skipped == 0);
    }
    cr_expect_gt(passed_over, 30);
    cr_expect_not(hs_test_exists("checkpoint-00000001.safetensors"));
    hs_test_run_destroy(&run);
}
