/* For memmem. */
#define _GNU_SOURCE
/* What a shell or a system may do to the trainer: closed descriptors, limits, another way to start it, one file in two
   roles. */
#include <elf.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "support/program.h"

static const char TEXT[] = "the quick brown fox jumps over the lazy dog. the quick brown fox jumps over it again.";

static void enter(void) {
    hs_test_enter_folder();
    hs_test_write_file("text", TEXT);
}

TestSuite(surroundings, .init = enter, .fini = hs_test_leave_folder);

#define SIZES                                                                                                          \
    " --layers 1 --width 8 --heads 2 --feed-forward 8 --context 8 --batch-size 2 --threads 1 --sample-tokens 4 "
#define TRAIN "'" HS_TEST_TRAINER "' train --data text" SIZES

/* Runs a shell command. Its exit status, or 128 + signal. */
static int shell(const char *command) {
    const int status = system(command);
    cr_assert_neq(status, -1);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void expect_whole_records(const char *path, const char *what) {
    char *text = hs_test_read_file(path);
    json_t *records = hs_test_parse_lines(text);
    cr_expect_gt(json_array_size(records), 1, "%s", what);
    json_decref(records);
    free(text);
}

Test(surroundings, closed_descriptors_are_not_taken_for_records) {
    for (int closed = 1; closed < 8; ++closed) {
        const bool no_output = closed & 2;
        char command[2000];
        snprintf(command, sizeof command, "exec %s %s %s; " TRAIN "--steps 2 --records r", closed & 1 ? "<&-" : "",
                 no_output ? ">&-" : ">out", closed & 4 ? "2>&-" : "2>err");
        const int status = shell(command);
        cr_expect_eq(status, no_output ? 4 : 0, "%s: %d: the sample has nowhere to go only without an output", command,
                     status);
        expect_whole_records("r", command);
        char *text = hs_test_read_file("r");
        json_t *records = hs_test_parse_lines(text);
        (void)hs_test_record(records, "end");
        json_decref(records);
        free(text);
    }
}

Test(surroundings, a_closed_output_cannot_be_written) {
    cr_expect_eq(shell(TRAIN "--steps 2 --quiet --records - >&- 2>err"), 4);
    cr_expect_eq(shell("'" HS_TEST_TRAINER "' --precision f64 >&- 2>err"), 4);
}

Test(surroundings, a_limit_on_the_size_of_files_is_4) {
    cr_expect_eq(shell("ulimit -f 8; " TRAIN "--steps 100 --records r --quiet 2>err"), 4);
    expect_whole_records("r", "limit");
    char *message = hs_test_read_file("err");
    cr_expect_not_null(strstr(message, "File too large"), "%s", message);
    free(message);
    /* Some OpenMP libraries need room for a small file of their own. */
    cr_expect_eq(shell("ulimit -f 8; '" HS_TEST_TRAINER "' --precision f64 >record 2>/dev/null"), 4);
}

Test(surroundings, records_do_not_overwrite_what_the_run_reads) {
    hs_test_write_file("other", TEXT);
    hs_test_write_file("config", "{\"steps\": 2}");
    cr_assert_eq(symlink("text", "soft"), 0);
    cr_assert_eq(link("text", "hard"), 0);
    static const char *const commands[] = {TRAIN "--records text",
                                           TRAIN "--records ./text",
                                           TRAIN "--records soft",
                                           TRAIN "--records hard",
                                           TRAIN "--records other --data other",
                                           TRAIN "--records config --config config",
                                           TRAIN "--records - 1<>text",
                                           TRAIN "--records - --data soft --data other >>other"};
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; ++i) {
        char command[2000];
        snprintf(command, sizeof command, "{ %s; } 2>err", commands[i]);
        cr_expect_eq(shell(command), 2, "%s", command);
        char *message = hs_test_read_file("err"), *text = hs_test_read_file("text"),
             *other = hs_test_read_file("other");
        cr_expect_not_null(strstr(message, "--records"), "%s: %s", command, message);
        cr_expect_str_eq(text, TEXT, "%s", command);
        cr_expect_str_eq(other, TEXT, "%s", command);
        free(message);
        free(text);
        free(other);
    }
    char *config = hs_test_read_file("config");
    cr_expect_str_eq(config, "{\"steps\": 2}");
    free(config);
    cr_expect_eq(shell(TRAIN "--records other --steps 2 --quiet"), 0, "a file that the run does not read");
}

