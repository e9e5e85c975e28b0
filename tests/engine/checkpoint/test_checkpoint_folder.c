/* A folder of checkpoints: names, the newest that is whole, which are kept, and what killed runs leave. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine/checkpoint/checkpoint.h"
#include "engine/files/atomic.h"
#include "precision/random.h"
#include "support/folder.h"
#include "support/models.h"

static hs_test_run make_run(void) {
    const hs_test_setup setup = {.vocabulary = 12, .width = 8, .layers = 1, .feed_forward = 6};
    return hs_test_run_create(&setup);
}

static void save_step(const hs_test_run *run, uint64_t step, double loss) {
    char path[64];
    hstep_error e = {0};
    hs_test_expect_ok(hstep_checkpoint_path(".", step, path, sizeof path, &e), &e);
    hs_test_expect_ok(hstep_checkpoint_save(run->trainer, path, &(hstep_checkpoint_extras){.held_out_loss = loss}, &e),
                      &e);
}

static void damage(const char *path) {
    hs_test_bytes bytes = hs_test_read_bytes(path);
    bytes.at[bytes.size - 5] ^= 1;
    hs_test_write_bytes(path, bytes.at, bytes.size);
    free(bytes.at);
}

static void cut(const char *path, off_t size) { cr_assert_eq(truncate(path, size), 0); }

Test(checkpoint_folder, paths) {
    char path[64];
    hstep_error e = {0};
    hs_test_expect_ok(hstep_checkpoint_path("runs/a", 100, path, sizeof path, &e), &e);
    cr_expect_str_eq(path, "runs/a/checkpoint-00000100.safetensors");
    hs_test_expect_ok(hstep_checkpoint_path("r", 1234567890, path, sizeof path, &e), &e);
    cr_expect_str_eq(path, "r/checkpoint-1234567890.safetensors");
    cr_expect_eq(hstep_checkpoint_path("runs/a", 100, path, 30, &e), HSTEP_ERROR_ARGUMENT);
}

Test(checkpoint_folder, finds_the_newest_whole_one, .init = hs_test_enter_folder, .fini = hs_test_leave_folder) {
    hs_test_run run = make_run();
    hstep_error e = {0};
    hstep_found_checkpoint found = {.found = 1};
    hstep_skipped_checkpoint skipped[2];
    hs_test_expect_ok(hstep_checkpoint_find(".", &found, skipped, 2, &e), &e);
    cr_expect(!found.found && found.skipped == 0);
    const uint64_t steps[] = {9, 99999999, 100000000, 5, 7};
    for (size_t i = 0; i < 5; i++)
        save_step(&run, steps[i], NAN);
    /* Names that are none of ours do not count, and nothing happens to them. */
    hs_test_write_file("checkpoint-200000000.safetensors.bak", "");
    hs_test_write_file("checkpoint-0200000000.safetensors", "");
    hs_test_write_file("checkpoint-2000000.safetensors", "");
    hs_test_write_file("checkpoint-20000000x.safetensors", "");
    hs_test_expect_ok(hstep_checkpoint_find(".", &found, skipped, 2, &e), &e);
    cr_expect(found.found && found.step == 100000000 && found.skipped == 0);
    damage("checkpoint-100000000.safetensors");
    cut("checkpoint-99999999.safetensors", 1000);
    cut("checkpoint-00000009.safetensors", 0);
    hs_test_expect_ok(hstep_checkpoint_find(".", &found, skipped, 2, &e), &e);
    cr_expect(found.found && found.step == 7 && found.skipped == 3);
    cr_expect(skipped[0].step == 100000000 && strstr(skipped[0].reason, "checksum is") != NULL, "%s",
              skipped[0].reason);
    cr_expect(skipped[1].step == 99999999 && strstr(skipped[1].reason, "does not fit") != NULL, "%s",
              skipped[1].reason);
    cr_expect_eq(hstep_checkpoint_find("missing", &found, skipped, 2, &e), HSTEP_ERROR_INPUT_FILE);
    cr_expect(strstr(e.message, "'missing'") != NULL);
    hs_test_run_destroy(&run);
}

/* Only checkpoints of these steps are there. */
static void expect_steps(const uint64_t *steps, size_t count) {
    char path[64];
    hstep_error e = {0};
    cr_expect_eq(hs_test_count_names(".safetensors"), count);
    for (size_t i = 0; i < count; i++) {
        hs_test_expect_ok(hstep_checkpoint_path(".", steps[i], path, sizeof path, &e), &e);
        cr_expect(hs_test_exists(path), "%s", path);
    }
}

