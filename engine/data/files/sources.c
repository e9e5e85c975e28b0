#include "engine/data/files/sources.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/data/files/file.h"
#include "engine/error.h"

/* The folders between the one that was named and the one that is read: a link to one of them would have no end. */
typedef struct folder {
    const char *path;
    dev_t device;
    ino_t inode;
    const struct folder *above;
} folder;

static hstep_status fail_memory(hstep_error *error) { return hs_fail_memory(error, "the names of data files"); }

static hstep_status append(hs_sources *sources, const char *path, hstep_error *error) {
    if (sources->count == sources->capacity) {
        const size_t capacity = sources->capacity == 0 ? 16 : sources->capacity * 2;
        char **paths = realloc(sources->paths, capacity * sizeof *paths);
        if (paths == NULL)
            return fail_memory(error);
        sources->paths = paths;
        sources->capacity = capacity;
    }
    char *copy = strdup(path);
    if (copy == NULL)
        return fail_memory(error);
    sources->paths[sources->count++] = copy;
    return HSTEP_OK;
}

static int by_bytes(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

static hstep_status add_folder(hs_sources *sources, const folder *here, hstep_error *error);

/* A file or folder that a folder holds. What is empty or no file has no tokens and was not asked for by name. */
static hstep_status add_entry(hs_sources *sources, const folder *here, const char *name, hstep_error *error) {
    const size_t size = strlen(here->path) + strlen(name) + 2;
    char *path = malloc(size);
    if (path == NULL)
        return fail_memory(error);
    const char *slash = here->path[strlen(here->path) - 1] == '/' ? "" : "/";
    snprintf(path, size, "%s%s%s", here->path, slash, name);
    struct stat status;
    hstep_status result = HSTEP_OK;
    if (stat(path, &status) != 0) {
        result = hs_fail_file(error, path, "%s: remove it, or name the other files", strerror(errno));
    } else if (S_ISDIR(status.st_mode)) {
        const folder below = {path, status.st_dev, status.st_ino, here};
        result = add_folder(sources, &below, error);
    } else if (S_ISREG(status.st_mode) && status.st_size > 0) {
        result = append(sources, path, error);
    }
    free(path);
    return result;
}

/* The names in a folder, hidden ones left out, into a list that has nothing but names. */
static hstep_status list_names(const folder *here, hs_sources *names, hstep_error *error) {
    DIR *stream = opendir(here->path);
    if (stream == NULL)
        return hs_fail_file(error, here->path, "%s: give a folder that can be read", strerror(errno));
    hstep_status status = HSTEP_OK;
    errno = 0;
    for (const struct dirent *entry; status == HSTEP_OK && (entry = readdir(stream)) != NULL; errno = 0)
        if (entry->d_name[0] != '.')
            status = append(names, entry->d_name, error);
    if (status == HSTEP_OK && errno != 0)
        status = hs_fail_file(error, here->path, "%s: give a folder that can be read", strerror(errno));
    closedir(stream);
    if (names->count > 0)
        qsort(names->paths, names->count, sizeof *names->paths, by_bytes);
    return status;
}

static hstep_status add_folder(hs_sources *sources, const folder *here, hstep_error *error) {
    for (const folder *above = here->above; above != NULL; above = above->above)
        if (above->device == here->device && above->inode == here->inode)
            return hs_fail_file(error, here->path, "it leads back to a folder that it stands in: remove this link");
    hs_sources names = {0};
    hstep_status status = list_names(here, &names, error);
    for (size_t i = 0; i < names.count && status == HSTEP_OK; ++i)
        status = add_entry(sources, here, names.paths[i], error);
    hs_sources_free(&names);
    return status;
}

/* A path that exists. */
static hstep_status add_existing(hs_sources *sources, const char *path, const struct stat *status, hstep_error *error) {
    if (!S_ISDIR(status->st_mode))
        return append(sources, path, error);
    const size_t before = sources->count;
    const folder here = {path, status->st_dev, status->st_ino, NULL};
    HS_FORWARD(add_folder(sources, &here, error));
    if (sources->count == before)
        return hs_fail_file(error, path, "a directory without files that hold something: give another one");
    return HSTEP_OK;
}

static hstep_status add_match(hs_sources *sources, const char *path, hstep_error *error) {
    struct stat status;
    if (stat(path, &status) != 0)
        return hs_fail_file(error, path, "%s: check the path", strerror(errno));
    return add_existing(sources, path, &status, error);
}

/* A folder that is not there matches nothing; one that cannot be read may hold what is meant. */
static int ends_search(const char *path, int reason) {
    (void)path;
    return reason != ENOENT && reason != ENOTDIR;
}

static hstep_status add_pattern(hs_sources *sources, const char *pattern, hstep_error *error) {
    glob_t found = {0};
    /* glob's own order is that of the user's language. */
    const int failed = glob(pattern, GLOB_NOSORT, ends_search, &found);
    hstep_status status = HSTEP_OK;
    if (failed == GLOB_NOMATCH)
        status = hs_fail_file(error, pattern, "no file matches this pattern: check the path");
    else if (failed == GLOB_NOSPACE)
        status = fail_memory(error);
    else if (failed != 0)
        status = hs_fail_file(error, pattern, "a folder of this pattern cannot be read: check its permissions");
    else
        qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, by_bytes);
    for (size_t i = 0; status == HSTEP_OK && i < found.gl_pathc; ++i)
        status = add_match(sources, found.gl_pathv[i], error);
    globfree(&found);
    return status;
}

hstep_status hs_sources_add(hs_sources *sources, const char *path, hstep_error *error) {
    struct stat status;
    if (stat(path, &status) == 0)
        return add_existing(sources, path, &status, error);
    if (errno == ENOENT && strpbrk(path, "*?[") != NULL)
        return add_pattern(sources, path, error);
    return hs_fail_file(error, path, "%s: check the path", strerror(errno));
}

void hs_sources_free(hs_sources *sources) {
    for (size_t i = 0; i < sources->count; ++i)
        free(sources->paths[i]);
    free(sources->paths);
    *sources = (hs_sources){0};
}
