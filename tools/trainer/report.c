#include "trainer/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/exit.h"

static void print(const char *format, va_list arguments) {
    fputs("trainer: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
}

void hs_report(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print(format, arguments);
    va_end(arguments);
}

int hs_report_usage(const char *command, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print(format, arguments);
    va_end(arguments);
    fprintf(stderr, "See: trainer %s%s--help\n", command != NULL ? command : "", command != NULL ? " " : "");
    return HS_EXIT_USAGE;
}

int hs_report_no_memory(void) {
    hs_report("there is not enough memory: close other programs");
    return HS_EXIT_UNAVAILABLE;
}

hstep_status hs_no_memory(hstep_error *error) {
    *error = (hstep_error){.status = HSTEP_ERROR_MEMORY};
    snprintf(error->message, sizeof error->message, "there is not enough memory: use a smaller model or batch");
    return HSTEP_ERROR_MEMORY;
}

hs_digits hs_digits_of(double number) {
    hs_digits digits;
    for (int precision = 15; precision <= 17; ++precision) {
        snprintf(digits.text, sizeof digits.text, "%.*g", precision, number);
        if (strtod(digits.text, NULL) == number)
            break;
    }
    return digits;
}

const char *hs_report_mark(const char *word) {
    return word[0] == '\0' || word[strcspn(word, " \t\n")] != '\0' ? "'" : "";
}

static int exit_status(hstep_status status) {
    switch (status) {
    case HSTEP_OK:
        return HS_EXIT_DONE;
    case HSTEP_ERROR_ARGUMENT:
    case HSTEP_ERROR_SHAPE:
    case HSTEP_ERROR_TOKEN:
    case HSTEP_ERROR_NO_TARGETS:
        return HS_EXIT_USAGE;
    case HSTEP_ERROR_INPUT_FILE:
        return HS_EXIT_INPUT;
    case HSTEP_ERROR_OUTPUT_FILE:
        return HS_EXIT_OUTPUT;
    case HSTEP_ERROR_BACKEND_UNAVAILABLE:
    case HSTEP_ERROR_UNSUPPORTED:
    case HSTEP_ERROR_MEMORY:
        return HS_EXIT_UNAVAILABLE;
    case HSTEP_ERROR_NONFINITE_FORWARD:
    case HSTEP_ERROR_MISSING_GRADIENT:
    case HSTEP_ERROR_DIRTY_GRADIENT:
    case HSTEP_ERROR_STALE_TAPE:
        break;
    }
    return HS_EXIT_NUMERICAL_STOP;
}

int hs_report_error(const hstep_error *error) {
    if (error->operation[0] != '\0' && strstr(error->message, error->operation) == NULL)
        hs_report("%s (operation %s)", error->message, error->operation);
    else
        hs_report("%s", error->message);
    return exit_status(error->status);
}
