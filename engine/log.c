#include "engine/log.h"

#include <stdarg.h>
#include <stdio.h>

void hs_say(const hs_messages *log, hstep_log_level level, const char *format, ...) {
    char message[1024];
    va_list arguments;
    if (log->function == NULL)
        return;
    va_start(arguments, format);
    (void)vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    log->function(level, message, log->user);
}
