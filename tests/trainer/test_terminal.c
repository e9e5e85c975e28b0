/* What a person at a terminal sees: the hint of the demonstration and the bar of a run. */
/* For pseudo-terminals. */
#define _XOPEN_SOURCE 700

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "support/program.h"

/* Runs the trainer with a terminal of 100 columns as standard output and error; what it wrote, from malloc. */
static char *run_on_terminal(const char *const *arguments, int *status) {
    const int master = posix_openpt(O_RDWR | O_NOCTTY);
    cr_assert(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    const int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    cr_assert_geq(slave, 0);
    cr_assert_eq(ioctl(slave, TIOCSWINSZ, &(struct winsize){.ws_row = 25, .ws_col = 100}), 0);
    const pid_t child = fork();
    if (child == 0) {
        dup2(slave, STDOUT_FILENO);
        dup2(slave, STDERR_FILENO);
        execv(HS_TEST_TRAINER, (char *const *)(size_t)arguments);
        _exit(127);
    }
    close(slave);
    char *text = calloc(1, 1 << 20);
    size_t size = 0;
    for (ssize_t got = 1; got > 0 && size<(1 << 20) - 1; size += got> 0 ? (size_t)got : 0)
        got = read(master, text + size, (1 << 20) - 1 - size);
    cr_assert_eq(waitpid(child, status, 0), child);
    close(master);
    return text;
}

Test(terminal, the_demonstration_says_how_to_train) {
    int status;
    static const char *const arguments[] = {"trainer", "--precision", "f64", NULL};
    char *seen = run_on_terminal(arguments, &status);
    cr_expect_eq(status, 0);
    cr_expect_not_null(strstr(seen, "trainer train"), "%s", seen);
    free(seen);
    hs_test_program run = hs_test_run(arguments + 1);
    cr_expect_eq(run.status, 0);
    cr_expect_str_empty(run.err, "no hint where no person reads");
    hs_test_program_free(&run);
}

Test(terminal, a_run_draws_one_line_over_itself, .init = hs_test_enter_folder, .fini = hs_test_leave_folder) {
    hs_test_write_file("text", "some text to train on, some text to train on, some text to train on, some more text");
    int status;
    static const char *const arguments[] = {
        "trainer", "train", "--data",    "text", "--layers",     "1", "--width",         "8",
        "--heads", "2",     "--context", "8",    "--batch-size", "2", "--feed-forward",  "8",
        "--steps", "9",     "--threads", "1",    "--records",    "r", "--sample-tokens", "0",
        NULL};
    char *seen = run_on_terminal(arguments, &status);
    cr_assert_eq(status, 0, "%s", seen);
    cr_expect_not_null(strstr(seen, "\r\033[K["), "%s", seen);
    const char *last = strstr(seen, "[####################] 9/9  loss ");
    cr_assert_not_null(last, "%s", seen);
    cr_expect_leq(strcspn(last, "\r\n"), 99, "it does not wrap: %.120s", last);
    cr_expect_not_null(strstr(last, "tokens/s"));
    cr_expect_not_null(strstr(last, "scale 1"));
    cr_expect_not_null(strstr(last, "cpu +"), "the active levers are named");
    cr_expect_not_null(strstr(seen, "records: r\r\n"));
    free(seen);
}
