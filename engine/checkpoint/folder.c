/* The checkpoints of a run: their names, the newest that is whole, and which may go. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/checkpoint/checkpoint.h"
#include "engine/error.h"
#include "engine/files/atomic.h"
#include "engine/files/names.h"
#include "engine/files/path.h"

static const char START[] = "checkpoint-", ENDING[] = ".safetensors";

enum { LEAST_DIGITS = 8, MOST_DIGITS = 19 };

/* ---- Names ---- */

hstep_status hstep_checkpoint_path(const char *folder, uint64_t step, char *path, size_t size, hstep_error *error) {
    HS_RETURN_IF(folder == NULL || path == NULL, error, HSTEP_ERROR_ARGUMENT, "a checkpoint's path needs a folder");
    static const char form[] = "%s/%s%0*" PRIu64 "%s";
    const int length = snprintf(NULL, 0, form, folder, START, LEAST_DIGITS, step, ENDING);
    HS_RETURN_IF(length < 0 || (size_t)length >= size, error, HSTEP_ERROR_ARGUMENT,
                 "the path of a checkpoint in '%s' does not fit into %zu bytes; choose a shorter folder",
                 hs_show_path(folder).text, size);
    (void)snprintf(path, size, form, folder, START, LEAST_DIGITS, step, ENDING);
    return HSTEP_OK;
}

/* Only names that hstep_checkpoint_path makes: with one spelling for each step. */
static bool read_name(const char *name, size_t length, uint64_t *step) {
    const size_t start = sizeof START - 1, ending = sizeof ENDING - 1;
    if (length < start + LEAST_DIGITS + ending || strncmp(name, START, start) != 0 ||
        strncmp(name + length - ending, ENDING, ending) != 0)
        return false;
    const size_t digits = length - start - ending;
    *step = 0;
    for (size_t i = 0; i < digits; i++) {
        const char c = name[start + i];
        if (c < '0' || c > '9' || digits > MOST_DIGITS)
            return false;
        *step = *step * 10 + (uint64_t)(c - '0');
    }
    return digits == LEAST_DIGITS || name[start] != '0';
}

/* Whatever else a run saves beside its checkpoints is of the same format. */
static bool is_saved_name(const char *name, size_t length) {
    const size_t ending = sizeof ENDING - 1;
    return length > ending && strncmp(name + length - ending, ENDING, ending) == 0;
}

static bool want_checkpoint(void *context, const char *name) {
    (void)context;
    uint64_t step = 0;
    return read_name(name, strlen(name), &step);
}

static int newest_first(const void *left, const void *right) {
    const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a == b ? 0 : a > b ? -1 : 1;
}

/* The steps of all checkpoints in a folder, the newest first; from malloc. */
static hstep_status list_steps(const hs_files *files, const char *folder, uint64_t **steps, size_t *count,
                               hstep_error *error) {
    hs_names names;
    HS_FORWARD(hs_names_read(files, folder, want_checkpoint, NULL, &names, error));
    *count = names.count;
    *steps = malloc((names.count + 1) * sizeof **steps);
    for (size_t i = 0; i < names.count && *steps != NULL; i++)
        (void)read_name(names.items[i], strlen(names.items[i]), &(*steps)[i]);
    hs_names_free(&names);
    if (*steps == NULL)
        return hs_fail_memory(error, "a list of checkpoints");
    qsort(*steps, *count, sizeof **steps, newest_first);
    return HSTEP_OK;
}

static char *path_of(const char *folder, uint64_t step) {
    return hs_format("%s/%s%0*" PRIu64 "%s", folder, START, LEAST_DIGITS, step, ENDING);
}

/* ---- The newest ---- */

/* Whether a checkpoint is whole: its state, and where `all` is set every byte. */
static hstep_status examine(const hs_files *files, const char *folder, uint64_t step, bool all,
                            hstep_checkpoint_state *state, hstep_error *error) {
    char *path = path_of(folder, step);
    hstep_tensor_file *file = NULL;
    if (path == NULL)
        return hs_fail_memory(error, "the name of a file");
    hstep_status status = hs_tensor_file_open(files, path, &file, error);
    if (status == HSTEP_OK)
        status = hstep_checkpoint_read_state(file, state, error);
    if (status == HSTEP_OK && all)
        status = hstep_tensor_file_verify(file, error);
    hstep_tensor_file_close(file);
    free(path);
    return status;
}

static hstep_status find_newest(const hs_files *files, const char *folder, const uint64_t *steps, size_t count,
                                hstep_found_checkpoint *found, hstep_skipped_checkpoint *skipped, size_t room,
                                hstep_error *error) {
    for (size_t i = 0; i < count; i++) {
        hstep_checkpoint_state state;
        hstep_error why = {0};
        const hstep_status status = examine(files, folder, steps[i], true, &state, &why);
        if (status == HSTEP_ERROR_MEMORY)
            return hs_fail_memory(error, "a checkpoint");
        if (status == HSTEP_OK) {
            found->found = 1;
            found->step = steps[i];
            return HSTEP_OK;
        }
        if (found->skipped < room) {
            skipped[found->skipped].step = steps[i];
            memcpy(skipped[found->skipped].reason, why.message, sizeof why.message);
        }
        found->skipped++;
    }
    return HSTEP_OK;
}

