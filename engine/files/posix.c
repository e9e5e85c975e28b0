/* The table of file operations on a POSIX system. */
#define _DEFAULT_SOURCE /* flock */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/files/files.h"

/*
 * A descriptor that is none of the three standard ones, even where those are closed: what a program prints must not
 * land in a checkpoint. O_NONBLOCK lets the opening of a named pipe return, which is then refused as no regular file.
 */
static int posix_open(void *state, const char *path, hs_file_access access) {
    static const int flags[] = {[HS_FILE_READ] = O_RDONLY | O_NONBLOCK,
                                [HS_FILE_CREATE] = O_RDWR | O_CREAT | O_EXCL,
                                [HS_FILE_WRITE] = O_RDWR | O_NONBLOCK,
                                [HS_FILE_FOLDER] = O_RDONLY | O_DIRECTORY};
    (void)state;
    const int file = open(path, flags[access] | O_CLOEXEC, 0666);
    if (file < 0 || file > STDERR_FILENO)
        return file;
    const int moved = fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    const int reason = errno;
    (void)close(file);
    errno = reason;
    return moved;
}

static void take_status(const struct stat *found, hs_file_status *status) {
    *status = (hs_file_status){.size = found->st_size > 0 ? (uint64_t)found->st_size : 0,
                               .regular = S_ISREG(found->st_mode),
                               .links = (uint64_t)found->st_nlink};
}

static int posix_status(void *state, int file, hs_file_status *status) {
    (void)state;
    struct stat found;
    if (fstat(file, &found) != 0)
        return -1;
    take_status(&found, status);
    return 0;
}

static int posix_status_of_path(void *state, const char *path, hs_file_status *status) {
    (void)state;
    struct stat found;
    if (stat(path, &found) != 0)
        return -1;
    take_status(&found, status);
    return 0;
}

static int posix_lock(void *state, int file) {
    (void)state;
    return flock(file, LOCK_EX | LOCK_NB);
}

static ssize_t posix_read(void *state, int file, void *data, size_t size, uint64_t offset) {
    (void)state;
    return pread(file, data, size, (off_t)offset);
}

static ssize_t posix_write(void *state, int file, const void *data, size_t size, uint64_t offset) {
    (void)state;
    return pwrite(file, data, size, (off_t)offset);
}

static int posix_sync(void *state, int file) {
    (void)state;
    return fsync(file);
}

/* Linux closes the descriptor even when close is interrupted, so EINTR is no failure and no reason to repeat. */
static int posix_close(void *state, int file) {
    (void)state;
    return close(file) != 0 && errno != EINTR ? -1 : 0;
}

static int posix_rename(void *state, const char *from, const char *to) {
    (void)state;
    return rename(from, to);
}

static int posix_remove(void *state, const char *path) {
    (void)state;
    return unlink(path);
}

static int posix_list(void *state, const char *folder, bool (*visit)(void *context, const char *name), void *context) {
    (void)state;
    DIR *open = opendir(folder);
    if (open == NULL)
        return -1;
    const struct dirent *entry;
    while (errno = 0, (entry = readdir(open)) != NULL && visit(context, entry->d_name))
        ;
    const int reason = entry == NULL ? errno : 0;
    (void)closedir(open);
    errno = reason;
    return reason == 0 ? 0 : -1;
}

const hs_files hs_files_posix = {.open = posix_open,
                                 .status = posix_status,
                                 .status_of_path = posix_status_of_path,
                                 .lock = posix_lock,
                                 .read = posix_read,
                                 .write = posix_write,
                                 .sync = posix_sync,
                                 .close = posix_close,
                                 .rename = posix_rename,
                                 .remove = posix_remove,
                                 .list = posix_list};
