#include "trainer/train/watching/progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "trainer/train/watching/clock.h"

static const double TERMINAL_SECONDS = 0.1, PLAIN_SECONDS = 10;

enum { BAR = 20, SHORTEST_BAR = 4, LINE = 240 };

/* A gated lever counts where it serves a precision of the run. */
static bool takes_part(const hstep_lever *lever, const bool in_use[HS_PRECISIONS]) {
    return lever->state == HSTEP_LEVER_ACTIVE &&
           (lever->exact || (lever->gate != NULL && in_use[lever->gate->precision]));
}

/* Whether another active lever stands for this one too: cpu.avx512 for cpu.avx512-bf16. Bits are the same with both. */
static bool stands_behind_another(const hstep_lever *lever, const hstep_lever *levers, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        const size_t length = strlen(levers[i].name);
        if (lever->exact && levers[i].exact && levers[i].state == HSTEP_LEVER_ACTIVE &&
            strncmp(lever->name, levers[i].name, length) == 0 && lever->name[length] == '-')
            return true;
    }
    return false;
}

/* The family before the dot in a lever's name is that of the backend, which stands there already. A tilde says that
 * the bits are not the reference's. */
static void describe_computer(const hstep_context *context, const bool in_use[HS_PRECISIONS], char *text, size_t size) {
    snprintf(text, size, "%s", hstep_context_backend_name(context));
    const hstep_lever *levers;
    const size_t count = hstep_context_levers(context, &levers);
    for (size_t i = 0; i < count; ++i) {
        const size_t used = strlen(text);
        const char *dot = strrchr(levers[i].name, '.');
        if (takes_part(&levers[i], in_use) && !stands_behind_another(&levers[i], levers, count))
            snprintf(text + used, size - used, "%c%s", levers[i].exact ? '+' : '~',
                     dot != NULL ? dot + 1 : levers[i].name);
    }
}

/* What a person should know before a long run: bits that are not the reference's, and kernels found wrong. */
static void say_levers(hs_progress *progress, const hstep_context *context, const bool in_use[HS_PRECISIONS]) {
    const hstep_lever *levers;
    const size_t count = hstep_context_levers(context, &levers);
    for (size_t i = 0; i < count; ++i) {
        if (levers[i].state == HSTEP_LEVER_REJECTED)
            hs_progress_say(progress, "lever %s is rejected, the exact kernels run: %s", levers[i].name,
                            levers[i].reason);
        else if (!levers[i].exact && takes_part(&levers[i], in_use))
            hs_progress_say(progress,
                            "lever %s is active: results keep the policy's bounds, not the reference's bits "
                            "(--levers exact keeps them)",
                            levers[i].name);
    }
}

void hs_progress_start(hs_progress *progress, const hstep_context *context, const bool in_use[HS_PRECISIONS],
                       uint64_t done, uint64_t steps, bool quiet) {
    *progress = (hs_progress){.quiet = quiet, .terminal = isatty(STDERR_FILENO) == 1, .before = done, .steps = steps};
    describe_computer(context, in_use, progress->computer, sizeof progress->computer);
    say_levers(progress, context, in_use);
    progress->start = progress->shown = hs_now();
}

/* The first steps are slow, with memory and threads to be had, and say nothing about the others. */
static void describe_time_left(const hs_progress *progress, uint64_t done, double now, char *text, size_t size) {
    enum { STEPS_TO_JUDGE_BY = 5 };
    text[0] = '\0';
    if (done < progress->before + STEPS_TO_JUDGE_BY)
        return;
    const double seconds =
        (now - progress->start) / (double)(done - progress->before) * (double)(progress->steps - done);
    const uint64_t whole = (uint64_t)(seconds + 0.5);
    if (whole >= 3600)
        snprintf(text, size, " %" PRIu64 ":%02" PRIu64 ":%02" PRIu64 " left", whole / 3600, whole / 60 % 60,
                 whole % 60);
    else
        snprintf(text, size, " %" PRIu64 ":%02" PRIu64 " left", whole / 60, whole % 60);
}

/* A scale is a power of two, and a large one is short as such. */
static void describe_scale(double scale, char *text, size_t size) {
    int exponent;
    if (scale < 100000 || frexp(scale, &exponent) != 0.5)
        snprintf(text, size, "%g", scale);
    else
        snprintf(text, size, "2^%d", exponent - 1);
}

/* Its digits beyond the second are noise. */
static void describe_speed(double speed, char *text, size_t size) {
    if (speed < 10000)
        snprintf(text, size, "%.0f tokens/s", speed);
    else
        snprintf(text, size, "%.0fk tokens/s", speed / 1000);
}

static int terminal_width(void) {
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
}

/* The bar gets the room that the words leave. A line that wraps could not be drawn over. */
static void draw_bar(hs_progress *progress, double share, const char *line) {
    const int width = terminal_width() - 1, room = width - (int)strlen(line) - (int)strlen("[] ");
    const int cells = room < BAR ? room : BAR;
    char bar[BAR + 4] = "";
    if (cells >= SHORTEST_BAR) {
        memset(bar, '-', (size_t)cells + 1);
        memset(bar + 1, '#', (size_t)(share * cells));
        bar[0] = '[';
        memcpy(bar + 1 + cells, "] ", sizeof "] ");
    }
    fprintf(stderr, "\r\033[K%s%.*s", bar, width, line);
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
    char scale[32], speed[32], left[48], skips[48] = "", line[LINE];
    describe_scale(update->loss_scale, scale, sizeof scale);
    describe_speed(progress->speed, speed, sizeof speed);
    describe_time_left(progress, done, now, left, sizeof left);
    if (skipped > 0)
        snprintf(skips, sizeof skips, " skipped %" PRIu64, skipped);
    snprintf(line, sizeof line, "%" PRIu64 "/%" PRIu64 " loss %.4f scale %s %s%s %s", done, progress->steps,
             update->loss, scale, speed, left, progress->computer);
    /* The part to lose where a terminal is narrow. */
    if (!progress->terminal || strlen(line) + strlen(skips) < (size_t)terminal_width())
        strncat(line, skips, sizeof line - strlen(line) - 1);
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
