#include "engine/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void describe(hstep_error *error, hstep_status status, const char *operation, const char *format, va_list list) {
    if (error == NULL)
        return;
    error->status = status;
    (void)snprintf(error->operation, sizeof error->operation, "%s", operation);
    (void)vsnprintf(error->message, sizeof error->message, format, list);
}

hstep_status hs_fail(hstep_error *error, hstep_status status, const char *format, ...) {
    va_list list;
    va_start(list, format);
    describe(error, status, "", format, list);
    va_end(list);
    return status;
}

hstep_status hs_fail_operation(hstep_error *error, hstep_status status, const char *operation, const char *format,
                               ...) {
    va_list list;
    va_start(list, format);
    describe(error, status, operation, format, list);
    va_end(list);
    return status;
}

hstep_status hs_fail_memory(hstep_error *error, const char *what) {
    return hs_fail(error, HSTEP_ERROR_MEMORY, "no memory for %s; use a smaller model, batch or context", what);
}
