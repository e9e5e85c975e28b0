#include "engine/records/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/error.h"

/* No buffer stands between a record and the system, so that a line is either in the file or reported. */
struct hstep_records {
    int descriptor;
    bool owned;     /* not standard output */
    bool regular;   /* owned and can be cut back */
    off_t whole;    /* bytes of whole lines, where regular */
    int failure;    /* errno of the first write that failed */
    char path[256]; /* for messages */
};

/*
 * Opens the file at a descriptor that is not one of the three standard ones, even where those are closed: what a
 * program writes to its standard error must not land between records. Returns -1 with errno. An interrupted call is not
 * repeated: who waits for the reader of a named pipe may want to be interrupted.
 */
static int open_file(const char *path, int how) {
    const int descriptor = open(path, O_WRONLY | O_CLOEXEC | how, 0666);
    if (descriptor < 0 || descriptor > STDERR_FILENO)
        return descriptor;
    const int moved = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    const int reason = errno;
    close(descriptor);
    errno = reason;
    return moved;
}

static hstep_status open_records(const char *path, int how, hstep_records **records, hstep_error *error) {
    HS_RETURN_IF(path == NULL || records == NULL, error, HSTEP_ERROR_ARGUMENT, "records: path or result is NULL");
    hstep_records *made = calloc(1, sizeof *made);
    if (made == NULL)
        return hs_fail_memory(error, "the records");
    const bool standard = strcmp(path, "-") == 0;
    strncpy(made->path, standard ? "standard output" : path, sizeof made->path - 1);
    made->descriptor = STDOUT_FILENO;
    made->owned = !standard;
    if (made->owned) {
        made->descriptor = open_file(path, how);
        if (made->descriptor < 0) {
            const int reason = errno;
            free(made);
            return hs_fail(error, HSTEP_ERROR_OUTPUT_FILE,
                           "cannot open the record file '%.200s': %s; name a file in a folder that exists and may be "
                           "written",
                           path, strerror(reason));
        }
        struct stat file;
        made->regular = fstat(made->descriptor, &file) == 0 && S_ISREG(file.st_mode);
    }
    *records = made;
    return HSTEP_OK;
}

hstep_status hstep_records_open(const char *path, hstep_records **records, hstep_error *error) {
    return open_records(path, O_CREAT | O_TRUNC, records, error);
}

/* Cuts a file that is open to its first bytes. Returns what is wrong with it, or NULL. */
static const char *cut(hstep_records *records, uint64_t bytes) {
    struct stat file;
    if (!records->regular)
        return "it is no regular file";
    if (fstat(records->descriptor, &file) != 0)
        return strerror(errno);
    if (bytes > (uint64_t)file.st_size)
        return "it is shorter than it was: lines of the run are missing";
    if (ftruncate(records->descriptor, (off_t)bytes) != 0 || lseek(records->descriptor, (off_t)bytes, SEEK_SET) < 0)
        return strerror(errno);
    records->whole = (off_t)bytes;
    return NULL;
}

hstep_status hstep_records_continue(const char *path, uint64_t bytes, hstep_records **records, hstep_error *error) {
    hstep_records *opened = NULL;
    HS_FORWARD(open_records(path, 0, &opened, error));
    const char *wrong = cut(opened, bytes);
    if (wrong != NULL) {
        (void)hstep_records_close(opened, NULL);
        return hs_fail(error, HSTEP_ERROR_OUTPUT_FILE,
                       "cannot go on in the record file '%.200s': %s; name another with --records", path, wrong);
    }
    *records = opened;
    return HSTEP_OK;
}

uint64_t hstep_records_size(const hstep_records *records) { return records->regular ? (uint64_t)records->whole : 0; }

static hstep_status write_failure(const hstep_records *records, hstep_error *error) {
    return hs_fail(error, HSTEP_ERROR_OUTPUT_FILE,
                   "cannot write records to '%s': %s; what was written before is kept, make room or choose another "
                   "file",
                   records->path, strerror(records->failure));
}

hstep_status hstep_records_close(hstep_records *records, hstep_error *error) {
    if (records == NULL)
        return HSTEP_OK;
    /* Linux closes the descriptor even when close is interrupted, so EINTR is no failure and no reason to repeat. */
    if (records->owned && close(records->descriptor) != 0 && errno != EINTR && records->failure == 0)
        records->failure = errno;
    const hstep_status status = records->failure == 0 ? HSTEP_OK : write_failure(records, error);
    free(records);
    return status;
}

/* Returns 0 or errno. */
static int write_all(int descriptor, const char *bytes, size_t size) {
    while (size > 0) {
        const ssize_t written = write(descriptor, bytes, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written < 0 ? errno : EIO;
        bytes += written;
        size -= (size_t)written;
    }
    return 0;
}

static hstep_status write_line(hstep_records *records, const char *line, size_t size, hstep_error *error) {
    if (records->failure == 0)
        records->failure = write_all(records->descriptor, line, size);
    if (records->failure == 0) {
        records->whole += (off_t)size;
        return HSTEP_OK;
    }
    /* Where cutting back fails too, the reader meets half a line at the end; there is nothing better to do. */
    if (records->regular && ftruncate(records->descriptor, records->whole) == 0)
        (void)lseek(records->descriptor, records->whole, SEEK_SET);
    return write_failure(records, error);
}

hstep_status hs_records_append(hstep_records *records, hs_record *record, hstep_error *error) {
    size_t size = 0;
    char *line = hs_record_line(record, &size);
    hstep_status status;
    if (line == NULL)
        status = hs_fail(error, record->status, "record to '%s' refused: %s", records->path, record->reason);
    else
        status = write_line(records, line, size, error);
    free(line);
    hs_record_end(record);
    return status;
}
