#include "engine/levers/cache/cache.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "engine/levers/cache/rows.h"

static const char SCHEMA[] = "halfstep.lever-verdicts/2";

/* Verdicts of other machines and versions that are kept beside each other, the latest first; a file beyond MOST_BYTES
 * is none of ours. */
enum { MOST_VERDICTS = 32, PATH = 4096, MOST_BYTES = 16 << 20 };

/* The file; makes its folders where `make` is set. */
static bool find_path(char path[PATH], bool make) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int length = -1;
    if (cache != NULL && cache[0] == '/')
        length = snprintf(path, PATH, "%s", cache);
    else if (home != NULL && home[0] == '/')
        length = snprintf(path, PATH, "%s/.cache", home);
    if (length < 0 || length > PATH - 64)
        return false;
    if (make)
        (void)mkdir(path, 0700);
    (void)strcat(path, "/halfstep");
    if (make)
        (void)mkdir(path, 0700);
    (void)strcat(path, "/levers.json");
    return true;
}

/* Nobody else can have written it, and reading it ends. */
static bool is_trusted(int file) {
    struct stat status;
    return fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
           (status.st_mode & (S_IWGRP | S_IWOTH)) == 0 && status.st_size <= MOST_BYTES;
}

/* What the file holds, NULL for nothing. Not blocking: a pipe may stand in its place. */
static json_t *load(const char *path) {
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0)
        return NULL;
    FILE *stream = is_trusted(file) ? fdopen(file, "r") : NULL;
    json_t *root = stream != NULL ? json_loadf(stream, JSON_REJECT_DUPLICATES, NULL) : NULL;
    (void)(stream != NULL ? fclose(stream) : close(file));
    const char *schema = json_string_value(json_object_get(root, "schema"));
    if (schema != NULL && strcmp(schema, SCHEMA) == 0)
        return root;
    json_decref(root);
    return NULL;
}

static json_t *load_ours(void) {
    char path[PATH];
    return find_path(path, false) ? load(path) : NULL;
}

static bool is_text(const json_t *object, const char *name, const char *text) {
    const char *value = json_string_value(json_object_get(object, name));
    return value != NULL && strcmp(value, text) == 0;
}

static bool is_about(const json_t *verdict, const char *lever, const char *key) {
    return is_text(verdict, "lever", lever) && is_text(verdict, "key", key);
}

bool hs_cache_read(const char *lever, const char *key, hs_verdict *verdict) {
    *verdict = (hs_verdict){0};
    json_t *root = load_ours();
    const json_t *verdicts = json_object_get(root, "verdicts");
    bool found = false;
    for (size_t i = 0; i < json_array_size(verdicts) && !found; i++) {
        const json_t *candidate = json_array_get(verdicts, i);
        found = is_about(candidate, lever, key) && hs_cache_unpack(candidate, verdict);
    }
    json_decref(root);
    return found;
}

bool hs_cache_is_rejected(const char *lever, const char *machine, char reason[HS_CACHE_REASON]) {
    json_t *root = load_ours();
    const json_t *rejections = json_object_get(root, "rejections");
    bool found = false;
    for (size_t i = 0; i < json_array_size(rejections) && !found; i++) {
        const json_t *one = json_array_get(rejections, i);
        const char *why = json_string_value(json_object_get(one, "reason"));
        found = is_text(one, "lever", lever) && is_text(one, "machine", machine);
        (void)snprintf(reason, HS_CACHE_REASON, "%s", why != NULL ? why : "no reason given");
    }
    json_decref(root);
    return found;
}