Test(checkpoint_folder, keeps_the_last_and_the_best, .init = hs_test_enter_folder, .fini = hs_test_leave_folder) {
    hs_test_run run = make_run();
    hstep_error e = {0};
    size_t removed = 0;
    const double losses[] = {3, NAN, 2, 2, INFINITY, 2.5, NAN, 4};
    for (uint64_t step = 1; step <= 8; step++)
        save_step(&run, step, losses[step - 1]);
    hs_test_expect_ok(hstep_checkpoint_keep(".", 3, 1, &removed, &e), &e);
    cr_expect_eq(removed, 4);
    expect_steps((const uint64_t[]){3, 6, 7, 8}, 4);
    save_step(&run, 9, 1.5); /* the best is among the last */
    hs_test_expect_ok(hstep_checkpoint_keep(".", 2, 1, &removed, &e), &e);
    expect_steps((const uint64_t[]){8, 9}, 2);
    hs_test_expect_ok(hstep_checkpoint_keep(".", 1, 0, &removed, &e), &e);
    expect_steps((const uint64_t[]){9}, 1);
    cr_expect_eq(hstep_checkpoint_keep(".", 0, 0, &removed, &e), HSTEP_ERROR_ARGUMENT);
    hs_test_run_destroy(&run);
}

/* Otherwise two newer files that were cut would cost the last one that can be loaded. */
Test(checkpoint_folder, damaged_ones_do_not_count, .init = hs_test_enter_folder, .fini = hs_test_leave_folder) {
    hs_test_run run = make_run();
    hstep_error e = {0};
    size_t removed = 0;
    for (uint64_t step = 1; step <= 4; step++)
        save_step(&run, step, NAN);
    cut("checkpoint-00000003.safetensors", 2000);
    cut("checkpoint-00000004.safetensors", 12);
    hs_test_expect_ok(hstep_checkpoint_keep(".", 1, 1, &removed, &e), &e);
    cr_expect_eq(removed, 1);
    expect_steps((const uint64_t[]){2, 3, 4}, 3);
    hs_test_run_destroy(&run);
}

/* ---- Leftovers ---- */

Test(checkpoint_folder, names_of_temporary_files) {
    cr_expect_eq(hs_temporary_base("checkpoint-00000100.safetensors.4711-17ab.tmp"), 31);
    const char *const others[] = {"a.tmp",
                                  ".4711-17ab.tmp",
                                  "a.4711.tmp",
                                  "a.-17ab.tmp",
                                  "a.4711-.tmp",
                                  "a.47x1-17ab.tmp",
                                  "a4711-17ab.tmp",
                                  "a.4711-17ab",
                                  "a.4711-17ab.tmp2",
                                  ".tmp",
                                  ""};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        cr_expect_eq(hs_temporary_base(others[i]), 0, "%s", others[i]);
}

/* A process that is killed while it writes. */
static void die_writing(const char *path) {
    const pid_t child = fork();
    if (child == 0) {
        hs_atomic_file file;
        if (hs_atomic_begin(&file, &hs_files_posix, path, NULL) == HSTEP_OK)
            (void)hs_atomic_write(&file, "half", 4, 0, NULL);
        (void)raise(SIGKILL);
    }
    int status = 0;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFSIGNALED(status));
}

Test(checkpoint_folder, leftovers_go_and_files_at_work_stay, .init = hs_test_enter_folder,
     .fini = hs_test_leave_folder) {
    hs_test_run run = make_run();
    hstep_error e = {0};
    size_t removed = 0;
    hs_atomic_file at_work;
    save_step(&run, 1, NAN);
    die_writing("checkpoint-00000001.safetensors");
    die_writing("checkpoint-00000002.safetensors");
    die_writing("overflow-00000002-00000004.safetensors");
    die_writing("notes"); /* not ours to remove */
    hs_test_write_file("checkpoint-00000002.safetensors.tmp", "");
    hs_test_expect_ok(hs_atomic_begin(&at_work, &hs_files_posix, "checkpoint-00000003.safetensors", &e), &e);
    cr_expect_eq(hs_test_count_names(".tmp"), 6);
    hs_test_expect_ok(hstep_checkpoint_keep(".", 1, 0, &removed, &e), &e);
    cr_expect_eq(removed, 3);
    cr_expect_eq(hs_test_count_names(".tmp"), 3);
    hs_test_expect_ok(hs_atomic_write(&at_work, "whole", 5, 0, &e), &e);
    hs_test_expect_ok(hs_atomic_commit(&at_work, &e), &e);
    cr_expect_eq(hs_test_count_names(".tmp"), 2);
    cr_expect(hs_test_exists("checkpoint-00000003.safetensors"));
    hs_test_expect_ok(hstep_checkpoint_load(run.trainer, "checkpoint-00000001.safetensors", &e), &e);
    hs_test_run_destroy(&run);
}

