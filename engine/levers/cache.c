#include "engine/levers/cache.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "engine/levers/cache_rows.h"

static const char SCHEMA[] = "halfstep.lever-verdicts/1";

/* Verdicts of other machines and versions that are kept beside each other, the latest first. */
enum { MOST_VERDICTS = 32, PATH = 4096 };

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

/* The array of verdicts that a file holds, borrowed from *root. */
static json_t *verdicts_of(json_t *root) {
    const char *schema = json_string_value(json_object_get(root, "schema"));
    json_t *verdicts = json_object_get(root, "verdicts");
    return schema != NULL && strcmp(schema, SCHEMA) == 0 && json_is_array(verdicts) ? verdicts : NULL;
}

static bool is_text(const json_t *object, const char *name, const char *text) {
    const char *value = json_string_value(json_object_get(object, name));
    return value != NULL && strcmp(value, text) == 0;
}

static bool is_about(const json_t *verdict, const char *lever, const char *key) {
    return is_text(verdict, "lever", lever) && is_text(verdict, "key", key);
}

bool hs_cache_read(const char *lever, const char *key, hs_verdict *verdict) {
    char path[PATH];
    *verdict = (hs_verdict){0};
    json_t *root = find_path(path, false) ? json_load_file(path, JSON_REJECT_DUPLICATES, NULL) : NULL;
    json_t *verdicts = verdicts_of(root);
    bool found = false;
    for (size_t i = 0; i < json_array_size(verdicts) && !found; i++) {
        const json_t *candidate = json_array_get(verdicts, i);
        found = is_about(candidate, lever, key) && hs_cache_unpack(candidate, verdict);
    }
    json_decref(root);
    return found;
}

/* The new file's content: `latest` first, then what was there and is about something else. Takes `latest`. */
static json_t *merge(json_t *latest, json_t *old, const char *lever, const char *key) {
    json_t *root = json_pack("{s:s, s:[]}", "schema", SCHEMA, "verdicts");
    json_t *verdicts = json_object_get(root, "verdicts"), *kept = verdicts_of(old);
    if (json_array_append_new(verdicts, latest) != 0) {
        json_decref(root);
        return NULL;
    }
    for (size_t i = 0; i < json_array_size(kept) && json_array_size(verdicts) < MOST_VERDICTS; i++)
        if (!is_about(json_array_get(kept, i), lever, key))
            (void)json_array_append(verdicts, json_array_get(kept, i));
    return root;
}

void hs_cache_write(const char *lever, const char *key, const hs_verdict *verdict) {
    char path[PATH], temporary[PATH + 32];
    if (!find_path(path, true))
        return;
    json_t *latest = hs_cache_pack(verdict);
    if (latest == NULL)
        return;
    (void)json_object_set_new(latest, "lever", json_string(lever));
    (void)json_object_set_new(latest, "key", json_string(key));
    json_t *old = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
    json_t *root = merge(latest, old, lever, key);
    (void)snprintf(temporary, sizeof temporary, "%s.%ld", path, (long)getpid());
    if (root != NULL && json_dump_file(root, temporary, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) == 0) {
        if (rename(temporary, path) != 0)
            (void)unlink(temporary);
    } else {
        (void)unlink(temporary);
    }
    json_decref(root);
    json_decref(old);
}
