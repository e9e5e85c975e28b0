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

/* Runs the trainer with a terminal as standard output and error; what it wrote, from malloc. */
static char *run_on_terminal(const char *const *arguments, unsigned short columns, int *status) {
    const int master = posix_openpt(O_RDWR | O_NOCTTY);
    cr_assert(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    const int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    cr_assert_geq(slave, 0);
    cr_assert_eq(ioctl(slave, TIOCSWINSZ, &(struct winsize){.ws_row = 25, .ws_col = columns}), 0);
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
    char *seen = run_on_terminal(arguments, 80, &status);
    cr_expect_eq(status, 0);
    cr_expect_not_null(strstr(seen, "trainer train"), "%s", seen);
    free(seen);
    hs_test_program run = hs_test_run(arguments + 1);
    cr_expect_eq(run.status, 0);
    cr_expect_str_empty(run.err, "no hint where no person reads");
    hs_test_program_free(&run);
}

/* Without step count, bar and name of the precision: what the run is given beside. */
#define RUN                                                                                                            \
    "trainer", "train", "--data", "text", "--layers", "1", "--width", "8", "--heads", "2", "--context", "8",           \
        "--batch-size", "2", "--feed-forward", "8", "--threads", "1", "--records", "r", "--sample-tokens", "0"

static void enter(void) {
    hs_test_enter_folder();
    hs_test_write_file("text", "some text to train on, some text to train on, some text to train on, some more text");
}

/* The last line that was drawn over itself, cut out of `seen`. */
static char *last_drawn(char *seen, const char *progress) {
    char *last = NULL;
    for (char *at = strstr(seen, "\r\033[K"); at != NULL; at = strstr(at + 1, "\r\033[K"))
        if (strstr(at, progress) != NULL)
            last = at + strlen("\r\033[K");
    cr_assert_not_null(last, "%s", seen);
    last[strcspn(last, "\r\n")] = '\0';
    return last;
}

Test(terminal, a_run_draws_one_line_over_itself, .init = enter, .fini = hs_test_leave_folder) {
    int status;
    static const char *const arguments[] = {RUN, "--steps", "9", NULL};
    char *seen = run_on_terminal(arguments, 120, &status);
    cr_assert_eq(status, 0, "%s", seen);
    cr_expect_not_null(strstr(seen, "records: r\r\n"));
    const char *last = last_drawn(seen, "9/9 loss ");
    cr_expect_eq(strncmp(last, "[####################] 9/9 loss ", 32), 0, "%s", last);
    free(seen);
}

/* The widest words there usually are: the bar gives way, and the words stay whole. */
Test(terminal, all_that_matters_is_seen_on_80_columns, .init = enter, .fini = hs_test_leave_folder) {
    enum { COLUMNS = 80 };
    static const struct {
        const char *precision, *scale, *steps, *done, *shown_scale;
    } runs[] = {{"bf16", "1", "9", "9/9 ", " scale 1 "},
                {"fp16", "65536", "1000", "1000/1000 ", " scale 65536 "},
                {"fp16", "16777216", "1000", "1000/1000 ", " scale "}};
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; ++i) {
        int status;
        const char *const arguments[] = {
            RUN,           "--steps",          runs[i].steps, "--precision", runs[i].precision, "--loss-scale",
            runs[i].scale, "--max-loss-scale", runs[i].scale, NULL};
        char *seen = run_on_terminal(arguments, COLUMNS, &status);
        cr_assert_eq(status, 0, "%s", seen);
        const char *last = last_drawn(seen, runs[i].done);
        cr_expect_leq(strlen(last), COLUMNS - 1, "it does not wrap: %s", last);
        const char *const words[] = {runs[i].done, "loss ", runs[i].shown_scale, " tokens/s ", " left ", " cpu+"};
        for (size_t j = 0; j < sizeof words / sizeof words[0]; ++j)
            cr_expect_not_null(strstr(last, words[j]), "no '%s' in: %s", words[j], last);
        /* The name of a lever is not cut: a line that was cut fills the terminal. */
        cr_expect(strlen(last) < COLUMNS - 1 || last[0] == '[', "%s", last);
        free(seen);
    }
}