/* Saves checkpoint after checkpoint, keeps two, and says which step it has saved, until it is killed. */
static void save_until_killed(const hs_test_run *run, uint64_t step, int acknowledge) {
    for (;; step++) {
        char path[64];
        if (hstep_checkpoint_path(".", step, path, sizeof path, NULL) != HSTEP_OK ||
            hstep_checkpoint_save(run->trainer, path, NULL, NULL) != HSTEP_OK ||
            hstep_checkpoint_keep(".", 2, 1, NULL, NULL) != HSTEP_OK ||
            write(acknowledge, &step, sizeof step) != sizeof step)
            _exit(1);
    }
}

/* The last step that a killed process acknowledged; the first where it came to none. */
static uint64_t kill_after(const hs_test_run *run, uint64_t first, long microseconds) {
    int ends[2], status = 0;
    uint64_t step = first, read_step;
    cr_assert_eq(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0)
        save_until_killed(run, first + 1, ends[1]);
    cr_assert_eq(close(ends[1]), 0);
    (void)nanosleep(&(struct timespec){.tv_nsec = microseconds * 1000}, NULL);
    cr_assert_eq(kill(child, SIGKILL), 0);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFSIGNALED(status), "the process ended by itself: %d", status);
    while (read(ends[0], &read_step, sizeof read_step) == sizeof read_step)
        step = read_step;
    cr_assert_eq(close(ends[0]), 0);
    return step;
}

Test(checkpoint_folder, nothing_acknowledged_is_lost_by_a_kill, .init = hs_test_enter_folder,
     .fini = hs_test_leave_folder) {
    hs_test_run run = make_run();
    hs_random random = {.state = 11};
    hstep_error e = {0};
    uint64_t step = 1;
    size_t leftovers = 0;
    save_step(&run, step, NAN);
    for (int i = 0; i < 60; i++) {
        const uint64_t acknowledged = kill_after(&run, step, 1000 + (long)(hs_random_next(&random) % 30000));
        hstep_found_checkpoint found;
        hs_test_expect_ok(hstep_checkpoint_find(".", &found, NULL, 0, &e), &e);
        cr_expect(found.found && found.skipped == 0 && (found.step == acknowledged || found.step == acknowledged + 1),
                  "found %d, acknowledged %d", (int)found.step, (int)acknowledged);
        leftovers += hs_test_count_names(".tmp");
        step = found.step;
    }
    cr_expect_gt(step, 20);
    cr_expect_gt(leftovers, 0, "no kill came while a file was written");
    hs_test_expect_ok(hstep_checkpoint_keep(".", 1, 0, NULL, &e), &e);
    cr_expect_eq(hs_test_count_names(""), 3, "one file, and the two names that every folder has");
    hs_test_run_destroy(&run);
}

/* A cleaner comes between the making of the file and its lock: once it holds the lock, once it has removed the file. */
static int rival = -1;

static int lock_after_a_rival(void *state, int file) {
    (void)state;
    char path[64], name[256] = "";
    if (rival == -1) {
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", file);
        cr_assert_gt(readlink(path, name, sizeof name - 1), 0);
        rival = open(name, O_RDWR);
        cr_assert_eq(flock(rival, LOCK_EX | LOCK_NB), 0);
        return hs_files_posix.lock(NULL, file);
    }
    if (rival >= 0) {
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", file);
        cr_assert_gt(readlink(path, name, sizeof name - 1), 0);
        cr_assert_eq(unlink(name), 0);
        cr_assert_eq(close(rival), 0);
        rival = -2;
    }
    return hs_files_posix.lock(NULL, file);
}

Test(checkpoint_folder, a_writer_evades_a_cleaner, .init = hs_test_enter_folder, .fini = hs_test_leave_folder) {
    hs_files files = hs_files_posix;
    files.lock = lock_after_a_rival;
    hs_atomic_file file;
    hstep_error e = {0};
    hs_test_expect_ok(hs_atomic_begin(&file, &files, "file", &e), &e);
    cr_expect_eq(rival, -2, "both happened");
    hs_test_expect_ok(hs_atomic_write(&file, "whole", 5, 0, &e), &e);
    hs_test_expect_ok(hs_atomic_commit(&file, &e), &e);
    char *text = hs_test_read_file("file");
    cr_expect_str_eq(text, "whole");
    free(text);
    cr_expect_eq(hs_test_count_names(".tmp"), 0);
}
