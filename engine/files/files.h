/*
 * What the engine asks of the system's files, as a table of functions: the tests have one that makes any single call
 * fail. Each function does what its POSIX namesake does: it returns -1 (or a negative count) and sets errno when it
 * fails, and an interrupted call may be repeated.
 */
#ifndef HS_ENGINE_FILES_FILES_H
#define HS_ENGINE_FILES_FILES_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef enum hs_file_access {
    HS_FILE_READ,   /* an existing file */
    HS_FILE_CREATE, /* a new one, to write; fails with EEXIST */
    HS_FILE_WRITE,  /* an existing one, to write: nobody but the cleaner of leftovers asks for it, to lock the file */
    HS_FILE_FOLDER  /* a folder, to sync it */
} hs_file_access;

typedef struct hs_file_status {
    uint64_t size;
    bool regular;
    uint64_t links; /* names that the file has; 0 when it was removed while it is open */
} hs_file_status;

typedef struct hs_files {
    void *state; /* the first argument of every call */
    int (*open)(void *state, const char *path, hs_file_access access);
    int (*status)(void *state, int file, hs_file_status *status);
    int (*status_of_path)(void *state, const char *path, hs_file_status *status); /* follows links */
    int (*lock)(void *state, int file); /* until the file is closed; fails with EWOULDBLOCK where another has it */
    ssize_t (*read)(void *state, int file, void *data, size_t size, uint64_t offset);
    ssize_t (*write)(void *state, int file, const void *data, size_t size, uint64_t offset);
    int (*sync)(void *state, int file);
    int (*close)(void *state, int file); /* the file is closed even when this fails */
    int (*rename)(void *state, const char *from, const char *to);
    int (*remove)(void *state, const char *path);
    /* Calls visit for every name in a folder until it returns false. */
    int (*list)(void *state, const char *folder, bool (*visit)(void *context, const char *name), void *context);
} hs_files;

/* The system's own. */
extern const hs_files hs_files_posix;

/* Opens, again where a signal interrupted it. */
static inline int hs_files_open(const hs_files *files, const char *path, hs_file_access access) {
    int file;
    do
        file = files->open(files->state, path, access);
    while (file < 0 && errno == EINTR);
    return file;
}

#endif
