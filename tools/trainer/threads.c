#include "trainer/threads.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/*
 * The file that runs, which is another than the program's own where a loader was told to run it, or where it was
 * replaced meanwhile. /proc/self/exe itself would do to start it again, but then processes would be listed as "exe".
 */
static bool find_program(const char *name, char *path, size_t size) {
    const ssize_t length = readlink("/proc/self/exe", path, size);
    if (length <= 0 || (size_t)length >= size)
        return false;
    path[length] = '\0';
    return strcmp(base_name(path), base_name(name)) == 0 && access(path, X_OK) == 0;
}

void hs_threads_wait_briefly(char **argv) {
    char path[PATH_MAX];
    if (getenv("OMP_WAIT_POLICY") != NULL || getenv("GOMP_SPINCOUNT") != NULL || getenv("KMP_BLOCKTIME") != NULL)
        return;
    if (find_program(argv[0], path, sizeof path) && setenv("GOMP_SPINCOUNT", "10000", 1) == 0 &&
        setenv("KMP_BLOCKTIME", "1", 1) == 0)
        (void)execv(path, argv);
}
