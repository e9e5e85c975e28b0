#include "support/faulty_files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Where the log ends in this operation it is only a further one of a run. */
static void log_operation(hs_test_faults *faults, const char *operation) {
    const size_t used = strlen(faults->log), length = strlen(operation);
    if (used >= length && strcmp(faults->log + used - length, operation) == 0)
        return;
    (void)snprintf(faults->log + used, sizeof faults->log - used, "%s%s", used > 0 ? " " : "", operation);
}

/* Counts a call; true when it is one that fails. */
static bool fails(void *state, const char *operation) {
    hs_test_faults *faults = state;
    faults->calls++;
    log_operation(faults, operation);
    if (faults->fails_at == 0 || faults->calls < faults->fails_at ||
        (faults->calls > faults->fails_at && !faults->from_there))
        return false;
    faults->failed = operation;
    errno = faults->reason;
    return true;
}

static bool interrupted(void *state) {
    hs_test_faults *faults = state;
    if (!faults->piecemeal || faults->interruptions++ % 2 == 0)
        return false;
    errno = EINTR;
    return true;
}

static size_t piece(void *state, size_t size) { return ((hs_test_faults *)state)->piecemeal && size > 13 ? 13 : size; }

static int faulty_open(void *state, const char *path, hs_file_access access) {
    if (fails(state, "open") || interrupted(state))
        return -1;
    const int file = hs_files_posix.open(NULL, path, access);
    ((hs_test_faults *)state)->open += file >= 0;
    return file;
}

static int faulty_status(void *state, int file, hs_file_status *status) {
    return fails(state, "status") ? -1 : hs_files_posix.status(NULL, file, status);
}

static int faulty_status_of_path(void *state, const char *path, hs_file_status *status) {
    return fails(state, "status_of_path") ? -1 : hs_files_posix.status_of_path(NULL, path, status);
}

static int faulty_lock(void *state, int file) { return fails(state, "lock") ? -1 : hs_files_posix.lock(NULL, file); }

static ssize_t faulty_read(void *state, int file, void *data, size_t size, uint64_t offset) {
    if (fails(state, "read") || interrupted(state))
        return -1;
    return hs_files_posix.read(NULL, file, data, piece(state, size), offset);
}

static ssize_t faulty_write(void *state, int file, const void *data, size_t size, uint64_t offset) {
    if (fails(state, "write") || interrupted(state))
        return -1;
    return hs_files_posix.write(NULL, file, data, piece(state, size), offset);
}

static int faulty_sync(void *state, int file) {
    return fails(state, "sync") || interrupted(state) ? -1 : hs_files_posix.sync(NULL, file);
}

/* Like the system's, it closes even when it fails. */
static int faulty_close(void *state, int file) {
    const bool failing = fails(state, "close");
    const int reason = errno;
    const int closed = hs_files_posix.close(NULL, file);
    ((hs_test_faults *)state)->open--;
    errno = reason;
    return failing ? -1 : closed;
}

static int faulty_rename(void *state, const char *from, const char *to) {
    return fails(state, "rename") ? -1 : hs_files_posix.rename(NULL, from, to);
}

static int faulty_remove(void *state, const char *path) {
    return fails(state, "remove") ? -1 : hs_files_posix.remove(NULL, path);
}

static int faulty_list(void *state, const char *folder, bool (*visit)(void *context, const char *name), void *context) {
    return fails(state, "list") ? -1 : hs_files_posix.list(NULL, folder, visit, context);
}

hs_files hs_test_faulty_files(hs_test_faults *faults) {
    return (hs_files){.state = faults,
                      .open = faulty_open,
                      .status = faulty_status,
                      .status_of_path = faulty_status_of_path,
                      .lock = faulty_lock,
                      .read = faulty_read,
                      .write = faulty_write,
                      .sync = faulty_sync,
                      .close = faulty_close,
                      .rename = faulty_rename,
                      .remove = faulty_remove,
                      .list = faulty_list};
}