_Static_assert(sizeof((hstep_skipped_checkpoint *)0)->reason == sizeof((hstep_error *)0)->message,
               "a reason is an error's message");

hstep_status hs_checkpoint_find(const hs_files *files, const char *folder, hstep_found_checkpoint *found,
                                hstep_skipped_checkpoint *skipped, size_t room, hstep_error *error) {
    HS_RETURN_IF(folder == NULL || found == NULL || (skipped == NULL && room > 0), error, HSTEP_ERROR_ARGUMENT,
                 "hstep_checkpoint_find needs a folder and places for what it finds");
    uint64_t *steps = NULL;
    size_t count = 0;
    hstep_found_checkpoint result = {0};
    HS_FORWARD(list_steps(files, folder, &steps, &count, error));
    const hstep_status status = find_newest(files, folder, steps, count, &result, skipped, room, error);
    free(steps);
    if (status == HSTEP_OK)
        *found = result;
    return status;
}

hstep_status hstep_checkpoint_find(const char *folder, hstep_found_checkpoint *found, hstep_skipped_checkpoint *skipped,
                                   size_t room, hstep_error *error) {
    return hs_checkpoint_find(&hs_files_posix, folder, found, skipped, room, error);
}

/* ---- Keeping ---- */

/* What is known of one checkpoint for the choice. */
typedef struct candidate {
    uint64_t step;
    bool good;
    double loss;
} candidate;

/*
 * All bytes would be too much to read after every save: the header's checksum, the state's, and that the file is as
 * long as its header says tell a checkpoint that was written whole.
 */
static hstep_status examine_all(const hs_files *files, const char *folder, const uint64_t *steps, size_t count,
                                candidate *candidates, hstep_error *error) {
    for (size_t i = 0; i < count; i++) {
        hstep_checkpoint_state state = {0};
        const hstep_status status = examine(files, folder, steps[i], false, &state, NULL);
        if (status == HSTEP_ERROR_MEMORY)
            return hs_fail_memory(error, "a checkpoint");
        candidates[i] = (candidate){steps[i], status == HSTEP_OK, state.held_out_loss};
    }
    return HSTEP_OK;
}

/* The step of the lowest loss; candidates come newest first, so that the earliest of equals is taken. */
static uint64_t find_best(const candidate *candidates, size_t count) {
    uint64_t best = UINT64_MAX;
    double lowest = INFINITY;
    for (size_t i = 0; i < count; i++)
        if (candidates[i].good && isfinite(candidates[i].loss) && candidates[i].loss <= lowest) {
            lowest = candidates[i].loss;
            best = candidates[i].step;
        }
    return best;
}

static hstep_status remove_checkpoint(const hs_files *files, const char *folder, uint64_t step, size_t *removed,
                                      hstep_error *error) {
    char *path = path_of(folder, step);
    if (path == NULL)
        return hs_fail_memory(error, "the name of a file");
    const bool gone = files->remove(files->state, path) == 0 || errno == ENOENT;
    const int reason = errno;
    *removed += gone;
    hstep_status status = HSTEP_OK;
    if (!gone)
        status = hs_fail(error, HSTEP_ERROR_OUTPUT_FILE, "old checkpoint '%s' cannot be removed: %s; remove it by hand",
                         hs_show_path(path).text, strerror(reason));
    free(path);
    return status;
}

static hstep_status remove_old(const hs_files *files, const char *folder, const candidate *candidates, size_t count,
                               size_t last, uint64_t best, size_t *removed, hstep_error *error) {
    size_t seen = 0;
    for (size_t i = 0; i < count; i++) {
        if (!candidates[i].good || ++seen <= last || candidates[i].step == best)
            continue;
        HS_FORWARD(remove_checkpoint(files, folder, candidates[i].step, removed, error));
    }
    return HSTEP_OK;
}

static hstep_status keep(const hs_files *files, const char *folder, size_t last, bool best, size_t *removed,
                         hstep_error *error) {
    uint64_t *steps = NULL;
    size_t count = 0;
    HS_FORWARD(list_steps(files, folder, &steps, &count, error));
    candidate *candidates = calloc(count + 1, sizeof *candidates);
    hstep_status status = candidates != NULL ? examine_all(files, folder, steps, count, candidates, error)
                                             : hs_fail_memory(error, "a list of checkpoints");
    if (status == HSTEP_OK)
        status = remove_old(files, folder, candidates, count, last, best ? find_best(candidates, count) : UINT64_MAX,
                            removed, error);
    free(candidates);
    free(steps);
    return status;
}

hstep_status hs_checkpoint_keep(const hs_files *files, const char *folder, size_t last, int best, size_t *removed,
                                hstep_error *error) {
    HS_RETURN_IF(folder == NULL || last == 0, error, HSTEP_ERROR_ARGUMENT,
                 "hstep_checkpoint_keep needs a folder, and keeps 1 checkpoint at least");
    size_t leftovers = 0, old = 0;
    HS_FORWARD(hs_remove_leftovers(files, folder, is_saved_name, &leftovers, error));
    HS_FORWARD(keep(files, folder, last, best != 0, &old, error));
    if (removed != NULL)
        *removed = leftovers + old;
    return HSTEP_OK;
}

hstep_status hstep_checkpoint_keep(const char *folder, size_t last, int best, size_t *removed, hstep_error *error) {
    return hs_checkpoint_keep(&hs_files_posix, folder, last, best, removed, error);
}
