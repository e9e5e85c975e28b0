#define _POSIX_C_SOURCE 200809L /* clock_gettime */

#include "engine/files/atomic.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/error.h"
#include "engine/files/names.h"
#include "engine/files/path.h"

/* Names tried before a folder is given up in which every one is taken. */
enum { ATTEMPTS = 16 };

static hstep_status fail_write(const hs_atomic_file *file, const char *doing, int reason, hstep_error *error) {
    const char *advice = reason == ENOSPC || reason == EDQUOT ? "make room or choose another folder"
                         : reason == ENOENT || reason == EACCES || reason == EROFS || reason == ENOTDIR
                             ? "name a folder that is there and may be written"
                             : "look after the disk or choose another folder";
    return hs_fail(error, HSTEP_ERROR_OUTPUT_FILE, "cannot write '%s': %s: %s; nothing was changed, %s",
                   hs_show_path(file->path).text, doing, strerror(reason), advice);
}

static uint64_t clock_nanoseconds(void) {
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void close_silently(hs_atomic_file *file) {
    if (file->descriptor >= 0)
        (void)file->files->close(file->files->state, file->descriptor);
    file->descriptor = -1;
}

/* ---- Beginning ---- */

/* Refuses to put a file in the place of a device, a pipe or a folder. */
static hstep_status check_target(const hs_atomic_file *file, hstep_error *error) {
    hs_file_status status;
    if (file->files->status_of_path(file->files->state, file->path, &status) != 0)
        return errno == ENOENT ? HSTEP_OK : fail_write(file, "looking for an older file", errno, error);
    HS_RETURN_IF(!status.regular, error, HSTEP_ERROR_OUTPUT_FILE,
                 "cannot write '%s': what is there is no regular file; choose another name",
                 hs_show_path(file->path).text);
    return HSTEP_OK;
}

/*
 * Locks the new file. A cleaner may have taken it for a leftover between its making and now: then it is gone, or about
 * to go, and *lost says so. Where the file system has no locks, cleaners cannot lock either and leave the file alone.
 */
static hstep_status lock_new(hs_atomic_file *file, bool *lost, hstep_error *error) {
    hs_file_status status;
    *lost = file->files->lock(file->files->state, file->descriptor) != 0 && errno == EWOULDBLOCK;
    if (*lost)
        return HSTEP_OK;
    if (file->files->status(file->files->state, file->descriptor, &status) != 0)
        return fail_write(file, "looking at the temporary file", errno, error);
    *lost = status.links == 0;
    return HSTEP_OK;
}

static hstep_status create(hs_atomic_file *file, hstep_error *error) {
    for (int i = 0; i < ATTEMPTS; i++) {
        free(file->temporary);
        file->temporary =
            hs_format("%s.%ld-%llx.tmp", file->path, (long)getpid(), (unsigned long long)clock_nanoseconds());
        if (file->temporary == NULL)
            return hs_fail_memory(error, "the name of a file");
        file->descriptor = hs_files_open(file->files, file->temporary, HS_FILE_CREATE);
        if (file->descriptor < 0 && errno != EEXIST)
            return fail_write(file, "making a temporary file beside it", errno, error);
        if (file->descriptor < 0)
            continue;
        bool lost = false;
        HS_FORWARD(lock_new(file, &lost, error));
        if (!lost)
            return HSTEP_OK;
        close_silently(file);
        (void)file->files->remove(file->files->state, file->temporary);
    }
    return fail_write(file, "making a temporary file beside it", EEXIST, error);
}

hstep_status hs_atomic_begin(hs_atomic_file *file, const hs_files *files, const char *path, hstep_error *error) {
    *file = (hs_atomic_file){.files = files, .descriptor = -1, .path = hs_format("%s", path)};
    if (file->path == NULL)
        return hs_fail_memory(error, "the name of a file");
    hstep_status status = check_target(file, error);
    if (status == HSTEP_OK)
        status = create(file, error);
    if (status != HSTEP_OK)
        hs_atomic_abandon(file);
    return status;
}

/* ---- Writing ---- */

hstep_status hs_atomic_write(hs_atomic_file *file, const void *data, size_t size, uint64_t offset, hstep_error *error) {
    const unsigned char *at = data;
    while (size > 0) {
        const ssize_t written = file->files->write(file->files->state, file->descriptor, at, size, offset);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return fail_write(file, "writing", written < 0 ? errno : EIO, error);
        at += written;
        size -= (size_t)written;
        offset += (uint64_t)written;
    }
    return HSTEP_OK;
}

void hs_atomic_abandon(hs_atomic_file *file) {
    /* Removed before it is unlocked: afterwards the name could be another's. */
    if (file->descriptor >= 0)
        (void)file->files->remove(file->files->state, file->temporary);
    close_silently(file);
    free(file->path);
    free(file->temporary);
    *file = (hs_atomic_file){.descriptor = -1};
}

/* ---- Committing ---- */

static int sync_file(const hs_files *files, int descriptor) {
    int synced;
    do
        synced = files->sync(files->state, descriptor);
    while (synced != 0 && errno == EINTR);
    return synced;
}

/* EINVAL: a file system whose folders need no syncing. */
static int sync_folder(const hs_files *files, const char *folder) {
    const int descriptor = hs_files_open(files, folder, HS_FILE_FOLDER);
    if (descriptor < 0)
        return -1;
    const int synced = sync_file(files, descriptor) != 0 && errno != EINVAL ? -1 : 0;
    const int reason = errno;
    (void)files->close(files->state, descriptor);
    errno = reason;
    return synced;
}

/*
 * The file must be on the disk before it gets its name, or a loss of power could leave a name with nothing behind it.
 * It is renamed while it is open, and so locked: closed, it could be taken for a leftover.
 */
static hstep_status sync_and_rename(hs_atomic_file *file, hstep_error *error) {
    if (sync_file(file->files, file->descriptor) != 0)
        return fail_write(file, "syncing", errno, error);
    if (file->files->rename(file->files->state, file->temporary, file->path) != 0)
        return fail_write(file, "renaming the temporary file", errno, error);
    return HSTEP_OK;
}

hstep_status hs_atomic_commit(hs_atomic_file *file, hstep_error *error) {
    char *folder = hs_folder_of(file->path);
    hstep_status status = folder != NULL ? sync_and_rename(file, error) : hs_fail_memory(error, "the name of a folder");
    if (status == HSTEP_OK) {
        const int closed = file->files->close(file->files->state, file->descriptor);
        file->descriptor = -1;
        if (closed != 0 || sync_folder(file->files, folder) != 0)
            status = hs_fail(error, HSTEP_ERROR_OUTPUT_FILE,
                             "'%s' is written whole, but the system could not promise that it would outlast a loss of "
                             "power: %s; look after the disk",
                             hs_show_path(file->path).text, strerror(errno));
    }
    free(folder);
    hs_atomic_abandon(file);
    return status;
}

/* ---- Leftovers ---- */

/* Goes back from `end` over characters of `set`. */
static size_t back_over(const char *name, size_t end, const char *set) {
    while (end > 0 && strchr(set, name[end - 1]) != NULL)
        end--;
    return end;
}

size_t hs_temporary_base(const char *name) {
    static const char ending[] = ".tmp";
    const size_t length = strlen(name);
    if (length < sizeof ending || strcmp(name + length - (sizeof ending - 1), ending) != 0)
        return 0;
    const size_t end = length - (sizeof ending - 1), clock = back_over(name, end, "0123456789abcdef");
    if (clock == end || clock == 0 || name[clock - 1] != '-')
        return 0;
    const size_t process = back_over(name, clock - 1, "0123456789");
    return process < clock - 1 && process > 0 && name[process - 1] == '.' ? process - 1 : 0;
}

typedef struct ownership {
    bool (*ours)(const char *name, size_t length);
} ownership;

static bool is_leftover(void *context, const char *name) {
    const ownership *of = context;
    const size_t base = hs_temporary_base(name);
    return base > 0 && of->ours(name, base);
}

/* A file whose lock can be had has no writer. */
static bool remove_leftover(const hs_files *files, const char *path) {
    const int descriptor = hs_files_open(files, path, HS_FILE_WRITE);
    if (descriptor < 0)
        return false;
    hs_file_status status;
    const bool removed = files->lock(files->state, descriptor) == 0 &&
                         files->status(files->state, descriptor, &status) == 0 && status.regular && status.links > 0 &&
                         files->remove(files->state, path) == 0;
    (void)files->close(files->state, descriptor);
    return removed;
}

hstep_status hs_remove_leftovers(const hs_files *files, const char *folder,
                                 bool (*ours)(const char *name, size_t length), size_t *removed, hstep_error *error) {
    hs_names names;
    *removed = 0;
    HS_FORWARD(hs_names_read(files, folder, is_leftover, &(ownership){ours}, &names, error));
    hstep_status status = HSTEP_OK;
    for (size_t i = 0; i < names.count && status == HSTEP_OK; i++) {
        char *path = hs_format("%s/%s", folder, names.items[i]);
        if (path != NULL)
            *removed += remove_leftover(files, path);
        else
            status = hs_fail_memory(error, "the name of a file");
        free(path);
    }
    hs_names_free(&names);
    return status;
}
