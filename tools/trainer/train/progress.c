#include "trainer/train/progress.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "trainer/train/clock.h"

static const double TERMINAL_SECONDS = 0.1, PLAIN_SECONDS = 10;

enum { BAR = 20, LINE = 240 };

static void describe_computer(const hstep_context *context, char *text, size_t size) {
    snprintf(text, size, "%s", hstep_context_backend_name(context));
    const hstep_lever *levers;
    const size_t count = hstep_context_levers(context, &levers);
    for (size_t i = 0; i < count; ++i) {
        const size_t used = strlen(text);
        if (levers[i].state == HSTEP_LEVER_ACTIVE)
            snprintf(text + used, size - used, " +%s", levers[i].name);
    }
}

void hs_progress_start(hs_progress *progress, const hstep_context *context, uint64_t steps, bool quiet) {
    *progress = (hs_progress){.quiet = quiet, .terminal = isatty(STDERR_FILENO) == 1, .steps = steps};
    describe_computer(context, progress->computer, sizeof progress->computer);
    progress->start = progress->shown = hs_now();
}

/* The first steps are slow, with memory and threads to be had, and say nothing about the others. */
static void describe_time_left(const hs_progress *progress, uint64_t done, double now, char *text, size_t size) {
    enum { STEPS_TO_JUDGE_BY = 5 };
    text[0] = '\0';
    if (done < STEPS_TO_JUDGE_BY)
        return;
    const double seconds = (now - progress->start) / (double)done * (double)(progress->steps - done);
    const uint64_t whole = (uint64_t)(seconds + 0.5);
    if (whole >= 3600)
        snprintf(text, size, "  %" PRIu64 ":%02" PRIu64 ":%02" PRIu64 " left", whole / 3600, whole / 60 % 60,
                 whole % 60);
    else
        snprintf(text, size, "  %" PRIu64 ":%02" PRIu64 " left", whole / 60, whole % 60);
}

static size_t terminal_width(void) {
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
}

static void draw_bar(hs_progress *progress, double share, const char *line) {
    char bar[BAR + 1] = "";
    const int filled = (int)(share * BAR);
    for (int i = 0; i < BAR; ++i)
        bar[i] = i < filled ? '#' : '-';
    char whole[LINE + BAR + 4];
    snprintf(whole, sizeof whole, "[%s] %s", bar, line);
    /* A line that wraps could not be drawn over. */
    fprintf(stderr, "\r\033[K%.*s", (int)terminal_width() - 1, whole);
    progress->drawn = true;
}

void hs_progress_update(hs_progress *progress, const hstep_update *update, uint64_t skipped) {
    progress->tokens += update->tokens;
    const double now = hs_now(), waited = now - progress->shown;
    const uint64_t done = update->outcome == HSTEP_APPLIED ? update->step : update->step - 1;
    if (progress->quiet || (waited < (progress->terminal ? TERMINAL_SECONDS : PLAIN_SECONDS) && update->attempt > 1 &&
                            done < progress->steps))
        return;
    const double training = waited - progress->paused;
    if (training > 0)
        progress->speed = (double)progress->tokens / training;
    char left[48], skips[48] = "", line[LINE];
    describe_time_left(progress, done, now, left, sizeof left);
    if (skipped > 0)
        snprintf(skips, sizeof skips, "  skipped %" PRIu64, skipped);
    snprintf(line, sizeof line, "%" PRIu64 "/%" PRIu64 "  loss %.4f  scale %g%s  %.0f tokens/s%s  %s", done,
             progress->steps, update->loss, update->loss_scale, skips, progress->speed, left, progress->computer);
    if (progress->terminal)
        draw_bar(progress, (double)done / (double)progress->steps, line);
    else
        fprintf(stderr, "%s\n", line);
    progress->shown = now;
    progress->tokens = 0;
    progress->paused = 0;
}

void hs_progress_pause(hs_progress *progress, double seconds) { progress->paused += seconds; }

void hs_progress_clear(hs_progress *progress) {
    if (progress->drawn)
        fputs("\r\033[K", stderr);
    progress->drawn = false;
}

void hs_progress_say(hs_progress *progress, const char *format, ...) {
    if (progress->quiet)
        return;
    hs_progress_clear(progress);
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}