/* The new file's content: `latest` first, then what was there and is about something else. Takes `latest`. */
static json_t *merge(json_t *latest, json_t *old, const char *lever, const char *key) {
    json_t *root = json_pack("{s:s, s:[], s:[]}", "schema", SCHEMA, "rejections", "verdicts");
    json_t *verdicts = json_object_get(root, "verdicts"), *kept = json_object_get(old, "verdicts"),
           *rejections = json_object_get(old, "rejections");
    if (json_array_append_new(verdicts, latest) != 0) {
        json_decref(root);
        return NULL;
    }
    for (size_t i = 0; i < json_array_size(kept) && json_array_size(verdicts) < MOST_VERDICTS; i++)
        if (!is_about(json_array_get(kept, i), lever, key))
            (void)json_array_append(verdicts, json_array_get(kept, i));
    if (json_is_array(rejections))
        (void)json_object_set(root, "rejections", rejections);
    return root;
}

/* Puts a whole file in the place of an older one, through a new file of its own beside it. */
static bool replace(const char *path, const json_t *root) {
    char temporary[PATH + 16];
    (void)snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    const int file = mkstemp(temporary);
    if (file < 0)
        return false;
    FILE *stream = fdopen(file, "w");
    bool written = stream != NULL && json_dumpf(root, stream, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) == 0;
    written = (stream != NULL ? fclose(stream) : close(file)) == 0 && written;
    if (written && rename(temporary, path) == 0)
        return true;
    (void)unlink(temporary);
    return false;
}

bool hs_cache_trouble(char trouble[HS_CACHE_TROUBLE]) {
    char path[PATH];
    if (!find_path(path, false) || access(path, F_OK) != 0)
        return false;
    json_t *root = load(path);
    (void)snprintf(trouble, HS_CACHE_TROUBLE,
                   "'%.300s' cannot be read, belongs to others, may be written by others, or is none of this version; "
                   "remove it",
                   path);
    json_decref(root);
    return root == NULL;
}

bool hs_cache_write(const char *lever, const char *key, const hs_verdict *verdict) {
    char path[PATH];
    json_t *latest = find_path(path, true) ? hs_cache_pack(verdict) : NULL;
    if (latest == NULL)
        return false;
    (void)json_object_set_new(latest, "lever", json_string(lever));
    (void)json_object_set_new(latest, "key", json_string(key));
    json_t *old = load(path), *root = merge(latest, old, lever, key);
    const bool written = root != NULL && replace(path, root);
    json_decref(root);
    json_decref(old);
    return written;
}

/* The file's content without one rejection; *found tells whether it was there. NULL for want of memory. */
static json_t *without_rejection(json_t *old, const char *lever, const char *machine, bool *found) {
    json_t *root = json_pack("{s:s, s:[], s:[]}", "schema", SCHEMA, "rejections", "verdicts");
    json_t *verdicts = json_object_get(old, "verdicts"), *kept = json_object_get(old, "rejections"),
           *rejections = json_object_get(root, "rejections");
    *found = false;
    for (size_t i = 0; i < json_array_size(kept); i++) {
        json_t *one = json_array_get(kept, i);
        const bool meant = is_text(one, "lever", lever) && is_text(one, "machine", machine);
        *found = *found || meant;
        if (!meant)
            (void)json_array_append(rejections, one);
    }
    if (root != NULL && json_is_array(verdicts))
        (void)json_object_set(root, "verdicts", verdicts);
    return root;
}

bool hs_cache_reject(const char *lever, const char *machine, const char *reason) {
    char path[PATH];
    bool found;
    if (!find_path(path, true))
        return false;
    json_t *old = load(path), *root = without_rejection(old, lever, machine, &found);
    json_t *one = json_pack("{s:s, s:s, s:s}", "lever", lever, "machine", machine, "reason", reason);
    const bool kept =
        one != NULL && json_array_append_new(json_object_get(root, "rejections"), one) == 0 && replace(path, root);
    json_decref(root);
    json_decref(old);
    return kept;
}

bool hs_cache_clear_rejection(const char *lever, const char *machine, bool *found) {
    char path[PATH];
    *found = false;
    if (!find_path(path, false))
        return true;
    json_t *old = load(path), *root = without_rejection(old, lever, machine, found);
    const bool cleared = !*found || (root != NULL && replace(path, root));
    json_decref(root);
    json_decref(old);
    return cleared;
}
