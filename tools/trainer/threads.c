#include "trainer/threads.h"

#include <stdlib.h>
#include <unistd.h>

void hs_threads_wait_briefly(char **argv) {
    if (getenv("OMP_WAIT_POLICY") != NULL || getenv("GOMP_SPINCOUNT") != NULL || getenv("KMP_BLOCKTIME") != NULL)
        return;
    if (setenv("GOMP_SPINCOUNT", "10000", 1) == 0 && setenv("KMP_BLOCKTIME", "1", 1) == 0)
        (void)execv("/proc/self/exe", argv);
}
