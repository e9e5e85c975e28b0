#include "trainer/train/records/output.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "trainer/report.h"
#include "trainer/train/records/lock.h"

static const char RECORDS[] = "records.jsonl";

static void fail(hstep_error *error, const char *path, const char *reason, const char *advice) {
    *error = (hstep_error){.status = HSTEP_ERROR_OUTPUT_FILE};
    snprintf(error->message, sizeof error->message, "cannot write '%.240s': %s: %s", path, reason, advice);
}

static int make_folder(const char *path) { return mkdir(path, 0777) == 0 || errno == EEXIST ? 0 : errno; }

/* Makes a folder and those above it. Returns 0 or errno. */
static int make_folders(char *path) {
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        const int failed = make_folder(path);
        *slash = '/';
        if (failed != 0)
            return failed;
    }
    return make_folder(path);
}

static char *records_in(const char *folder) {
    const size_t size = strlen(folder) + sizeof RECORDS + 1;
    char *path = malloc(size);
    if (path != NULL)
        snprintf(path, size, "%s/%s", folder, RECORDS);
    return path;
}

static bool same_file(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Records would empty a file that the run reads, under whatever name. What is no regular file has nothing to lose. */
static bool is_input(const char *records, const char *input, hstep_error *error) {
    const bool standard = strcmp(records, "-") == 0;
    struct stat output, read;
    if ((standard ? fstat(STDOUT_FILENO, &output) : stat(records, &output)) != 0 || !S_ISREG(output.st_mode) ||
        stat(input, &read) != 0 || !same_file(&output, &read))
        return false;
    *error = (hstep_error){.status = HSTEP_ERROR_ARGUMENT};
    snprintf(error->message, sizeof error->message,
             "records would be written over '%.240s', which this run reads: give another --records", input);
    return true;
}

static bool is_any_input(const char *records, const hs_options *options, const hstep_dataset *dataset,
                         hstep_error *error) {
    const size_t files = options->data.count > 0 ? hstep_dataset_file_count(dataset) : 0;
    hstep_data_file file;
    for (size_t i = 0; i < files; ++i)
        if (hstep_dataset_file(dataset, i, &file, error) == HSTEP_OK && is_input(records, file.name, error))
            return true;
    return options->config != NULL && is_input(records, options->config, error);
}

/* Records of a run that never came to a checkpoint step aside: the run starts anew. */
static int put_aside(const char *path) {
    char other[HS_PATH_ROOM];
    for (int i = 1;; ++i) {
        if (snprintf(other, sizeof other, "%s.%d", path, i) >= (int)sizeof other)
            return ENAMETOOLONG;
        if (link(path, other) == 0)
            return unlink(path) == 0 ? 0 : errno;
        if (errno != EEXIST)
            return errno;
    }
}

/* Records of an earlier run are never written over unless --records names them. */
static char *in_folder(const hs_options *options, hstep_error *error) {
    char *path = records_in(options->out);
    if (path == NULL) {
        (void)hs_no_memory(error);
        return NULL;
    }
    if (options->resumed.found || access(path, F_OK) != 0)
        return path;
    const int failed = options->resume ? put_aside(path) : EEXIST;
    if (failed == 0)
        return path;
    fail(error, path, strerror(failed), "give another --out, remove the run that is there, or go on with --resume");
    free(path);
    return NULL;
}

/* runs/ and time and precision; two runs of one second get different names, since mkdir tells who was first. */
static char *make_new_folder(hstep_precision precision, hstep_error *error) {
    char stamp[32] = "", folder[96];
    const time_t now = time(NULL);
    struct tm local;
    if (localtime_r(&now, &local) != NULL)
        strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &local);
    int failed = make_folder("runs");
    for (int i = 1; failed == 0; ++i) {
        const char *name = hstep_precision_name(precision);
        const int length = (int)strcspn(name, "-");
        char number[16] = "";
        if (i > 1)
            snprintf(number, sizeof number, "-%d", i);
        snprintf(folder, sizeof folder, "runs/%s-%.*s%s", stamp, length, name, number);
        if (mkdir(folder, 0777) == 0) {
            char *path = strdup(folder);
            if (path == NULL)
                (void)hs_no_memory(error);
            return path;
        }
        failed = errno == EEXIST ? 0 : errno;
    }
    fail(error, "runs", strerror(failed), "run from a folder that you may write to, or give --out");
    return NULL;
}

static char *make_out_folder(const char *out, hstep_error *error) {
    char *path = strdup(out);
    const int failed = path == NULL ? ENOMEM : make_folders(path);
    if (failed == 0)
        return path;
    free(path);
    if (failed == ENOMEM)
        (void)hs_no_memory(error);
    else
        fail(error, out, strerror(failed), "give another --out");
    return NULL;
}

static hstep_status choose(const hs_options *options, const hstep_dataset *dataset, char **folder, int *lock,
                           char **records, hstep_error *error) {
    if (options->out != NULL)
        *folder = make_out_folder(options->out, error);
    else if (options->records == NULL)
        *folder = make_new_folder((hstep_precision)options->precision, error);
    if (*folder == NULL && (options->out != NULL || options->records == NULL))
        return error->status;
    if (*folder != NULL && hs_folder_lock(*folder, lock, error) != HSTEP_OK)
        return error->status;
    if (options->records != NULL && is_any_input(options->records, options, dataset, error))
        return error->status;
    if (options->records != NULL)
        *records = strdup(options->records);
    else
        *records = options->out != NULL ? in_folder(options, error) : records_in(*folder);
    if (*records == NULL && error->status == HSTEP_OK)
        return hs_no_memory(error);
    return *records != NULL ? HSTEP_OK : error->status;
}

hstep_status hs_output_choose(const hs_options *options, const hstep_dataset *dataset, char **folder, int *lock,
                              char **records, hstep_error *error) {
    *folder = *records = NULL;
    *lock = -1;
    *error = (hstep_error){0};
    return choose(options, dataset, folder, lock, records, error);
}
