#include "trainer/train/records/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

hstep_status hs_folder_lock(const char *folder, int *lock, hstep_error *error) {
    *lock = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*lock < 0 || flock(*lock, LOCK_EX | LOCK_NB) == 0)
        return HSTEP_OK;
    const bool taken = errno == EWOULDBLOCK;
    hs_folder_unlock(*lock);
    *lock = -1;
    if (!taken)
        return HSTEP_OK;
    *error = (hstep_error){.status = HSTEP_ERROR_OUTPUT_FILE};
    snprintf(error->message, sizeof error->message,
             "cannot write '%.240s': another run is writing there: wait for its end, or give another --out", folder);
    return error->status;
}

hstep_status hs_folder_check_unused(const char *folder, hstep_error *error) {
    int lock;
    const hstep_status status = hs_folder_lock(folder, &lock, error);
    hs_folder_unlock(lock);
    return status;
}

void hs_folder_unlock(int lock) {
    if (lock >= 0)
        (void)close(lock);
}
