/* Any bytes as --config FILE: options, or a message and an exit status. */
#define _POSIX_C_SOURCE 200809L
#undef NDEBUG /* assertions judge here, in every build */

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz/target.h"
#include "trainer/exit.h"
#include "trainer/options/options.h"
#include "trainer/report.h"

/* Messages are made, so that what they show is looked at, and kept to themselves. */
static char message[4096];

void hs_report(const char *format, ...) {
    va_list list;
    va_start(list, format);
    (void)vsnprintf(message, sizeof message, format, list);
    va_end(list);
}

int hs_report_usage(const char *command, const char *format, ...) {
    va_list list;
    (void)command;
    va_start(list, format);
    (void)vsnprintf(message, sizeof message, format, list);
    va_end(list);
    return HS_EXIT_USAGE;
}

int hs_report_error(const hstep_error *error) {
    hs_report("%s", error->message);
    return HS_EXIT_INPUT;
}

int hs_report_no_memory(void) { return HS_EXIT_UNAVAILABLE; }

hstep_status hs_no_memory(hstep_error *error) { return error->status = HSTEP_ERROR_MEMORY; }

hs_digits hs_digits_of(double number) {
    hs_digits digits;
    (void)snprintf(digits.text, sizeof digits.text, "%.17g", number);
    return digits;
}

const char *hs_report_mark(const char *word) { return word[0] == '\0' ? "'" : ""; }

/* The reader takes a path. The file has no name any more when it is read, so that nothing is left of a crash. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char name[] = "/tmp/halfstep-fuzz-XXXXXX", path[64];
    const int file = mkstemp(name);
    assert(file >= 0 && unlink(name) == 0);
    assert(write(file, data, size) == (ssize_t)size);
    (void)snprintf(path, sizeof path, "/dev/fd/%d", file);
    char *arguments[] = {"train", "--config", path, NULL};
    hs_options options;
    message[0] = '\0';
    int status = hs_options_parse(3, arguments, &options);
    if (status == HS_EXIT_DONE && !options.help)
        status = hs_options_check(&options);
    assert(status == HS_EXIT_DONE || status == HS_EXIT_USAGE || status == HS_EXIT_INPUT);
    assert((status == HS_EXIT_DONE) == (message[0] == '\0'));
    hs_options_free(&options);
    (void)close(file);
    return 0;
}

size_t hs_fuzz_example(size_t index, uint8_t *data, size_t room) {
    static const char *const examples[] = {
        "{\"data\": [\"a.txt\", \"b.txt\"], \"precision\": \"fp16\", \"loss-scale\": 65536, \"learning-rate\": 1e-3}",
        "{\"steps\": 100, \"batch-size\": 4, \"context\": 64, \"quiet\": true, \"schedule\": \"cosine\"}",
        "{\"layers\": 2, \"width\": 64, \"heads\": 4, \"kv-heads\": 2, \"feed-forward\": 128, \"levers\": \"exact\"}",
        "{}"};
    if (index >= sizeof examples / sizeof examples[0] || strlen(examples[index]) > room)
        return 0;
    memcpy(data, examples[index], strlen(examples[index]));
    return strlen(examples[index]);
}
