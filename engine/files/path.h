/* Paths as messages show them, and as parts. */
#ifndef HS_ENGINE_FILES_PATH_H
#define HS_ENGINE_FILES_PATH_H

#include <stddef.h>

/* A path as a message shows it: the end of a long one says more than its beginning, and the reason needs room too. */
typedef struct hs_shown_path {
    char text[152];
} hs_shown_path;

hs_shown_path hs_show_path(const char *path);

/* Text from malloc made as printf makes it; NULL without memory. */
char *hs_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The folder that holds a path, "." for a bare name; from malloc, NULL without memory. */
char *hs_folder_of(const char *path);

#endif
