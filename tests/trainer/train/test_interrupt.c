/* SIGINT and SIGTERM at every stage of a run: the first one ends it in order, a second one at once, always with 130. */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "support/program.h"

static void enter(void) {
    hs_test_enter_folder();
    hs_test_write_file("text", "the quick brown fox jumps over the lazy dog. the quick brown fox jumps over it again.");
}

TestSuite(interrupt, .init = enter, .fini = hs_test_leave_folder);

#define SMALL                                                                                                          \
    "train", "--layers", "1", "--width", "8", "--heads", "2", "--feed-forward", "8", "--context", "8", "--batch-size", \
        "2", "--quiet", "--threads", "1"

static void pause_briefly(void) { nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL); }

/* Waits until the file has that many lines. */
static void wait_for_lines(const char *path, size_t wanted) {
    for (int i = 0; i < 3000; ++i) {
        FILE *file = fopen(path, "r");
        size_t lines = 0;
        for (int c = file != NULL ? fgetc(file) : EOF; c != EOF; c = fgetc(file))
            lines += c == '\n';
        if (file != NULL)
            fclose(file);
        if (lines >= wanted)
            return;
        pause_briefly();
    }
    cr_assert_fail("no records came");
}

/* Waits until the trainer sleeps in a system call, and did so for a while. */
static void wait_for_sleep(pid_t pid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    for (int i = 0, asleep = 0; i < 3000 && asleep < 20; ++i) {
        char *line = hs_test_read_file(path);
        asleep = strstr(line, "(trainer) S") != NULL ? asleep + 1 : 0;
        free(line);
        pause_briefly();
    }
}

/* The run must end within seconds, with 130. */
static void expect_stop(hs_test_program *run) {
    const time_t before = time(NULL);
    hs_test_finish(run);
    cr_expect_eq(run->status, 130, "%d: %s", run->status, run->err);
    cr_expect_leq(time(NULL) - before, 10, "it took %lld seconds", (long long)(time(NULL) - before));
}

/* The records of an interrupted run, complete to the last one. */
static json_t *records_of_stopped(hs_test_program *run) {
    char *text = hs_test_read_file("r");
    json_t *records = hs_test_parse_lines(text);
    free(text);
    const json_t *end = hs_test_record(records, "end");
    cr_expect_str_eq(json_string_value(json_object_get(end, "outcome")), "interrupted");
    cr_expect(json_is_null(json_object_get(end, "success")));
    cr_expect_not_null(strstr(run->err, "interrupted"), "%s", run->err);
    return records;
}

Test(interrupt, finishes_the_step) {
    static const int signals[] = {SIGINT, SIGTERM};
    for (size_t i = 0; i < 2; ++i) {
        hs_test_program run = hs_test_start(
            (const char *const[]){SMALL, "--data", "text", "--steps", "100000000", "--records", "r", NULL});
        wait_for_lines("r", 5);
        kill(run.pid, signals[i]);
        expect_stop(&run);
        json_t *records = records_of_stopped(&run);
        json_t *updates = hs_test_records_of(records, "update");
        const json_t *totals = json_object_get(hs_test_record(records, "end"), "totals");
        cr_expect_eq(json_integer_value(json_object_get(totals, "steps")), (json_int_t)json_array_size(updates));
        json_decref(updates);
        json_decref(records);
        hs_test_program_free(&run);
        cr_assert_eq(unlink("r"), 0);
    }
}

Test(interrupt, ends_a_sample) {
    hs_test_program run =
        hs_test_start((const char *const[]){SMALL, "--data", "text", "--held-out", "0", "--steps", "1",
                                            "--sample-tokens", "1000000", "--records", "r", NULL});
    wait_for_lines("r", 2); /* the sample is what comes after the update */
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    kill(run.pid, SIGINT);
    expect_stop(&run);
    json_t *records = records_of_stopped(&run);
    json_t *samples = hs_test_records_of(records, "sample");
    cr_expect_eq(json_array_size(samples), 0, "half a sample is none");
    json_decref(samples);
    json_decref(records);
    hs_test_program_free(&run);
}

/* One step of this takes far longer than the test waits. */
#define ENDLESS_STEP                                                                                                   \
    "train", "--data", "text", "--layers", "8", "--width", "512", "--heads", "4", "--context", "64", "--batch-size",   \
        "32", "--micro-batches", "2000", "--threads", "1", "--quiet", "--steps", "1", "--records", "r"

Test(interrupt, a_second_one_of_either_kind_stops_at_once) {
    static const int pairs[][2] = {{SIGINT, SIGINT}, {SIGINT, SIGTERM}, {SIGTERM, SIGINT}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; ++i) {
        hs_test_program run = hs_test_start((const char *const[]){ENDLESS_STEP, NULL});
        wait_for_lines("r", 1);
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        kill(run.pid, pairs[i][0]);
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        kill(run.pid, pairs[i][1]);
        expect_stop(&run);
        hs_test_program_free(&run);
        cr_assert_eq(unlink("r"), 0);
    }
}

static void expect_stop_while_waiting(const char *const *arguments, bool open_at_the_other_end) {
    hs_test_program run = hs_test_start(arguments);
    if (open_at_the_other_end) {
        for (int i = 0; i < 1000 && open("pipe", O_WRONLY | O_NONBLOCK) < 0; ++i)
            pause_briefly();
    }
    wait_for_sleep(run.pid);
    kill(run.pid, SIGINT);
    expect_stop(&run);
    cr_expect_not_null(strstr(run.err, "interrupted"), "%s", run.err);
    cr_expect_null(strstr(run.err, "Interrupted system call"), "%s", run.err);
    hs_test_program_free(&run);
}

Test(interrupt, ends_the_wait_for_a_pipe) {
    cr_assert_eq(mkfifo("pipe", 0600), 0);
    static const char *const reads[] = {SMALL, "--data", "pipe", "--records", "r", NULL};
    static const char *const writes[] = {SMALL, "--data", "text", "--records", "pipe", NULL};
    expect_stop_while_waiting(reads, false);
    expect_stop_while_waiting(writes, false);
    expect_stop_while_waiting(reads, true);
    cr_expect_neq(access("r", F_OK), 0);
}
