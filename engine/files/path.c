#include "engine/files/path.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

hs_shown_path hs_show_path(const char *path) {
    hs_shown_path shown;
    const size_t room = sizeof shown.text - 4, length = strlen(path);
    (void)snprintf(shown.text, sizeof shown.text, "%s%s", length > room ? "..." : "",
                   length > room ? path + length - room : path);
    return shown;
}

char *hs_format(const char *format, ...) {
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    const int length = vsnprintf(NULL, 0, format, list);
    char *text = length >= 0 ? malloc((size_t)length + 1) : NULL;
    if (text != NULL)
        (void)vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    va_end(list);
    return text;
}

char *hs_folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        return hs_format(".");
    return slash == path ? hs_format("/") : hs_format("%.*s", (int)(slash - path), path);
}