/* The environment of ctest says how threads wait; without that the program starts itself again. */
static void forget_how_to_wait(void) {
    cr_assert(unsetenv("OMP_WAIT_POLICY") == 0 && unsetenv("GOMP_SPINCOUNT") == 0 && unsetenv("KMP_BLOCKTIME") == 0);
}

Test(surroundings, the_process_keeps_its_name) {
    forget_how_to_wait();
    hs_test_program run = HS_TEST_RUN("--version");
    hs_test_program_free(&run);
    run = hs_test_start((const char *const[]){"train", "--data", "text", "--context", "8", "--quiet", "--records", "r",
                                              "--steps", "100000", "--width", "8", NULL});
    for (int i = 0; i < 1000 && access("r", F_OK) != 0; ++i)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/comm", (int)run.pid);
    char *name = hs_test_read_file(path);
    snprintf(path, sizeof path, "/proc/%d/environ", (int)run.pid);
    FILE *file = fopen(path, "r");
    char environment[1 << 16];
    const size_t size = fread(environment, 1, sizeof environment, file);
    fclose(file);
    kill(run.pid, SIGKILL);
    hs_test_finish(&run);
    cr_expect_str_eq(name, "trainer\n");
    cr_expect_not_null(memmem(environment, size, "GOMP_SPINCOUNT=", 15), "it did start itself again");
    free(name);
    hs_test_program_free(&run);
}

/* The loader that the program names. */
static void find_loader(char *loader, size_t size) {
    FILE *file = fopen(HS_TEST_TRAINER, "rb");
    Elf64_Ehdr header;
    cr_assert_eq(fread(&header, sizeof header, 1, file), 1);
    for (unsigned i = 0; i < header.e_phnum; ++i) {
        Elf64_Phdr part;
        fseek(file, (long)(header.e_phoff + i * sizeof part), SEEK_SET);
        cr_assert_eq(fread(&part, sizeof part, 1, file), 1);
        if (part.p_type != PT_INTERP)
            continue;
        cr_assert_lt(part.p_filesz, size);
        fseek(file, (long)part.p_offset, SEEK_SET);
        cr_assert_eq(fread(loader, part.p_filesz, 1, file), 1);
    }
    fclose(file);
}

Test(surroundings, it_runs_through_the_loader_and_under_another_name) {
    forget_how_to_wait();
    char loader[200] = "", command[2000];
    find_loader(loader, sizeof loader);
    cr_assert_str_not_empty(loader);
    snprintf(command, sizeof command, "'%s' " TRAIN "--steps 2 --records r --quiet 2>err", loader);
    cr_expect_eq(shell(command), 0, "%s", command);
    expect_whole_records("r", command);
    cr_assert_eq(symlink(HS_TEST_TRAINER, "another"), 0);
    cr_expect_eq(shell("./another train --data text" SIZES "--steps 2 --records r --quiet"), 0);
    cr_expect_eq(shell("PATH=$PWD:$PATH another train --data text" SIZES "--steps 2 --records r --quiet"), 0);
}

Test(surroundings, a_file_named_as_standard_output_is_left_alone_at_a_resume) {
    cr_assert_eq(shell(TRAIN "--steps 2 --out run --quiet && cp run/records.jsonl ./- && cp ./- before"), 0);
    cr_assert_eq(shell(TRAIN "--steps 3 --out run --resume --allow-changes --records - --quiet >out"), 0);
    cr_expect(hs_test_same_file("-", "before"));
    char *text = hs_test_read_file("out");
    json_t *records = hs_test_parse_lines(text);
    cr_expect_not_null(hs_test_record(records, "run"));
    cr_expect_eq(json_integer_value(json_object_get(hs_test_record(records, "resume"), "step")), 2);
    json_decref(records);
    free(text);
}
