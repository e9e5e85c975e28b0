#include "trainer/model/target.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "trainer/exit.h"
#include "trainer/report.h"

int hs_target_check(const char *command, const char *source, const char *path, bool overwrite) {
    struct stat read, target;
    if (lstat(path, &target) != 0)
        return HS_EXIT_DONE;
    if (source != NULL && stat(source, &read) == 0 && stat(path, &target) == 0 && read.st_dev == target.st_dev &&
        read.st_ino == target.st_ino)
        return hs_report_usage(command, "'%s' is the checkpoint itself: give another --out", path);
    if (overwrite)
        return HS_EXIT_DONE;
    hs_report("cannot write '%s': %s: give another --out, or --overwrite", path, strerror(EEXIST));
    return HS_EXIT_OUTPUT;
}
